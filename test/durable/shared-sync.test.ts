// One sync of a directory for many callers: who shares it, who waits for the next one, and who hears of a failure.
import { setImmediate as settle } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SharedSync } from "../../src/durable/publish/shared-sync.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk, places, type Place } from "../sites/disks.ts";

/** A shared sync whose syncs wait: each is ended by a call of the function that stands for it. */
function syncedByHand({ staging }: Place) {
  const begun: string[] = [];
  const ends: ((errno?: string) => void)[] = [];
  const disk = changedDisk(staging.disk, (real) => ({
    syncDirectory: async (path) => {
      begun.push(path.slice(path.lastIndexOf("/") + 1));
      const errno = await new Promise<string | undefined>((resolve) => void ends.push(resolve));
      if (errno !== undefined) throw diskError(errno, "sync", path);
      await real.syncDirectory(path);
    },
  }));
  return { shared: new SharedSync(disk), begun, ends };
}

describe.each(places)("a shared sync on %s", (_, make) => {
  it("is one for all callers of the same moment", async () => {
    const place = await make();
    const { shared, begun, ends } = syncedByHand(place);
    const calls = Promise.all(Array.from({ length: 20 }, () => shared.sync(place.directory)));
    await settle();
    expect(begun).toEqual(["files"]);
    ends[0]?.();
    await calls;
    expect(begun).toHaveLength(1);
  });

  it("is not joined by a caller that comes when it has begun: all of those share the next one", async () => {
    const place = await make();
    const { shared, begun, ends } = syncedByHand(place);
    const answered: string[] = [];
    const call = async (name: string): Promise<void> => {
      await shared.sync(place.directory);
      answered.push(name);
    };
    const first = call("first");
    await settle();
    const others = [call("second")];
    await settle();
    others.push(call("third"));
    ends[0]?.();
    await first;
    await settle();
    expect([answered, begun.length]).toEqual([["first"], 2]);
    ends[1]?.();
    await Promise.all(others);
    expect([answered, begun.length]).toEqual([["first", "second", "third"], 2]);
  });

  it("fails those that waited for it, each with an error of its own, and no others", async () => {
    const place = await make();
    const { shared, ends } = syncedByHand(place);
    const failing = [shared.sync(place.directory), shared.sync(place.directory)].map((call) =>
      call.then(
        () => "done",
        (error: unknown) => error,
      ),
    );
    await settle();
    const later = shared.sync(place.directory);
    ends[0]?.("EIO");
    const errors = await Promise.all(failing);
    for (const error of errors)
      expect(error).toMatchObject({ code: "IO_ERROR", errno: "EIO", path: place.directory, cause: { errno: "EIO" } });
    expect(errors[0]).not.toBe(errors[1]);
    await settle();
    ends[1]?.();
    await later;
    const last = shared.sync(place.directory);
    await settle();
    ends[2]?.();
    await last;
  });

  it("of one directory does not wait for that of another", async () => {
    const place = await make();
    const { shared, begun, ends } = syncedByHand(place);
    const slow = shared.sync(place.temp);
    const quick = shared.sync(place.directory);
    await settle();
    expect(begun).toEqual(["temp", "files"]);
    ends[1]?.();
    await quick;
    ends[0]?.();
    await slow;
  });

  it("says so where the file system cannot do it", async () => {
    const place = await make();
    const { shared, ends } = syncedByHand(place);
    const call = shared.sync(place.directory);
    call.catch(() => undefined);
    await settle();
    ends[0]?.("EINVAL");
    await expect(call).rejects.toMatchObject({ code: "UNSUPPORTED_DISK", missing: ["directory sync"] });
  });
});
