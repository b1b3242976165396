// The target of a request as it was sent. The URL class is not used, because it resolves `..`,
// which keys may contain.
import { S3Error } from "./s3-error.ts";

export interface RawTarget {
  /** Decoded, with its leading slash. */
  readonly path: string;
  /** Decoded, in the order sent. */
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** Throws InvalidURI. Also accepts the absolute form that clients send to proxies. */
export function parseTarget(target: string): RawTarget {
  const relative = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const [path, query = ""] = splitOnce(relative, "?");
  const pairs = query === "" ? [] : query.split("&").filter((pair) => pair !== "");
  return {
    path: decode(path === "" ? "/" : path),
    query: pairs.map((pair) => {
      const [name, value = ""] = splitOnce(pair, "=");
      return [decode(name.replaceAll("+", " ")), decode(value.replaceAll("+", " "))];
    }),
  };
}

function splitOnce(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new S3Error("InvalidURI", { cause });
  }
}

/** Encodes like AWS: every byte except letters, digits, `-`, `.`, `_` and `~`. */
export function encodeUri(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
