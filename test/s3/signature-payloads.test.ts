// How the body of a request is signed, on a running gateway: each way that S3 knows, and the lies that
// have broken other gateways.
import { createHash, createHmac, Hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as s3 from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import {
  send,
  sendSigned,
  signed,
  startSite,
  owner,
  type Answered,
  type Signed,
  type Site,
} from "./conformity-gateway.ts";

let site: Site;
let bucket = "";
beforeAll(async () => {
  site = await startSite();
  bucket = await site.newBucket();
});
afterAll(() => site.close());

const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");
const crcOf = (text: string): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return bytes.toString("base64");
};
const put = (key: string, more: Partial<Signed>): Promise<Answered> =>
  sendSigned(site.port, { method: "PUT", path: `/${bucket}/${key}`, ...more });
const stored = async (key: string): Promise<string | undefined> => {
  const { status, text } = await sendSigned(site.port, { path: `/${bucket}/${key}` });
  return status === 200 ? text : undefined;
};

interface Chunks {
  readonly chunks: readonly string[];
  readonly trailers?: readonly string[];
  /** Changes what goes over the wire after it was signed. */
  readonly spoil?: (wire: string) => string;
  readonly decodedLength?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly at?: Date;
}

/** A body in signed chunks, by the documentation of AWS. */
async function putChunks(key: string, given: Chunks): Promise<Answered> {
  const { chunks, trailers = [], spoil = (wire) => wire, at = new Date(), headers = {} } = given;
  const length = given.decodedLength ?? chunks.join("").length;
  const request = await signed(site.port, {
    method: "PUT",
    path: `/${bucket}/${key}`,
    payload: `STREAMING-AWS4-HMAC-SHA256-PAYLOAD${trailers.length === 0 ? "" : "-TRAILER"}`,
    headers: {
      "x-amz-decoded-content-length": String(length),
      "content-encoding": "aws-chunked",
      ...(trailers.length === 0 ? {} : { "x-amz-trailer": trailers.map((line) => line.split(":")[0]).join(",") }),
      ...headers,
    },
    at,
  });
  const date = `${at.toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
  const scope = `${date.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const hmac = (by: string | Buffer, text: string): Buffer => createHmac("sha256", by).update(text).digest();
  const steps = [date.slice(0, 8), "us-east-1", "s3", "aws4_request"];
  const signingKey = steps.reduce<string | Buffer>(hmac, `AWS4${owner.secretAccessKey}`);
  let previous = request.seed;
  const next = (kind: string, ...lines: string[]): string =>
    (previous = hmac(signingKey, [kind, date, scope, previous, ...lines].join("\n")).toString("hex"));
  let wire = "";
  for (const chunk of [...chunks, ""]) {
    const signature = next("AWS4-HMAC-SHA256-PAYLOAD", sha256(""), sha256(chunk));
    wire += `${chunk.length.toString(16)};chunk-signature=${signature}\r\n${chunk}${chunk === "" ? "" : "\r\n"}`;
  }
  if (trailers.length > 0) {
    const signature = next("AWS4-HMAC-SHA256-TRAILER", sha256(trailers.map((line) => `${line}\n`).join("")));
    wire += `${trailers.map((line) => `${line}\r\n`).join("")}x-amz-trailer-signature:${signature}\r\n`;
  }
  return await send(site.port, { ...request, body: spoil(`${wire}\r\n`) });
}

async function putUnsigned(key: string, wire: string, more: Readonly<Record<string, string>> = {}): Promise<Answered> {
  return await put(key, {
    payload: "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    headers: { "content-encoding": "aws-chunked", "x-amz-decoded-content-length": "5", ...more },
    body: wire,
  });
}

describe("a body", () => {
  it("is stored if its signed hash is right, and refused otherwise", async () => {
    expect((await put("hash", { payload: sha256("hello"), body: "hello" })).status).toBe(200);
    expect(await stored("hash")).toBe("hello");
    expect(await put("hash2", { payload: sha256("hello"), body: "jello" })).toMatchObject({
      status: 400,
      code: "XAmzContentSHA256Mismatch",
    });
    expect(await stored("hash2")).toBe(undefined);
  });

  it.each([1_000, 200_000])("of %i bytes is hashed once per digest, however many were declared", async (size) => {
    const body = "m".repeat(size);
    const hashed: number[] = [];
    const md5 = createHash("md5").update(body).digest("base64");
    const request = await signed(site.port, {
      method: "PUT",
      path: `/${bucket}/once`,
      body,
      payload: sha256(body),
      headers: { "content-md5": md5, "x-amz-checksum-sha256": createHash("sha256").update(body).digest("base64") },
    });
    const update = Hash.prototype.update;
    const spy = vi.spyOn(Hash.prototype, "update").mockImplementation(function (this: Hash, data: unknown) {
      if (data instanceof Uint8Array) hashed.push(data.length);
      return Reflect.apply(update, this, [data]) as Hash;
    });
    const { status } = await send(site.port, request);
    spy.mockRestore();
    expect(status).toBe(200);
    expect(hashed.reduce((sum, length) => sum + length, 0)).toBe(2 * size);
  });

  it("in signed chunks is stored, and the framing is not", async () => {
    const chunks = ["a".repeat(65_536), "b".repeat(1024)];
    expect((await putChunks("chunks", { chunks, headers: { "content-encoding": "aws-chunked,gzip" } })).status).toBe(
      200,
    );
    const { text, headers } = await sendSigned(site.port, { path: `/${bucket}/chunks` });
    expect(text).toBe(chunks.join(""));
    expect(headers["content-encoding"]).toBe("gzip");
  });

  it("in signed chunks with a signed trailer is checked by its checksum", async () => {
    const good = { chunks: ["hello"], trailers: [`x-amz-checksum-crc32:${crcOf("hello")}`] };
    expect((await putChunks("trailer", good)).headers["x-amz-checksum-crc32"]).toBe(crcOf("hello"));
    const wrong = { chunks: ["hello"], trailers: [`x-amz-checksum-crc32:${crcOf("jello")}`] };
    expect(await putChunks("trailer2", wrong)).toMatchObject({ status: 400, code: "BadDigest" });
    const changed = { ...good, spoil: (wire: string) => wire.replace(crcOf("hello"), crcOf("jello")) };
    expect(await putChunks("trailer2", changed)).toMatchObject({ status: 403, code: "SignatureDoesNotMatch" });
    expect(await stored("trailer2")).toBe(undefined);
  });

  it("of an unsigned request is unframed too, if the bucket is open for writing", async () => {
    const open = await site.newBucket({ ACL: "public-read-write" });
    const answer = await send(site.port, {
      method: "PUT",
      path: `/${open}/anonymous`,
      headers: {
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": "5",
        "content-encoding": "aws-chunked",
      },
      body: "5\r\nhello\r\n0\r\n\r\n",
    });
    expect(answer.status).toBe(200);
    expect((await sendSigned(site.port, { path: `/${open}/anonymous` })).text).toBe("hello");
  });
});

describe("cases that broke other gateways", () => {
  it("a changed, moved or missing chunk is refused, and nothing is stored", async () => {
    const chunks = ["a".repeat(8192), "b".repeat(8192), "c"];
    const parts = (wire: string): string[] => wire.split(/(?=(?:2000|1|0);chunk-signature)/);
    const spoils: readonly ((wire: string) => string)[] = [
      (wire) => wire.replace("aaaa", "aaab"),
      (wire) => {
        const [one = "", two = "", ...rest] = parts(wire);
        return [two, one, ...rest].join("");
      },
      (wire) => parts(wire).slice(1).join(""),
      (wire) => wire.replace(/chunk-signature=[0-9a-f]{64}\r\nb/, `chunk-signature=${"0".repeat(64)}\r\nb`),
    ];
    for (const spoil of spoils) {
      const { status, code } = await putChunks("spoiled", { chunks, spoil });
      expect([status, code].join(" ")).toMatch(/^(403 SignatureDoesNotMatch|400 IncompleteBody)$/);
    }
    expect(await stored("spoiled")).toBe(undefined);
  });

  it("the decoded length is enforced in both directions", async () => {
    for (const decodedLength of [4, 6]) {
      const answer = await putChunks("length", { chunks: ["hello"], decodedLength });
      expect(answer).toMatchObject({ status: 400, code: "IncompleteBody" });
    }
    expect(await stored("length")).toBe(undefined);
  });

  it("an unsigned trailer needs no signature", async () => {
    const wire = `5\r\nhello\r\n0\r\nx-amz-checksum-crc32:${crcOf("hello")}\r\n\r\n`;
    expect((await putUnsigned("free", wire, { "x-amz-trailer": "x-amz-checksum-crc32" })).status).toBe(200);
    expect(await stored("free")).toBe("hello");
  });

  it("no trailer is needed if none is announced, and an announced one is required", async () => {
    expect((await putUnsigned("none", "5\r\nhello\r\n0\r\n\r\n")).status).toBe(200);
    const missing = await putUnsigned("none2", "5\r\nhello\r\n0\r\n\r\n", { "x-amz-trailer": "x-amz-checksum-crc32" });
    expect(missing).toMatchObject({ status: 400, code: "MalformedTrailerError" });
  });

  it("a wrong checksum is 400 BadDigest, in a header and in a trailer", async () => {
    const header = await put("sum", { headers: { "x-amz-checksum-crc32": crcOf("jello") }, body: "hello" });
    expect(header).toMatchObject({ status: 400, code: "BadDigest" });
    const wire = `5\r\nhello\r\n0\r\nx-amz-checksum-crc32:${crcOf("jello")}\r\n\r\n`;
    const behind = await putUnsigned("sum", wire, { "x-amz-trailer": "x-amz-checksum-crc32" });
    expect(behind).toMatchObject({ status: 400, code: "BadDigest" });
    expect(await stored("sum")).toBe(undefined);
  });

  it("aws-chunked is stored neither in the object nor in its Content-Encoding", async () => {
    await putUnsigned("framed", "5\r\nhello\r\n0\r\n\r\n");
    const { text, headers } = await sendSigned(site.port, { path: `/${bucket}/framed` });
    expect([text, headers["content-encoding"]]).toEqual(["hello", undefined]);
  });
});

describe("a signature", () => {
  it("is refused if the clocks differ by more than 15 minutes", async () => {
    for (const minutes of [-16, 16]) {
      const at = new Date(Date.now() + minutes * 60_000);
      const answer = await sendSigned(site.port, { path: `/${bucket}/hash`, at });
      expect(answer).toMatchObject({ status: 403, code: "RequestTimeTooSkewed" });
    }
    const at = new Date(Date.now() - 14 * 60_000);
    expect((await sendSigned(site.port, { path: `/${bucket}/hash`, at })).status).toBe(200);
  });

  it("in a URL is refused if it expired, was altered, or is used for another method", async () => {
    const get = new s3.GetObjectCommand({ Bucket: bucket, Key: "hash" });
    const past = new Date(Date.now() - 120_000);
    const old = new URL(await getSignedUrl(site.client, get, { expiresIn: 60, signingDate: past }));
    expect(await send(site.port, { path: old.pathname + old.search })).toMatchObject({
      status: 403,
      code: "AccessDenied",
    });
    const fresh = new URL(await getSignedUrl(site.client, get, { expiresIn: 60 }));
    expect((await send(site.port, { path: fresh.pathname + fresh.search, headers: { host: fresh.host } })).text).toBe(
      "hello",
    );
    for (const change of [
      { method: "DELETE", path: fresh.pathname + fresh.search },
      { path: fresh.pathname.replace("hash", "free") + fresh.search },
      { path: `${fresh.pathname}${fresh.search}&versionId=null` },
    ])
      expect(await send(site.port, { ...change, headers: { host: fresh.host } })).toMatchObject({
        status: 403,
        code: "SignatureDoesNotMatch",
      });
  });

  it("in a URL lets the client choose the body hash, which is then checked", async () => {
    const command = new s3.PutObjectCommand({ Bucket: bucket, Key: "later" });
    const url = new URL(await getSignedUrl(site.client, command, { expiresIn: 60 }));
    const later = (hash: string): Promise<Answered> =>
      send(site.port, {
        method: "PUT",
        path: url.pathname + url.search,
        headers: { host: url.host, "x-amz-content-sha256": hash },
        body: "hello",
      });
    for (const hash of [sha256("jello"), "nonsense"])
      expect(await later(hash)).toMatchObject({ status: 400, code: "XAmzContentSHA256Mismatch" });
    expect(await stored("later")).toBe(undefined);
    for (const hash of [sha256("hello"), "UNSIGNED-PAYLOAD"]) expect((await later(hash)).status).toBe(200);
  });

  it("must be the only one: a header beside a presigned URL is refused, unless it is empty", async () => {
    const url = new URL(await getSignedUrl(site.client, new s3.GetObjectCommand({ Bucket: bucket, Key: "hash" })));
    const twice = { path: url.pathname + url.search, headers: { authorization: "AWS4-HMAC-SHA256 x" } };
    expect(await send(site.port, twice)).toMatchObject({ status: 400, code: "InvalidArgument" });
    const path = `/${bucket}/hash`;
    expect(await send(site.port, { path, headers: { authorization: "" } })).toMatchObject({ status: 403 });
    expect(await send(site.port, { path, headers: { authorization: "Basic eDp5" } })).toMatchObject({ status: 400 });
    // Of a key that is not known nothing else is told.
    const authorization = `AWS4-HMAC-SHA256 Credential=NONE/20150930/eu-1/s3/aws4_request,SignedHeaders=host,Signature=0`;
    const headers = { authorization, "x-amz-date": "20260101T000000Z" };
    expect(await send(site.port, { path, headers })).toMatchObject({ status: 403, code: "InvalidAccessKeyId" });
  });
});
