// Copies an object store: each key with all of its entries, and the bodies that they name.
import type { Ground } from "../../durable/liveness/ground.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber } from "../../format/name.ts";
import { findSlotOrDamage } from "../../objects/key/entry-file.ts";
import { findIncarnation, isBlockName, isSlotName } from "../../objects/key/key-names.ts";
import { compareLines, encodeLine, type KeyLife } from "../../objects/listing/index-line.ts";
import { firstOpenFile, type Manifest } from "../../objects/listing/manifest.ts";
import { BlockSums } from "../../objects/listing/run-sums.ts";
import { endKind } from "../../objects/multipart/upload-records.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { readsAtOnce, type Copier } from "../write/copier.ts";

/** Length of the random part of the names in the directory of a key. */
const incarnationLength = 26;

export async function copyObjects(copier: Copier, ground: Ground, objects: string): Promise<void> {
  for (const name of await copier.names(`${objects}/buckets`)) {
    const bucket = `${objects}/buckets/${name}`;
    for (;;) {
      const before = await incarnationOf(copier, ground, bucket);
      if (before !== undefined) await new BucketCopy(copier, `${bucket}/${before}`).copy();
      // Settings are copied after the keys, so that they are at least as new as any that an entry names by number.
      const state = await copier.copyChain(ground, `${bucket}/config`, "bucket");
      if (findIncarnationIn(state) === before) break;
      // The bucket was deleted, and perhaps made again.
      copier.writer.drop(bucket);
    }
  }
  await copier.copy(`${objects}/objects.json`);
}

async function incarnationOf(copier: Copier, ground: Ground, bucket: string): Promise<string | undefined> {
  return findIncarnationIn((await copier.chainState(ground, `${bucket}/config`, "bucket"))?.state);
}

function findIncarnationIn(state: unknown): string | undefined {
  const incarnation = state === undefined ? undefined : objectOf(state).incarnation;
  return incarnation === undefined ? undefined : textOf(incarnation);
}

class BucketCopy {
  readonly #copier: Copier;
  /** The path of the incarnation in the store. */
  readonly #path: string;
  /** The keys in the copy, by their directory. */
  readonly #lives = new Map<string, KeyLife>();

  constructor(copier: Copier, path: string) {
    this.#copier = copier;
    this.#path = path;
  }

