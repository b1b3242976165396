// Completes a claim on foreign files: publishes a ticket under the claim's key, or nothing if that
// key was handed over before.
import { createHash } from "node:crypto";
import { posix } from "node:path";
import type { Body } from "../../common.ts";
import { findIfThere } from "../../ports/disk-error.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { moveAside } from "../../part/aside.ts";
import { readChunks } from "../../part/read-chunks.ts";
import type { Box } from "../box/box.ts";
import { findOwner } from "../box/key-file.ts";
import { claimTicket } from "../consume/claim.ts";
import { failPermanently } from "../consume/settle.ts";
import { checkText } from "../model/arguments.ts";
import { priorityDefault } from "../model/manifest.ts";
import type { Publication, Published, WrittenFile } from "../model/publication.ts";
import { findTicket, undefinedIfDamaged } from "../operate/find.ts";
import type { BoxPublisher } from "../publish/box-publisher.ts";
import type { ReportFault } from "./candidates.ts";
import { fileName, type ClaimEntry, type ClaimOrigin } from "./claim-entry.ts";
import { digestNames } from "./manifest-text.ts";
import type { AdoptRule, DeclaredFile } from "../model/foreign-rule.ts";
import { sha256Of } from "../../format/checksum.ts";

/** What adoption needs of a box. */
export type AdoptingBox = Pick<BoxPublisher, "box" | "publish" | "mustHaveRoom">;

export interface CompletionOptions {
  readonly rule?: AdoptRule | undefined;
  readonly tell?: ReportFault | undefined;
}

/** Completes a claim, gives it back, or drops it. Returns true if that made a ticket. */
export async function settleClaim(
  adopting: AdoptingBox,
  entry: ClaimEntry,
  claims: string,
  { rule, tell }: CompletionOptions,
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
  // No step leaves files without an origin, so another program made them. `verify` reports them.
  if (origin === undefined) return false;
  const folder = posix.join(claims, origin.folder);
  const isComplete = fileCount === origin.files.length && (origin.signal === undefined || hasSignal);
  if (!isComplete) await entry.giveBack(origin, folder);
  else if (origin.key !== "function" || typeof rule?.key === "function")
    return await completeClaim(adopting, entry, origin, folder, { rule, tell });
  return false;
}

/** Returns true if that made a ticket. */
export async function completeClaim(
  adopting: AdoptingBox,
  entry: ClaimEntry,
  origin: ClaimOrigin,
  folder: string,
  { rule, tell }: CompletionOptions,
): Promise<boolean> {
  // Synced before the ticket is visible: a power cut must not return the files to the folder, where
  // they would be adopted again.
  await entry.sync(entry.path);
  await findIfThere(entry.sync(folder));
  const attempt = new Handover(entry, origin, rule);
  let published: Published;
  try {
    published = await adopting.publish(attempt.publication());
  } catch (error) {
    if (!(error instanceof DigestMismatch)) throw error;
    // Tickets declare only SHA-256. This one gets a digest that no file has, so that no worker
    // receives the spoilt file.
    published = await adopting.publish(attempt.publication(error.file));
    await failTicket(adopting.box, published.id, error.message);
  }
  if (published.duplicate && (await attempt.isOther(adopting.box, published.key))) {
    const kept = await setAside(adopting.box, entry);
    await tell?.({
      name: origin.signal ?? origin.files[0]?.name ?? "",
      what: `The key ${JSON.stringify(published.key)} was handed over before, as ticket ${published.id}, with other content.`,
      remedy: `It was not handed over again, and is kept in ${kept}. Two hand-overs need two keys.`,
    });
    return false;
  }
  await entry.finish();
  return !published.duplicate;
}

/** A file fails a digest of its manifest that tickets cannot declare, such as MD5. */
class DigestMismatch extends Error {
  readonly file: string;

  constructor(file: string, message: string) {
    super(message);
    this.file = file;
  }
}

const noFileHasIt = "0".repeat(64);

/** Turns the files of one claim into a ticket. */
class Handover {
  readonly #entry: ClaimEntry;
  readonly #origin: ClaimOrigin;
  readonly #rule: AdoptRule | undefined;
  #written: readonly WrittenFile[] = [];

  constructor(entry: ClaimEntry, origin: ClaimOrigin, rule: AdoptRule | undefined) {
    this.#entry = entry;
    this.#origin = origin;
    this.#rule = rule;
  }

