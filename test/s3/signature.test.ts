// The verifier against two independent signers: the examples of the AWS documentation, and the
// signer of the AWS SDK.
import { createHash } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import { describe, expect, it } from "vitest";
import { encodeUri, parseTarget } from "../../src/s3/http/raw-target.ts";
import { S3Error } from "../../src/s3/http/s3-error.ts";
import type { SignedRequest } from "../../src/s3/signature/canonical-request.ts";
import { verifySignature, type Verifier } from "../../src/s3/signature/verify.ts";
import { NodeSha256 } from "./node-sha256.ts";

/** Of the AWS documentation. */
const accessKeyId = "AKIAIOSFODNN7EXAMPLE";
const secretAccessKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const documented = "2013-05-24T00:00:00Z";
const emptyHash = createHash("sha256").digest("hex");

function verifierAt(time: string, offsetMs = 0): Verifier {
  return {
    region: "us-east-1",
    nowMs: Date.parse(time) + offsetMs,
    findSecret: (id) => (id === accessKeyId ? secretAccessKey : undefined),
  };
}

function request(method: string, target: string, headers: SignedRequest["headers"]): SignedRequest {
  return { method, target: parseTarget(target), headers };
}

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof S3Error) return error.code;
    throw error;
  }
  return "none";
}

describe("the examples of the AWS documentation are accepted", () => {
  const authorization = (headers: string, signature: string): string =>
    `AWS4-HMAC-SHA256 Credential=${accessKeyId}/20130524/us-east-1/s3/aws4_request,SignedHeaders=${headers},Signature=${signature}`;
  const host = "examplebucket.s3.amazonaws.com";
  const common = { host, "x-amz-date": "20130524T000000Z" };

  it("GET object", () => {
    const headers = {
      ...common,
      range: "bytes=0-9",
      "x-amz-content-sha256": emptyHash,
      authorization: authorization(
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
      ),
    };
    expect(verifySignature(request("GET", "/test.txt", headers), verifierAt(documented))).toMatchObject({
      accessKeyId,
    });
    const other = request("GET", "/test.txt", { ...headers, range: "bytes=0-8" });
    expect(codeOf(() => verifySignature(other, verifierAt(documented)))).toBe("SignatureDoesNotMatch");
  });

  it("PUT object", () => {
    const headers = {
      ...common,
      date: "Fri, 24 May 2013 00:00:00 GMT",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
      "x-amz-content-sha256": createHash("sha256").update("Welcome to Amazon S3.").digest("hex"),
      authorization: authorization(
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
      ),
    };
    const put = request("PUT", "/test$file.text", headers);
    expect(verifySignature(put, verifierAt(documented))?.payload).toMatchObject({ kind: "hash" });
  });

  it("GET bucket with a query", () => {
    const headers = {
      ...common,
      "x-amz-content-sha256": emptyHash,
      authorization: authorization(
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
      ),
    };
    expect(verifySignature(request("GET", "/?max-keys=2&prefix=J", headers), verifierAt(documented))).toBeDefined();
    expect(verifySignature(request("GET", "/?prefix=J&max-keys=2", headers), verifierAt(documented))).toBeDefined();
  });

  it("a presigned URL, until it expires", () => {
    const target =
      "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    const get = request("GET", target, { host });
    expect(verifySignature(get, verifierAt(documented, 86_000_000))?.payload).toEqual({ kind: "unsigned" });
    expect(codeOf(() => verifySignature(get, verifierAt(documented, 86_401_000)))).toBe("AccessDenied");
    expect(codeOf(() => verifySignature(get, verifierAt(documented, -1_000_000)))).toBe("AccessDenied");
    const longer = request("GET", target.replace("=86400", "=604801"), { host });
    expect(codeOf(() => verifySignature(longer, verifierAt(documented)))).toBe("AuthorizationQueryParametersError");
  });
});

