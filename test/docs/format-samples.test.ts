// The samples of docs/format/handoff.md are test vectors for programs in other languages: a box that is made of them
// alone is read by Holdfast as the page says.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { makeId } from "../../src/format/id.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";

const page = readFileSync(new URL("../../docs/format/handoff.md", import.meta.url), "utf8");

/** The one record of a kind that the page shows, as it is in its file. */
function sampleOf(kind: string): string {
  const found = page.split("\n").filter((line) => line.startsWith(`{"kind":"${kind}"`));
  expect(found).toHaveLength(1);
  return `${found[0]}\n`;
}

it("the records of the page make a box in which their ticket is found, with its history and its result", async () => {
  const directory = makeScratch();
  const [, archived = ""] = /`(archive\/[^`]*)`/.exec(page) ?? [];
  const [, note = ""] = /`(notes\/[^`<]*)`/.exec(page) ?? [];
  const hash = createHash("sha256").update("Rechnung/Ü-7").digest("hex");
  const files = {
    "box.json": sampleOf("box"),
    [archived]: sampleOf("ticket"),
    [note]: sampleOf("note"),
    [`ledger/${hash.slice(0, 3)}/${hash}`]: sampleOf("ledger"),
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  await using box = await openHandoff(directory, { id: "01m7m3cqnrpwy8qr0yt6cz5d1e0bb4mya3sc" });
  expect(await box.find(archived.slice(-"-2.json".length - 36, -"-2.json".length))).toMatchObject({
    state: "archive",
    key: "Rechnung/Ü-7",
    attempt: 2,
    files: [{ name: "Größe.txt", size: 3 }],
    history: [{ attempt: 1, outcome: "retry", reason: "the ERP is busy" }],
    result: { booking: 4711 },
  });
  expect(page).toContain(`ledger/${hash.slice(0, 3)}/${hash.slice(0, 8)}…`);
});

it("the id of the page is what its time and its random bytes make", () => {
  const [, ms = "", id = ""] = /At (\d+) with the random bytes `00 11 22 … ff` the id is `(\w+)`/.exec(page) ?? [];
  const bytes = Uint8Array.from({ length: 16 }, (_, index) => index * 0x11);
  expect(makeId(Number(ms), bytes)).toBe(id);
});
