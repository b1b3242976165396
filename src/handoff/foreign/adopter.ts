// Adopting: files that another program has put into a plain folder become tickets, each file once, however many
// processes adopt from that folder.
import { posix } from "node:path";
import type { Body } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno, findIfThere } from "../../ports/disk-error.ts";
import { isId } from "../../format/id.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { readChunks } from "../../part/read-chunks.ts";
import type { Box } from "../box/box.ts";
import { asJson, checkFileName, checkText } from "../model/arguments.ts";
import { priorityDefault } from "../model/manifest.ts";
import type { WrittenFile } from "../publish/payload.ts";
import type { Publication, Published } from "../publish/publisher.ts";
import { findCandidates, isSame, sha256Of, type Candidate, type Observations } from "./candidates.ts";
import { ClaimEntry, fileName, signalName, type Origin } from "./claim-entry.ts";
import type { ForeignFolder } from "./folder.ts";
import type { AdoptRule } from "./rule.ts";

export interface AdopterParts {
  readonly box: Box;
  readonly publish: (publication: Publication) => Promise<Published>;
  /** RESOURCE_BUSY when the box is full: nothing is claimed then. */
  readonly mustHaveRoom: () => Promise<void>;
}

const manifestBytesMax = 16 * 1024 * 1024;

export class Adopter {
  readonly #parts: AdopterParts;
  readonly #folder: ForeignFolder;
  readonly #rule: AdoptRule;
  readonly #observations: Observations = new Map();

  constructor(parts: AdopterParts, folder: ForeignFolder, rule: AdoptRule) {
    this.#parts = parts;
    this.#folder = folder;
    this.#rule = rule;
  }

