// What S3 answers about objects: reads, conditions, ranges, copies, versions, tags and locks.
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, send, sendSigned, startSite, type Site } from "./conformity-gateway.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket();
});
afterAll(() => site.close());

const put = (Key: string, more: Partial<s3.PutObjectCommandInput> = {}): Promise<s3.PutObjectCommandOutput> =>
  site.client.send(new s3.PutObjectCommand({ Bucket, Key, Body: "testcontent", ...more }));
const get = (Key: string, more: Partial<s3.GetObjectCommandInput> = {}): Promise<s3.GetObjectCommandOutput> =>
  site.client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
const head = (Key: string, more: Partial<s3.HeadObjectCommandInput> = {}): Promise<s3.HeadObjectCommandOutput> =>
  site.client.send(new s3.HeadObjectCommand({ Bucket, Key, ...more }));
const textOf = async (Key: string, more: Partial<s3.GetObjectCommandInput> = {}): Promise<string> =>
  (await (await get(Key, more)).Body?.transformToString()) ?? "";
const tagsOf = async (Key: string): Promise<unknown> =>
  (await site.client.send(new s3.GetObjectTaggingCommand({ Bucket, Key }))).TagSet;

describe("reads", () => {
  it("return every content header, or its override in the query", async () => {
    const content = {
      ContentType: "a/b",
      CacheControl: "public, max-age=14400",
      ContentDisposition: "x",
      ContentLanguage: "de",
      ContentEncoding: "gzip",
    };
    await put("headers", { ...content, Metadata: { empty: "", umlaut: "é" } });
    expect(await head("headers")).toMatchObject({ ...content, Metadata: { empty: "", umlaut: "é" } });
    const { headers } = await sendSigned(site.port, { method: "HEAD", path: `/${Bucket}/headers` });
    expect(Object.keys(headers)).not.toContain("contenttype");
    const changed = { ResponseContentType: "c/d", ResponseCacheControl: "no-cache", ResponseContentLanguage: "eo" };
    expect(await get("headers", changed)).toMatchObject({
      ContentType: "c/d",
      CacheControl: "no-cache",
      ContentLanguage: "eo",
    });
    await put("headers", { Body: "" });
    expect(await head("headers")).toMatchObject({ ContentLength: 0, Metadata: {} });
  });

  it("obey their conditions, which take precedence over the range", async () => {
    const { ETag } = await put("conditions");
    const [past, future] = [new Date("1994-10-29"), new Date("2100-01-01")];
    await get("conditions", { IfMatch: ETag, IfUnmodifiedSince: past });
    await get("conditions", { IfNoneMatch: '"other"', IfModifiedSince: new Date() });
    await get("conditions", { IfModifiedSince: past });
    await get("conditions", { IfModifiedSince: future });
    const { LastModified } = await head("conditions");
    await get("conditions", { IfUnmodifiedSince: future });
    const refused: readonly [Partial<s3.GetObjectCommandInput>, number][] = [
      [{ IfMatch: '"other"' }, 412],
      [{ IfMatch: '"other"', Range: "bytes=99-" }, 412],
      [{ IfUnmodifiedSince: past }, 412],
      [{ IfNoneMatch: ETag }, 304],
      [{ IfNoneMatch: ETag, IfModifiedSince: past }, 304],
      [{ IfModifiedSince: LastModified }, 304],
      [{ Range: "bytes=99-" }, 416],
    ];
    for (const [more, status] of refused) expect((await failureOf(get("conditions", more)))[1]).toBe(status);
  });

  it("return one range, from either end, and the whole object for an invalid range", async () => {
    await put("ranges");
    await put("empty", { Body: "" });
    const good: readonly [string, string, string][] = [
      ["bytes=4-7", "cont", "bytes 4-7/11"],
      ["bytes=4-", "content", "bytes 4-10/11"],
      ["bytes=-7", "content", "bytes 4-10/11"],
      ["bytes=-99", "testcontent", "bytes 0-10/11"],
      ["bytes=10-99999999999999999999", "t", "bytes 10-10/11"],
    ];
    for (const [Range, text, ContentRange] of good) {
      const found = await get("ranges", { Range });
      expect([await found.Body?.transformToString(), found.ContentRange]).toEqual([text, ContentRange]);
    }
    for (const Range of ["bytes=0-1,3-4", "lines=1-2", "bytes=7-4", "bytes=-"])
      expect(await textOf("ranges", { Range })).toBe("testcontent");
    for (const Range of ["bytes=11-", "bytes=-0", "bytes=99999999999999999999-"])
      expect(await failureOf(get("ranges", { Range }))).toEqual(["InvalidRange", 416]);
    for (const Range of ["bytes=0-", "bytes=-1"])
      expect(await failureOf(get("empty", { Range }))).toEqual(["InvalidRange", 416]);
  });

  it("report errors with the request id, and without characters that XML cannot carry", async () => {
    const { headers, text, status } = await sendSigned(site.port, { path: `/${Bucket}/none%01%3Cx%3E` });
    expect(status).toBe(404);
    expect(text).toContain(`<RequestId>${headers["x-amz-request-id"]}</RequestId>`);
    expect(text).toContain("<Key>none\ufffd&lt;x&gt;</Key>");
  });
});

