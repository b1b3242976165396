// Finds the complete files of a foreign folder, by the rule that its producers follow.
import { isErrorLike, isHoldfastError, messageOf } from "../../errors.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import { entriesOf, findEntry, type FolderEntry, type ForeignFolder } from "./folder.ts";
import { checkDeclared, decodeText, IncompleteManifest, parseManifest } from "./manifest-text.ts";
import { isBeyondEntry, type FolderFault } from "./problems.ts";
import {
  expand,
  ignores,
  includes,
  manifestMatcher,
  type AdoptRule,
  type DeclaredFile,
} from "../model/foreign-rule.ts";
import { sha256Of } from "../../format/checksum.ts";

/** Files that become one ticket, because one signal declares all of them complete. */
export interface Candidate {
  /** The done file or manifest. It is claimed first: one adopter wins it, and with it the files. */
  readonly signal?: string | undefined;
  /** Digest of the manifest as it was read. The claimed manifest must have the same digest. */
  readonly signalSha256?: string | undefined;
  /** The key given in the manifest. */
  readonly key?: string | undefined;
  readonly files: readonly DeclaredFile[];
  /** The stat of a file whose size has settled. The claimed file must have the same stat. */
  readonly seen?: FileStat | undefined;
}

export const manifestBytesMax: number = 16 * 1024 * 1024;

/** The last stat of each file whose size is being observed. Kept between passes. */
export type Observations = Map<string, { readonly stat: FileStat; readonly sinceMs: number }>;

/** Called for each entry that matches the rule but cannot be adopted. */
export type ReportFault = (fault: FolderFault) => Promise<void>;

export interface FolderSearch {
  readonly nowMs: number;
  readonly observations: Observations;
  readonly tell: ReportFault;
}

export async function findCandidates(
  folder: ForeignFolder,
  rule: AdoptRule,
  search: FolderSearch,
): Promise<Candidate[]> {
  switch (rule.by) {
    case "done-file":
      return await byDoneFile(folder, rule, search);
    case "manifest":
      return await byManifest(folder, rule, search);
    case "rename":
      return await byRename(folder, rule, search);
    case "guess-by-quiet-size":
      return await byQuietSize(folder, rule, search);
  }
}

const notAFile = "Only files are adopted. Move it away, or put a file in its place.";

/** True for a file. Reports anything else; a directory only if `areDirectoriesMeant`. */
async function isFile(entry: FolderEntry, tell: ReportFault, areDirectoriesMeant = false): Promise<boolean> {
  if (entry.why === undefined) return true;
  const { name, why, isDirectory } = entry;
  if (!isDirectory || areDirectoriesMeant)
    await tell({
      name,
      what: `${JSON.stringify(name)} cannot be adopted: ${why.replace(/\.$/, "")}.`,
      remedy: notAFile,
    });
  return false;
}

async function byRename(
  folder: ForeignFolder,
  rule: AdoptRule & { by: "rename" },
  { tell }: FolderSearch,
): Promise<Candidate[]> {
  const [isIgnored, isIncluded] = [ignores(rule.ignore), includes(rule)];
  const found: Candidate[] = [];
  for await (const entry of entriesOf(folder, (name) => isIncluded(name) && !isIgnored(name)))
    if (await isFile(entry, tell)) found.push({ files: [{ name: entry.name }] });
  return found;
}

/** Files with the same done file are one ticket. With `{name}`, each file has its own. */
async function byDoneFile(
  folder: ForeignFolder,
  rule: AdoptRule & { by: "done-file" },
  { tell }: FolderSearch,
): Promise<Candidate[]> {
  const names = new Set(await folder.disk.list(folder.path));
  const isIncluded = includes(rule);
  const signals = new Set([...names].map((name) => expand(rule.done, name)).filter((done) => names.has(done)));
  const byDone = new Map<string, DeclaredFile[]>();
  /**
   * Done files that cover an entry which is not a file. The ticket waits until a file replaces that
   * entry.
   */
  const incomplete = new Set<string>();
  for (const name of [...names].sort()) {
    const done = expand(rule.done, name);
    if (!isIncluded(name) || signals.has(name) || !names.has(done)) continue;
    const entry = await findEntry(folder, name);
    if (entry === undefined) continue;
    if (await isFile(entry, tell, true)) byDone.set(done, [...(byDone.get(done) ?? []), { name }]);
    else if (entry.why !== undefined && !entry.isDirectory) incomplete.add(done);
  }
  const found: Candidate[] = [];
  for (const [signal, files] of byDone) {
    if (incomplete.has(signal)) continue;
    const entry = await findEntry(folder, signal);
    if (entry !== undefined && (await isFile(entry, tell, true))) found.push({ signal, files });
  }
  return found;
}

