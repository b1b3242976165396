// What a browser sends: addresses that a server has signed for it, questions before it sends, and forms.
import { createHash, createHmac } from "node:crypto";
import { connect, type Socket } from "node:net";
import * as s3 from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { SignatureV4 } from "@smithy/signature-v4";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { subResources } from "../../src/s3/operations/router.ts";
import { owner, send, startSite, type Answered, type Site } from "./conformity-gateway.ts";
import { NodeSha256 } from "./node-sha256.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket({ ObjectLockEnabledForBucket: true });
  const CORSRules = [
    { AllowedMethods: ["PUT", "POST"], AllowedOrigins: ["https://shop.example"], AllowedHeaders: ["*"] },
  ];
  await site.client.send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules } }));
});
afterAll(() => site.close());
const pathOf = (url: string): string => new URL(url).pathname + new URL(url).search;
const hostOf = (): string => `127.0.0.1:${site.port}`;

describe("a presigned URL", () => {
  it("of version 2 must sign every sub-resource that the gateway acts on", async () => {
    const expires = Math.floor(Date.now() / 1000) + 60;
    const search = (method: string): string => {
      const text = `${method}\n\n\n${expires}\n/${Bucket}/k`;
      const signature = createHmac("sha1", owner.secretAccessKey).update(text).digest("base64");
      return `AWSAccessKeyId=${owner.accessKeyId}&Expires=${expires}&Signature=${encodeURIComponent(signature)}`;
    };
    expect((await send(site.port, { method: "PUT", path: `/${Bucket}/k?${search("PUT")}`, body: "x" })).status).toBe(
      200,
    );
    for (const name of ["retention", "legal-hold", "publicAccessBlock", ...subResources])
      for (const method of ["GET", "PUT"]) {
        const answer = await send(site.port, { method, path: `/${Bucket}/k?${search(method)}&${name}` });
        expect([name, method, answer.code]).toEqual([name, method, "SignatureDoesNotMatch"]);
      }
  });

  it("of version 4 that contains a body hash accepts only that body, whatever a header says", async () => {
    const signer = new SignatureV4({
      credentials: owner,
      region: "us-east-1",
      service: "s3",
      sha256: NodeSha256,
      uriEscapePath: false,
    });
    const hash = createHash("sha256").update("right").digest("hex");
    const presigned = await signer.presign(
      {
        method: "PUT",
        protocol: "http:",
        hostname: "127.0.0.1",
        port: site.port,
        path: `/${Bucket}/pinned`,
        query: { "X-Amz-Content-Sha256": hash },
        headers: { host: hostOf(), "x-amz-content-sha256": hash },
      },
      { expiresIn: 60, unsignableHeaders: new Set(["x-amz-content-sha256"]) },
    );
    const query = new URLSearchParams(presigned.query as Record<string, string>);
    const path = `/${Bucket}/pinned?${query.toString().replaceAll("+", "%20")}`;
    const ask = (body: string, header?: string): Promise<Answered> => {
      const headers = { host: hostOf(), ...(header === undefined ? {} : { "x-amz-content-sha256": header }) };
      return send(site.port, { method: "PUT", path, headers, body });
    };
    const wrong = createHash("sha256").update("wrong").digest("hex");
    for (const header of [undefined, "UNSIGNED-PAYLOAD", wrong, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
      expect(await ask("wrong", header)).toMatchObject({ status: 400, code: "XAmzContentSHA256Mismatch" });
    expect((await ask("right")).status).toBe(200);
    expect((await ask("right", hash)).status).toBe(200);
  });

  it("of version 4 carries headers in its query, which count like sent ones", async () => {
    const command = new s3.PutObjectCommand({
      Bucket,
      Key: "carried",
      Tagging: "a=b",
      Metadata: { m: "1" },
      ObjectLockLegalHoldStatus: "ON",
    });
    const url = await getSignedUrl(site.client, command, { expiresIn: 60 });
    expect(
      (await send(site.port, { method: "PUT", path: pathOf(url), headers: { host: hostOf() }, body: "x" })).status,
    ).toBe(200);
    const head = await site.client.send(new s3.HeadObjectCommand({ Bucket, Key: "carried" }));
    expect(head).toMatchObject({ ObjectLockLegalHoldStatus: "ON", Metadata: { m: "1" }, TagCount: 1 });
  });
});

describe("a page of another origin", () => {
  const origin = "https://shop.example";

  it("may put with a presigned URL; its preflight request needs no signature", async () => {
    const url = await getSignedUrl(site.client, new s3.PutObjectCommand({ Bucket, Key: "page" }), { expiresIn: 60 });
    const [path, host] = [pathOf(url), hostOf()];
    const question = {
      origin,
      host,
      "access-control-request-method": "PUT",
      "access-control-request-headers": "content-type",
    };
    const allowed = { "access-control-allow-origin": origin };
    for (const each of [path, `/${Bucket}/page`, `/${Bucket}`])
      expect(await send(site.port, { method: "OPTIONS", path: each, headers: question })).toMatchObject({
        status: 200,
        headers: allowed,
      });
    expect(await send(site.port, { method: "PUT", path, headers: { origin, host }, body: "x" })).toMatchObject({
      status: 200,
      headers: allowed,
    });
    const broken = { method: "PUT", path: `${path}0`, headers: { origin, host }, body: "x" };
    expect(await send(site.port, broken)).toMatchObject({
      status: 403,
      code: "SignatureDoesNotMatch",
      headers: allowed,
    });
    expect(await send(site.port, { method: "PUT", path: `/${Bucket}/page`, headers: { origin, host } })).toMatchObject({
      status: 403,
      headers: allowed,
    });
    const other = { ...question, origin: "https://else.example" };
    expect(await send(site.port, { method: "OPTIONS", path, headers: other })).toMatchObject({ status: 403 });
    expect(await send(site.port, { method: "OPTIONS", path: "/no-such-bucket/k", headers: question })).toMatchObject({
      status: 403,
    });
  });
});

type Fields = Readonly<Record<string, string>>;
async function post(
  bucket: string,
  fields: Fields,
  file = "bar",
): Promise<{ status: number; code: string | undefined; headers: Headers }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", new Blob([file]), "name.txt");
  const answer = await fetch(`${site.url}/${bucket}`, { method: "POST", body: form, redirect: "manual" });
  return { status: answer.status, code: /<Code>([^<]*)/.exec(await answer.text())?.[1], headers: answer.headers };
}

/** Signed as the owner, under these conditions and the fields themselves. */
function signedForm(fields: Fields, more: readonly unknown[] = []): Fields {
  const conditions = [
    { bucket: Bucket },
    ...Object.entries(fields).map(([name, value]) => ({ [name]: value })),
    ...more,
  ];
  const expiration = new Date(Date.now() + 60_000).toISOString();
  const policy = Buffer.from(JSON.stringify({ expiration, conditions })).toString("base64");
  const signature = createHmac("sha1", owner.secretAccessKey).update(policy).digest("base64");
  return { ...fields, AWSAccessKeyId: owner.accessKeyId, policy, signature };
}

describe("a form", () => {
  const refused: Readonly<Record<string, readonly [Fields, number, string]>> = {
    "encryption by the store": [{ "x-amz-server-side-encryption": "AES256" }, 501, "NotImplemented"],
    "a class that is an archive": [{ "x-amz-storage-class": "GLACIER" }, 501, "NotImplemented"],
    "a class that does not exist": [{ "x-amz-storage-class": "GOLD" }, 400, "InvalidStorageClass"],
    "a page that the object leads to": [{ "x-amz-website-redirect-location": "/x" }, 501, "NotImplemented"],
    "half a retention": [{ "x-amz-object-lock-mode": "GOVERNANCE" }, 400, "InvalidArgument"],
    "a field that a put does not know": [{ "x-amz-new-thing": "1" }, 501, "NotImplemented"],
    "a redirection to no page": [{ success_action_redirect: "javascript:x" }, 400, "InvalidArgument"],
    "the digest of another file": [{ "content-md5": createHash("md5").update("x").digest("base64") }, 400, "BadDigest"],
  };
  it.each(Object.entries(refused))("with %s is refused, and nothing is stored", async (_, [fields, status, code]) => {
    expect(await post(Bucket, signedForm({ key: "refused", ...fields }))).toMatchObject({ status, code });
    await expect(site.client.send(new s3.HeadObjectCommand({ Bucket, Key: "refused" }))).rejects.toThrow();
  });

  it("sets retention, hold, tags and headers of an object like a put", async () => {
    const until = new Date(Date.now() + 86_400_000).toISOString();
    const fields = {
      key: "form",
      "x-amz-object-lock-mode": "GOVERNANCE",
      "x-amz-object-lock-retain-until-date": until,
      "x-amz-object-lock-legal-hold": "ON",
      "x-amz-meta-name": "日本",
      "x-amz-tagging": "a=b",
      "content-md5": createHash("md5").update("bar").digest("base64"),
    };
    expect((await post(Bucket, signedForm(fields))).status).toBe(204);
    const head = await site.client.send(new s3.HeadObjectCommand({ Bucket, Key: "form" }));
    expect(head).toMatchObject({ ObjectLockMode: "GOVERNANCE", ObjectLockLegalHoldStatus: "ON", TagCount: 1 });
    expect(Buffer.from(head.Metadata?.name ?? "", "latin1").toString()).toBe("日本");
  });

  it("obeys all size limits of its policy, in any order", async () => {
    const ranges = [
      ["content-length-range", 2, 3],
      ["content-length-range", 0, 100],
    ];
    for (const order of [ranges, ranges.toReversed()]) {
      const fields = signedForm({ key: "sized" }, order);
      expect((await post(Bucket, fields, "bar")).status).toBe(204);
      expect(await post(Bucket, fields, "b")).toMatchObject({ code: "EntityTooSmall" });
      expect(await post(Bucket, fields, "bars")).toMatchObject({ code: "EntityTooLarge" });
    }
  });

  it("that is unsigned gets the same response for a closed and for a missing bucket", async () => {
    const answers = await Promise.all([Bucket, "no-such-bucket"].map((bucket) => post(bucket, { key: "x" })));
    expect(answers.map(({ status, code }) => [status, code])).toEqual([
      [403, "AccessDenied"],
      [403, "AccessDenied"],
    ]);
  });

  it("needs the rights of its fields: a policy that lets everybody put does not let them set ACLs, tags or holds", async () => {
    const Policy = JSON.stringify({
      Statement: { Effect: "Allow", Principal: "*", Action: "s3:PutObject", Resource: `arn:aws:s3:::${Bucket}/*` },
    });
    await site.client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
    expect((await post(Bucket, { key: "open" })).status).toBe(204);
    for (const fields of [{ acl: "public-read" }, { "x-amz-tagging": "a=b" }, { "x-amz-object-lock-legal-hold": "ON" }])
      expect(await post(Bucket, { key: "open", ...fields })).toMatchObject({ status: 403, code: "AccessDenied" });
    await site.client.send(new s3.DeleteBucketPolicyCommand({ Bucket }));
  });

  it("that is unsigned is closed in favour of signed requests", async () => {
    const small = await startSite({ connectionsMax: 5 });
    const sockets: Socket[] = [];
    try {
      const bucket = await small.newBucket();
      const head = `POST /${bucket} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 99999\r\nexpect: 100-continue\r\n\r\n`;
      const open = async (): Promise<void> => {
        const socket = connect(small.port, "127.0.0.1").on("error", () => undefined);
        sockets.push(socket);
        // It is under way when it is told to go on, or over.
        await new Promise((resolve) => socket.once("data", resolve).once("close", resolve).write(head));
      };
      for (let count = 0; count < 20; count++) await open();
      for (let count = 0; count < 3; count++) {
        await small.client.send(new s3.PutObjectCommand({ Bucket: bucket, Key: `k${count}`, Body: "x" }));
        for (let more = 0; more < 5; more++) await open();
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      await small.close();
    }
  });
});
