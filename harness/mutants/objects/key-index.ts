// Known-wrong variants of the index of keys.
import { listIfThere, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { findRecord } from "../../../src/durable/publish/record-file.ts";
import { announcementKind, Announcements } from "../../../src/objects/listing/announcements.ts";
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import type { Manifest } from "../../../src/objects/listing/manifest.ts";
import { putWith } from "../../scenarios/objects/index-world.ts";
import { keyIndexScenarios } from "../../scenarios/objects/key-index.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Removes announcements as soon as a run includes them, and the previous run too. */
class HastyIndex extends KeyIndex {
  protected override async removeDue({ merged }: Manifest): Promise<void> {
    const { storage, layout } = this.bucket;
    for (const name of merged) await unlinkIfThere(storage.disk, `${layout.entries}/${name}`);
  }
}

/** Drops an announcement without a key after some time. */
class ForgettingIndex extends KeyIndex {
  override async merge(announcementsMin: number): Promise<boolean> {
    const { storage, layout } = this.bucket;
    for (const name of await listIfThere(storage.disk, layout.entries)) {
      const path = `${layout.entries}/${name}`;
      const { keys = [] } = (await findRecord(storage.disk, announcementKind, path)) ?? {};
      const heads = await Promise.all(
        keys.map(([key = ""]) => this.bucket.useKey(key, ({ chain }) => chain.findHead())),
      );
      if (heads.every((head) => head === undefined)) await unlinkIfThere(storage.disk, path);
    }
    return await super.merge(announcementsMin);
  }
}

export const keyIndexMutants: readonly Mutant[] = [
  {
    name: "key that is announced when it is there",
    about: "A process dies after the first link and before the announcement: no listing ever shows the object.",
    scenario: scenarioNamed(
      keyIndexScenarios({
        putNew: async (bucket, key) => {
          await putWith(bucket, key, async () => undefined);
          await new Announcements().announce(bucket, key, "i");
        },
      }),
      "index: a put to a new key is killed",
    ),
    breaks: /no listing shows it/,
  },
  {
    name: "key that gets its place while its announcement is being written",
    about: "A power cut keeps the key and loses its announcement: no listing ever shows the object.",
    scenario: scenarioNamed(
      keyIndexScenarios({
        putNew: async (bucket, key) => {
          let announced: Promise<void> | undefined;
          await putWith(bucket, key, async (at, name, incarnation) => {
            announced = new Announcements().announce(at, name, incarnation);
          });
          await announced;
        },
      }),
      "index: a put to a new key, power cuts",
    ),
    breaks: /no listing shows it/,
  },
  {
    name: "index that drops a name without a key after some time",
    about: "The put only slept. It is acknowledged, and no listing ever shows its object.",
    scenario: scenarioNamed(
      keyIndexScenarios({ IndexClass: ForgettingIndex }),
      "index: a put to a new key while another process merges",
    ),
    breaks: /is there, and no listing shows it|is not in the index/,
  },
  {
    name: "index whose announcements are removed at the merge",
    about: "A listing with the previous manifest finds neither the announcement nor a run that includes it.",
    scenario: scenarioNamed(keyIndexScenarios({ IndexClass: HastyIndex }), "index: a listing while others merge"),
    breaks: /a listing without the key/,
  },
];