  async copy(): Promise<void> {
    // A bucket exists while this directory does.
    for (const name of ["keys", "uploads"]) this.#copier.directory(`${this.#path}/${name}`);
    // Uploads before keys: one that is completed meanwhile is then in progress, or a version, or both.
    await inParallel(await this.#copier.names(`${this.#path}/uploads`), 1, (id) => this.#copyUpload(id));
    for (const shard of await this.#copier.names(`${this.#path}/keys`)) {
      const keys = await this.#copier.names(`${this.#path}/keys/${shard}`);
      await inParallel(keys, readsAtOnce, (key) => this.#copyKey(`${this.#path}/keys/${shard}/${key}`));
    }
    await this.#putIndex();
    for (const name of await this.#copier.names(`${this.#path}/aside`))
      await this.#copyTree(`${this.#path}/aside/${name}`);
  }

  /** A part whose record is replaced meanwhile is read again: its older body may be gone. */
  async #copyUpload(id: string): Promise<void> {
    const path = `${this.#path}/uploads/${id}`;
    for (let before = ""; ;) {
      const names = await this.#copier.names(path);
      // The bodies last: each was there before its record.
      const [bodies, records] = [
        names.filter((name) => name.startsWith("b")),
        names.filter((name) => !name.startsWith("b")),
      ];
      const missing = [
        ...(await this.#copier.copyAll(records.map((name) => `${path}/${name}`))),
        ...(await this.#copier.copyAll(
          bodies.map((name) => `${path}/${name}`),
          { isFinal: true },
        )),
      ];
      const after = (await this.#copier.names(path)).join("\n");
      if (missing.length === 0 && after === names.join("\n")) break;
      this.#copier.writer.drop(path);
      // Gone, or foreign entries that cannot be copied.
      if (after === "" || after === before) break;
      before = after;
    }
  }

  /** Entries first, then the bodies that they name. A body is removed after the entry that removes its version. */
  async #copyKey(key: string): Promise<void> {
    for (let before = ""; ;) {
      const listing = await this.#listKey(key);
      const missing = await this.#copier.copyAll(listing, { isFinal: true });
      const bodies = missing.length > 0 ? [] : await this.#bodiesOf(key, listing);
      const lost = missing.length > 0 ? missing : await this.#copyBodies(bodies);
      if (lost.length === 0) return;
      const after = (await this.#listKey(key)).join("\n");
      // Nothing changed, so a removed version had this body, or it is damaged, which `verify` of the copy shows.
      if (after === before) return;
      before = after;
      this.#lives.delete(key);
      this.#copier.writer.drop(key);
      if (after === "") return;
    }
  }

  /** Returns the files of a key: all slots without a gap, as far as there is none on the disk. */
  async #listKey(key: string): Promise<string[]> {
    for (let before = ""; ;) {
      const names = await this.#copier.names(key);
      const incarnation = findIncarnation(names);
      if (incarnation === undefined) return [];
      const own = names.filter((name) => name.startsWith(`${incarnation}-`));
      const slots = own.filter(isSlotName);
      const files = withoutGap(slots, (name) => Number(name.slice(incarnation.length + 1)));
      let hasGap = files.length < slots.length;
      for (const block of own.filter(isBlockName)) {
        const inBlock = (await this.#copier.names(`${key}/${block}`)).filter(
          (name) => isSlotName(name) || name === "dropped",
        );
        const numbers = inBlock.filter((name) => findSlotNumber(name) !== undefined);
        const whole = inBlock.includes("dropped") ? inBlock : withoutGap(numbers, Number);
        hasGap ||= whole.length < inBlock.length;
        files.push(...whole.map((name) => `${block}/${name}`));
      }
      // An entry that was added while the directory was listed may be in the listing without the one before it.
      const paths = files.map((name) => `${key}/${name}`);
      const all = names.join("\n");
      if (!hasGap) return paths;
      // A slot is lost. All others are copied, as they are.
      if (all === before) return [...new Set([...paths, ...slots.map((name) => `${key}/${name}`)])];
      before = all;
    }
  }

  async #bodiesOf(key: string, slots: readonly string[]): Promise<string[]> {
    const bodies: string[] = [];
    await inParallel(slots, readsAtOnce, async (path) => {
      if (path.endsWith("/dropped")) return;
      const entry = (await findSlotOrDamage(this.#copier.disk, this.#copier.at(path)))?.entry;
      const incarnation = path.slice(key.length + 1, key.length + 1 + incarnationLength);
      if (entry !== undefined && entry.kind !== "damaged") this.#lives.set(key, { key: entry.key, incarnation });
      if (entry?.kind !== "put") return;
      for (const { file } of entry.parts ?? []) bodies.push(file);
      if (entry.partsIn === undefined) return;
      bodies.push(entry.partsIn);
      const end = await this.#findEnd(entry.partsIn);
      for (const { file } of end?.kind === "complete" ? end.parts : []) bodies.push(file);
    });
    return bodies.filter((file) => !file.split("/").includes("..") && !file.startsWith("/"));
  }

  /** The index of a live bucket is of another moment, so the copy gets one of its own: a run with all of its keys. */
  async #putIndex(): Promise<void> {
    const { writer, ports } = this.#copier;
    const index = `${this.#path}/index`;
    const lines = [...this.#lives.values()].map((life) => ({ ...life, isEnded: false })).sort(compareLines);
    const text = Buffer.from(lines.map(encodeLine).join(""));
    const sums = new BlockSums();
    sums.update(text);
    const file = randomName(ports.random.bytes(16));
    if (text.length > 0) await writer.put(`${index}/runs/${file}`, Buffer.concat([text, sums.end()]));
    await writer.put(`${index}/runs/${firstOpenFile}`, new Uint8Array());
    this.#copier.directory(`${index}/new`);
    const runs = text.length > 0 ? [{ file, size: text.length }] : [];
    const state: Manifest = { number: 1, open: firstOpenFile, runs, merged: [], last: [], due: [] };
    await this.#copier.putChain(`${index}/manifests`, "manifest", { number: 1, state });
  }

  async #findEnd(file: string): Promise<ReturnType<typeof endKind.decode> | undefined> {
    try {
      return await findRecord(this.#copier.disk, endKind, this.#copier.at(`${this.#path}/${file}`));
    } catch (error) {
      if (isUnreadable(error)) return undefined;
      throw error;
    }
  }

  async #copyBodies(files: readonly string[]): Promise<string[]> {
    return await this.#copier.copyAll(
      files.map((file) => `${this.#path}/${file}`),
      { isFinal: true },
    );
  }

  async #copyTree(path: string): Promise<void> {
    if (await this.#copier.copy(path)) return;
    try {
      for (const name of await this.#copier.names(path)) await this.#copyTree(`${path}/${name}`);
    } catch (error) {
      if (!hasErrno(error, "ELOOP", "ESTALE")) throw error;
    }
  }
}

/** Names in the order of their numbers, up to the first that is missing. */
function withoutGap(names: readonly string[], numberOf: (name: string) => number): string[] {
  const sorted = [...names].sort((one, other) => numberOf(one) - numberOf(other));
  const first = sorted[0];
  return sorted.filter((name, index) => numberOf(name) === numberOf(first ?? name) + index);
}
