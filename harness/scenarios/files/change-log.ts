// Scenarios of the change log: callers announce together, and blocks are folded while others read and write. Processes
// die, and the power fails.
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { ChangeLog, type StagedChange } from "../../../src/files/change-log/change-log.ts";
import { ChangeFolder } from "../../../src/files/change-log/fold.ts";
import type { Change } from "../../../src/files/model/file-tree.ts";
import { FilesLayout } from "../../../src/files/tree/layout.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { share } from "../volumes.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

export interface ChangeLogScenarioOptions {
  /** Wraps the disk that callers and readers use. Default: no change. */
  readonly diskOf?: ((disk: Disk) => Disk) | undefined;
  /** Wraps the disk that a folder uses. Default: no change. */
  readonly folderDiskOf?: ((disk: Disk) => Disk) | undefined;
  /** Changes the layout that a folder uses. Default: no change. */
  readonly layoutOf?: ((layout: FilesLayout) => FilesLayout) | undefined;
  readonly blocks?: Blocks | undefined;
}

const ground = "/ground";

/** Block 0 has one change, the others have two. In the scenarios of callers there is only one block. */
type Blocks = "folded" | "whole";
const layouts: Readonly<Record<Blocks, FilesLayout>> = {
  folded: new FilesLayout(ground, { changesPerBlock: 2 }),
  whole: new FilesLayout(ground),
};
/** Changes 1 to 4 are in blocks 0 to 2: only block 0 may be folded. */
const changesBefore = 4;

function stagingOf({ disk, random }: Ports, name: string): Staging {
  return { disk, random, directory: async () => `/temp/${name}` };
}

function openLog(ports: Ports, name: string, options: ChangeLogScenarioOptions): ChangeLog {
  const { diskOf = (disk) => disk, blocks = "folded" } = options;
  return new ChangeLog(stagingOf({ ...ports, disk: diskOf(ports.disk) }, name), layouts[blocks]);
}

/** Folds every block that may be folded. */
function folder({ folderDiskOf = (disk) => disk, layoutOf = (layout) => layout }: ChangeLogScenarioOptions): Actor {
  return actor({
    run: async ({ ports, name, note }) => {
      const staging = stagingOf({ ...ports, disk: folderDiskOf(ports.disk) }, name);
      note("folded", await new ChangeFolder(staging, layoutOf(layouts.folded)).fold({ nowMs: 0, afterMs: -Infinity }));
    },
  });
}

/** Reads all changes from the first one, as a follower does. */
function reader(options: ChangeLogScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => openLog(ports, name, options),
    run: async ({ note }, log) => note("read", await readUpTo(log, changesBefore)),
  });
}

async function readUpTo(log: ChangeLog, last: number): Promise<Change[]> {
  const found: Change[] = [];
  for (let rounds = 0; found.length < last && rounds < 10; rounds++) found.push(...(await log.readAfter(found.length)));
  return found;
}

async function appendAll(ports: Ports, paths: readonly string[]): Promise<void> {
  const log = openLog(ports, "auditor", {});
  for (const path of paths) await log.append({ kind: "written", path });
}

const pathsBefore = Array.from({ length: changesBefore }, (_, index) => `before${index + 1}`);

/** Each reader got every change, and so does the next one. */
async function allBefore(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const ofNext = await readUpTo(openLog(ports, "auditor", {}), changesBefore);
  for (const read of [...valuesOf<Change[]>(facts, "read"), ofNext]) {
    const paths = read.slice(0, changesBefore).map(({ path, damaged }) => damaged ?? path);
    mustHold(paths.join() === pathsBefore.join(), `a change was lost in folding: ${paths.join()}`);
  }
  await allAnnounced(ports, facts, "folded");
}

function foldScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  meanwhile: readonly string[] = [],
): Scenario {
  const { setup, ...rest } = logScenario({ audit: allBefore, ...scenario });
  return {
    ...rest,
    ...(meanwhile.length === 0 ? {} : { meanwhile: (ports: Ports) => appendAll(ports, meanwhile) }),
    setup: async (ports) => {
      await setup?.(ports);
      await appendAll(ports, meanwhile.length === 0 ? pathsBefore : pathsBefore.slice(0, 1));
    },
    isPermanent: () => false,
  };
}

interface Announced {
  readonly number: number;
  readonly path: string;
}

/** Announces changes of these paths at the same time. They were staged before. */
function announcer(options: ChangeLogScenarioOptions, paths: readonly string[]): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const log = openLog(ports, name, options);
      await log.last();
      return { log, staged: await Promise.all(paths.map((path) => log.stage({ kind: "written", path }))) };
    },
    run: async ({ note }, { log, staged }) => {
      const announce = async (each: StagedChange): Promise<void> => {
        const { number, path } = await log.announce(each);
        note("announced", { number, path } satisfies Announced);
      };
      await Promise.all(staged.map(announce));
    },
  });
}

