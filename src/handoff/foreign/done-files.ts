// Done files: which files each of them covers, and what it contains.
import { holdfastError } from "../../errors.ts";
import type { ManifestFile } from "../model/manifest.ts";
import { expand, type ExportRule } from "../model/foreign-rule.ts";

export interface DoneFile {
  readonly name: string;
  readonly text: string;
}

/** Properties that a done file with the content "manifest" has beside the files. */
export interface DoneFacts {
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly createdAt: Date;
}

const nameBytesMax = 255;

/**
 * Returns one done file for each name that the rule derives from the files, and none for `done:
 * null`. Throws INVALID_NAME.
 */
export function doneFilesOf(files: readonly ManifestFile[], rule: ExportRule, facts: DoneFacts): DoneFile[] {
  const { done = "{name}.done", content = "manifest" } = rule;
  if (done === null) return [];
  const byName = new Map<string, ManifestFile[]>();
  for (const file of files) {
    const name = expand(done, file.name);
    byName.set(name, [...(byName.get(name) ?? []), file]);
  }
  return [...byName].map(([name, covered]) => {
    checkDoneName(name, files);
    return { name, text: textOf(covered, content, facts) };
  });
}

function checkDoneName(name: string, files: readonly ManifestFile[]): void {
  const fault =
    Buffer.byteLength(name) > nameBytesMax
      ? `it is longer than ${nameBytesMax} bytes`
      : files.some((file) => file.name === name)
        ? "it is also the name of one of its files"
        : undefined;
  if (fault === undefined) return;
  throw holdfastError("INVALID_NAME", `The done file ${JSON.stringify(name)} cannot be made: ${fault}.`, {
    invalidName: name,
  });
}

function textOf(
  files: readonly ManifestFile[],
  content: ExportRule["content"],
  { id, key, createdAt }: DoneFacts,
): string {
  if (content === "empty") return "";
  if (content === "sha256sum") return files.map(checksumLine).join("");
  return `${JSON.stringify({ id, key, createdAt, files })}\n`;
}

/** The format of `sha256sum -c`, also for names with a backslash or a line break. */
function checksumLine({ name, sha256 }: ManifestFile): string {
  if (!/[\\\n]/.test(name)) return `${sha256}  ${name}\n`;
  return `\\${sha256}  ${name.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n`;
}