describe("writes", () => {
  it("obey their conditions, and a client waiting to send its body is refused before it sends", async () => {
    const { ETag } = await put("once", { IfNoneMatch: "*" });
    expect(await failureOf(put("once", { IfNoneMatch: "*" }))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(put("once", { IfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(put("never", { IfMatch: "*" }))).toEqual(["NoSuchKey", 404]);
    await put("once", { IfMatch: ETag, Body: "again" });
    const deleting = (IfMatch: string): Promise<unknown> =>
      site.client.send(new s3.DeleteObjectCommand({ Bucket, Key: "once", IfMatch }));
    expect(await failureOf(deleting('"other"'))).toEqual(["PreconditionFailed", 412]);
    const remove = (more: Partial<s3.DeleteObjectCommandInput>): Promise<unknown> =>
      site.client.send(new s3.DeleteObjectCommand({ Bucket, Key: "once", ...more }));
    const { LastModified, ContentLength } = await head("once");
    for (const more of [{ IfMatchSize: 1 }, { IfMatchLastModifiedTime: new Date(0) }])
      expect(await failureOf(remove(more))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(remove({ IfMatch: "*", VersionId: "null" }))).toEqual(["NotImplemented", 501]);
    const many = (more: Partial<s3.ObjectIdentifier>): Promise<s3.DeleteObjectsCommandOutput> =>
      site.client.send(new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: "once", ...more }] } }));
    for (const more of [{ Size: 1 }, { LastModifiedTime: new Date(0) }, { ETag: "other" }])
      expect((await many(more)).Errors?.[0]?.Code).toBe("PreconditionFailed");
    expect(await textOf("once")).toBe("again");
    expect((await many({ Size: ContentLength, LastModifiedTime: LastModified })).Errors).toBe(undefined);
    expect(await failureOf(head("once"))).toEqual(["NotFound", 404]);
    await put("once", {});
    await deleting("*");
    expect(await failureOf(head("once"))).toEqual(["NotFound", 404]);
  });

  it("with If-None-Match of an ETag fail if the current version has it, and succeed otherwise", async () => {
    const other = `"${"0".repeat(32)}"`;
    const { ETag = "" } = await put("etag", { IfNoneMatch: other });
    for (const IfNoneMatch of [ETag, ETag.replaceAll('"', ""), `${other}, ${ETag}`])
      expect(await failureOf(put("etag", { IfNoneMatch }))).toEqual(["PreconditionFailed", 412]);
    const refused = { IfNoneMatch: ETag, IfMatch: ETag };
    expect(await failureOf(put("etag", refused))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(put("etag", { IfMatch: ETag, IfNoneMatch: "*" }))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(put("etag", { IfMatch: other, IfNoneMatch: other }))).toEqual(["PreconditionFailed", 412]);
    await put("etag", { IfNoneMatch: other, IfMatch: ETag, Body: "second" });
    await put("etag", { IfNoneMatch: ETag, Body: "third" });
    const { ETag: third } = await head("etag");
    const copy = (IfNoneMatch: string | undefined): Promise<unknown> =>
      site.client.send(
        new s3.CopyObjectCommand({ Bucket, Key: "etag", CopySource: `${Bucket}/etag-source`, IfNoneMatch }),
      );
    await put("etag-source", { Body: "copied" });
    expect(await failureOf(copy(third))).toEqual(["PreconditionFailed", 412]);
    await copy(ETag);
    const { UploadId } = await site.client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "etag" }));
    const part = await site.client.send(
      new s3.UploadPartCommand({ Bucket, Key: "etag", UploadId, PartNumber: 1, Body: "parts" }),
    );
    const complete = (IfNoneMatch: string | undefined): Promise<unknown> =>
      site.client.send(
        new s3.CompleteMultipartUploadCommand({
          Bucket,
          Key: "etag",
          UploadId,
          MultipartUpload: { Parts: [{ PartNumber: 1, ETag: part.ETag }] },
          IfNoneMatch,
        }),
      );
    expect(await failureOf(complete((await head("etag")).ETag))).toEqual(["PreconditionFailed", 412]);
    await complete(third);
    expect(await textOf("etag")).toBe("parts");
  });

  it("with If-None-Match of an ETag succeed for exactly one of many puts of that content", async () => {
    const versioned = await site.newBucket();
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await site.client.send(new s3.PutBucketVersioningCommand({ Bucket: versioned, VersioningConfiguration }));
    const { ETag } = await put("elsewhere");
    const race = { Bucket: versioned, IfNoneMatch: ETag };
    const done = await Promise.allSettled(Array.from({ length: 16 }, () => put("raced", race)));
    expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const each of done)
      if (each.status === "rejected") expect((each.reason as Error).name).toBe("PreconditionFailed");
    const { Versions } = await site.client.send(new s3.ListObjectVersionsCommand({ Bucket: versioned }));
    expect(Versions).toHaveLength(1);
  });

  it("keep Content-Encoding as sent, except aws-chunked", async () => {
    const lists: readonly (readonly [sent: string, kept: string | undefined])[] = [
      ["gzip, br", "gzip, br"],
      ["gzip,br", "gzip,br"],
      ["deflate,  gzip , br", "deflate,  gzip , br"],
      ["aws-chunked, gzip, br", "gzip, br"],
      ["gzip, AWS-chunked, br", "gzip, br"],
      ["gzip,aws-chunked", "gzip"],
      ["aws-chunked", undefined],
    ];
    for (const [sent, kept] of lists) {
      const path = `/${Bucket}/encoded`;
      const headers = { "content-encoding": sent };
      expect(await sendSigned(site.port, { method: "PUT", path, headers, body: "x" })).toMatchObject({ status: 200 });
      expect((await sendSigned(site.port, { method: "HEAD", path })).headers["content-encoding"]).toBe(kept);
    }
  });

  it("refuse an invalid or wrong digest, and a body without a length", async () => {
    const digest = (md5: string): Promise<unknown> => put("digest", { ContentMD5: md5 });
    expect(await failureOf(digest("YWJyYWNhZGFicmE="))).toEqual(["InvalidDigest", 400]);
    expect(await failureOf(digest("rL0Y20xC+Fzt72VPzMSk2A=="))).toEqual(["BadDigest", 400]);
    const lengthless = {
      method: "PUT",
      path: `/${Bucket}/digest`,
      headers: { "transfer-encoding": "chunked" },
      body: "x",
    };
    expect(await sendSigned(site.port, lengthless)).toMatchObject({ status: 411, code: "MissingContentLength" });
    const announced = { "x-amz-sdk-checksum-algorithm": "CRC32" };
    const silent = await sendSigned(site.port, {
      method: "PUT",
      path: `/${Bucket}/digest`,
      headers: announced,
      body: "x",
    });
    expect(silent).toMatchObject({ status: 400, code: "InvalidRequest" });
  });

  it("report each of up to a thousand deletions, or only failures if asked", async () => {
    await put("many");
    const many = (keys: readonly string[], Quiet = false): Promise<s3.DeleteObjectsCommandOutput> =>
      site.client.send(
        new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })), Quiet } }),
      );
    expect((await many(["many", "never"])).Deleted).toHaveLength(2);
    // A document of more than a mebibyte: each character of a key has five in it.
    const long = Array.from({ length: 220 }, (_, index) => `${index}${"&".repeat(1000)}`);
    expect((await many(long, true)).Deleted).toBe(undefined);
    const most = Array.from({ length: 1001 }, (_, index) => `${index}`);
    expect(await failureOf(many(most))).toEqual(["MalformedXML", 400]);
  });
});

