// Scenarios of publish: writers, readers, lost replies and power cuts around one name.
import { moveOnce, putIfAbsent, replace } from "../../../src/durable/publish/publish.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";

const directory = "/shared";
const target = `${directory}/order.json`;
const bytesMax = 10_000;

/** The operations under test: the real ones, or known-wrong variants. */
export interface Publishing {
  readonly putIfAbsent: (staging: Staging, target: string, bytes: Uint8Array) => Promise<boolean>;
  readonly replace: (staging: Staging, target: string, bytes: Uint8Array) => Promise<void>;
  readonly moveOnce?: (disk: Disk, from: string, to: string) => Promise<boolean>;
}

const publishing: Publishing = { putIfAbsent, replace, moveOnce };

/** Content that is long enough to be torn, and that differs for each writer. */
export function contentOf(author: string, version = 1): string {
  return `order ${version} of ${author} `.repeat(4);
}

function stagingOf(ports: Ports, name: string): Staging {
  return { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
}

/** Creates the order if there is none, and notes the answer. */
function putter({ putIfAbsent: put }: Publishing): Actor {
  return {
    run: async ({ name, ports, note }) => {
      try {
        const won = await put(stagingOf(ports, name), target, Buffer.from(contentOf(name)));
        note(won ? "published" : "refused", contentOf(name));
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "DISK_FULL", "IO_ERROR")) throw error;
        note("failed", error.code);
      }
    },
  };
}

function replacer({ replace: put }: Publishing, versions: number): Actor {
  return {
    run: async ({ name, ports, note }) => {
      for (let version = 1; version <= versions; version++) {
        await put(stagingOf(ports, name), target, Buffer.from(contentOf(name, version)));
        note("published", contentOf(name, version));
      }
    },
  };
}

function reader(): Actor {
  return {
    run: async ({ ports, note }) => {
      const found = await findContent(ports);
      if (found !== undefined) note("read", found);
    },
  };
}

