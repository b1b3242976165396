// Which files of a foreign folder are complete, by the rule that its producers keep.
import { createHash } from "node:crypto";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import { filesOf, type ForeignFolder } from "./folder.ts";
import { checkDeclared, parseManifest } from "./manifest-text.ts";
import { expand, ignores, includes, manifestMatcher, type AdoptRule, type DeclaredFile } from "./rule.ts";

/** Files that are complete together: one ticket. */
export interface Candidate {
  /** The done file or manifest, which is claimed first: of many adopters one gets it, and with it the files. */
  readonly signal?: string | undefined;
  /** Of a manifest as it was read: what is claimed must be the same. */
  readonly signalSha256?: string | undefined;
  readonly files: readonly DeclaredFile[];
  /** Of a file that was quiet: what is claimed must be the same. */
  readonly seen?: FileStat | undefined;
}

const manifestBytesMax = 16 * 1024 * 1024;

/** What was seen of files whose size is watched; kept between passes. */
export type Observations = Map<string, { readonly stat: FileStat; readonly sinceMs: number }>;

export async function findCandidates(
  folder: ForeignFolder,
  rule: AdoptRule,
  nowMs: number,
  observations: Observations,
): Promise<Candidate[]> {
  switch (rule.by) {
    case "done-file":
      return await byDoneFile(folder, rule);
    case "manifest":
      return await byManifest(folder, rule);
    case "rename": {
      const isIgnored = ignores(rule.ignore);
      const isIncluded = includes(rule);
      return await single(folder, (name) => isIncluded(name) && !isIgnored(name));
    }
    case "guess-by-quiet-size":
      return await byQuietSize(folder, rule, nowMs, observations);
  }
}

async function single(folder: ForeignFolder, isWanted: (name: string) => boolean): Promise<Candidate[]> {
  const found: Candidate[] = [];
  for await (const { name } of filesOf(folder, isWanted)) found.push({ files: [{ name }] });
  return found;
}

/** Files with one done file are one ticket: with `{name}` each has its own. */
async function byDoneFile(folder: ForeignFolder, rule: AdoptRule & { by: "done-file" }): Promise<Candidate[]> {
  const names = new Set(await folder.disk.list(folder.path));
  const isIncluded = includes(rule);
  const signals = new Set([...names].map((name) => expand(rule.done, name)).filter((done) => names.has(done)));
  const byDone = new Map<string, DeclaredFile[]>();
  const isComplete = (name: string): boolean =>
    isIncluded(name) && !signals.has(name) && names.has(expand(rule.done, name));
  for await (const { name } of filesOf(folder, isComplete)) {
    const done = expand(rule.done, name);
    byDone.set(done, [...(byDone.get(done) ?? []), { name }]);
  }
  return [...byDone].map(([signal, files]) => ({ signal, files }));
}

async function byManifest(folder: ForeignFolder, rule: AdoptRule & { by: "manifest" }): Promise<Candidate[]> {
  const { parse = parseManifest } = rule;
  const isIncluded = includes(rule);
  const found: Candidate[] = [];
  for await (const { name: signal } of filesOf(folder, manifestMatcher(rule.manifest))) {
    const bytes = await readIfThere(folder, signal);
    if (bytes === undefined) continue;
    let files: DeclaredFile[];
    try {
      files = parse(Buffer.from(bytes).toString("utf8")).map((file) => checkDeclared(file));
    } catch {
      // Not whole yet, or no manifest: a later pass looks again.
      continue;
    }
    if (files.length === 0 || !files.every(({ name }) => isIncluded(name) && name !== signal)) continue;
    if (await areThere(folder, files)) found.push({ signal, signalSha256: sha256Of(bytes), files });
  }
  return found;
}

async function areThere(folder: ForeignFolder, files: readonly DeclaredFile[]): Promise<boolean> {
  const names = new Set(files.map(({ name }) => name));
  let count = 0;
  for await (const _ of filesOf(folder, (name) => names.has(name))) count++;
  return count === names.size && names.size === files.length;
}

async function readIfThere({ disk, path }: ForeignFolder, name: string): Promise<Uint8Array | undefined> {
  try {
    return await findIfThere(disk.readFile(`${path}/${name}`, manifestBytesMax));
  } catch (error) {
    if (hasErrno(error, "EFBIG", "EISDIR", "ENXIO")) return undefined;
    throw error;
  }
}

/** A guess: a producer that pauses for longer is taken for one that has ended. */
async function byQuietSize(
  folder: ForeignFolder,
  rule: AdoptRule & { by: "guess-by-quiet-size" },
  nowMs: number,
  observations: Observations,
): Promise<Candidate[]> {
  const found: Candidate[] = [];
  const names = new Set<string>();
  for await (const { name } of filesOf(folder, includes(rule))) {
    // Asked of the server: a client may remember an old size.
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

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
