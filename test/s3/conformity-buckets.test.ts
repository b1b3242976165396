// What S3 answers about buckets: names, listings, access, cross-origin requests and lifecycles.
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  bank,
  failureOf,
  owner,
  send,
  sendSigned,
  shop,
  startSite,
  type Answered,
  type Site,
} from "./conformity-gateway.ts";

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site.close());

const put = (Bucket: string, Key: string, more: Partial<s3.PutObjectCommandInput> = {}): Promise<unknown> =>
  site.client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key, ...more }));

describe("a bucket", () => {
  const bad = [
    "a",
    "aa",
    "foo_bar",
    "foo-",
    "foo..bar",
    "foo.-bar",
    "foo-.bar",
    "192.168.5.123",
    "Upper",
    "a".repeat(64),
  ];
  it.each(bad)("cannot have the name %s", async (name) => {
    const answer = await sendSigned(site.port, { method: "PUT", path: `/${name}` });
    expect(answer).toMatchObject({ status: 400, code: "InvalidBucketName" });
  });

  it("is created once, in the requested region, and deleted if it is empty", async () => {
    const Bucket = await site.newBucket({ CreateBucketConfiguration: { LocationConstraint: "us-east-1" as never } });
    const elsewhere = (LocationConstraint: string): Promise<unknown> =>
      site.newBucket({ CreateBucketConfiguration: { LocationConstraint: LocationConstraint as never } });
    expect(await failureOf(elsewhere("eu-west-1"))).toEqual(["IllegalLocationConstraintException", 400]);
    expect(await failureOf(elsewhere("nowhere"))).toEqual(["InvalidLocationConstraint", 400]);
    await put(Bucket, "x");
    const remove = (): Promise<unknown> => site.client.send(new s3.DeleteBucketCommand({ Bucket }));
    expect(await failureOf(remove())).toEqual(["BucketNotEmpty", 409]);
    await site.client.send(new s3.DeleteObjectCommand({ Bucket, Key: "x" }));
    await remove();
    expect(await failureOf(remove())).toEqual(["NoSuchBucket", 404]);
  });

  it("can be created again by its owner in us-east-1, which resets its ACL; elsewhere that is refused", async () => {
    const again = (Bucket: string, more: Partial<s3.CreateBucketCommandInput> = {}): Promise<unknown> =>
      site.client.send(new s3.CreateBucketCommand({ Bucket, ...more }));
    const Bucket = await site.newBucket({ ACL: "public-read" });
    const grants = async (): Promise<number | undefined> =>
      (await site.client.send(new s3.GetBucketAclCommand({ Bucket }))).Grants?.length;
    await put(Bucket, "kept");
    await site.client.send(new s3.PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: [{ Key: "a", Value: "b" }] } }));
    expect(await grants()).toBe(2);
    await again(Bucket);
    expect(await grants()).toBe(1);
    await again(Bucket, { ACL: "public-read" });
    expect(await grants()).toBe(2);
    await site.client.send(new s3.HeadObjectCommand({ Bucket, Key: "kept" }));
    expect((await site.client.send(new s3.GetBucketTaggingCommand({ Bucket }))).TagSet).toHaveLength(1);
    // What cannot be given to a bucket that exists is not ignored.
    expect(await failureOf(again(Bucket, { ObjectLockEnabledForBucket: true }))).toEqual([
      "BucketAlreadyOwnedByYou",
      409,
    ]);
    const Statement = [
      { Effect: "Deny", Principal: "*", Action: "s3:PutBucketAcl", Resource: `arn:aws:s3:::${Bucket}` },
    ];
    const Policy = JSON.stringify({ Version: "2012-10-17", Statement });
    await site.client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
    expect(await failureOf(again(Bucket))).toEqual(["AccessDenied", 403]);
    await again(Bucket, { ACL: "public-read" });
    expect(await grants()).toBe(2);
    const elsewhere = await startSite({ region: "eu-west-1" });
    try {
      const path = "/own-bucket";
      const make = (by: typeof owner): Promise<Answered> =>
        sendSigned(elsewhere.port, { method: "PUT", path, by, region: "eu-west-1" });
      expect(await make(shop)).toMatchObject({ status: 200 });
      expect(await make(shop)).toMatchObject({ status: 409, code: "BucketAlreadyOwnedByYou" });
      for (const by of [bank, owner])
        expect(await make(by)).toMatchObject({ status: 409, code: "BucketAlreadyExists" });
    } finally {
      await elsewhere.close();
    }
  });

  it("is listed with others in pages", async () => {
    for (let count = 0; count < 3; count++) await site.newBucket();
    const first = await site.client.send(new s3.ListBucketsCommand({ MaxBuckets: 2, Prefix: "bucket-" }));
    const { ContinuationToken } = first;
    const rest = await site.client.send(new s3.ListBucketsCommand({ Prefix: "bucket-", ContinuationToken }));
    const names = [...(first.Buckets ?? []), ...(rest.Buckets ?? [])].map(({ Name }) => Name ?? "");
    expect(names).toEqual([...new Set(names)].sort());
    expect(first.Buckets).toHaveLength(2);
  });

  it("reports settings that are not set, and refuses unsupported ones by name", async () => {
    const Bucket = await site.newBucket();
    await site.client.send(new s3.GetBucketLoggingCommand({ Bucket }));
    expect(await site.client.send(new s3.GetBucketRequestPaymentCommand({ Bucket }))).toMatchObject({
      Payer: "BucketOwner",
    });
    const encryption = site.client.send(new s3.GetBucketEncryptionCommand({ Bucket }));
    expect(await failureOf(encryption)).toEqual(["ServerSideEncryptionConfigurationNotFoundError", 404]);
    for (const name of ["x-amz-write-offset-bytes", "x-amz-rename-source"]) {
      const answer = await sendSigned(site.port, {
        method: "PUT",
        path: `/${Bucket}/x`,
        headers: { [name]: "0" },
        body: "",
      });
      expect([answer.status, answer.text]).toEqual([501, expect.stringContaining(`<Header>${name}</Header>`)]);
    }
    for (const header of [{ ServerSideEncryption: "AES256" }, { StorageClass: "GLACIER" }] as const)
      expect(await failureOf(put(Bucket, "x", header))).toEqual(["NotImplemented", 501]);
    expect(await failureOf(put(Bucket, "x", { StorageClass: "CELLAR" as never }))).toEqual([
      "InvalidStorageClass",
      400,
    ]);
  });
});