  /**
   * One look at the folder; how many tickets it made. A file that cannot be adopted does not keep the others from it:
   * the first failure is told at the end.
   */
  async pass(signal?: AbortSignal): Promise<number> {
    const { box, mustHaveRoom } = this.#parts;
    const failures: unknown[] = [];
    const session = await box.ground.session();
    let count = await recoverClaims(this.#parts, this.#folder, { rule: this.#rule, failures });
    const nowMs = box.ground.ports.clock.monotonicMs();
    for (const candidate of await findCandidates(this.#folder, this.#rule, nowMs, this.#observations)) {
      signal?.throwIfAborted();
      await mustHaveRoom();
      try {
        for (const { name } of candidate.files) checkFileName(name);
        if (await this.#adopt(candidate)) count++;
      } catch (error) {
        if (isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "CLOSED")) throw error;
        failures.push(error);
      }
    }
    await this.#leave();
    // The place of its claims is gone: other processes took this one for dead. LOCK_LOST says so.
    if (failures.some((error) => hasErrno(error, "ENOENT"))) await assertNotSwept(session.staging, session.temp);
    if (failures.length > 0) throw failures[0];
    return count;
  }

  /** False when another process has it, or when it is published already. */
  async #adopt(candidate: Candidate): Promise<boolean> {
    const { box } = this.#parts;
    const { disk, path, claims } = this.#folder;
    const session = await box.ground.session();
    const entry = new ClaimEntry(disk, `${claims}/${session.holder.id}/${box.newId()}`, box.isSynced);
    const origin = originOf(this.#folder, this.#rule, candidate);
    box.inHand.add(entry.path);
    try {
      await entry.begin(origin);
      if (!(await this.#claim(entry, origin, candidate))) {
        await entry.giveBack(origin, path);
        return false;
      }
      return await complete(this.#parts, entry, origin, path, this.#rule);
    } finally {
      box.inHand.delete(entry.path);
    }
  }

  /** The signal first: otherwise the producer's next one could be taken for that of these files. */
  async #claim(entry: ClaimEntry, origin: Origin, { signalSha256, seen }: Candidate): Promise<boolean> {
    const { disk, path } = this.#folder;
    if (origin.signal !== undefined && !(await entry.take(`${path}/${origin.signal}`, signalName))) return false;
    if (signalSha256 !== undefined) {
      const bytes = await disk.readFile(`${entry.path}/${signalName}`, manifestBytesMax);
      if (sha256Of(bytes) !== signalSha256) return false;
    }
    for (const [index, { name }] of origin.files.entries())
      if (!(await entry.take(`${path}/${name}`, fileName(index)))) return false;
    return seen === undefined || isSame(seen, await disk.look(`${entry.path}/${fileName(0)}`));
  }

  /** Leaves no empty directories behind; a claim that is still there keeps its own. */
  async #leave(): Promise<void> {
    const { disk, claims, isInBox } = this.#folder;
    const { holder } = await this.#parts.box.ground.session();
    const empty = [`${claims}/${holder.id}`, ...(isInBox ? [] : [claims, parentOf(claims)])];
    for (const directory of empty) await disk.rmdir(directory).catch(() => undefined);
  }
}

function originOf({ path, claims }: ForeignFolder, rule: AdoptRule, { signal, files }: Candidate): Origin {
  const { key, group, meta } = rule;
  return {
    folder: posix.relative(claims, path),
    ...(signal === undefined ? {} : { signal }),
    files,
    key: key === undefined ? "claim" : key === "content" ? "content" : "function",
    ...(group === undefined ? {} : { group }),
    ...(meta === undefined ? {} : { meta: asJson("adopt: meta", meta) }),
  };
}

/**
 * Takes over the claims of processes that are dead, and those that this one has left unfinished; how many tickets that
 * made. Of many processes one gets each: by a rename of the whole claim, in which every name is made once.
 */
export async function recoverClaims(
  parts: AdopterParts,
  { disk, claims }: Pick<ForeignFolder, "disk" | "claims">,
  { rule, failures = [] }: RecoverOptions = {},
): Promise<number> {
  const { box } = parts;
  let count = 0;
  for (const holder of ((await findIfThere(disk.list(claims))) ?? []).filter(isId)) {
    const own = (await box.ground.session()).holder.id;
    if (holder !== own && !(await box.ground.settle(holder))) continue;
    const directory = `${claims}/${holder}`;
    for (const id of ((await findIfThere(disk.list(directory))) ?? []).filter(isId)) {
      const path = `${claims}/${own}/${id}`;
      if (box.inHand.has(path)) continue;
      box.inHand.add(path);
      try {
        if (holder !== own && !(await takeOver(disk, `${directory}/${id}`, path))) continue;
        if (await settle(parts, new ClaimEntry(disk, path, box.isSynced), claims, rule)) count++;
      } catch (error) {
        // One that cannot be completed now keeps neither the others nor the workers of the box from going on.
        if (isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "CLOSED")) throw error;
        failures.push(error);
      } finally {
        box.inHand.delete(path);
      }
    }
    if (holder !== own) await disk.rmdir(directory).catch(() => undefined);
  }
  return count;
}

interface RecoverOptions {
  readonly rule?: AdoptRule | undefined;
  /** What failed, in the order in which it did. */
  readonly failures?: unknown[] | undefined;
}

async function takeOver(disk: ForeignFolder["disk"], from: string, to: string): Promise<boolean> {
  try {
    await disk.mkdir(parentOf(to));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
  return await moveOnce(disk, from, to);
}

/** Completes a claim, gives it back, or drops it. True when that made a ticket. */
async function settle(
  parts: AdopterParts,
  entry: ClaimEntry,
  claims: string,
  rule: AdoptRule | undefined,
): Promise<boolean> {
  const { isPublished, isEmpty, fileCount, hasSignal } = await entry.state();
  if (isPublished) {
    await entry.removePublished();
    return false;
  }
  const origin = await entry.findOrigin();
  if (isEmpty) {
    await entry.drop(origin);
    return false;
  }
  // Files without an origin: no step leaves that. `verify` tells of them.
  if (origin === undefined) return false;
  const folder = posix.join(claims, origin.folder);
  const isComplete = fileCount === origin.files.length && (origin.signal === undefined || hasSignal);
  if (!isComplete) await entry.giveBack(origin, folder);
  else if (origin.key !== "function" || typeof rule?.key === "function")
    return await complete(parts, entry, origin, folder, rule);
  return false;
}

async function complete(
  { publish }: AdopterParts,
  entry: ClaimEntry,
  origin: Origin,
  folder: string,
  rule: AdoptRule | undefined,
): Promise<boolean> {
  // Before the ticket can be seen: a power cut must not bring back the files to where they are adopted again.
  await entry.sync(entry.path);
  await findIfThere(entry.sync(folder));
  const published = await publish(publicationOf(entry, origin, rule));
  await entry.finish();
  return !published.duplicate;
}

function publicationOf(
  { disk, path, id }: ClaimEntry,
  { files, key, group, meta }: Origin,
  rule?: AdoptRule,
): Publication {
  const bodies = files.map(({ name }, index): [string, Body] => [name, readChunks(disk, `${path}/${fileName(index)}`)]);
  const own = rule?.key;
  const keyOf = (written: readonly WrittenFile[]): string => {
    const sorted = [...written].sort((a, b) => (a.name < b.name ? -1 : 1));
    const [first] = sorted;
    if (key === "function" && typeof own === "function" && first !== undefined) {
      const chosen = own({ name: first.name, sha256: first.sha256 });
      checkText("adopt: what the key function gives", chosen);
      return chosen;
    }
    const named = sorted.map(({ name, sha256 }) => [name, sha256]);
    return key === "content" ? `content/${sha256Of(Buffer.from(JSON.stringify(named)))}` : `adopted/${id}`;
  };
  const records = files.flatMap((file) => (file.records === undefined ? [] : [[file.name, file.records] as const]));
  return {
    bodies,
    facts: {
      priority: priorityDefault,
      ...(group === undefined ? {} : { group }),
      ...(meta === undefined ? {} : { meta }),
    },
    key: keyOf,
    records: Object.fromEntries(records),
    contentTypes: {},
    declared: Object.fromEntries(files.map(({ name, size, sha256 }) => [name, { size, sha256 }])),
  };
}
