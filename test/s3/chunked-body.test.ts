// Bodies in chunks: the example of the AWS documentation, what clients send, and what lies about it.
import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { S3Error } from "../../src/s3/http/s3-error.ts";
import { decodeChunks, type ChunkedOptions } from "../../src/s3/signature/chunked-body.ts";
import { signingKey } from "../../src/s3/signature/signing-key.ts";
import type { ChunkSeed } from "../../src/s3/signature/verify.ts";

const signed = { kind: "chunks", isSigned: true, hasTrailer: false } as const;
const signedTrailer = { kind: "chunks", isSigned: true, hasTrailer: true } as const;
const unsignedTrailer = { kind: "chunks", isSigned: false, hasTrailer: true } as const;
const scope = "20130524/us-east-1/s3/aws4_request";
const seed: ChunkSeed = {
  signature: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
  date: "20130524T000000Z",
  scope,
  key: signingKey("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", { day: "20130524", region: "us-east-1" }),
};

/** Cut into pieces of `size`, as a network does. */
async function* pieces(body: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}

async function decode(
  body: string | Buffer,
  options: Partial<ChunkedOptions> & Pick<ChunkedOptions, "payload" | "decodedLength">,
  size = 997,
): Promise<Buffer> {
  const out: Uint8Array[] = [];
  const source = pieces(Buffer.from(body as string), size);
  for await (const piece of decodeChunks(source, { seed, declared: [], ...options })) out.push(piece);
  return Buffer.concat(out);
}

async function codeOf(decoding: Promise<unknown>): Promise<string> {
  const error: unknown = await decoding.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof S3Error ? error.code : String(error);
}

const sha256 = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

/** A signer of its own, from the documentation. */
function signChunks(chunks: readonly string[], trailers: readonly string[] = []): string {
  let previous = seed.signature;
  const next = (...lines: string[]): string =>
    (previous = createHmac("sha256", seed.key)
      .update([lines[0], seed.date, scope, previous, ...lines.slice(1)].join("\n"))
      .digest("hex"));
  const body = [...chunks, ""].map((chunk) => {
    const signature = next("AWS4-HMAC-SHA256-PAYLOAD", sha256(""), sha256(chunk));
    return `${chunk.length.toString(16)};chunk-signature=${signature}\r\n${chunk}${chunk === "" ? "" : "\r\n"}`;
  });
  if (trailers.length === 0) return `${body.join("")}\r\n`;
  const signature = next("AWS4-HMAC-SHA256-TRAILER", sha256(trailers.map((line) => `${line}\n`).join("")));
  return `${body.join("")}${trailers.map((line) => `${line}\r\n`).join("")}x-amz-trailer-signature:${signature}\r\n\r\n`;
}

