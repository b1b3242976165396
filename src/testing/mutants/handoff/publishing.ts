// Mutants of publishing: each loses a ticket or its payload when its publisher dies or sleeps.
import { parentOf, removeTree } from "../../../durable/publish/directory.ts";
import { linkOnce } from "../../../durable/publish/publish.ts";
import { getRecord } from "../../../durable/publish/record-file.ts";
import { encodeRecord } from "../../../format/record.ts";
import { randomName } from "../../../format/id.ts";
import type { Box } from "../../../handoff/box/box.ts";
import { ticketBody, ticketKind, type Ticket } from "../../../handoff/model/manifest.ts";
import { formatTicketName, newTicketName } from "../../../handoff/model/ticket-name.ts";
import { enter } from "../../../handoff/publish/enter.ts";
import { publish } from "../../../handoff/publish/publisher.ts";
import { recover } from "../../../handoff/recover/reap.ts";
import { realSteps, type Steps } from "../../scenarios/handoff/handoff-actors.ts";
import { handoffScenarios } from "../../scenarios/handoff/handoff.ts";
import { shareScenarios } from "../../scenarios/handoff/shares.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Claims the key by a record of its own, and stages the ticket only then. */
const keyBeforeTicket: Steps["publish"] = async (box, publication) => {
  const id = box.newId();
  const key = typeof publication.key === "string" ? publication.key : id;
  const ticket: Ticket = {
    isKeyed: true,
    manifest: { id, key, files: [], createdAt: new Date(0), producer: { host: "", pid: 1 }, priority: 5 },
    inline: {},
  };
  const bytes = encodeRecord({ ...ticketKind, decode: (body) => body }, ticketBody(ticket));
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

/** Claims the key by a second name of the staged ticket, whose first name may not be durable yet. */
const keyIsTicket: Steps["publish"] = async (box, publication) => {
  const id = box.newId();
  const key = typeof publication.key === "string" ? publication.key : id;
  const ticket: Ticket = {
    isKeyed: true,
    manifest: { id, key, files: [], createdAt: new Date(0), producer: { host: "", pid: 1 }, priority: 5 },
    inline: {},
  };
  const bytes = encodeRecord({ ...ticketKind, decode: (body) => body }, ticketBody(ticket));
  const staged = `${await box.staging(await box.ground.session())}/${formatTicketName(newTicketName(id))}`;
  await box.disk.createFile(staged, bytes, { sync: true });
  const path = box.layout.key(key);
  await box.ensure(parentOf(path));
  if (!(await linkOnce(box.disk, staged, path, bytes, { mayRepeat: true }))) throw new Error("there is one publisher");
  await box.sync(parentOf(path));
  await enter(box, staged, newTicketName(id), ticket.manifest);
  return { id, key, duplicate: false };
};

/** Writes the payload into the temp directory of the ground first, and moves it to where it stays. */
const payloadInTemp: Steps["publish"] = async (box, publication) => {
  const session = await box.ground.session();
  const directory = `${session.temp}/payload`;
  await box.disk.mkdir(directory);
  await box.disk.createFile(`${directory}/a.txt`, Buffer.from("x"), { sync: true });
  await removeTree(box.disk, directory);
  return await publish(box, publication);
};

/** Moves the whole directory of a dead holder away, and then removes what is in it. */
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
    await recover(box, holder);
  }
}

function inScenario(steps: Partial<Steps>, name: string): Mutant["scenario"] {
  const all = { ...realSteps, ...steps };
  return scenarioNamed([...handoffScenarios(all), ...shareScenarios(all)], name);
}

export const handoffPublishMutants: readonly Mutant[] = [
  {
    name: "key before ticket",
    about: "A publisher that is killed in between has the key and no ticket; the next one is told that it is there.",
    scenario: inScenario({ publish: keyBeforeTicket }, "handoff: two publishers of one key, one is killed"),
    breaks: /said to be there and is lost/,
  },
  {
    name: "key as a second name of the ticket",
    about: "A power cut keeps the key and takes the name under which a sweeper would find its ticket.",
    scenario: inScenario({ publish: keyIsTicket }, "handoff: a publisher, power cuts"),
    breaks: /a key names ticket/,
  },
  {
    name: "payload in the ground's temp",
    about: "A directory in it is never removed, and its holder never settled.",
    scenario: inScenario({ publish: payloadInTemp }, "handoff: a publisher is killed"),
    breaks: /temp directory cannot be removed/,
  },
  {
    name: "moved directory as a fence",
    about: "On a share the sleeper publishes through the directory that it once found, and its payload is gone.",
    scenario: inScenario({ reap: moveStagingAway }, "handoff: a publisher that sleeps, and a reaper, old directories"),
    breaks: /it is not there|is lost/,
  },
];
