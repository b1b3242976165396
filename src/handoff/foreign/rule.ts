// How a program that knows nothing of Holdfast says that a file is complete, and how the done file of an export is
// named: rules, checked, with their globs and templates.
import picomatch from "picomatch";
import { checkOptions } from "../../format/known-options.ts";
import { checkFileName, checkText } from "../model/arguments.ts";

interface AdoptCommon {
  /** Globs on file names. Default: all that do not begin with a dot. */
  include?: readonly string[] | undefined;
  /**
   * Default: none, so that an equal file tomorrow is a new hand-over. "content": equal name and bytes are one. A
   * function is asked for the first file of a ticket, by name.
   */
  key?: "content" | ((file: { readonly name: string; readonly sha256: string }) => string) | undefined;
  group?: string | undefined;
  meta?: unknown;
}

/** What a manifest of another program says of one file. */
export interface DeclaredFile {
  name: string;
  size?: number;
  sha256?: string;
  records?: number;
}

/** `{name}` is the whole file name, `{base}` the name without extension. */
export type AdoptRule =
  | (AdoptCommon & { by: "done-file"; done: string })
  | (AdoptCommon & {
      by: "manifest";
      manifest: string;
      parse?: ((text: string) => readonly DeclaredFile[]) | undefined;
    })
  | (AdoptCommon & { by: "rename"; ignore: readonly string[] })
  | (AdoptCommon & { by: "guess-by-quiet-size"; quietMs: number });

export interface ExportRule {
  /** Default "{name}.done"; null: no done file (the rename alone is the signal). */
  done?: string | null | undefined;
  /** What the done file holds. Default "manifest". */
  content?: "manifest" | "sha256sum" | "empty" | undefined;
}

const common = { include: true, key: true, group: true, meta: true, by: true } as const;
export const exportContents = ["manifest", "sha256sum", "empty"] as const;

/** TypeError or RangeError, naming what is wrong. */
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

/** TypeError. */
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

/** Which names a rule is about. A name that begins with a dot must be named so. */
export function includes({ include = ["*"] }: AdoptRule): (name: string) => boolean {
  return picomatch([...include]);
}

/** Names of files that a producer is still writing. */
export function ignores(globs: readonly string[]): (name: string) => boolean {
  return globs.length === 0 ? () => false : picomatch([...globs], { dot: true });
}

/** Whether a name can be that of a manifest. */
export function manifestMatcher(template: string): (name: string) => boolean {
  const parts = template.split(/\{(?:name|base)\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`^${parts.join(".+")}$`, "s");
  return (name) => pattern.test(name);
}
