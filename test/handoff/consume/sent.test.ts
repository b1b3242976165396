// Tickets that a handler sends: every commit delivers its own, once, whatever the keys of the tickets are.
import { describe, expect, it } from "vitest";
import { encodeRecord } from "../../../src/format/record.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import type { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { committedKind, findCommitted, recordName } from "../../../src/handoff/ledger/ledger.ts";
import type { PublishOptions } from "../../../src/handoff/model/arguments.ts";
import { drain } from "../publish/opened-box.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { makeSimulatedSite, type Site } from "../../sites/sites.ts";
import { openBoxOn, openOn } from "./boxes.ts";

interface Boxes {
  readonly site: Site;
  readonly open: (name: string) => Promise<BoxHandoff>;
}

async function makeBoxes(): Promise<Boxes> {
  const site = await makeSimulatedSite();
  return { site, open: async (name) => await openOn(await site.openPorts(), `${site.directory}/${name}`) };
}

async function sendFrom(box: BoxHandoff, to: BoxHandoff, text: string, options?: PublishOptions): Promise<void> {
  const delivery = (await box.take())!;
  await delivery.send(to, { "mail.txt": text }, options);
  await delivery.ack();
}

async function mailsIn(box: BoxHandoff): Promise<(string | undefined)[]> {
  return (await drain(box)).map(({ files }) => files["mail.txt"]).toSorted((a, b) => (a ?? "").localeCompare(b ?? ""));
}

it("a ticket with the longest allowed key can send tickets", async () => {
  const { open } = await makeBoxes();
  const [box, mails] = [await open("box"), await open("mails")];
  await box.publish({ a: "1" }, { key: "k".repeat(1024) });
  await sendFrom(box, mails, "hello");
  expect(await mailsIn(mails)).toEqual(["hello"]);
});

it("tickets with the same key in two boxes both deliver what they send to a third", async () => {
  const { open } = await makeBoxes();
  const [orders, returns, mails] = [await open("orders"), await open("returns"), await open("mails")];
  for (const box of [orders, returns]) await box.publish({ a: "1" }, { key: "17" });
  await sendFrom(orders, mails, "your order 17");
  await sendFrom(returns, mails, "your return 17");
  expect(await mailsIn(mails)).toEqual(["your order 17", "your return 17"]);
});

it("a replay of a ticket and a ticket whose key looks like that replay both deliver what they send", async () => {
  const { open } = await makeBoxes();
  const [box, mails] = [await open("box"), await open("mails")];
  for (const key of ["k", "k@1"]) {
    await box.publish({ a: "1" }, { key });
    await sendFrom(box, mails, key);
  }
  expect(await box.replay({ from: "archive" })).toBe(2);
  await sendFrom(box, mails, "replayed");
  await sendFrom(box, mails, "replayed");
  expect(await mailsIn(mails)).toEqual(["k", "k@1", "replayed", "replayed"]);
});

it("a key whose ledger entry expired sends again when it is processed again", async () => {
  const { open, site } = await makeBoxes();
  const [box, mails] = [await open("box"), await open("mails")];
  await box.publish({ a: "1" }, { key: "k" });
  await sendFrom(box, mails, "first");
  const retention = { archiveMs: 0, ledgerMs: -200_000_000 };
  await (await openOn(await site.openPorts(), box.directory, { retention })).collect();
  expect(await box.publish({ a: "1" }, { key: "k" })).toMatchObject({ duplicate: false });
  await sendFrom(box, mails, "second");
  expect(await mailsIn(mails)).toEqual(["first", "second"]);
});

it("a ticket that is too large for its record is refused while the handler can be told", async () => {
  const { open } = await makeBoxes();
  const [box, mails] = [await open("box"), await open("mails")];
  await box.publish({ a: "1" });
  const delivery = (await box.take())!;
  // It fits into the record of the ledger. The record of the ticket has the content of the file, too.
  const meta = "m".repeat(4 * 1024 * 1024 - 60_000);
  const tooLarge = delivery.send(mails, { "mail.txt": "x".repeat(64 * 1024) }, { meta });
  expect(await failureOf(tooLarge)).toMatchObject({ code: "TOO_LARGE" });
  await delivery.ack();
  expect(await mailsIn(mails)).toEqual([]);
});

/** Sends and commits while nothing can be published in `mails`, nor the ticket be archived, as if its worker had died. */
async function commitAlone(site: Site, box: BoxHandoff, mails: string, options: PublishOptions = {}): Promise<void> {
  const { disk } = await site.openPorts();
  const delivery = (await box.take())!;
  await delivery.send({ directory: mails }, { "mail.txt": "hello" }, options);
  await disk.rename(mails, `${mails}-away`);
  await delivery.ack();
  await disk.rename(`${mails}-away`, mails);
  await box.close();
}

it("a ticket that was sent with the key undefined is published once by all processes that complete it", async () => {
  const { open, site } = await makeBoxes();
  const [box, mails] = [await open("box"), await open("mails")];
  await box.publish({ a: "1" }, { key: "k" });
  const delivery = (await box.take())!;
  await delivery.send(mails, { "mail.txt": "hello" }, { key: undefined });
  // Stands for a worker that dies between what is sent and the move to the archive.
  const { disk } = await site.openPorts();
  await disk.createFile(`${box.directory}/archive`, new Uint8Array(), { sync: true });
  await delivery.ack();
  await disk.unlink(`${box.directory}/archive`);
  await box.close();
  expect(await (await open("box")).take()).toBeUndefined();
  expect(await mailsIn(mails)).toEqual(["hello"]);
});

describe("a commit of an older build, whose ledger entry has no keys of what it sends", () => {
  /** Takes the key out of the entry, as an older build has written it. */
  async function makeOld(box: Box, key: string): Promise<void> {
    const path = box.layout.ledger(key, 0);
    const { committed } = (await findCommitted(box, path))!;
    const sent = committed.sent.map((each) => ({ ...each, options: {} }));
    await box.disk.unlink(`${path}/${recordName}`);
    await box.disk.createFile(`${path}/${recordName}`, encodeRecord(committedKind, { ...committed, sent }), {
      sync: true,
    });
  }

  it.each([
    ["is published under the key that the older build would use", "k", "k/0"],
    ["is published under a key of today where the older build could use none", "k".repeat(1024), undefined],
  ])("%s", async (_title, key, expected) => {
    const { open, site } = await makeBoxes();
    const [box, mails] = [await open("box"), await open("mails")];
    await box.publish({ a: "1" }, { key });
    await commitAlone(site, box, mails.directory);
    await makeOld(await openBoxOn(await site.openPorts(), box.directory), key);
    expect(await (await open("box")).take()).toBeUndefined();
    const [mail, ...more] = await drain(mails);
    expect(mail).toMatchObject({
      files: { "mail.txt": "hello" },
      ...(expected === undefined ? {} : { key: expected }),
    });
    expect(more).toEqual([]);
  });

  it("is not published again after the older build has published it and died", async () => {
    const { open, site } = await makeBoxes();
    const [box, mails] = [await open("box"), await open("mails")];
    await box.publish({ a: "1" }, { key: "k" });
    await commitAlone(site, box, mails.directory);
    await makeOld(await openBoxOn(await site.openPorts(), box.directory), "k");
    await mails.publish({ "mail.txt": "hello" }, { key: "k/0" });
    expect(await (await open("box")).take()).toBeUndefined();
    expect(await mailsIn(mails)).toEqual(["hello"]);
  });
});