async function byManifest(
  folder: ForeignFolder,
  rule: AdoptRule & { by: "manifest" },
  { tell }: FolderSearch,
): Promise<Candidate[]> {
  const isIncluded = includes(rule);
  const found: Candidate[] = [];
  for await (const entry of entriesOf(folder, manifestMatcher(rule.manifest))) {
    if (!(await isFile(entry, tell, true))) continue;
    const { name: signal } = entry;
    const complain = async (why: string, mayPass: boolean): Promise<void> =>
      await tell({
        name: signal,
        what: `The manifest ${JSON.stringify(signal)} cannot be used: ${why}.`,
        remedy: "Correct it, or have its producer write it again. It is read again at each pass.",
        mayPass,
      });
    try {
      const bytes = await findIfThere(folder.disk.readFile(`${folder.path}/${signal}`, manifestBytesMax));
      if (bytes === undefined) continue;
      const files = read(rule, bytes);
      const outside = files.find(({ name }) => /[/\\\0]/.test(name));
      if (outside !== undefined) {
        await complain(`it names ${JSON.stringify(outside.name)}, which is not a file of this folder`, false);
        continue;
      }
      if (files.length === 0 || !files.every(({ name }) => isIncluded(name) && name !== signal)) continue;
      const missing = await findMissing(folder, files);
      if (missing !== undefined) await complain(missing, true);
      else found.push({ signal, signalSha256: sha256Of(bytes), files, key: keyOf(files) });
    } catch (error) {
      if (isHoldfastError(error) ? isBeyondEntry(error) : !isErrorLike(error)) throw error;
      const why = hasErrno(error, "EFBIG") ? `it has over ${manifestBytesMax} bytes` : messageOf(error);
      // The caller's own parser may refuse a manifest because its producer is still writing it.
      await complain(why, error instanceof IncompleteManifest || (rule.parse !== undefined && !isHoldfastError(error)));
    }
  }
  return found;
}

function read({ parse = parseManifest }: AdoptRule & { by: "manifest" }, bytes: Uint8Array): DeclaredFile[] {
  return parse(decodeText(bytes)).map((file) => checkDeclared({ ...file }));
}

/** Files that name different keys are still one ticket: its key is derived from all of them. */
function keyOf(files: readonly DeclaredFile[]): string | undefined {
  const keys = [...new Set(files.flatMap(({ key }) => (key === undefined ? [] : [key])))].sort();
  return keys.length <= 1 ? keys[0] : `keys/${sha256Of(Buffer.from(JSON.stringify(keys)))}`;
}

/** Returns why the files of a manifest cannot be handed over, or undefined if all of them exist. */
async function findMissing(folder: ForeignFolder, files: readonly DeclaredFile[]): Promise<string | undefined> {
  const names = new Set<string>();
  for (const { name } of files) {
    const shown = JSON.stringify(name);
    if (names.has(name)) return `it names ${shown} twice`;
    names.add(name);
    const entry = await findEntry(folder, name);
    if (entry === undefined) return `it names ${shown}, which does not exist yet`;
    if (entry.why !== undefined) return `it names ${shown}, and ${entry.why}`;
  }
  return undefined;
}

/** A guess: a file that did not change for this long is assumed to be complete. */
async function byQuietSize(
  folder: ForeignFolder,
  rule: AdoptRule & { by: "guess-by-quiet-size" },
  { nowMs, observations, tell }: FolderSearch,
): Promise<Candidate[]> {
  const found: Candidate[] = [];
  const names = new Set<string>();
  for await (const entry of entriesOf(folder, includes(rule))) {
    if (!(await isFile(entry, tell))) continue;
    const { name } = entry;
    // Asks the server: the client of a share may have cached an old size.
    const stat = await findIfThere(folder.disk.look(`${folder.path}/${name}`));
    if (stat === undefined) continue;
    names.add(name);
    const before = observations.get(name);
    if (before === undefined || !isSame(before.stat, stat)) observations.set(name, { stat, sinceMs: nowMs });
    else if (nowMs - before.sinceMs >= rule.quietMs) found.push({ files: [{ name }], seen: stat });
  }
  for (const name of observations.keys()) if (!names.has(name)) observations.delete(name);
  return found;
}

export function isSame(a: FileStat, b: FileStat): boolean {
  return a.identity === b.identity && a.size === b.size && a.mtimeMs === b.mtimeMs;
}
