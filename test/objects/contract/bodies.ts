// Bodies on every kind of disk: of any size, in ranges, compared with what was declared; and keys of
// every kind.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { codeOf, bucketOn, smallInline, textOf, type StoreSiteMaker } from "../object-sites.ts";

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

export function describeBodies(name: string, make: StoreSiteMaker): void {
  describe(`bodies on ${name}`, () => {
    it("of any type and size are read back whole, from the slot or from their own file", async () => {
      const bucket = await bucketOn(make, "enabled", smallInline);
      const long = "0123456789".repeat(30_000);
      for (const [text, body] of [
        ["", ""],
        ["short", "short"],
        ["sixteen bytes...", Buffer.from("sixteen bytes...")],
        ["seventeen bytes..", pieces("seventeen", " bytes..")],
        [long, pieces(long.slice(0, 100_001), "", long.slice(100_001))],
        [long, long],
      ] as const) {
        const { size, etag } = await bucket.put("cat", body);
        expect(size).toBe(text.length);
        expect(etag).toBe(createHash("md5").update(text).digest("hex"));
        expect((await textOf(bucket, "cat")) === text).toBe(true);
      }
    });

    // A string's length counts UTF-16 units: once it was taken for the declared size in bytes, and a
    // long text with umlauts was refused as BAD_DIGEST.
    it("that are strings are stored as UTF-8, also in a file of their own", async () => {
      const bucket = await bucketOn(make, "off", smallInline);
      for (const text of ["süß", "neunzehn Bytes: süß", "ä€😀".repeat(1000)]) {
        const { size } = await bucket.put("cat", text);
        expect(size).toBe(Buffer.byteLength(text));
        expect(await textOf(bucket, "cat")).toBe(text);
      }
    });

    it("can be read in ranges, from either end", async () => {
      for (const inlineMax of [16, 1000]) {
        const bucket = await bucketOn(make, "off", { inlineMax });
        await bucket.put("cat", "abcdefghijklmnopqrstuvwxyz");
        const read = async (start: number, end?: number): Promise<string> => {
          await using object = await bucket.get("cat", { range: { start, end } });
          return `${object.range?.start}-${object.range?.end} ${await object.text()}`;
        };
        expect(await read(0, 3)).toBe("0-3 abcd");
        expect(await read(20)).toBe("20-25 uvwxyz");
        expect(await read(-3)).toBe("23-25 xyz");
        expect(await read(24, 1000)).toBe("24-25 yz");
        await expect(bucket.get("cat", { range: { start: 26 } })).rejects.toMatchObject({
          code: "INVALID_RANGE",
          size: 26,
        });
      }
    });

    it("are passed to the caller's check when complete, and are not stored if it throws", async () => {
      const bucket = await bucketOn(make, "enabled", smallInline);
      for (const body of ["short", "a body that is long enough for a file of its own"]) {
        const seen: unknown[] = [];
        const checksum = { algorithm: "SHA256" } as const;
        await bucket.put("cat", body, { checksum, check: (found) => void seen.push(found) });
        const [md5, sha256] = ["md5", "sha256"].map((name) => createHash(name).update(body).digest());
        const value = sha256!.toString("base64");
        const found = { size: body.length, md5: md5!.toString("hex"), sha256: sha256!.toString("hex") };
        expect(seen).toEqual([{ ...found, checksum: { ...checksum, value, type: "full" } }]);
        const refuse = (): never => {
          throw new Error("not signed");
        };
        await expect(bucket.put("dog", body, { check: refuse })).rejects.toThrow("not signed");
        expect(await codeOf(bucket.head("dog"))).toBe("NO_SUCH_KEY");
      }
    });

    it("of an aborted put are not stored, even if the source hangs", async () => {
      const bucket = await bucketOn(make, "off", smallInline);
      const abort = new AbortController();
      async function* hanging(): AsyncGenerator<Uint8Array> {
        yield Buffer.from("x");
        abort.abort(new Error("enough"));
        await new Promise(() => undefined);
      }
      await expect(bucket.put("cat", hanging(), { signal: abort.signal })).rejects.toThrow("enough");
      expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    });

    it("can have any key, and no two keys collide", async () => {
      const bucket = await bucketOn(make, "off");
      const keys = [
        "a",
        "A",
        "a/",
        "a//b",
        "../a",
        "a/../b",
        "/",
        ".",
        "con",
        "nul\u0000",
        "😀",
        "é",
        "e\u0301",
        "x".repeat(1024),
      ];
      for (const key of keys) await bucket.put(key, `of ${key}`);
      for (const key of keys) expect(await textOf(bucket, key)).toBe(`of ${key}`);
      const listed = (await bucket.list()).objects.map(({ key }) => key);
      expect(listed).toEqual([...keys].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
      for (const key of ["", "x".repeat(1025), "\ud800"])
        expect(await codeOf(bucket.put(key, "x"))).toBe("INVALID_NAME");
      await expect(bucket.put("a", "x", { ifMatsch: "x" } as never)).rejects.toThrow(/ifMatsch/);
    });
  });
}
