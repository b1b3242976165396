// Verification of an object store: of its buckets, of every key in them, and of their indexes.
import type { VerifyOptions, VerifyReport } from "../../common.ts";
import { moveAside } from "../../part/aside.ts";
import { Findings } from "../../part/findings.ts";
import type { Buckets } from "../bucket/buckets.ts";
import { findLost } from "../bucket/lost-keys.ts";
import type { ObjectsPlace } from "../bucket/objects-place.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { KeyIndex } from "../listing/key-index.ts";
import { verifyIndex } from "../listing/rebuild-index.ts";
import { keyDirectories } from "../listing/walk-keys.ts";
import { KeyCheck } from "./key-check.ts";

/**
 * With `repair`, a key that cannot be used at all is moved aside, with all that names its bodies, and
 * an index is made again. Whatever can be read stays: a damaged body is one of a version that says so
 * itself. Nothing is deleted. To be called under the lease of collections if it repairs.
 */
export async function verifyObjects(
  place: ObjectsPlace,
  buckets: Buckets,
  { signal, repair = false, onProgress }: VerifyOptions,
): Promise<VerifyReport> {
  const verification = new Verification(place, repair);
  for (const name of await buckets.names()) {
    const bucket = await verification.findBucket(buckets, name);
    if (bucket === undefined) continue;
    const directories: string[] = [];
    for await (const directory of keyDirectories(bucket)) directories.push(directory);
    for (const [index, directory] of directories.entries()) {
      signal?.throwIfAborted();
      await verification.checkKey(bucket, directory);
      onProgress?.(index + 1, directories.length);
    }
    await verification.checkIndex(bucket);
  }
  return verification.report();
}

class Verification {
  readonly #place: ObjectsPlace;
  readonly #isRepair: boolean;
  readonly #findings = new Findings();
  #checked = 0;

  constructor(place: ObjectsPlace, isRepair: boolean) {
    this.#place = place;
    this.#isRepair = isRepair;
  }

  report(): VerifyReport {
    const { hasDamage, problems } = this.#findings;
    return { ok: !hasDamage, checked: this.#checked, problems };
  }

  /** Undefined when it was deleted, and when its configuration cannot be read: then its keys are not looked at. */
  async findBucket(buckets: Buckets, name: string): Promise<OpenBucket | undefined> {
    const path = this.#place.layout.config(name);
    const what = `The configuration of the bucket ${name}`;
    return await this.#findings.attempt({ path }, what, async () => {
      const found = await buckets.findLiving(name);
      const lost = await findLost(buckets, this.#place, name);
      if (lost !== undefined) this.#findings.damage({ path: lost.path }, lost.what, lost.remedy);
      return found;
    });
  }

  async checkKey(bucket: OpenBucket, directory: string): Promise<void> {
    const { checked, faults, isUnusable } = await new KeyCheck(bucket, directory).check();
    this.#checked += checked;
    const isMoved = this.#isRepair && isUnusable && (await this.#moveAside(bucket, directory));
    for (const { path, what, remedy, severity } of faults) {
      const done = `It is in ${bucket.layout.aside} now, and its bodies are where they were. Restore what it lacks, and move it back.`;
      if (severity === "damage") this.#findings.damage({ path }, what, isMoved ? done : remedy, { repaired: isMoved });
      else if (severity === "leftover") this.#findings.leftover({ path }, what, remedy ?? "");
      else this.#findings.note({ path }, what, remedy ?? "");
    }
  }

  /** After the keys: what cannot be read was moved aside by then. */
  async checkIndex(bucket: OpenBucket): Promise<void> {
    await verifyIndex(bucket, () => KeyIndex.open(bucket), this.#findings, { repair: this.#isRepair });
  }

  async #moveAside({ layout }: OpenBucket, directory: string): Promise<boolean> {
    const { disk } = this.#place;
    return await moveAside({ disk, directory: layout.directory, newId: () => this.#place.newId() }, directory);
  }
}