function noNumberTwice(facts: readonly Fact[]): void {
  const numbers = valuesOf<Announced>(facts, "announced").map(({ number }) => number);
  mustHold(new Set(numbers).size === numbers.length, `a number was given twice: ${numbers.join(", ")}`);
}

async function readAll(ports: Ports, blocks: Blocks): Promise<Change[]> {
  const log = openLog(ports, "auditor", { blocks });
  return await readUpTo(log, await log.last());
}

/** Each announced change has its number, and no lower number is missing. */
async function allAnnounced(ports: Ports, facts: readonly Fact[], blocks: Blocks = "whole"): Promise<Change[]> {
  const changes = await readAll(ports, blocks);
  for (const { number, path } of valuesOf<Announced>(facts, "announced")) {
    mustHold(changes[number - 1]?.path === path, `${path} was announced as number ${number} and is lost`);
    mustHold(
      changes.slice(0, number).every(({ damaged }) => damaged === undefined),
      `a number before ${number} is lost`,
    );
  }
  return changes;
}

async function allAnnouncedWithoutGap(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const changes = await allAnnounced(ports, facts);
  mustHold(
    changes.every(({ damaged }) => damaged === undefined),
    "the log has a gap",
  );
}

function logScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return {
    audit: allAnnouncedWithoutGap,
    setup: async ({ disk }) => {
      for (const path of ["/temp", "/temp/auditor", ground]) await disk.mkdir(path);
      for (const path of [layouts.whole.directory, layouts.whole.changes, layouts.whole.changeBlock(0)])
        await disk.mkdir(path);
      for (const name of Object.keys(scenario.actors)) await disk.mkdir(`/temp/${name}`);
    },
    isPermanent: (path) => `${path}/`.startsWith(`${ground}/`),
    check: noNumberTwice,
    ...scenario,
  };
}

export function changeLogScenarios(options: ChangeLogScenarioOptions = {}): Scenario[] {
  const whole = { ...options, blocks: "whole" } as const;
  return [
    logScenario({
      name: "change log: callers that announce together beside another process",
      about:
        "Two callers of one process and one of another race for numbers. Each number is given once, without a gap.",
      killsMax: 1,
      actors: { ada: announcer(whole, ["a1", "a2"]), bob: announcer(whole, ["b"]) },
    }),
    logScenario({
      name: "change log: callers that announce together, power cuts",
      about: "A number that a caller got is durable, with all numbers before it. No number is left out.",
      profile: "ext4-ordered",
      powerCuts: true,
      isPermanent: () => false,
      actors: { ada: announcer(whole, ["a1", "a2", "a3"]) },
    }),
    logScenario({
      name: "change log: callers that announce together, power cuts (weak)",
      about: "A disk that keeps no order of names may leave out a number, but none up to one that a caller got.",
      profile: "weak",
      powerCuts: true,
      isPermanent: () => false,
      audit: async (ports, facts) => void (await allAnnounced(ports, facts)),
      actors: { ada: announcer(whole, ["a1", "a2", "a3"]) },
    }),
    foldScenario({
      name: "change log: a reader beside a fold that dies",
      about: "A block is folded while a process reads it, and the folder may be killed. The reader gets every change.",
      killsMax: 1,
      mortal: ["fold"],
      actors: { fold: folder(options), read: reader(options) },
    }),
    foldScenario({
      name: "change log: two folds that die",
      about: "Two processes fold the same block, and one may be killed at any moment. No change is lost.",
      size: "medium",
      killsMax: 1,
      alike: ["ada", "bob"],
      actors: { ada: folder(options), bob: folder(options) },
    }),
    foldScenario({
      name: "change log: a fold and power cuts (weak)",
      about: "The segment is durable before a single file is removed.",
      profile: "weak",
      powerCuts: true,
      actors: { fold: folder(options) },
    }),
    foldScenario(
      {
        name: "change log: a caller that slept, beside a fold",
        size: "medium",
        about:
          "The end that the caller remembers is in a block that is being folded. It gets a number after the newest, and no number is given twice.",
        actors: { ada: announcer(options, ["a"]), fold: folder(options) },
      },
      [...pathsBefore.slice(1), "more5", "more6"],
    ),
    foldScenario({
      name: "change log: a reader on a share beside a fold on the server",
      about: "The client remembers absent names and old listings, yet never takes a folded change for a lost one.",
      volume: share,
      profile: "share",
      quirks: { staleListings: true, staleAbsence: true },
      troubles: { stale: 2 },
      actors: { fold: { ...folder(options), machine: "m1" }, read: { ...reader(options), machine: "m2" } },
    }),
  ];
}
