// The hand-off boxes on which a suite runs: one on every kind of disk. Each opening acts as another process.
import { onTestFinished } from "vitest";
import { openBox } from "../../src/handoff/box/open-box.ts";
import type { Box } from "../../src/handoff/box/box.ts";
import type { Delivery } from "../../src/handoff/model/delivery.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import type { Handoff, HandoffOptions } from "../../src/handoff/model/handoff.ts";
import { findCommitted, type Committed } from "../../src/handoff/ledger/ledger.ts";
import { noteKind, type AttemptRecord } from "../../src/handoff/consume/settle.ts";
import { ticketKind } from "../../src/handoff/model/manifest.ts";
import { attemptOf, findTicketName } from "../../src/handoff/model/ticket-name.ts";
import { decodeRecord, type RecordKind } from "../../src/format/record.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { sites, type Site } from "./sites.ts";

/** A box that several processes have open. */
export interface HandoffSite {
  /** Another process on the same box; closed when the test ends. `name`: another box beside it. */
  open(options?: HandoffOptions & { readonly name?: string }): Promise<Handoff>;
  /** Where the ticket is, and what was tried. */
  find(id: string): Promise<FoundTicket | undefined>;
  /** What was committed under a key. */
  findCommitted(key: string): Promise<{ readonly committed: FoundCommit } | undefined>;
  /** Everything that the box keeps, by name. */
  stored(): Promise<string[]>;
  /** The files of large tickets, by name. */
  payloads(): Promise<string[]>;
  /** The file at a path that a delivery gave. */
  readAt(path: string): Promise<string>;
  /** Another content for the only file of a large ticket, as no program should. */
  spoilPayload(id: string, text: string): Promise<void>;
  /** Does to the session that has claimed `delivery` what a process does that takes it for dead. */
  declareDead(delivery: Delivery): Promise<void>;
}

export interface BoxSite extends HandoffSite {
  open(options?: HandoffOptions & { readonly name?: string }): Promise<BoxHandoff>;
  /** Every file of the box that is no record of its ground; by its path in the box. */
  files(): Promise<string[]>;
  read(path: string): Promise<string>;
  /** A file that is no ticket. */
  put(path: string, text: string): Promise<void>;
  /** Another content for a file of the box, as no program should. */
  spoil(path: string, text: string): Promise<void>;
}

/** An entry of the ledger. */
export type FoundCommit = Pick<Committed, "at" | "outputs"> & { readonly result?: unknown };

/** What the files of a box say of a ticket, without the code that tells it to users. */
export interface FoundTicket {
  /** The directory that it is in; "incoming" also for one in its lane. */
  readonly state: string;
  readonly attempt: number;
  readonly history: readonly (Pick<AttemptRecord, "attempt" | "outcome" | "reason"> & { readonly at: Date })[];
  readonly result?: unknown;
}

export type BoxSiteMaker = () => Promise<BoxSite>;

export const boxSites: readonly [name: string, make: BoxSiteMaker][] = sites.map(([name, make]) => [
  name,
  async () => boxesOn(await make()),
]);

