// The target of a request as it came over the wire. The URL class is not used: it resolves `..`,
// and keys may contain that.
import { S3Error } from "./s3-error.ts";

export interface RawTarget {
  /** Decoded, with its leading slash. */
  readonly path: string;
  /** Decoded, in the order in which they came. */
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** InvalidURI. Also the absolute form that a client sends to a proxy. */
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

/** As AWS does: every byte but letters, digits, `-`, `.`, `_` and `~`. */
export function encodeUri(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
