// The contract of a bucket's settings: they hold for a write when its body is complete, and for every
// process at once.
import { describe, expect, it } from "vitest";
import { codeOf, smallInline, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

/** A body that ends when it is told to. */
function slowBody(text: string): { readonly body: AsyncIterable<Uint8Array>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
    await ended;
  }
  return { body: body(), end };
}

export function describeSettings(name: string, make: StoreSiteMaker): void {
  describe(`the settings of a bucket on ${name}`, () => {
    it.each(["small", "large, in a file of its own"])(
      "a put that ends after versioning was enabled adds a version, and the previous object stays: %s",
      async (text) => {
        const site = await make();
        const bucket = await (await site.open(smallInline)).createBucket("photos");
        await bucket.put("cat", "before");
        const { body, end } = slowBody(text);
        const putting = bucket.put("cat", body);
        await (await (await site.open()).bucket("photos")).setVersioning("enabled");
        end();
        expect((await putting).versionId).not.toBe("null");
        expect(await versionsOf(bucket, "cat")).toEqual([text, "before"]);
      },
    );

    it("a process that cached a bucket finds its replacement, and does not find a deleted one", async () => {
      const site = await make();
      const [one, other] = [await site.open(smallInline), await site.open(smallInline)];
      const known = await one.createBucket("photos");
      await known.put("cat", "first life");
      const idle = await (await site.open()).bucket("photos");
      for (const bucket of [known, idle]) expect(await textOf(bucket, "cat")).toBe("first life");
      const theirs = await other.bucket("photos");
      await theirs.delete("cat");
      await other.deleteBucket("photos");
      expect(await codeOf(known.get("cat"))).toBe("NO_SUCH_BUCKET");
      expect(await codeOf(known.put("cat", "into nothing"))).toBe("NO_SUCH_BUCKET");
      await (await other.createBucket("photos")).put("cat", "second life");
      for (const bucket of [known, idle]) expect(await textOf(bucket, "cat")).toBe("second life");
      expect(await codeOf(known.get("dog"))).toBe("NO_SUCH_KEY");
      for (const text of ["small", "large, in a file of its own"]) {
        await known.put("cow", text);
        expect(await textOf(theirs, "cow")).toBe(text);
      }
    });

    it("a put with a retention or a hold is refused in a bucket without object lock", async () => {
      const site = await make();
      const bucket = await (await site.open(smallInline)).createBucket("photos");
      const retention = { mode: "compliance" as const, until: new Date(Date.now() + 1000) };
      for (const text of ["small", "large, in a file of its own"]) {
        await expect(bucket.put("cat", text, { retention })).rejects.toThrow(/objectLock/);
        await expect(bucket.put("cat", text, { legalHold: true })).rejects.toThrow(TypeError);
      }
      expect(await codeOf(bucket.head("cat"))).toBe("NO_SUCH_KEY");
    });

    it("deleteMany applies the condition of each item", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      const [cat, dog] = [await bucket.put("cat", "one"), await bucket.put("dog", "two")];
      const [first, second] = await bucket.deleteMany([
        { key: "cat", ifMatch: dog.etag },
        { key: "dog", ifMatch: dog.etag },
      ]);
      expect(first).toMatchObject({ key: "cat", error: { code: "PRECONDITION_FAILED" } });
      expect(second).toEqual({ key: "dog", deleteMarker: false });
      expect((await bucket.head("cat")).etag).toBe(cat.etag);
      await expect(bucket.deleteMany([{ key: "cat", etag: "x" } as never])).rejects.toThrow(/etag/);
    });
  });
}
