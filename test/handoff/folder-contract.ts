// What a hand-off box in a folder promises beside the contract of the interface: its files.
import { describe, expect, it } from "vitest";
import { drain, type BoxSiteMaker } from "../sites/boxes.ts";

const inlineMax = 64 * 1024;

export function describeFolder(name: string, make: BoxSiteMaker): void {
  describe(`the folder of a hand-off box on ${name}`, () => {
    it("puts up to 64 KiB into the ticket, and more into files of its own", async () => {
      const site = await make();
      const box = await site.open();
      const small = await box.publish({ a: "x".repeat(inlineMax - 1), b: "y" });
      const big = await box.publish({ a: "x".repeat(inlineMax), b: "y", c: "" });
      const payload = (await site.files()).filter((file) => file.startsWith("data/"));
      expect(payload).toEqual(["a", "b", "c"].map((name) => `data/${big.id.slice(-2)}/${big.id}/${name}`));
      const lengths = new Map<string, number>();
      await drain(box, async (delivery) => {
        lengths.set(delivery.id, (await delivery.text("a")).length + (await delivery.text("b")).length);
        await delivery.ack();
      });
      expect(lengths).toEqual(
        new Map([
          [small.id, inlineMax],
          [big.id, inlineMax + 1],
        ]),
      );
    });

    it.each([
      ["torn", (text: string) => text.slice(0, -20)],
      ["empty", () => ""],
      ["edited", (text: string) => text.replace('"priority":5', '"priority":4')],
      ["of a newer format", (text: string) => text.replace('"format":1', '"format":2')],
    ])("gives a ticket that is %s to no handler, and keeps it as a dead letter", async (_, change) => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      const path = (await site.files()).find((file) => file.startsWith("incoming/"))!;
      await site.spoil(path, change(await site.read(path)));
      expect(await box.take()).toBeUndefined();
      const files = await site.files();
      expect(files.filter((file) => file.startsWith("error/"))).toEqual([expect.stringContaining(id) as string]);
      expect(files.filter((file) => file.startsWith("incoming/"))).toEqual([]);
    });

    it("leaves foreign files among the tickets alone", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      const path = (await site.files()).find((file) => file.startsWith("incoming/"))!;
      const foreign = path.replace(/[^/]*$/, "notes.txt");
      await site.put(foreign, "mine");
      expect((await box.take())?.id).toBe(id);
      expect(await box.take()).toBeUndefined();
      expect(await site.read(foreign)).toBe("mine");
    });

    it("shows the outputs of a handler in one step, or never", async () => {
      const site = await make();
      const box = await site.open();
      await box.publish({ a: "1" });
      const delivery = await box.take();
      await delivery?.output("receipt.txt", "paid in full");
      await delivery?.output("big.bin", "x");
      expect((await site.files()).filter((file) => file.startsWith("ledger/"))).toEqual([]);
      await delivery?.ack();
      const outputs = (await site.files()).filter((file) => file.startsWith("ledger/"));
      expect(outputs.map((file) => file.split("/").slice(3).join("/")).sort()).toEqual([
        "outputs/big.bin",
        "outputs/receipt.txt",
        "record.json",
      ]);
      expect(await site.read(outputs.find((file) => file.endsWith("receipt.txt"))!)).toBe("paid in full");
    });
  });
}