  /** `spoilt`: the file that is known to differ from its manifest. */
  publication(spoilt?: string): Publication {
    const { files, group, meta } = this.#origin;
    const { disk, path } = this.#entry;
    const found = new Map<string, string>();
    const bodies = files.map((file, index): [string, Body] => {
      const chunks = readChunks(disk, `${path}/${fileName(index)}`);
      return [file.name, spoilt === undefined ? checked(chunks, file, found) : chunks];
    });
    const records = files.flatMap((file) => (file.records === undefined ? [] : [[file.name, file.records] as const]));
    const declared = files.map(({ name, size, sha256 }) => [
      name,
      name === spoilt ? { sha256: noFileHasIt } : { size, sha256 },
    ]);
    return {
      bodies,
      facts: {
        priority: priorityDefault,
        ...(group === undefined ? {} : { group }),
        ...(meta === undefined ? {} : { meta }),
      },
      key: (written) => {
        this.#written = written;
        for (const [name, why] of found) throw new DigestMismatch(name, why);
        return this.#keyOf(written, spoilt !== undefined);
      },
      records: Object.fromEntries(records),
      contentTypes: {},
      declared: Object.fromEntries(declared),
    };
  }

  /** True if the ticket that owns the key has other bytes than this claim. */
  async isOther(box: Box, key: string): Promise<boolean> {
    const first = await undefinedIfDamaged(findOwner(box, box.layout.key(key)));
    if (first === undefined) return false;
    const bytesOf = (files: readonly Pick<WrittenFile, "sha256">[]): string =>
      files.map(({ sha256 }) => sha256).sort().join(); // prettier-ignore
    return bytesOf(first.manifest.files) !== bytesOf(this.#written);
  }

  #keyOf(written: readonly WrittenFile[], isSpoilt: boolean): string {
    const { key, sentKey, files } = this.#origin;
    const ofClaim = `adopted/${this.#entry.id}`;
    const sorted = [...written].sort((a, b) => (a.name < b.name ? -1 : 1));
    if (key === "content")
      return `content/${sha256Of(Buffer.from(JSON.stringify(sorted.map(({ name, sha256 }) => [name, sha256]))))}`;
    // This ticket becomes a dead letter, so it must not win the key: the producer must be able to
    // send the right file under that key.
    if (isSpoilt || files.some((file) => isSpoiltBy(file, written))) return ofClaim;
    if (key === "manifest" && sentKey !== undefined) return sentKey;
    const [first] = sorted;
    const own = this.#rule?.key;
    if (key !== "function" || typeof own !== "function" || first === undefined) return ofClaim;
    const { name, sha256 } = first;
    const chosen = own({ name, sha256, ...(sentKey === undefined ? {} : { key: sentKey }) });
    checkText("adopt: what the key function gives", chosen);
    return chosen;
  }
}

function isSpoiltBy({ name, size, sha256 }: DeclaredFile, written: readonly WrittenFile[]): boolean {
  const file = written.find((each) => each.name === name);
  return (size !== undefined && size !== file?.size) || (sha256 !== undefined && sha256 !== file?.sha256);
}

/**
 * Yields the bytes of a file. If a digest does not match the manifest, sets an entry of `found` at
 * the end.
 */
async function* checked(
  chunks: AsyncIterable<Uint8Array>,
  file: DeclaredFile,
  found: Map<string, string>,
): AsyncGenerator<Uint8Array> {
  const hashes = digestNames
    .filter((kind) => kind !== "sha256" && file[kind] !== undefined)
    .map((kind) => ({ kind, hash: createHash(kind) }));
  for await (const chunk of chunks) {
    for (const { hash } of hashes) hash.update(chunk);
    yield chunk;
  }
  for (const { kind, hash } of hashes) {
    const digest = hash.digest("hex");
    if (digest === file[kind]) continue;
    const name = JSON.stringify(file.name);
    found.set(file.name, `The file ${name} is not what its manifest says: its ${kind} is ${digest} instead of ${file[kind]}.`); // prettier-ignore
  }
}

/**
 * Moves the ticket to the dead letters, with the reason. If a worker claims the ticket first, the
 * worker does the same, with its own reason.
 */
async function failTicket(box: Box, id: string, why: string): Promise<void> {
  const found = await findTicket(box, id);
  if (found?.state !== "incoming") return;
  const claim = await claimTicket(box, await box.ground.session(), found.path, found.name);
  if (claim === undefined) return;
  try {
    await failPermanently(box, claim, "mismatch", why);
  } finally {
    box.inProgress.delete(claim.path);
  }
}

/**
 * Moves the files to a directory for people. A folder on another file system keeps them, under a
 * name that no adopter uses.
 */
async function setAside(box: Box, { disk, path }: ClaimEntry): Promise<string> {
  const { directory } = box.layout;
  if (path.startsWith(`${directory}/`)) {
    await moveAside({ disk, directory, newId: () => box.newId() }, path);
    return `${directory}/aside`;
  }
  const kept = `${path}.aside`;
  await moveOnce(disk, path, kept);
  return kept;
}
