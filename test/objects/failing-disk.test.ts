// Puts and deletes while the disk fails, or the process is killed, at every call: what was
// acknowledged is there once, what was refused is not, and the store goes on.
import { describe, expect, it } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { errnos, local, lostReplies, nfs, World } from "../sites/world.ts";
import { smallInline, versionsOf } from "./object-sites.ts";

const volumes = [
  ["a local disk", local],
  ["a network mount", nfs],
] as const;

interface Setting {
  readonly world: World;
  /** Used by the process that meets the trouble. */
  readonly bucket: Bucket;
  /** Used by another one. */
  readonly other: Bucket;
}

async function openBucket(world: World, process: string): Promise<Bucket> {
  const opened = await openStorage(world.ports(process, process), "/objects", { leaseMs: 1_000_000 });
  const store = new DirectoryObjects(opened, smallInline);
  return (await store.findBucket("photos")) ?? (await store.createBucket("photos", { versioning: "enabled" }));
}

async function newSetting(volume: (typeof volumes)[number][1]): Promise<Setting> {
  const world = new World({ volume });
  await world.ports("maker").disk.mkdir("/objects");
  const other = await openBucket(world, "other");
  const bucket = await openBucket(world, "ada");
  await bucket.put("warm", "so that its directories are there");
  return { world, bucket, other };
}

const large = "a body that is large enough for a file of its own";
const actions: readonly [name: string, act: (bucket: Bucket, text: string) => Promise<unknown>][] = [
  ["a put to a new key", (bucket, text) => bucket.put(text, text)],
  ["a put to a key", (bucket, text) => bucket.put("warm", text)],
  ["a put of a large body", (bucket, text) => bucket.put("warm", `${text} ${large}`)],
];

async function countOf(bucket: Bucket, text: string): Promise<number> {
  const all = [...(await versionsOf(bucket, text)), ...(await versionsOf(bucket, "warm"))];
  return all.filter((each) => each === text || each === `${text} ${large}`).length;
}

describe.each(volumes)("on %s", (_name, volume) => {
  it.each(actions)("%s keeps its promise if any disk call fails", async (_action, act) => {
    const { world, bucket, other } = await newSetting(volume);
    for (const label of [...errnos, ...lostReplies])
      for (let at = 1; ; at++) {
        const text = `${label} at ${at}`;
        let code: string | undefined;
        const hasCome = await world.withFault({ process: "ada", at, label, lasting: false }, async () => {
          try {
            await act(bucket, text);
          } catch (error) {
            if (!isHoldfastError(error)) throw error;
            ({ code } = error);
          }
        });
        const count = await countOf(other, text);
        const what = `${text}: ${code ?? "acknowledged"}, ${world.spoiled.join(", ")}`;
        if (code === undefined) expect([what, count]).toEqual([what, 1]);
        // Of an unknown outcome a caller knows only that it is one version at most.
        else if (code !== "OUTCOME_UNKNOWN") expect([what, count]).toEqual([what, 0]);
        expect(count).toBeLessThanOrEqual(1);
        if (!hasCome) break;
      }
    await other.put("warm", "afterwards");
    expect((await versionsOf(bucket, "warm"))[0]).toBe("afterwards");
  });

  it.each(actions)("%s keeps its promise if its process is killed at any call", async (_action, act) => {
    for (let at = 1; ; at++) {
      const { world, bucket, other } = await newSetting(volume);
      let isAcknowledged = false;
      await world.killAtCall("ada", at, async () => {
        await act(bucket, "text");
        isAcknowledged = true;
      });
      const count = await countOf(other, "text");
      if (isAcknowledged) expect(count).toBe(1);
      expect(count).toBeLessThanOrEqual(1);
      await act(other, "afterwards");
      expect(await countOf(other, "afterwards")).toBe(1);
      if (isAcknowledged) break;
    }
  });
});
