// Mutants of publishing: each loses a ticket or its payload when its publisher dies or sleeps.
import { parentOf, removeTree } from "../../../src/durable/publish/directory.ts";
import { linkOnce } from "../../../src/durable/publish/publish.ts";
import { getRecord } from "../../../src/durable/publish/record-file.ts";
import { randomName } from "../../../src/format/id.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import { encodeTicket, ticketKind, type Ticket } from "../../../src/handoff/model/manifest.ts";
import { formatTicketName, newTicketName } from "../../../src/handoff/model/ticket-name.ts";
import { enter } from "../../../src/handoff/publish/enter.ts";
import { publish } from "../../../src/handoff/publish/publisher.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { realSteps, type Steps } from "../../scenarios/handoff/handoff-actors.ts";
import { handoffScenarios } from "../../scenarios/handoff/handoff.ts";
import { shareScenarios } from "../../scenarios/handoff/shares.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Wins the key by a separate record, and stages the ticket only afterwards. */
const keyBeforeTicket: Steps["publish"] = async (box, publication) => {
  const id = box.newId();
  const key = typeof publication.key === "string" ? publication.key : id;
  const ticket: Ticket = {
    isKeyed: true,
    manifest: { id, key, files: [], createdAt: new Date(0), producer: { host: "", pid: 1 }, priority: 5 },
    inline: {},
  };
  const bytes = encodeTicket(ticket);
  const session = await box.ground.session();
  const path = box.layout.key(key);
  await box.ensure(parentOf(path));
  const temp = `${session.temp}/${randomName(box.ground.ports.random.bytes(16))}`;
  await box.disk.createFile(temp, bytes, { sync: true });
  const isMine = await linkOnce(box.disk, temp, path, bytes, { mayRepeat: true });
  await box.disk.unlink(temp);
  if (!isMine) {
    const first = await getRecord(box.disk, ticketKind, path);
    return { id: first.manifest.id, key, duplicate: true };
  }
  const staged = `${await box.staging(session)}/${formatTicketName(newTicketName(id))}`;
  await box.disk.createFile(staged, bytes, { sync: true });
  await enter(box, staged, newTicketName(id), ticket.manifest);
  return { id, key, duplicate: false };
};

/** Wins the key by a second link to the staged ticket, whose first name may not be durable yet. */
const keyIsTicket: Steps["publish"] = async (box, publication) => {
  const id = box.newId();
  const key = typeof publication.key === "string" ? publication.key : id;
  const ticket: Ticket = {
    isKeyed: true,
    manifest: { id, key, files: [], createdAt: new Date(0), producer: { host: "", pid: 1 }, priority: 5 },
    inline: {},
  };
  const bytes = encodeTicket(ticket);
  const staged = `${await box.staging(await box.ground.session())}/${formatTicketName(newTicketName(id))}`;
  await box.disk.createFile(staged, bytes, { sync: true });
  const path = box.layout.key(key);
  await box.ensure(parentOf(path));
  if (!(await linkOnce(box.disk, staged, path, bytes, { mayRepeat: true }))) throw new Error("there is one publisher");
  await box.sync(parentOf(path));
  await enter(box, staged, newTicketName(id), ticket.manifest);
  return { id, key, duplicate: false };
};

/** Writes the payload into the temp directory of the ground, then moves it to its final directory. */
const payloadInTemp: Steps["publish"] = async (box, publication) => {
  const session = await box.ground.session();
  const directory = `${session.temp}/payload`;
  await box.disk.mkdir(directory);
  await box.disk.createFile(`${directory}/a.txt`, Buffer.from("x"), { sync: true });
  await removeTree(box.disk, directory);
  return await publish(box, publication);
};

/** Wins keys before the names of their tickets in the staging are durable. */
const keysBeforeNames: Steps["publish"] = async (box, publication) => {
  const sync = box.sync.bind(box);
  const lazy = async (...paths: readonly string[]): Promise<void> =>
    await sync(...paths.filter((path) => !path.startsWith(box.layout.stagings)));
  Object.defineProperty(box, "sync", { value: lazy, configurable: true });
  return await publish(box, publication);
};

