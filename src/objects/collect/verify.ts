// Verification: every slot of every key is read, every body compared with its digest.
import type { VerifyOptions, VerifyReport } from "../../common.ts";
import { FileContent } from "../../part/content.ts";
import { Findings } from "../../part/findings.ts";
import { moveAside } from "../../part/aside.ts";
import type { Buckets } from "../bucket/buckets.ts";
import type { ObjectsPlace } from "../bucket/objects-place.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { openIfThere, readSlot } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { KeyIndex } from "../listing/key-index.ts";
import { verifyIndex } from "../listing/rebuild-index.ts";
import { keyDirectories } from "../listing/walk-keys.ts";
import { findParts, hasBodyFiles } from "../version/body-parts.ts";
import type { PutEntry } from "../model/entry.ts";

/** With `repair`, keys that cannot be read are moved aside; nothing is deleted. */
export async function verifyObjects(
  place: ObjectsPlace,
  buckets: Buckets,
  { signal, repair = false, onProgress }: VerifyOptions,
): Promise<VerifyReport> {
  const verification = new Verification(place);
  for (const name of await buckets.names()) {
    const bucket = await verification.findBucket(buckets, name);
    if (bucket === undefined) continue;
    const directories: string[] = [];
    for await (const directory of keyDirectories(bucket)) directories.push(directory);
    for (const [index, directory] of directories.entries()) {
      signal?.throwIfAborted();
      await verification.checkKey(bucket, directory, repair);
      onProgress?.(index + 1, directories.length);
    }
    await verification.checkIndex(bucket, repair);
  }
  return verification.report();
}

class Verification {
  readonly #place: ObjectsPlace;
  readonly #findings = new Findings();
  #checked = 0;

  constructor(place: ObjectsPlace) {
    this.#place = place;
  }

  report(): VerifyReport {
    const { hasDamage, problems } = this.#findings;
    return { ok: !hasDamage, checked: this.#checked, problems };
  }

  /** Undefined when it was deleted, and when its configuration cannot be read: then its keys are not looked at. */
  async findBucket(buckets: Buckets, name: string): Promise<OpenBucket | undefined> {
    const path = this.#place.layout.config(name);
    const what = `The configuration of the bucket ${name}`;
    return await this.#findings.attempt({ path }, what, () => buckets.findLiving(name));
  }

  async checkKey(bucket: OpenBucket, directory: string, repair: boolean): Promise<void> {
    const before = this.#findings.problems.length;
    await bucket.useDirectory(directory, async (key) => {
      const head = await this.#findings.attempt({ path: directory }, "The newest entry", () => key.chain.findHead());
      if (head === undefined) return;
      if (bucket.layout.key(head.entry.key) !== directory) {
        const what = `It has the entries of the key ${JSON.stringify(head.entry.key)}, which belongs elsewhere.`;
        this.#findings.damage({ path: directory }, what, "Move it away.");
        return;
      }
      const versions = await this.#findings.attempt({ path: directory }, "An entry", () => key.history.read(head));
      for (const { slot, entry } of versions ?? [])
        if (entry.kind === "put") await this.#checkVersion(bucket, key, head.incarnation, slot, entry);
      this.#checked += head.number;
    });
    if (!repair || this.#findings.problems.length === before) return;
    const { disk, layout } = this.#place;
    const aside = { disk, directory: layout.directory, newId: () => this.#place.newId() };
    if (await moveAside(aside, directory))
      this.#findings.note({ path: directory }, "It was moved into the folder aside.", "Look at it there.");
  }

  /** After the keys: what cannot be read was moved aside by then. */
  async checkIndex(bucket: OpenBucket, repair: boolean): Promise<void> {
    await verifyIndex(bucket, await KeyIndex.open(bucket), this.#findings, { repair });
  }

  async #checkVersion(
    bucket: OpenBucket,
    { chain }: OpenKey,
    incarnation: string,
    slot: number,
    entry: PutEntry,
  ): Promise<void> {
    const { size, sha256 = "" } = entry;
    const path = chain.names.slotPath(incarnation, slot);
    const parts = await this.#findings.attempt({ path }, "The list of its parts", () => findParts(bucket, entry));
    if (hasBodyFiles(entry) && parts === undefined) {
      this.#findings.damage({ path }, `${entry.partsIn ?? path}, which names the parts of its body, cannot be read.`);
      return;
    }
    const pieces = parts?.map((part) => ({ path: bucket.bodyPath(part.file), digest: part, offset: 0 })) ?? [
      { path, digest: { size, sha256 }, offset: undefined },
    ];
    for (const { path: file, digest, offset } of pieces)
      await this.#findings.attempt({ path: file }, `The body of ${path}`, () => this.#checkBody(file, digest, offset));
  }

  async #checkBody(
    path: string,
    digest: { readonly size: number; readonly sha256: string },
    offset: number | undefined,
  ): Promise<void> {
    const { disk } = this.#place;
    const file = await openIfThere(disk, path);
    if (file === undefined) await disk.stat(path);
    else {
      try {
        const at = offset ?? (await readSlot(file, path)).bodyAt;
        await new FileContent({ path, digest, offset: at, open: async () => file }).verify();
      } finally {
        await file.close();
      }
    }
  }
}
