// Known-wrong variants of the index of keys.
import { unlinkIfThere } from "../../../durable/publish/directory.ts";
import { findRecord } from "../../../durable/publish/record-file.ts";
import { announcementKind, Announcements } from "../../../objects/listing/announcements.ts";
import { KeyIndex } from "../../../objects/listing/key-index.ts";
import type { Manifest } from "../../../objects/listing/manifest.ts";
import { namesIn } from "../../../objects/listing/walk-keys.ts";
import { putWith } from "../../scenarios/objects/index-world.ts";
import { keyIndexScenarios } from "../../scenarios/objects/key-index.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Removes announcements as soon as a run has them, and the run before. */
class HastyIndex extends KeyIndex {
  protected override async removeDue({ merged }: Manifest): Promise<void> {
    const { place, layout } = this.bucket;
    for (const name of merged) await unlinkIfThere(place.disk, `${layout.entries}/${name}`);
  }
}

/** Takes a name without a key for one that is not needed any more: it was given time enough. */
class ForgettingIndex extends KeyIndex {
  override async merge(announcementsMin: number): Promise<boolean> {
    const { place, layout } = this.bucket;
    for (const name of await namesIn(place.disk, layout.entries)) {
      const path = `${layout.entries}/${name}`;
      const { keys = [] } = (await findRecord(place.disk, announcementKind, path)) ?? {};
      const heads = await Promise.all(
        keys.map(([key = ""]) => this.bucket.useKey(key, ({ chain }) => chain.findHead())),
      );
      if (heads.every((head) => head === undefined)) await unlinkIfThere(place.disk, path);
    }
    return await super.merge(announcementsMin);
  }
}

export const keyIndexMutants: readonly Mutant[] = [
  {
    name: "key that is announced when it is there",
    about: "A process dies between the two, and no listing ever shows the object.",
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
    name: "index that drops a name without a key after some time",
    about: "Its put was only asleep, is acknowledged, and no listing ever shows the object.",
    scenario: scenarioNamed(
      keyIndexScenarios({ IndexClass: ForgettingIndex }),
      "index: a put to a new key while another process merges",
    ),
    breaks: /is there, and no listing shows it|is not in the index/,
  },
  {
    name: "index whose announcements are removed at the merge",
    about: "A listing with the manifest before it finds neither the announcement nor a run that has it.",
    scenario: scenarioNamed(keyIndexScenarios({ IndexClass: HastyIndex }), "index: a listing while others merge"),
    breaks: /a listing without the key/,
  },
];
