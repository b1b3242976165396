// Manifests of other programs: lines as `sha256sum` writes them, or JSON with the names that are common for it.
import type { DeclaredFile } from "./rule.ts";

/** Throws (any error) for a text that is no manifest, or not a whole one. */
export function parseManifest(text: string): readonly DeclaredFile[] {
  return /^\s*[[{]/.test(text) ? parseJson(text) : parseChecksums(text);
}

const checksumLine = /^(\\?)([0-9a-f]{64}) [ *](.+)$/i;

function parseChecksums(text: string): DeclaredFile[] {
  if (!text.endsWith("\n")) throw new Error("it does not end with a whole line");
  const lines = text.split(/\r?\n/).filter((line) => line !== "");
  if (lines.length === 0) throw new Error("it names no file");
  return lines.map((line) => {
    const [, escaped, sha256 = "", name = ""] = checksumLine.exec(line) ?? [];
    if (name === "")
      throw new Error(`it has the line ${JSON.stringify(line.slice(0, 100))}, which sha256sum does not write`);
    const plain = escaped === "" ? name : name.replaceAll(/\\[n\\]/g, (each) => (each === "\\n" ? "\n" : "\\"));
    return { name: plain.replace(/^\.\//, ""), sha256: sha256.toLowerCase() };
  });
}

/** One file, a list of files, or an object with `files`. */
function parseJson(text: string): DeclaredFile[] {
  const value = JSON.parse(text) as unknown;
  const files = Array.isArray(value) ? value : ((value as { files?: unknown }).files ?? [value]);
  if (!Array.isArray(files) || files.length === 0) throw new Error("it names no file");
  return files.map((file) => declaredOf(file as Record<string, unknown>));
}

/** The first of these names that is there, in any case. */
function declaredOf(fields: Record<string, unknown>): DeclaredFile {
  if (typeof fields !== "object" || fields === null) throw new Error("a file is not described by an object");
  const byName = new Map(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
  const find = (...names: readonly string[]): unknown =>
    names.map((name) => byName.get(name)).find((each) => each !== undefined);
  return checkDeclared({
    name: find("name", "filename", "file"),
    size: find("size", "length", "bytes"),
    sha256: find("sha256", "hash"),
    records: find("records", "recordcount", "count"),
  });
}

/** Also what a caller's own parser gives. */
export function checkDeclared(file: { readonly [Name in keyof DeclaredFile]: unknown }): DeclaredFile {
  const { name, size, records } = file;
  const sha256 = typeof file.sha256 === "string" ? file.sha256.toLowerCase() : file.sha256;
  if (typeof name !== "string" || name === "") throw new Error("a file has no name");
  if (sha256 !== undefined && !(typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256)))
    throw new Error(`the hash of ${name} is not a SHA-256`);
  for (const [what, count] of Object.entries({ size, records }))
    if (count !== undefined && !(Number.isSafeInteger(count) && (count as number) >= 0))
      throw new Error(`${what} of ${name} is not a whole number`);
  return {
    name,
    ...(size === undefined ? {} : { size: size as number }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(records === undefined ? {} : { records: records as number }),
  };
}
