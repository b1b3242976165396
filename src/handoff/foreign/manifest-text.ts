// Parses manifests of other programs: lines as `sha256sum` and its relatives write them, or JSON
// with the usual names.
import { checkText } from "../model/arguments.ts";
import type { DeclaredFile } from "../model/foreign-rule.ts";

/** Thrown for a manifest that may still be incomplete: a later pass may be able to read it. */
export class IncompleteManifest extends Error {}

/** Digests that a manifest can have, by number of hex digits. */
const algorithms: Readonly<Record<number, "md5" | "sha1" | "sha256" | "sha512">> = {
  32: "md5",
  40: "sha1",
  64: "sha256",
  128: "sha512",
};
export const digestNames = ["md5", "sha1", "sha256", "sha512"] as const;

/** Decodes UTF-8 or UTF-16, with or without the byte order mark that .NET and PowerShell write. */
export function decodeText(bytes: Uint8Array): string {
  const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8"; // prettier-ignore
  return new TextDecoder(encoding).decode(bytes);
}

/** Throws IncompleteManifest for a text that may be incomplete, and another error for one that is not a manifest. */
export function parseManifest(text: string): readonly DeclaredFile[] {
  return /^\s*[[{]/.test(text) ? parseJson(text) : parseChecksums(text);
}

const checksumLine = /^(\\?)([0-9a-f]+) [ *](.+)$/i;

function parseChecksums(text: string): DeclaredFile[] {
  if (!text.endsWith("\n")) throw new IncompleteManifest("it does not end with a whole line");
  const lines = text.split(/\r?\n/).filter((line) => line !== "");
  if (lines.length === 0) throw new IncompleteManifest("it names no file");
  return lines.map((line) => {
    const [, escaped, digest = "", name = ""] = checksumLine.exec(line) ?? [];
    const shown = JSON.stringify(line.slice(0, 100));
    if (name === "") throw new Error(`it has the line ${shown}, which sha256sum does not write`);
    const plain = escaped === "" ? name : name.replaceAll(/\\[n\\]/g, (each) => (each === "\\n" ? "\n" : "\\"));
    return checkDeclared({ name: plain.replace(/^\.\//, ""), hash: digest });
  });
}

/** Accepts one file, a list of files, or an object with `files`. */
function parseJson(text: string): DeclaredFile[] {
  const value = parseWhole(text);
  const files = Array.isArray(value) ? value : ((value as { files?: unknown }).files ?? [value]);
  if (!Array.isArray(files) || files.length === 0) throw new Error("it names no file");
  const common = Array.isArray(value) ? {} : { key: keyOf(value as Record<string, unknown>) };
  return files.map((file) => checkDeclared({ ...common, ...declaredOf(file as Record<string, unknown>) }));
}

function parseWhole(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new IncompleteManifest(`it is not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Returns a function that finds the first of several names that has a value, ignoring case. */
function finderIn(fields: Record<string, unknown>): (...names: readonly string[]) => unknown {
  const byName = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  return (...names) => names.map((name) => byName.get(name)).find((each) => each !== undefined && each !== null);
}

/** Ignores an empty key, and values that cannot be a key. */
function keyOf(fields: Record<string, unknown>): unknown {
  const key = finderIn(fields)("idempotencykey", "idempotency_key", "idempotency-key", "key");
  return (typeof key === "string" && key !== "") || typeof key === "number" ? key : undefined;
}

function declaredOf(fields: Record<string, unknown>): Declaring {
  if (typeof fields !== "object" || fields === null) throw new Error("a file is not described by an object");
  const find = finderIn(fields);
  const key = keyOf(fields);
  return {
    name: find("name", "filename", "file"),
    size: find("size", "length", "bytes"),
    hash: find("hash", "checksum", "digest"),
    ...Object.fromEntries(digestNames.map((name) => [name, find(name, name.replace("sha", "sha-"))])),
    records: find("records", "recordcount", "count"),
    ...(key === undefined ? {} : { key }),
  };
}

/**
 * The description of a file, not yet checked. `hash` is a digest whose kind follows from its
 * length.
 */
type Declaring = { readonly [Name in keyof DeclaredFile | "hash"]?: unknown };

/** Checks a description, also that of a caller's own parser. Throws an error if it is invalid. */
export function checkDeclared(file: Declaring): DeclaredFile {
  const { name, key } = file;
  if (typeof name !== "string" || name === "") throw new Error("a file has no name");
  const digests = digestNames.flatMap((kind) => (file[kind] === undefined ? [] : [digestOf(name, file[kind], kind)]));
  if (file.hash !== undefined) digests.push(digestOf(name, file.hash));
  const [size, records] = [countOf(`the size of ${name}`, file.size), countOf(`the records of ${name}`, file.records)];
  const sent = typeof key === "number" ? String(key) : key;
  if (sent !== undefined) checkText("the key", sent);
  return {
    name,
    ...(size === undefined ? {} : { size }),
    ...Object.fromEntries(digests),
    ...(records === undefined ? {} : { records }),
    ...(sent === undefined ? {} : { key: sent as string }),
  };
}

/** Accepts a whole number, also as text. */
function countOf(what: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const count = typeof value === "string" && /^\s*\d{1,16}\s*$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  throw new Error(`${what} is ${JSON.stringify(value)?.slice(0, 100)}, not a whole number`);
}

/** `wanted`: the kind that the manifest declares. */
function digestOf(name: string, value: unknown, wanted?: string): [string, string] {
  const text = typeof value === "string" ? value.trim().toLowerCase() : "";
  // `sha256:…` and `SHA-256=…` declare their own kind.
  const [, hex = ""] = /^(?:(?:md5|sha-?\d+)[:=])?([0-9a-f]+)$/.exec(text) ?? [];
  const kind = algorithms[hex.length];
  if (kind !== undefined && (wanted === undefined || wanted === kind)) return [kind, hex];
  const said = JSON.stringify(value)?.slice(0, 140);
  throw new Error(`the hash of ${name} is ${said}, not ${wanted ?? "an MD5, SHA-1, SHA-256 or SHA-512"} in hex digits`);
}