async function findContent(ports: Ports): Promise<string | undefined> {
  try {
    return Buffer.from(await ports.disk.readFile(target, bytesMax)).toString();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function prepareDirectories(ports: Ports, actors: Scenario["actors"]): Promise<void> {
  await ports.disk.mkdir("/temp");
  for (const name of Object.keys(actors)) await ports.disk.mkdir(`/temp/${name}`);
  await ports.disk.mkdir(directory);
}

function readsAreWhole(facts: readonly Fact[], contents: readonly string[]): void {
  for (const text of valuesOf<string>(facts, "read"))
    mustHold(contents.includes(text), `a reader saw ${JSON.stringify(text)}`);
}

function onePublisher(facts: readonly Fact[]): void {
  mustHold(valuesOf(facts, "published").length <= 1, "two were told that they made it");
  readsAreWhole(facts, [contentOf("ada"), contentOf("bob")]);
}

/** Acknowledged content is present and whole. Any content present was written whole by one of the writers. */
async function acknowledgedIsThere(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const found = await findContent(ports);
  const [published] = valuesOf<string>(facts, "published");
  if (published !== undefined)
    mustHold(found === published, `${published}was acknowledged, but the file is ${JSON.stringify(found)}`);
  readsAreWhole(found === undefined ? [] : [{ actor: "", what: "read", value: found }], [
    contentOf("ada"),
    contentOf("bob"),
  ]);
}

function putScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return {
    setup: (ports) => prepareDirectories(ports, scenario.actors),
    check: onePublisher,
    audit: acknowledgedIsThere,
    ...scenario,
  };
}

function replaceScenario(profile: CrashProfile, how: Publishing): Scenario {
  const actors = { ada: replacer(how, 2), eve: reader() };
  const versions = [contentOf("setup"), contentOf("ada", 1), contentOf("ada", 2)];
  return {
    name: `publish: replace, power cuts (${profile})`,
    about: "One process replaces the file twice while another reads. The power fails at every moment.",
    profile,
    powerCuts: true,
    actors,
    setup: async (ports) => {
      await prepareDirectories(ports, actors);
      await ports.disk.createFile(target, Buffer.from(contentOf("setup")), { sync: true });
    },
    check: (facts) => readsAreWhole(facts, versions),
    audit: async (ports, facts) => {
      const found = (await findContent(ports)) ?? "";
      const last = valuesOf<string>(facts, "published").at(-1) ?? contentOf("setup");
      mustHold(
        versions.indexOf(found) >= versions.indexOf(last),
        `${last}was acknowledged, but the file is ${JSON.stringify(found)}`,
      );
    },
  };
}

const ticket = `${directory}/ticket`;

/** Takes the ticket by renaming it to a name of its own. */
function taker({ moveOnce: move = moveOnce }: Publishing, machine: string, isFresh = false): Actor {
  return {
    machine,
    isFresh,
    // The client now remembers that the ticket does not exist.
    prepare: async ({ ports }) => await ports.disk.canOpen(ticket),
    run: async ({ name, ports, note }) => {
      try {
        note((await move(ports.disk, ticket, `${directory}/taken-by-${name}`)) ? "taken" : "missed");
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
        note("in doubt");
      }
    },
  };
}

/**
 * Each process knows whether it took the ticket, or knows that the outcome is unknown. The ticket is not left behind.
 */
async function takenByOne({ disk }: Ports, facts: readonly Fact[]): Promise<void> {
  const names = await disk.list(directory);
  for (const { actor: name, what } of facts) {
    const hasIt = names.includes(`taken-by-${name}`);
    if (what === "taken") mustHold(hasIt, `${name} was told that it has the ticket, and has not`);
    if (what === "missed") mustHold(!hasIt, `${name} was told that another has the ticket, and has it`);
  }
  if (facts.length > 0 && facts.every(({ what }) => what === "missed"))
    mustHold(!names.includes("ticket"), "all were told that another has the ticket, and it lies there");
}

function takingScenario(how: Publishing): Scenario {
  return {
    name: "publish: two take one ticket, old answers and lost replies",
    about: "Two machines rename one file, each to its own name. One machine's cache says that the file does not exist.",
    volume: { kind: "network", type: "simulated", mountOptions: [] },
    quirks: { staleAbsence: true, staleHandles: true },
    troubles: { lostReply: 1, retransmit: 1, staleHandle: 1 },
    setup: ({ disk }) => disk.mkdir(directory),
    meanwhile: ({ disk }) => disk.createFile(ticket, Buffer.from("ticket"), { sync: true }),
    actors: { ada: taker(how, "m1", true), bob: taker(how, "m2") },
    check: (facts) => mustHold(facts.filter(({ what }) => what === "taken").length <= 1, "two have taken one ticket"),
    audit: takenByOne,
  };
}

export function publishScenarios(how: Publishing = publishing): Scenario[] {
  const ada = putter(how);
  const bob = putter(how);
  const profiles: readonly CrashProfile[] = ["ext4-ordered", "weak", "share"];
  return [
    ...profiles.map((profile) =>
      putScenario({
        name: `publish: put if absent, power cuts (${profile})`,
        about: "Two processes create one name while a third reads. The power fails at every moment.",
        profile,
        powerCuts: true,
        actors: { ada, bob, eve: reader() },
      }),
    ),
    ...profiles.map((profile) => replaceScenario(profile, how)),
    putScenario({
      name: "publish: put if absent, kill and lost replies",
      size: "medium",
      about: "Two processes create one name. One may be killed. Replies may be lost, or may answer a repeated request.",
      actors: { ada, bob, eve: reader() },
      killsMax: 1,
      troubles: { lostReply: 1, retransmit: 1 },
    }),
    putScenario({
      name: "publish: put if absent, failing disk",
      size: "medium",
      about: "Every operation may fail with a full disk, an I/O error or a stale handle.",
      actors: { ada, bob },
      errors: { errnos: ["ENOSPC", "EIO", "ESTALE"] },
      troubles: { error: 2 },
    }),
    takingScenario(how),
  ];
}