describe("a listing", () => {
  const keys = ["asdf", "boo/bar", "boo/baz/xyzzy", "cquux/bla", "cquux/thud"];
  let Bucket = "";
  beforeAll(async () => {
    Bucket = await site.newBucket();
    for (const key of keys) await put(Bucket, key);
  });
  const list = (more: Partial<s3.ListObjectsCommandInput> = {}): Promise<s3.ListObjectsCommandOutput> =>
    site.client.send(new s3.ListObjectsCommand({ Bucket, ...more }));
  const listV2 = (more: Partial<s3.ListObjectsV2CommandInput> = {}): Promise<s3.ListObjectsV2CommandOutput> =>
    site.client.send(new s3.ListObjectsV2Command({ Bucket, ...more }));
  const namesOf = ({ Contents = [], CommonPrefixes = [] }: s3.ListObjectsCommandOutput): (string | undefined)[] => [
    ...Contents.map(({ Key }) => Key),
    ...CommonPrefixes.map(({ Prefix }) => Prefix),
  ];

  it("continues after a marker, which may be a common prefix", async () => {
    const pages: readonly [string, string, number, string[], string | undefined][] = [
      ["", "", 1, ["asdf"], "asdf"],
      ["", "asdf", 1, ["boo/"], "boo/"],
      ["", "boo/", 1, ["cquux/"], undefined],
      ["", "", 2, ["asdf", "boo/"], "boo/"],
      ["boo/", "", 1, ["boo/bar"], "boo/bar"],
      ["boo/", "boo/bar", 1, ["boo/baz/"], undefined],
    ];
    for (const [Prefix, Marker, MaxKeys, names, next] of pages) {
      const page = await list({ Prefix, Marker, MaxKeys, Delimiter: "/" });
      expect([namesOf(page), page.NextMarker, page.IsTruncated]).toEqual([names, next, next !== undefined]);
    }
    expect(namesOf(await list({ Marker: "zzz" }))).toEqual([]);
    expect(namesOf(await list({ MaxKeys: 0 }))).toEqual([]);
  });

  it("in version 2 counts common prefixes, and supports tokens and start-after", async () => {
    const seen: (string | undefined)[] = [];
    let ContinuationToken: string | undefined = "";
    for (; ContinuationToken !== undefined;) {
      const page: s3.ListObjectsV2CommandOutput = await listV2({ Delimiter: "/", MaxKeys: 1, ContinuationToken });
      seen.push(...namesOf(page));
      expect([page.KeyCount, page.MaxKeys]).toEqual([1, 1]);
      ContinuationToken = page.NextContinuationToken;
    }
    expect(seen).toEqual(["asdf", "boo/", "cquux/"]);
    expect(await listV2({ StartAfter: "boo/z" })).toMatchObject({ StartAfter: "boo/z", KeyCount: 2, MaxKeys: 1000 });
    expect((await listV2()).Contents?.[0]?.Owner).toBe(undefined);
    expect((await listV2({ FetchOwner: true })).Contents?.[0]?.Owner?.ID).toBe("holdfast");
    expect((await listV2({ MaxKeys: 5000 })).MaxKeys).toBe(1000);
  });

  it("returns every character of a key, encoded on request, and refuses an invalid number", async () => {
    const strange = [" ", '"', "%", "&", "'", "<", ">", "a\nb", "a+b", "a\u0001b", "ä/😀", "\uffff"];
    const other = await site.newBucket();
    for (const key of strange) await put(other, key);
    const found: string[] = [];
    const { text } = await sendSigned(site.port, { path: `/${other}`, query: { "encoding-type": "url" } });
    for (const [, key = ""] of text.matchAll(/<Key>([^<]*)<\/Key>/g))
      found.push(decodeURIComponent(key.replaceAll("+", " ")));
    const bytes = (one: string, two: string): number => Buffer.compare(Buffer.from(one), Buffer.from(two));
    expect(found).toEqual([...strange].sort(bytes));
    const newline = { "encoding-type": "url", prefix: "\n", delimiter: "%" };
    const { text: page } = await sendSigned(site.port, { path: `/${other}`, query: newline });
    expect(page).toContain("<Prefix>%0A</Prefix>");
    expect(page).toContain("<Delimiter>%25</Delimiter>");
    const wrong: readonly Record<string, string>[] = [
      { "max-keys": "blah" },
      { "max-keys": "-1" },
      { "encoding-type": "gzip" },
    ];
    for (const query of wrong)
      expect(await sendSigned(site.port, { path: `/${Bucket}`, query: query })).toMatchObject({
        status: 400,
        code: "InvalidArgument",
      });
  });
});

