// What the bed and the clients of gateways in guests say to each other, where they put, and the
// bodies: each tells who has made it, and can be checked byte for byte by itself.
import { createCipheriv, createHash } from "node:crypto";
import { bucketName } from "./object-puts.ts";

export const bucket: string = bucketName;
/** The same few for all clients. */
export const hotKeys: readonly string[] = ["hot-0", "hot-1", "hot-2"];
export const gatewayPort = 9000;
export const keyPair = { accessKeyId: "BED", secretAccessKey: "of the share bed" } as const;

export interface ClientOrders {
  readonly role: "putter" | "auditor";
  /** Of its own: no other client, and no other start of it, has the same. */
  readonly name: string;
}

/** A put of a key that must not be there yet. */
export interface OnceOrder {
  readonly once: number;
}

export function onceKey(number: number): string {
  return `once-${number}`;
}

/** Which body it is: `count` is of its client. */
export interface Mark {
  readonly name: string;
  readonly count: number;
}

export type ClientReport =
  | (Mark & { readonly kind: "acknowledged"; readonly key: string; readonly versionId: string })
  /** Without a status when there was no answer. */
  | (Mark & { readonly kind: "refused"; readonly key: string; readonly status?: number; readonly code: string })
  | (Mark & { readonly kind: "once"; readonly number: number; readonly status?: number; readonly code: string })
  /** What `/-/health` says, when it says something else than before. */
  | { readonly kind: "health"; readonly status: number }
  /** What a get gave is no body that was ever put. */
  | { readonly kind: "broken"; readonly what: string }
  | (Mark & { readonly kind: "found"; readonly key: string; readonly versionId: string })
  | { readonly kind: "audited"; readonly keys: readonly string[] };

/** Small ones lie in their slot, the others in a file. */
const sizes = [200, 5_000, 70_000, 300_000];

export function bodyOf({ name, count }: Mark): Buffer {
  const head = Buffer.from(`${JSON.stringify({ name, count })}\n`);
  const key = createHash("sha256").update(head).digest().subarray(0, 16);
  const rest = Buffer.alloc(sizes[count % sizes.length] ?? 0);
  return Buffer.concat([head, createCipheriv("aes-128-ctr", key, Buffer.alloc(16)).update(rest)]);
}

/** Undefined for bytes that are not exactly one body. */
export function findMark(bytes: Uint8Array): Mark | undefined {
  const line = Buffer.from(bytes).toString("latin1").split("\n", 1)[0] ?? "";
  if (!/^\{"name":"[\w-]+","count":[0-9]+\}$/.test(line)) return undefined;
  const mark = JSON.parse(line) as Mark;
  return Buffer.compare(bytes, bodyOf(mark)) === 0 ? mark : undefined;
}