describe("copies", () => {
  const copy = (from: string, Key: string, more: Partial<s3.CopyObjectCommandInput> = {}): Promise<unknown> =>
    site.client.send(
      new s3.CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/${encodeURIComponent(from)}`, ...more }),
    );

  it("inherit or replace metadata and tags independently", async () => {
    await put("source", { ContentType: "a/b", Metadata: { k: "v" }, Tagging: "t=1" });
    await copy("source", "same");
    expect(await head("same")).toMatchObject({ ContentType: "a/b", Metadata: { k: "v" } });
    expect(await tagsOf("same")).toEqual([{ Key: "t", Value: "1" }]);
    await copy("source", "meta", { MetadataDirective: "REPLACE", Metadata: { other: "1" } });
    expect((await head("meta")).Metadata).toEqual({ other: "1" });
    expect(await tagsOf("meta")).toEqual([{ Key: "t", Value: "1" }]);
    await copy("source", "tags", { TaggingDirective: "REPLACE", Tagging: "z=9" });
    expect((await head("tags")).Metadata).toEqual({ k: "v" });
    expect(await tagsOf("tags")).toEqual([{ Key: "z", Value: "9" }]);
  });

  it("onto itself must change something, and the source must exist and meet its conditions", async () => {
    const { ETag } = await put("self");
    expect(await failureOf(copy("self", "self"))).toEqual(["InvalidRequest", 400]);
    await copy("self", "self", { MetadataDirective: "REPLACE", Metadata: { a: "1" } });
    expect((await failureOf(copy("none", "x")))[1]).toBe(404);
    expect(await failureOf(copy("self", "x", { CopySourceIfMatch: '"other"' }))).toEqual(["PreconditionFailed", 412]);
    expect(await failureOf(copy("self", "x", { CopySourceIfNoneMatch: ETag }))).toEqual(["PreconditionFailed", 412]);
    await copy("self", "x", { CopySourceIfMatch: ETag });
    for (const key of ["a?b", "?versionId", " ", "ä/ö%20", "a+b"]) {
      await put(key, { Body: key });
      await copy(key, "strange");
      expect(await textOf("strange")).toBe(key);
    }
  });
});

describe("versions", () => {
  it("of a suspended bucket are null, and its deletions are null markers", async () => {
    Bucket = await site.newBucket();
    await put("k", { Body: "before" });
    const versioning = (Status: "Enabled" | "Suspended"): Promise<unknown> =>
      site.client.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status } }));
    await versioning("Enabled");
    const ids: (string | undefined)[] = [];
    for (const Body of ["1", "2", "3"]) ids.unshift((await put("k", { Body })).VersionId);
    await versioning("Suspended");
    expect((await put("k", { Body: "after" })).VersionId).toBe(undefined);
    expect(await get("k", { VersionId: "null" })).toMatchObject({ VersionId: "null" });
    const list = async (more = {}): Promise<s3.ListObjectVersionsCommandOutput> =>
      await site.client.send(new s3.ListObjectVersionsCommand({ Bucket, ...more }));
    expect((await list()).Versions?.map(({ VersionId }) => VersionId)).toEqual(["null", ...ids]);
    expect((await list()).Versions?.map(({ IsLatest }) => IsLatest)).toEqual([true, false, false, false]);
    const first = await list({ MaxKeys: 2 });
    const rest = await list({ KeyMarker: first.NextKeyMarker, VersionIdMarker: first.NextVersionIdMarker });
    expect(rest.Versions?.map(({ VersionId }) => VersionId)).toEqual(ids.slice(1));
    const deleted = await site.client.send(new s3.DeleteObjectCommand({ Bucket, Key: "k" }));
    expect(deleted).toMatchObject({ DeleteMarker: true, VersionId: "null" });
    expect((await list()).DeleteMarkers).toHaveLength(1);
    expect((await failureOf(head("k", { VersionId: "null" })))[1]).toBe(405);
    expect(await failureOf(get("k"))).toEqual(["NoSuchKey", 404]);
    const by = (VersionId: string | undefined): Promise<unknown> =>
      site.client.send(new s3.DeleteObjectCommand({ Bucket, Key: "k", VersionId }));
    for (const id of ["null", ...ids, ...ids]) await by(id);
    expect((await list()).Versions).toBe(undefined);
  });
});

describe("tags", () => {
  it("have limits, and are returned in order", async () => {
    await put("tagged", { Tagging: "foo=bar&bar" });
    expect(await tagsOf("tagged")).toEqual([
      { Key: "bar", Value: "" },
      { Key: "foo", Value: "bar" },
    ]);
    const { headers } = await sendSigned(site.port, { method: "HEAD", path: `/${Bucket}/tagged` });
    expect(headers["x-amz-tagging-count"]).toBe("2");
    const set = (TagSet: s3.Tag[]): Promise<unknown> =>
      site.client.send(new s3.PutObjectTaggingCommand({ Bucket, Key: "tagged", Tagging: { TagSet } }));
    const eleven = Array.from({ length: 11 }, (_, index) => ({ Key: `${index}`, Value: "" }));
    for (const bad of [
      eleven,
      [{ Key: "a".repeat(129), Value: "" }],
      [{ Key: "a", Value: "b".repeat(257) }],
      [eleven[0], eleven[0]] as s3.Tag[],
    ])
      expect(await failureOf(set(bad))).toEqual(["InvalidTag", 400]);
    await set(eleven.slice(1));
    await site.client.send(new s3.DeleteObjectTaggingCommand({ Bucket, Key: "tagged" }));
    expect(await tagsOf("tagged")).toEqual([]);
  });
});

describe("object lock", () => {
  it("protects a version from everybody except an owner who bypasses governance", async () => {
    Bucket = await site.newBucket({ ObjectLockEnabledForBucket: true });
    const RetainUntilDate = new Date(Date.now() + 86_400_000);
    const { VersionId } = await put("kept", {
      ObjectLockMode: "GOVERNANCE",
      ObjectLockRetainUntilDate: RetainUntilDate,
      ObjectLockLegalHoldStatus: "ON",
    });
    expect(await head("kept")).toMatchObject({ ObjectLockMode: "GOVERNANCE", ObjectLockLegalHoldStatus: "ON" });
    const remove = (client: s3.S3Client, BypassGovernanceRetention: boolean): Promise<unknown> =>
      client.send(new s3.DeleteObjectCommand({ Bucket, Key: "kept", VersionId, BypassGovernanceRetention }));
    expect(await failureOf(remove(site.client, true))).toEqual(["AccessDenied", 403]);
    const hold = { Bucket, Key: "kept", LegalHold: { Status: "OFF" } } as const;
    await site.client.send(new s3.PutObjectLegalHoldCommand(hold));
    expect(await failureOf(remove(site.client, false))).toEqual(["AccessDenied", 403]);
    expect(await failureOf(remove(site.writer, true))).toEqual(["AccessDenied", 403]);
    const retention = { Bucket, Key: "kept", Retention: { Mode: "COMPLIANCE", RetainUntilDate } } as const;
    expect(await failureOf(site.client.send(new s3.PutObjectRetentionCommand(retention)))).toEqual([
      "AccessDenied",
      403,
    ]);
    await remove(site.client, true);
  });

  it("needs valid headers, and a bucket with object lock", async () => {
    const plain = await site.newBucket();
    const conf = (Rule: unknown): s3.ObjectLockConfiguration =>
      ({ ObjectLockEnabled: "Enabled", ...(Rule === undefined ? {} : { Rule: { DefaultRetention: Rule } }) }) as never;
    const set = (rule: unknown, bucket = Bucket): Promise<unknown> =>
      site.client.send(
        new s3.PutObjectLockConfigurationCommand({ Bucket: bucket, ObjectLockConfiguration: conf(rule) }),
      );
    for (const rule of [{ Mode: "GOVERNANCE", Days: 1 }, { Mode: "COMPLIANCE", Years: 1 }, undefined]) {
      await set(rule);
      const found = await site.client.send(new s3.GetObjectLockConfigurationCommand({ Bucket }));
      expect(found.ObjectLockConfiguration).toEqual(conf(rule));
    }
    const wrong: readonly [unknown, string][] = [
      [{ Mode: "GOVERNANCE", Days: 1, Years: 1 }, "MalformedXML"],
      [{ Mode: "GOVERNANCE", Days: 0 }, "InvalidRetentionPeriod"],
      [{ Mode: "governance", Days: 1 }, "MalformedXML"],
    ];
    for (const [rule, code] of wrong) expect(await failureOf(set(rule))).toEqual([code, 400]);
    expect(await failureOf(set({ Mode: "GOVERNANCE", Days: 1 }, plain))).toEqual(["InvalidBucketState", 409]);
    const held = put("x", { Bucket: plain, ObjectLockLegalHoldStatus: "ON" });
    expect(await failureOf(held)).toEqual(["InvalidRequest", 400]);
  });
});

it("an unsigned request cannot override response headers", async () => {
  const Open = await site.newBucket();
  await put("public", { Bucket: Open, ACL: "public-read" });
  expect(await send(site.port, { path: `/${Open}/public` })).toMatchObject({ status: 200, text: "testcontent" });
  const chosen = await send(site.port, { path: `/${Open}/public?response-content-type=text/html` });
  expect(chosen).toMatchObject({ status: 400, code: "InvalidRequest" });
});
