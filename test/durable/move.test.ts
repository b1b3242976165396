// What a failed rename means: its source tells whether it has happened, and its target which
// process did it.
import { beforeEach, describe, expect, it } from "vitest";
import { unlinkIfThere } from "../../src/durable/publish/directory.ts";
import { canLinkFrom, moveOnce, renameOnce } from "../../src/durable/publish/publish.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { changedDisk, places, type Place } from "../sites/disks.ts";

describe.each(places)("a rename on %s", (_, make) => {
  let place: Place;
  let disk: Disk;
  const at = (name: string): string => `${place.directory}/${name}`;

  beforeEach(async () => {
    place = await make();
    ({ disk } = place.staging);
    await disk.createFile(at("from"), Buffer.from("x"), { sync: false });
  });

  /** A disk whose first renames answer with these errnos; "done, then …" after they were done. */
  function answering(...answers: readonly string[]): Disk {
    const left = [...answers];
    return changedDisk(disk, (real) => ({
      rename: async (from, to) => {
        const answer = left.shift();
        if (answer === undefined || answer.startsWith("done")) await real.rename(from, to);
        if (answer !== undefined) throw diskError(answer.split(" ").at(-1) ?? "", "rename", to);
      },
    }));
  }

  it.each(["ESTALE", "EIO", "EHOSTDOWN", "ENOENT"])(
    "is asked for again after %s, if its source is there",
    async (errno) => {
      expect(await moveOnce(answering(errno), at("from"), at("to"))).toBe(true);
      expect(await disk.canOpen(at("to"))).toBe(true);
    },
  );

  it.each(["ESTALE", "EIO", "EHOSTDOWN", "ENOENT"])(
    "is known to be done after %s, if its target is there",
    async (errno) => {
      expect(await moveOnce(answering(`done, then ${errno}`), at("from"), at("to"))).toBe(true);
      expect(await moveOnce(disk, at("to"), at("back"))).toBe(true);
    },
  );

  it("is another's when neither source nor target is there", async () => {
    await disk.unlink(at("from"));
    for (const answers of [[], ["ESTALE"], ["EHOSTDOWN", "ESTALE"]])
      expect(await moveOnce(answering(...answers), at("from"), at("to"))).toBe(false);
  });

  it("says ENOENT when the directory that it goes to is missing", async () => {
    const to = `${at("missing")}/to`;
    await expect(renameOnce(disk, at("from"), to)).rejects.toMatchObject({ errno: "ENOENT" });
    await expect(moveOnce(answering("ESTALE"), at("from"), to)).rejects.toMatchObject({ errno: "ENOENT" });
    expect(await disk.canOpen(at("from"))).toBe(true);
  });

  it("is OUTCOME_UNKNOWN when it is never answered, or nothing can be looked at, or a refusal follows", async () => {
    const unknown = { code: "OUTCOME_UNKNOWN" };
    await expect(renameOnce(answering("ESTALE", "ESTALE", "ESTALE"), at("from"), at("to"))).rejects.toMatchObject(
      unknown,
    );
    await expect(renameOnce(answering("ESTALE", "EACCES"), at("from"), at("to"))).rejects.toMatchObject(unknown);
    const blind = changedDisk(answering("ESTALE"), () => ({
      look: (path) => Promise.reject(diskError("EIO", "look at", path)),
    }));
    await expect(moveOnce(blind, at("from"), at("to"))).rejects.toMatchObject(unknown);
  });

  it("passes on what else the disk says", async () => {
    await expect(moveOnce(answering("EACCES"), at("from"), at("to"))).rejects.toMatchObject({ errno: "EACCES" });
  });
});

describe("a stale handle is no proof that a name is gone", () => {
  it.each(places)("a removal on %s is repeated after ESTALE", async (_, make) => {
    const { staging, directory } = await make();
    await staging.disk.createFile(`${directory}/x`, new Uint8Array(), { sync: false });
    let isStale = true;
    const disk = changedDisk(staging.disk, (real) => ({
      unlink: async (path) => {
        if (isStale) throw ((isStale = false), diskError("ESTALE", "unlink", path));
        await real.unlink(path);
      },
    }));
    await unlinkIfThere(disk, `${directory}/x`);
    expect(await staging.disk.canOpen(`${directory}/x`)).toBe(false);
  });

  it.each(places)("a check by a link on %s is repeated after ESTALE, and rejects if that persists", async (_, make) => {
    const { staging, directory } = await make();
    await staging.disk.createFile(`${directory}/x`, new Uint8Array(), { sync: false });
    let stale = 1;
    const disk = changedDisk(staging.disk, (real) => ({
      link: async (from, to) => {
        if (stale-- > 0) throw diskError("ESTALE", "link", to);
        await real.link(from, to);
      },
    }));
    expect(await canLinkFrom({ ...staging, disk }, `${directory}/x`)).toBe(true);
    stale = Infinity;
    await expect(canLinkFrom({ ...staging, disk }, `${directory}/x`)).rejects.toMatchObject({ errno: "ESTALE" });
  });
});
