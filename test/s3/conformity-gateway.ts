// A gateway in this process for tests of what S3 answers, with the AWS SDK and with plain HTTP.
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { SignatureV4 } from "@smithy/signature-v4";
import { openObjects, type ObjectStore } from "../../src/objects/index.ts";
import { startS3Gateway, type S3GatewayOptions } from "../../src/s3/index.ts";
import { NodeSha256 } from "./node-sha256.ts";

export const owner = { accessKeyId: "OWNER", secretAccessKey: "owner secret" };
const writer = { accessKeyId: "WRITER", secretAccessKey: "writer secret", rights: "read-write" } as const;

/** Key pairs of two accounts. */
export const shop = { accessKeyId: "SHOP", secretAccessKey: "shop secret", account: "shop" };
export const bank = { accessKeyId: "BANK", secretAccessKey: "bank secret", account: "bank" };
/** Key pairs of the first account that have fewer rights. */
export const shopReader = { ...shop, accessKeyId: "SHOP-R", rights: "read-only" } as const;
export const shopWriter = { ...shop, accessKeyId: "SHOP-W", rights: "read-write" } as const;

const pairs = [owner, writer, shop, bank, shopReader, shopWriter];

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** Of an error. */
  readonly code: string | undefined;
}

export interface Site {
  readonly url: string;
  readonly port: number;
  /** As a program uses it beside the gateway. */
  readonly objects: ObjectStore;
  readonly client: s3.S3Client;
  /** A key pair that may write, and is not the owner's. */
  readonly writer: s3.S3Client;
  readonly shop: s3.S3Client;
  readonly bank: s3.S3Client;
  /** A bucket of its own for a test. */
  newBucket(more?: Partial<s3.CreateBucketCommandInput>): Promise<string>;
  close(): Promise<void>;
}

export async function startSite(options: Partial<S3GatewayOptions> = {}): Promise<Site> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const objects = await openObjects(directory, { durability: "none" });
  const gateway = await startS3Gateway(objects, { port: 0, credentials: pairs, ...options });
  const clientOf = ({ accessKeyId, secretAccessKey }: typeof owner): s3.S3Client =>
    new s3.S3Client({
      endpoint: gateway.url,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
      maxAttempts: 1,
    });
  const clients = [owner, writer, shop, bank].map(clientOf) as [s3.S3Client, s3.S3Client, s3.S3Client, s3.S3Client];
  let count = 0;
  return {
    url: gateway.url,
    port: gateway.port,
    objects,
    client: clients[0],
    writer: clients[1],
    shop: clients[2],
    bank: clients[3],
    newBucket: async (more = {}) => {
      const Bucket = `bucket-${++count}`;
      await clients[0].send(new s3.CreateBucketCommand({ Bucket, ...more }));
      return Bucket;
    },
    close: async () => {
      for (const client of clients) client.destroy();
      await gateway.close({ drainMs: 0 });
      await objects.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The code and the status that a call fails with. */
export async function failureOf(call: Promise<unknown>): Promise<readonly [code: string, status: number | undefined]> {
  try {
    await call;
  } catch (error) {
    const { name, $metadata } = error as s3.S3ServiceException;
    return [name, $metadata?.httpStatusCode];
  }
  throw new Error("it did not fail");
}

export interface Sent {
  readonly method?: string;
  /** As it goes over the wire. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Just as it is said: nothing is signed, and no header is added but the length of the body. */
export async function send(port: number, { method = "GET", path, headers = {}, body = "" }: Sent): Promise<Answered> {
  return await new Promise((resolve, reject) => {
    const outgoing = httpRequest({ port, host: "127.0.0.1", method, path, headers, agent: false }, (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on("data", (piece: Buffer) => void pieces.push(piece));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        const { statusCode: status = 0 } = incoming;
        const code = /<Code>([^<]*)/.exec(text)?.[1];
        resolve({ status, headers: incoming.headers as Answered["headers"], text, code });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function signerOf(credentials: typeof owner, region: string): SignatureV4 {
  return new SignatureV4({ credentials, region, service: "s3", sha256: NodeSha256, uriEscapePath: false });
}

export interface Signed extends Sent {
  readonly query?: Readonly<Record<string, string>>;
  /** Default UNSIGNED-PAYLOAD. */
  readonly payload?: string;
  readonly at?: Date;
  /** Default: the owner's. */
  readonly by?: typeof owner;
  /** Default us-east-1. */
  readonly region?: string;
}

/** The same request with a signature in its header, by the signer of the AWS SDK. */
export async function signed(port: number, request: Signed): Promise<Sent & { readonly seed: string }> {
  const {
    method = "GET",
    path,
    query = {},
    headers = {},
    payload = "UNSIGNED-PAYLOAD",
    at = new Date(),
    by = owner,
    region = "us-east-1",
  } = request;
  const plain = {
    method,
    protocol: "http:",
    hostname: "127.0.0.1",
    path,
    query: { ...query },
    headers: { ...headers, host: `127.0.0.1:${port}`, "x-amz-content-sha256": payload },
  };
  const { headers: all } = await signerOf(by, region).sign(plain, { signingDate: at });
  const search = Object.entries(query)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
  const seed = /Signature=([0-9a-f]{64})/.exec(all.authorization ?? "")?.[1] ?? "";
  return { ...request, path: search === "" ? path : `${path}?${search}`, headers: all, seed };
}

export async function sendSigned(port: number, request: Signed): Promise<Answered> {
  return await send(port, await signed(port, request));
}