describe("signed chunks", () => {
  const [first, second] = ["a".repeat(65_536), "a".repeat(1024)];
  const example = [
    `10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n${first}\r\n`,
    `400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n${second}\r\n`,
    "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
  ];
  const options = { payload: signed, decodedLength: 66_560 };

  it("from the AWS documentation are accepted, however the network splits them", async () => {
    for (const size of [331, 997, 65_536, 1_000_000])
      expect(await decode(example.join(""), options, size)).toEqual(Buffer.from(first + second));
  });

  it("are refused if a byte, a signature or the order was changed, or a chunk is missing", async () => {
    const [one = "", two = "", end = ""] = example;
    const wrong = [
      one.replace("aaa", "aab") + two + end,
      one + two.replace("chunk-signature=0", "chunk-signature=1") + end,
      one + end,
      one + two + end.replace("=b6", "=b7"),
    ];
    for (const body of wrong)
      expect(await codeOf(decode(body, options))).toMatch(/SignatureDoesNotMatch|IncompleteBody/);
    expect(await codeOf(decode(one + end, { ...options, decodedLength: 65_536 }))).toBe("SignatureDoesNotMatch");
    expect(await codeOf(decode(one + two, options))).toBe("IncompleteBody");
    expect(await codeOf(decode(`${one}${two}${end}x`, options))).toBe("IncompleteBody");
  });

  it("are refused if a chunk has no signature", async () => {
    expect(await codeOf(decode("1\r\na\r\n0\r\n\r\n", { payload: signed, decodedLength: 1 }))).toBe("IncompleteBody");
  });

  it("are refused if a small one is not the last", async () => {
    const body = signChunks(["a".repeat(100), "b".repeat(100)]);
    expect(await codeOf(decode(body, { payload: signed, decodedLength: 200 }))).toBe("InvalidChunkSizeError");
    expect(await decode(signChunks(["a".repeat(100)]), { payload: signed, decodedLength: 100 })).toHaveLength(100);
  });

  it("with a signed trailer pass it on, and refuse a changed or missing one", async () => {
    const seen: (readonly [string, string])[] = [];
    const body = signChunks(["abc"], ["x-amz-checksum-crc32:NSRBwg=="]);
    const given = {
      payload: signedTrailer,
      decodedLength: 3,
      declared: ["x-amz-checksum-crc32"],
      onTrailers: (trailers: ReadonlyMap<string, string>) => void seen.push(...trailers),
    };
    expect((await decode(body, given)).toString()).toBe("abc");
    expect(seen).toEqual([["x-amz-checksum-crc32", "NSRBwg=="]]);
    expect(await codeOf(decode(body.replace("NSRB", "NSRC"), given))).toBe("SignatureDoesNotMatch");
    expect(await codeOf(decode(body.replace(/x-amz-trailer-signature.*\r\n/, ""), given))).toBe(
      "MalformedTrailerError",
    );
    expect(await codeOf(decode(signChunks(["abc"]), given))).toBe("MalformedTrailerError");
  });
});

describe("unsigned chunks with a trailer", () => {
  const given = { payload: unsignedTrailer, seed: undefined, decodedLength: 5, declared: ["x-amz-checksum-crc32"] };
  const body = "2\r\nab\r\n3\r\ncde\r\n0\r\nx-amz-checksum-crc32:hYeG+A==\r\n\r\n";

  it("need no signature", async () => {
    expect((await decode(body, given)).toString()).toBe("abcde");
    expect((await decode(body, given, 1)).toString()).toBe("abcde");
  });

  it("need no trailer if none is declared, with or without the last empty line", async () => {
    for (const end of ["\r\n", ""])
      expect((await decode(`5\r\nabcde\r\n0\r\n${end}`, { ...given, declared: [] })).toString()).toBe("abcde");
  });

  it("refuse a trailer that was not declared or is repeated", async () => {
    const other = body.replace("x-amz-checksum-crc32:", "x-amz-checksum-sha1:");
    expect(await codeOf(decode(other, given))).toBe("MalformedTrailerError");
    const twice = body.replace(/(x-amz-checksum.*\r\n)/, "$1$1");
    expect(await codeOf(decode(twice, given))).toBe("MalformedTrailerError");
  });
});

describe("a wrong length", () => {
  const given = { payload: unsignedTrailer, declared: [] };

  it("is detected in either direction, before the stream ends", async () => {
    const body = "5\r\nabcde\r\n0\r\n\r\n";
    for (const decodedLength of [4, 6])
      expect(await codeOf(decode(body, { ...given, decodedLength }))).toBe("IncompleteBody");
    expect(await codeOf(decode("fffffffffff\r\nabc", { ...given, decodedLength: 3 }))).toBe("IncompleteBody");
  });

  it("and endless lines cost no memory", async () => {
    for (const body of ["5".repeat(5000), `5;${"x".repeat(5000)}\r\n`, "zz\r\n", "-1\r\n", "5\nabcde\r\n0\r\n\r\n"])
      expect(await codeOf(decode(body, { ...given, decodedLength: 5 }))).toBe("IncompleteBody");
  });
});
