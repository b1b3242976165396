import { describe, expect, it } from "vitest";
import { AppendFile } from "../../src/durable/group-commit/append-file.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { DiskFile } from "../../src/ports/disk.ts";
import { places, readText } from "./places.ts";

const bytesOf = (text: string): Uint8Array => Buffer.from(text);

function changed(file: DiskFile, changes: Partial<DiskFile>): DiskFile {
  return {
    read: (offset, length) => file.read(offset, length),
    write: (offset, bytes) => file.write(offset, bytes),
    sync: () => file.sync(),
    stat: () => file.stat(),
    close: () => file.close(),
    ...changes,
  };
}

describe.each(places)("an append file on %s", (_, make) => {
  async function open(): Promise<{ file: DiskFile; content: () => Promise<string> }> {
    const { staging, directory } = await make();
    const path = `${directory}/log`;
    return { file: await staging.disk.open(path, "create"), content: () => readText(staging.disk, path) };
  }

  it("grows at its end, and tells where each part is", async () => {
    const { file, content } = await open();
    const log = new AppendFile(file, 0);
    expect(await log.append(bytesOf("one"))).toBe(0);
    expect(await log.append(bytesOf("two"))).toBe(3);
    expect(await log.append(bytesOf(""))).toBe(6);
    expect(log.end).toBe(6);
    await log.close();
    expect(await content()).toBe("onetwo");
  });

  it("goes on behind what was acknowledged, and over what was not", async () => {
    const { file, content } = await open();
    await file.write(0, bytesOf("acknowledged|torn by a crash"));
    const log = new AppendFile(file, "acknowledged".length);
    expect(await log.append(bytesOf("|and on, and on, and on"))).toBe(12);
    await log.close();
    expect(await content()).toBe("acknowledged|and on, and on, and on");
  });

  it("puts appends of one moment one behind the other: both are acknowledged, so both are there", async () => {
    const { file, content } = await open();
    const log = new AppendFile(file, 0);
    const texts = Array.from({ length: 20 }, (__, index) => `<${index}>`);
    const offsets = await Promise.all(texts.map((text) => log.append(bytesOf(text))));
    await log.close();
    expect(await content()).toBe(texts.join(""));
    expect(offsets).toEqual(texts.map((__, index) => texts.slice(0, index).join("").length));
  });

  it.each(["write", "sync"] as const)(
    "is closed for good when a %s fails, and its end stays where it was",
    async (what) => {
      const { file, content } = await open();
      let failures = 0;
      const failure = diskError("EIO", what, "log");
      let isClosed = false;
      const failing = changed(file, {
        [what]: async () => {
          failures++;
          throw failure;
        },
        close: async () => {
          isClosed = true;
          await file.close();
        },
      });
      const first = new AppendFile(file, 0);
      await first.append(bytesOf("acknowledged"));
      const log = new AppendFile(failing, first.end);
      const together = await Promise.allSettled([log.append(bytesOf("x")), log.append(bytesOf("y"))]);
      expect(together).toMatchObject([
        { status: "rejected", reason: failure },
        { status: "rejected", reason: { code: "CLOSED", action: "reopen", cause: failure } },
      ]);
      await expect(log.append(bytesOf("z"))).rejects.toMatchObject({ code: "CLOSED" });
      // A second sync would say "fine" while the data is gone.
      expect(failures).toBe(1);
      expect(isClosed).toBe(true);
      expect(log.end).toBe("acknowledged".length);
      expect((await content()).slice(0, log.end)).toBe("acknowledged");
      await log.close();
    },
  );
});
