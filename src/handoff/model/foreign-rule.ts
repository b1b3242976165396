// Rules for folders of other programs: how a producer marks a file as complete, and how an export
// names its done file. Checks the rules, and evaluates their globs and templates.
import picomatch from "picomatch";
import { checkOptions } from "../../format/known-options.ts";
import { checkFileName, checkText } from "./arguments.ts";

/** A file as the `key` function of an AdoptRule receives it. */
export interface AdoptedFile {
  /** The file name. */
  readonly name: string;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
  /** The key in the manifest, if any. */
  readonly key?: string;
}

/** A file as the manifest of another program declares it. Every declared digest is checked. */
export interface DeclaredFile {
  /** The file name. */
  name: string;
  /** Size in bytes. */
  size?: number;
  /** SHA-256 in hex. */
  sha256?: string;
  /** MD5 in hex. */
  md5?: string;
  /** SHA-1 in hex. */
  sha1?: string;
  /** SHA-512 in hex. */
  sha512?: string;
  /** Record count. */
  records?: number;
  /**
   * The idempotency key of the whole ticket. All files of one manifest that declare a key declare
   * the same one.
   */
  key?: string;
}

/**
 * How a foreign program signals that its files are complete: by a done file, by a manifest, by a
 * rename, or, as a guess, by a size that does not change for `quietMs`. In templates `{name}` is
 * the whole file name and `{base}` the name without extension.
 */
export type AdoptRule = {
  /** Globs on file names. Default: all names that do not begin with a dot. */
  include?: readonly string[] | undefined;
  /**
   * The idempotency key. `content`: equal names with equal bytes are one ticket. A function
   * receives the first file of the ticket. Default: the key in the manifest; without one, an equal
   * file is a new ticket.
   */
  key?: "content" | ((file: AdoptedFile) => string) | undefined;
  /** The group of the tickets. Default: none. */
  group?: string | undefined;
  /** JSON that the consumer receives with the tickets. Default: none. */
  meta?: unknown;
} & (
  | {
      /** Complete once the done file of this name exists. */
      by: "done-file";
      /** Template of its name, such as `{name}.done`. */
      done: string;
    }
  | {
      /** Complete once all files of a manifest exist. */
      by: "manifest";
      /** Template of the name of the manifest. */
      manifest: string;
      /** Parses the manifest. Default: JSON, or lines of `sha256sum`. */
      parse?: ((text: string) => readonly DeclaredFile[]) | undefined;
    }
  | {
      /** Complete once the file has its final name. */
      by: "rename";
      /** Globs of the names of incomplete files. */
      ignore: readonly string[];
    }
  | {
      /** Complete once the size did not change for `quietMs`. A guess: if the writer pauses for longer, the file is cut off. */
      by: "guess-by-quiet-size";
      /** How long the size must stay the same. */
      quietMs: number;
    }
);

/** How an exported file is signalled as complete. */
export interface ExportRule {
  /**
   * Template of the name of the done file. Default `{name}.done`; null writes none, so that the
   * rename is the signal.
   */
  done?: string | null | undefined;
  /** Content of the done file: the manifest as JSON, a line of `sha256sum`, or nothing. Default `manifest`. */
  content?: "manifest" | "sha256sum" | "empty" | undefined;
}

const common = { include: true, key: true, group: true, meta: true, by: true } as const;
export const exportContents = ["manifest", "sha256sum", "empty"] as const;

/** Throws a TypeError or RangeError that names the mistake. */
export function checkAdoptRule(rule: AdoptRule): void {
  if (typeof rule !== "object" || rule === null) throw new TypeError("adopt: the rule must be an object.");
  switch (rule.by) {
    case "done-file":
      checkOptions("adopt", rule, { ...common, done: true });
      checkTemplate("done", rule.done);
      break;
    case "manifest":
      checkOptions("adopt", rule, { ...common, manifest: true, parse: true });
      checkTemplate("manifest", rule.manifest);
      if (rule.parse !== undefined && typeof rule.parse !== "function")
        throw new TypeError("adopt: parse must be a function.");
      break;
    case "rename":
      checkOptions("adopt", rule, { ...common, ignore: true });
      checkGlobs("ignore", rule.ignore);
      break;
    case "guess-by-quiet-size":
      checkOptions("adopt", rule, { ...common, quietMs: true });
      if (!(Number.isFinite(rule.quietMs) && rule.quietMs >= 1))
        throw new RangeError(`adopt: quietMs must be a number of milliseconds from 1, not ${rule.quietMs}.`);
      break;
    default: {
      const { by } = rule as { by: unknown };
      throw new TypeError(
        `adopt: by must be "done-file", "manifest", "rename" or "guess-by-quiet-size", not ${JSON.stringify(by)}.`,
      );
    }
  }
  const { include, key, group } = rule;
  if (include !== undefined) checkGlobs("include", include);
  if (key !== undefined && key !== "content" && typeof key !== "function")
    throw new TypeError('adopt: key must be "content" or a function.');
  if (group !== undefined) checkText("group", group);
}

/** Throws a TypeError. */
export function checkExportRule(rule: ExportRule): void {
  checkOptions("export", rule, { done: true, content: true });
  const { done, content } = rule;
  if (done !== undefined && done !== null) checkTemplate("done", done);
  if (content !== undefined && !exportContents.includes(content))
    throw new TypeError(`content must be one of ${exportContents.join(", ")}, not ${JSON.stringify(content)}.`);
}

function checkTemplate(what: string, template: unknown): void {
  if (typeof template !== "string" || template === "")
    throw new TypeError(`${what} must be a file name, with {name} or {base} in it, like "{name}.done".`);
  if (expand(template, "a.b") === "a.b")
    throw new TypeError(`${what} ${JSON.stringify(template)} names the file itself.`);
  checkFileName(expand(template, "a.b"));
}

function checkGlobs(what: string, globs: unknown): void {
  if (Array.isArray(globs) && globs.every((glob) => typeof glob === "string" && glob !== "")) return;
  throw new TypeError(`adopt: ${what} must be a list of globs, like ["${what === "ignore" ? "*.tmp" : "*.csv"}"].`);
}

export function expand(template: string, name: string): string {
  const dot = name.lastIndexOf(".");
  const base = dot > 0 ? name.slice(0, dot) : name;
  // In one pass: a name may contain "{base}".
  return template.replaceAll(/\{(name|base)\}/g, (_, what) => (what === "name" ? name : base));
}

/** Matches the names that a rule covers. A name with a leading dot matches only a glob with one. */
export function includes({ include = ["*"] }: AdoptRule): (name: string) => boolean {
  return picomatch([...include]);
}

/** Matches files that a producer is still writing. */
export function ignores(globs: readonly string[]): (name: string) => boolean {
  return globs.length === 0 ? () => false : picomatch([...globs], { dot: true });
}

/** Matches names that can be those of a manifest. */
export function manifestMatcher(template: string): (name: string) => boolean {
  const parts = template.split(/\{(?:name|base)\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join(".+")}$`, "s");
  return (name) => pattern.test(name);
}