describe("access", () => {
  const anonymous = (
    Bucket: string,
    path = "",
    method = "GET",
  ): Promise<{ readonly status: number; readonly code: string | undefined }> =>
    send(site.port, { method, path: `/${Bucket}${path}` });

  it("of anonymous requests is limited by the ACLs of bucket and object", async () => {
    const Bucket = await site.newBucket();
    await put(Bucket, "secret");
    expect(await anonymous(Bucket)).toMatchObject({ status: 403, code: "AccessDenied" });
    const share = (ACL: s3.BucketCannedACL): Promise<unknown> =>
      site.client.send(new s3.PutBucketAclCommand({ Bucket, ACL }));
    await share("public-read");
    const { Grants } = await site.client.send(new s3.GetBucketAclCommand({ Bucket }));
    expect(Grants?.map(({ Permission, Grantee }) => [Permission, Grantee?.Type])).toEqual([
      ["READ", "Group"],
      ["FULL_CONTROL", "CanonicalUser"],
    ]);
    expect((await anonymous(Bucket)).status).toBe(200);
    expect((await anonymous(Bucket, "/secret")).status).toBe(403);
    expect((await anonymous(Bucket, "/none")).status).toBe(404);
    expect((await anonymous(Bucket, "/new", "PUT")).status).toBe(403);
    await site.client.send(new s3.PutObjectAclCommand({ Bucket, Key: "secret", ACL: "public-read" }));
    expect((await anonymous(Bucket, "/secret")).status).toBe(200);
    await share("public-read-write");
    const steal = { method: "PUT", path: `/${Bucket}/copy`, headers: { "x-amz-copy-source": `${Bucket}/secret` } };
    expect((await send(site.port, steal)).status).toBe(403);
    expect((await send(site.port, { method: "PUT", path: `/${Bucket}/new`, body: "x" })).status).toBe(200);
    const byWriter = (ACL: s3.ObjectCannedACL): Promise<unknown> =>
      site.writer.send(new s3.PutObjectCommand({ Bucket, Key: "by a writer", Body: "x", ACL }));
    await byWriter("private");
    expect(await failureOf(byWriter("public-read"))).toEqual(["AccessDenied", 403]);
    const block = { BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true };
    await site.client.send(new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: block }));
    expect((await anonymous(Bucket)).status).toBe(403);
    expect((await anonymous(Bucket, "/secret")).status).toBe(403);
    expect(await failureOf(share("public-read"))).toEqual(["AccessDenied", 403]);
    expect(await failureOf(put(Bucket, "x", { ACL: "public-read" }))).toEqual(["AccessDenied", 403]);
    expect(await failureOf(share("open-house" as never))).toEqual(["InvalidArgument", 400]);
  });

  it("by a policy needs an Allow whose condition holds, and no Deny", async () => {
    const Bucket = await site.newBucket();
    await put(Bucket, "k");
    const policy = (...statements: object[]): Promise<unknown> => {
      const Statement = statements.map((each) => ({
        Effect: "Allow",
        Principal: "*",
        Action: "s3:GetObject",
        Resource: `arn:aws:s3:::${Bucket}/*`,
        ...each,
      }));
      const Policy = JSON.stringify({ Version: "2012-10-17", Statement });
      return site.client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
    };
    const isOpen = async (): Promise<boolean> => (await anonymous(Bucket, "/k")).status === 200;
    const status = async (): Promise<boolean | undefined> =>
      (await site.client.send(new s3.GetBucketPolicyStatusCommand({ Bucket }))).PolicyStatus?.IsPublic;
    expect(await status()).toBe(false);
    await policy({});
    expect([await isOpen(), await status()]).toEqual([true, true]);
    expect((await anonymous(Bucket)).status).toBe(403);
    await policy({}, { Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } });
    expect(await isOpen()).toBe(false);
    await policy({}, { Effect: "Deny", Principal: undefined, NotPrincipal: { AWS: "x" } });
    expect(await isOpen()).toBe(false);
    await policy({ Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } } });
    expect([await isOpen(), await status()]).toEqual([false, false]);
    for (const bad of [{ Effect: "Perhaps" }, { Resource: "arn:aws:s3:::other/*" }, { Principal: undefined }])
      expect(await failureOf(policy(bad))).toEqual(["MalformedPolicy", 400]);
  });

  it("by ACLs can be disabled", async () => {
    const Bucket = await site.newBucket({ ObjectOwnership: "BucketOwnerEnforced" });
    const share = site.client.send(new s3.PutBucketAclCommand({ Bucket, ACL: "public-read" }));
    expect(await failureOf(share)).toEqual(["AccessControlListNotSupported", 400]);
    const { OwnershipControls } = await site.client.send(new s3.GetBucketOwnershipControlsCommand({ Bucket }));
    expect(OwnershipControls?.Rules).toEqual([{ ObjectOwnership: "BucketOwnerEnforced" }]);
    await put(Bucket, "own", { ACL: "bucket-owner-full-control" });
  });
});