/** Returns the disk of `box` with one operation replaced. */
function replaceCall<K extends "open" | "createFile">(box: Box, call: K, replacement: Disk[K]): void {
  const lazy = new Proxy(box.disk, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      return name === call ? replacement : typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  Object.defineProperty(box, "disk", { value: lazy, configurable: true });
}

/** Acknowledges without the sync of the last file, as if it did not wait for syncs in progress. */
const lastFileUnsynced: Steps["publish"] = async (box, publication) => {
  const { disk } = box;
  const last = publication.bodies.at(-1)?.[0] ?? "";
  replaceCall(box, "open", async (path, ...more) => {
    const file = await disk.open(path, ...more);
    if (path.endsWith(`/${last}`)) Object.defineProperty(file, "sync", { value: async () => undefined });
    return file;
  });
  return await publish(box, publication);
};

/** Creates a ticket with an inline payload without a sync, as if it were empty. */
const filledUnsynced: Steps["publish"] = async (box, publication) => {
  const { disk } = box;
  replaceCall(box, "createFile", async (path, bytes, options) => {
    const isStaged = path.startsWith(`${box.layout.stagings}/`);
    await disk.createFile(path, bytes, isStaged ? { ...options, sync: false } : options);
  });
  return await publish(box, publication);
};

/**
 * Assumes that the name of a directory is durable because an earlier directory at this path had a
 * durable name.
 */
const nameByPath: Steps["publish"] = async (box, publication) => {
  const named = new Set<string>();
  const syncNamed = async (path: string): Promise<void> => {
    await box.sync(path, ...(named.has(path) ? [] : [parentOf(path)]));
    named.add(path);
  };
  if (!Object.hasOwn(box, "syncNamed")) Object.defineProperty(box, "syncNamed", { value: syncNamed });
  return await publish(box, publication);
};

/** Moves the whole directory of a dead holder away, then removes its content. */
async function moveStagingAway(box: Box): Promise<void> {
  const own = (await box.ground.session()).holder.id;
  const { layout, disk } = box;
  for (const holder of await disk.list(layout.stagings)) {
    if (holder === own || !(await box.ground.settle(holder))) continue;
    const moved = `${layout.trash}/moved`;
    await disk.rename(layout.staging(holder), moved).catch(() => undefined);
    for (const text of await disk.list(moved)) {
      await removeTree(disk, layout.payload(text.slice(0, 36)));
      await removeTree(disk, `${moved}/${text}`);
    }
    await removeTree(disk, moved);
    await recoverHolder(box, holder);
  }
}

function inScenario(steps: Partial<Steps>, name: string): Mutant["scenario"] {
  const all = { ...realSteps, ...steps };
  return scenarioNamed([...handoffScenarios(all), ...shareScenarios(all)], name);
}

export const handoffPublishMutants: readonly Mutant[] = [
  {
    name: "key before ticket",
    about:
      "A publisher that is killed in between has the key but no ticket; the next one is told that the ticket exists.",
    scenario: inScenario({ publish: keyBeforeTicket }, "handoff: two publishers of one key, one is killed"),
    breaks: /said to be there and is lost/,
  },
  {
    name: "key as a second name of the ticket",
    about: "A power cut keeps the key and loses the name under which a sweeper would find its ticket.",
    scenario: inScenario({ publish: keyIsTicket }, "handoff: a publisher, power cuts"),
    breaks: /a key names ticket/,
  },
  {
    name: "keys in one file before the names of their tickets",
    about: "A power cut keeps the keys and loses the names under which a sweeper would find their tickets.",
    scenario: inScenario(
      { publish: keysBeforeNames },
      "handoff: tickets with keys that are published at once, power cuts",
    ),
    breaks: /a key names ticket|is lost/,
  },
  {
    name: "name of a minute that is durable by its path",
    about: "The directory was removed and created again, and a power cut loses the new one with its ticket.",
    scenario: inScenario(
      { publish: nameByPath },
      "handoff: a publisher of two tickets, and the directory of the minute is made again, power cuts",
    ),
    breaks: /is lost/,
  },
  {
    name: "ticket before the sync of its last file",
    about: "A power cut loses the content of a file whose ticket was acknowledged.",
    scenario: inScenario({ publish: lastFileUnsynced }, "handoff: a publisher of two files, power cuts"),
    breaks: /is not what its manifest says|is lost/,
  },
  {
    name: "ticket with its payload in it, moved before its sync",
    about: "A power cut loses the content of an acknowledged ticket.",
    scenario: inScenario(
      { publish: filledUnsynced },
      "handoff: a publisher of two tickets, and the directory of the minute is made again, power cuts",
    ),
    breaks: /was acknowledged, and is not/,
  },
  {
    name: "payload in the ground's temp",
    about: "A directory in the temp directory is never removed, so its holder is never settled.",
    scenario: inScenario({ publish: payloadInTemp }, "handoff: a publisher is killed"),
    breaks: /temp directory cannot be removed/,
  },
  {
    name: "moved directory as a fence",
    about: "On a share, a sleeper publishes through a handle of the moved directory, although its payload is gone.",
    scenario: inScenario({ reap: moveStagingAway }, "handoff: a publisher that sleeps, and a reaper, old directories"),
    breaks: /it is not there|is lost/,
  },
];