describe("signatures of the AWS SDK are accepted", () => {
  const now = "2026-03-04T05:06:07Z";
  const signer = new SignatureV4({
    credentials: { accessKeyId, secretAccessKey },
    region: "us-east-1",
    service: "s3",
    sha256: NodeSha256,
    uriEscapePath: false,
  });
  const keys = ["a", "a b", "ä/ö", "a+b", "a%20b", "../x", "a//b", "(x)!'*", "~-_.", "=&?#", "日本/\u{1f600}"];

  it.each(keys)("for the key %j, in the header and in a presigned URL", async (key) => {
    const path = `/bucket/${key.split("/").map(encodeUri).join("/")}`;
    const plain = {
      method: "PUT",
      protocol: "http:",
      hostname: "127.0.0.1",
      path,
      query: { "x-id": "PutObject", prefix: key },
      headers: { host: "127.0.0.1:9000", "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-meta-a": "  b   c " },
    };
    const target = (query: Record<string, unknown>): string =>
      `${path}?${Object.entries(query)
        .map(([name, value]) => `${encodeUri(name)}=${encodeUri(String(value))}`)
        .join("&")}`;
    const signed = await signer.sign(plain, { signingDate: new Date(now) });
    const received = request("PUT", target(plain.query), signed.headers);
    expect(received.target.path).toBe(`/bucket/${key}`);
    expect(verifySignature(received, verifierAt(now))).toMatchObject({ accessKeyId });
    const tampered = request("DELETE", target(plain.query), signed.headers);
    expect(codeOf(() => verifySignature(tampered, verifierAt(now)))).toBe("SignatureDoesNotMatch");
    const presigned = await signer.presign(plain, { signingDate: new Date(now), expiresIn: 60 });
    const fromUrl = request("PUT", target(presigned.query ?? {}), presigned.headers);
    expect(verifySignature(fromUrl, verifierAt(now))).toMatchObject({ accessKeyId });
  });
});

describe("a wrongly signed request is refused with the code that AWS uses", () => {
  const now = "2026-03-04T05:06:07Z";
  const headers = (changes: SignedRequest["headers"] = {}): SignedRequest["headers"] => ({
    host: "h",
    "x-amz-date": "20260304T050607Z",
    "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/20260304/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${"0".repeat(64)}`,
    ...changes,
  });
  const credential = (text: string): string =>
    (headers().authorization ?? "").replace(/Credential=[^,]*/, `Credential=${text}`);
  const cases: readonly [string, SignedRequest["headers"], string][] = [
    ["wrong signature", {}, "SignatureDoesNotMatch"],
    ["unknown key", { authorization: credential("AKIA/20260304/us-east-1/s3/aws4_request") }, "InvalidAccessKeyId"],
    [
      "other region",
      { authorization: credential(`${accessKeyId}/20260304/eu-1/s3/aws4_request`) },
      "AuthorizationHeaderMalformed",
    ],
    [
      "other service",
      { authorization: credential(`${accessKeyId}/20260304/us-east-1/ec2/aws4_request`) },
      "AuthorizationHeaderMalformed",
    ],
    [
      "other day",
      { authorization: credential(`${accessKeyId}/20260305/us-east-1/s3/aws4_request`) },
      "AuthorizationHeaderMalformed",
    ],
    ["no credential", { authorization: "AWS4-HMAC-SHA256 Signature=00" }, "AuthorizationHeaderMalformed"],
    ["version 2", { authorization: "AWS key:signature" }, "InvalidRequest"],
    ["a clock that is behind", { "x-amz-date": "20260304T045000Z" }, "RequestTimeTooSkewed"],
    ["no date", { "x-amz-date": undefined }, "AccessDenied"],
    ["no payload hash", { "x-amz-content-sha256": undefined }, "InvalidRequest"],
    ["a header that is not signed", { "x-amz-acl": "public-read" }, "AccessDenied"],
    ["a payload hash that is none", { "x-amz-content-sha256": "abc" }, "InvalidArgument"],
  ];
  it.each(cases)("%s", (_, changes, code) => {
    expect(codeOf(() => verifySignature(request("GET", "/b/k", headers(changes)), verifierAt(now)))).toBe(code);
  });

  it("a request without any signature is anonymous", () => {
    expect(verifySignature(request("GET", "/b/k", { host: "h" }), verifierAt(now))).toBe(undefined);
  });
});