describe("cross-origin requests", () => {
  it("get the headers that the CORS rules allow, even with an error", async () => {
    const Bucket = await site.newBucket({ ACL: "public-read" });
    const cors = (CORSRules: s3.CORSRule[]): Promise<unknown> =>
      site.client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules } }));
    await cors([
      { AllowedMethods: ["GET"], AllowedOrigins: ["*suffix"] },
      { AllowedMethods: ["GET"], AllowedOrigins: ["start*end"] },
      { AllowedMethods: ["PUT"], AllowedOrigins: ["*.put"], AllowedHeaders: ["x-amz-*"] },
    ]);
    const asked = async (method: string, path: string, headers: Record<string, string>): Promise<unknown[]> => {
      const answer = await send(site.port, { method, path: `/${Bucket}${path}`, headers });
      return [answer.status, answer.headers["access-control-allow-origin"]];
    };
    const wants = (method: string): Record<string, string> => ({ "access-control-request-method": method });
    expect(await asked("GET", "", { origin: "foo.suffix" })).toEqual([200, "foo.suffix"]);
    expect(await asked("GET", "", { origin: "foo.bar" })).toEqual([200, undefined]);
    expect(await asked("GET", "/none", { origin: "startend" })).toEqual([404, "startend"]);
    expect(await asked("PUT", "/x", { origin: "foo.put" })).toEqual([403, "foo.put"]);
    expect(await asked("OPTIONS", "", { origin: "foo.suffix" })).toEqual([400, undefined]);
    expect(await asked("OPTIONS", "/x", { origin: "foo.suffix", ...wants("GET") })).toEqual([200, "foo.suffix"]);
    expect(await asked("OPTIONS", "/x", { origin: "foo.suffix", ...wants("PUT") })).toEqual([403, undefined]);
    const headers = { origin: "a.put", ...wants("PUT") };
    expect(await asked("OPTIONS", "/x", { ...headers, "access-control-request-headers": "x-amz-acl" })).toEqual([
      200,
      "a.put",
    ]);
    expect(await asked("OPTIONS", "/x", { ...headers, "access-control-request-headers": "cookie" })).toEqual([
      403,
      undefined,
    ]);
    expect(await failureOf(cors([{ AllowedMethods: ["FLY"], AllowedOrigins: ["*"] }]))).toEqual([
      "InvalidRequest",
      400,
    ]);
    expect(await failureOf(cors([{ AllowedMethods: ["GET"], AllowedOrigins: ["*a*"] }]))).toEqual([
      "InvalidRequest",
      400,
    ]);
  });
});

