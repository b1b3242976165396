// Presigned URLs of version 2: as boto3 and the AWS CLI make them, until they expire, and for what they
// were made.
import { createHmac } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, it } from "vitest";
import { owner, send, startSite, type Answered, type Site } from "./conformity-gateway.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket();
  await site.client.send(new s3.PutObjectCommand({ Bucket, Key: "a b", Body: "hello" }));
});
afterAll(() => site.close());

interface Wanted {
  readonly method?: string;
  /** Encoded. */
  readonly key?: string;
  readonly type?: string;
  /** As it is signed: `x-amz-acl:private\n`. */
  readonly amz?: string;
  readonly resource?: string;
  readonly inSeconds?: number;
  readonly accessKeyId?: string;
}

/** The query of a URL, signed as the text of version 2 says. */
function signedQuery({ method = "GET", key = "a%20b", type = "", amz = "", resource = "", ...more }: Wanted): string {
  const { inSeconds = 60, accessKeyId = owner.accessKeyId } = more;
  const expires = Math.floor(Date.now() / 1000) + inSeconds;
  const text = `${method}\n\n${type}\n${expires}\n${amz}/${Bucket}/${key}${resource}`;
  const signature = createHmac("sha1", owner.secretAccessKey).update(text).digest("base64");
  return `AWSAccessKeyId=${accessKeyId}&Expires=${expires}&Signature=${encodeURIComponent(signature)}`;
}

const ask = (query: string, more: Partial<Parameters<typeof send>[1]> = {}): Promise<Answered> =>
  send(site.port, { path: `/${Bucket}/a%20b?${query}`, ...more });

it("a version 2 URL reads and writes only what it was signed for", async () => {
  expect(await ask(signedQuery({}))).toMatchObject({ status: 200, text: "hello" });
  const put = signedQuery({ method: "PUT", type: "text/plain", amz: "x-amz-meta-a:b\n" });
  const headers = { "content-type": "text/plain", "x-amz-meta-a": "b" };
  expect(await ask(put, { method: "PUT", body: "hello", headers })).toMatchObject({ status: 200 });
  expect((await ask(signedQuery({ resource: "?tagging" }) + "&tagging")).status).toBe(200);
});

it("a version 2 URL carries headers in its query, which count like sent ones", async () => {
  const query = `${signedQuery({ method: "PUT", type: "a/b", amz: "x-amz-meta-k:v\n" })}&content-type=a/b&x-amz-meta-k=v`;
  expect((await ask(query, { method: "PUT", body: "hello" })).status).toBe(200);
  const got = await ask(`${signedQuery({ resource: "?response-content-type=c/d" })}&response-content-type=c/d`);
  expect(got.headers).toMatchObject({ "content-type": "c/d", "x-amz-meta-k": "v" });
});

it("a version 2 URL is refused if it is altered, expired, valid for too long, or of an unknown key pair", async () => {
  const refused: readonly [string, Partial<Parameters<typeof send>[1]>, string][] = [
    [signedQuery({}), { method: "DELETE" }, "SignatureDoesNotMatch"],
    [signedQuery({}), { path: `/${Bucket}/other?${signedQuery({})}` }, "SignatureDoesNotMatch"],
    [`${signedQuery({})}&tagging`, {}, "SignatureDoesNotMatch"],
    [
      signedQuery({ method: "PUT" }),
      { method: "PUT", headers: { "x-amz-acl": "public-read" } },
      "SignatureDoesNotMatch",
    ],
    [signedQuery({ inSeconds: -1 }), {}, "AccessDenied"],
    [signedQuery({ inSeconds: 8 * 86_400 }), {}, "AccessDenied"],
    [signedQuery({ accessKeyId: "NONE" }), {}, "InvalidAccessKeyId"],
  ];
  for (const [query, more, code] of refused) expect(await ask(query, more)).toMatchObject({ status: 403, code });
});

it("a version 2 signature in a header is refused", async () => {
  const answer = await ask("", {
    headers: { authorization: `AWS ${owner.accessKeyId}:c2ln`, date: new Date().toUTCString() },
  });
  expect(answer).toMatchObject({ status: 400, code: "InvalidRequest" });
});