export function boxesOn({ directory, openPorts }: Site): BoxSite {
  const path = `${directory}/box`;
  let watching: Promise<Box> | undefined;
  const watcher = async (): Promise<Box> => await (watching ??= openWatcher(openPorts, path));
  const holderOf = async ({ id }: Delivery): Promise<string> => {
    const held = (await filesBelow((await watcher()).disk, path)).find(
      (file) => file.startsWith("processing/") && file.includes(id),
    );
    const holder = /^processing\/([0-9a-z]{36})\//.exec(held ?? "")?.[1];
    if (holder === undefined) throw new Error(`no process has claimed ${id}`);
    return holder;
  };
  const files = async (): Promise<string[]> =>
    (await filesBelow((await watcher()).disk, path)).filter((file) => !file.startsWith(".holdfast/"));
  const readAt = async (at: string): Promise<string> =>
    Buffer.from(await (await watcher()).disk.readFile(at, 10_000_000)).toString();
  const spoil = async (file: string, text: string): Promise<void> => {
    const { disk } = await watcher();
    await disk.unlink(`${path}/${file}`);
    await disk.createFile(`${path}/${file}`, Buffer.from(text), { sync: true });
  };
  const payloads = async (): Promise<string[]> => (await files()).filter((file) => file.startsWith("data/"));
  return {
    files,
    stored: files,
    payloads,
    readAt,
    read: (file) => readAt(`${path}/${file}`),
    spoil,
    spoilPayload: async (id, text) => {
      for (const file of await payloads()) if (file.includes(id)) await spoil(file, text);
    },
    open: async ({ name = "box", ...options } = {}) => {
      const opened = await openBox(await openPorts(), `${directory}/${name}`, { leaseMs: options.leaseMs });
      const handoff = new BoxHandoff(opened, options);
      onTestFinished(() => handoff.close());
      return handoff;
    },
    find: async (id) => await findTicket(await watcher(), id),
    findCommitted: async (key) => {
      const box = await watcher();
      return await findCommitted(box, box.layout.ledger(key, 0));
    },
    put: async (file, text) => {
      await (await watcher()).disk.createFile(`${path}/${file}`, Buffer.from(text), { sync: true });
    },
    declareDead: async (delivery) => {
      const { disk, ground } = await watcher();
      const holder = await holderOf(delivery);
      await disk.rename(
        `${ground.layout.directory}/holders/${holder}.json`,
        `${ground.layout.directory}/holders/${holder}.dead`,
      );
      if (!(await ground.settle(holder))) throw new Error(`${holder} is not settled`);
    },
  };
}

/** A process that only looks. */
async function openWatcher(openPorts: () => Promise<Ports>, directory: string): Promise<Box> {
  const { box, ownsGround } = await openBox(await openPorts(), directory);
  onTestFinished(async () => {
    if (ownsGround) await box.ground.close();
  });
  return box;
}

/** Undefined when it moves meanwhile. */
async function findTicket(box: Box, id: string): Promise<FoundTicket | undefined> {
  const { directory } = box.layout;
  const files = await filesBelow(box.disk, directory);
  const notes = files.filter((file) => file.startsWith("notes/") && /-[0-9]+\.json$/.test(file) && file.includes(id));
  for (const file of files) {
    const [state = "", ...rest] = file.split("/");
    const name = findTicketName(rest.at(-1) ?? "");
    if (name?.id !== id || state === "notes") continue;
    const ticket = await readRecord(box, ticketKind, `${directory}/${file}`);
    if (ticket === undefined) return undefined;
    const entry = await findCommitted(box, box.layout.ledger(ticket.manifest.key, name.replays));
    const history: FoundTicket["history"][number][] = [];
    for (const note of notes) {
      const said = await readRecord(box, noteKind, `${directory}/${note}`);
      if (said !== undefined) history.push({ ...said, at: new Date(said.at) });
    }
    return {
      state: state === "lanes" ? "incoming" : state,
      attempt: attemptOf(name),
      history: history.sort((a, b) => a.attempt - b.attempt),
      ...(entry?.committed.result === undefined ? {} : { result: entry.committed.result }),
    };
  }
  return undefined;
}

async function readRecord<T>({ disk }: Box, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  const bytes = await disk.readFile(path, 10_000_000).catch(() => undefined);
  return bytes && decodeRecord(kind, bytes, path);
}

async function filesBelow(disk: Disk, directory: string, prefix = ""): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(`${directory}/${prefix}`).catch(() => [])) {
    const path = `${prefix}${name}`;
    const below = (await disk.findStat(`${directory}/${path}`))?.kind === "directory";
    if (below) found.push(...(await filesBelow(disk, directory, `${path}/`)));
    else found.push(path);
  }
  return found.sort();
}

/** Settles what comes with `settle` until nothing is left that can be taken now. */
export async function drain(
  handoff: { take(): Promise<Delivery | undefined> },
  settle: (delivery: Delivery) => Promise<void>,
): Promise<number> {
  let count = 0;
  for (let next = await handoff.take(); next !== undefined; next = await handoff.take()) {
    count++;
    await settle(next);
  }
  return count;
}