describe("a lifecycle", () => {
  it("is returned as it was put, with disabled rules and the old form of a prefix", async () => {
    const Bucket = await site.newBucket();
    const set = (...Rules: unknown[]): Promise<unknown> =>
      site.client.send(
        new s3.PutBucketLifecycleConfigurationCommand({
          Bucket,
          LifecycleConfiguration: { Rules: Rules as s3.LifecycleRule[] },
        }),
      );
    const rules = async (): Promise<s3.LifecycleRule[] | undefined> =>
      (await site.client.send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }))).Rules;
    const rule = { ID: "1", Status: "Enabled", Prefix: "a/", Expiration: { Days: 1 } };
    const disabled = { ...rule, ID: "2", Status: "Disabled" };
    await set(rule, disabled);
    expect(await rules()).toEqual([rule, disabled]);
    const tagged = { ...rule, Prefix: undefined, Filter: { And: { Prefix: "b/", Tags: [{ Key: "k", Value: "v" }] } } };
    await set({ ...tagged, ID: undefined });
    const [found] = (await rules()) ?? [];
    expect(found).toMatchObject({ Filter: tagged.Filter });
    expect(found?.ID).toMatch(/./);
    const wrong: readonly [unknown[], string, number][] = [
      [[{ ...rule, ID: "x".repeat(256) }], "InvalidArgument", 400],
      [[rule, { ...rule, Prefix: "b/" }], "InvalidArgument", 400],
      [[{ ...rule, Status: "enabled" }], "MalformedXML", 400],
      [[{ ...rule, Expiration: { Days: 0 } }], "InvalidArgument", 400],
      [[{ ...rule, Expiration: undefined }], "InvalidRequest", 400],
      [[{ ...rule, Transitions: [{ Days: 1, StorageClass: "GLACIER" }] }], "NotImplemented", 501],
    ];
    for (const [bad, code, status] of wrong) expect(await failureOf(set(...bad))).toEqual([code, status]);
    await site.client.send(new s3.DeleteBucketLifecycleCommand({ Bucket }));
    expect(await failureOf(rules())).toEqual(["NoSuchLifecycleConfiguration", 404]);
  });
});
