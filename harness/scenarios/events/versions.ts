// Scenarios of read models in a rolling upgrade: a program of the older version reads, while one of the newer version
// switches to its own documents and removes old ones.
import { ensureDirectory } from "../../../src/durable/publish/directory.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { Generations, findOfVersion, type GenerationsState } from "../../../src/part/generations.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

const directory = "/shelves";
/** A reader that finds the files of its generation gone reads the catalog again. */
const looksMax = 4;

export interface VersionScenarioOptions {
  /** The parts under test: the real ones, or known-wrong variants. */
  readonly GenerationsClass?: typeof Generations;
  readonly findReadable?: typeof findOfVersion;
}

async function open(
  ports: Ports,
  name: string,
  { GenerationsClass = Generations }: VersionScenarioOptions,
): Promise<Generations> {
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  return await GenerationsClass.open(staging, directory, ports.host.bootId, { keepsOlder: true });
}

function documentIn(generations: Generations, number: number): string {
  return `${generations.directoryOf(number)}/document`;
}

/** Returns the version that made the documents of a generation, or undefined if they are gone. */
async function findMaker(disk: Disk, generations: Generations, number: number): Promise<number | undefined> {
  try {
    return Number(Buffer.from(await disk.readFile(documentIn(generations, number), 100)).toString());
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Builds the documents of a version, and switches to them unless an actor will do that. */
async function build(disk: Disk, generations: Generations, version: number, isSwitched: boolean): Promise<void> {
  const { current } = await generations.read();
  const { building } = await generations.nameBuilding(version, current?.number);
  if (building === undefined) return;
  await ensureDirectory(disk, generations.directoryOf(building.number));
  await disk.createFile(documentIn(generations, building.number), Buffer.from(String(version)), { sync: true });
  if (isSwitched) await generations.switchTo(building.number);
}

function upgrader(number: number, options: VersionScenarioOptions): Actor {
  return actor({
    prepare: ({ ports, name }) => open(ports, name, options),
    run: async ({ note }, generations) => {
      await generations.switchTo(number);
      await generations.removeOld();
      note("switched", number);
    },
  });
}

function dropper(version: number, options: VersionScenarioOptions): Actor {
  return actor({
    prepare: ({ ports, name }) => open(ports, name, options),
    run: async ({ note }, generations) => {
      await generations.dropOlder(version);
      note("dropped");
    },
  });
}

function reader(version: number, options: VersionScenarioOptions): Actor {
  const { findReadable = findOfVersion } = options;
  return actor({
    prepare: ({ ports, name }) => open(ports, name, options),
    run: async ({ ports, note }, generations) => {
      for (let looks = 0; looks < looksMax; looks++) {
        const entry = findReadable(await generations.read(), version);
        if (entry === undefined) return note("refused");
        const maker = await findMaker(ports.disk, generations, entry.number);
        if (maker !== undefined) return note("read", { version, maker });
      }
      note("lost", version);
    },
  });
}

function onlyOwn(facts: readonly Fact[]): void {
  for (const { version, maker } of valuesOf<{ version: number; maker: number }>(facts, "read"))
    mustHold(maker === version, `version ${version} reads a document of version ${maker}`);
  for (const version of valuesOf<number>(facts, "lost"))
    mustHold(false, `version ${version} is named, and its documents are gone`);
}

async function isWhole(ports: Ports, options: VersionScenarioOptions): Promise<void> {
  const generations = await open(ports, "auditor", options);
  const { current, older = [] }: GenerationsState = await generations.read();
  for (const entry of [current, ...older])
    if (entry !== undefined)
      mustHold(
        (await findMaker(ports.disk, generations, entry.number)) === entry.version,
        `version ${entry.version} is named, and its documents are gone`,
      );
}

interface UpgradeScenario {
  readonly name: string;
  readonly about: string;
  /** The version that the scenario switches to. All lower versions were switched to before. */
  readonly last: number;
  /** The version that the reader uses. */
  readonly reads: number;
  /** True if the switch is done before the scenario, and the documents of older versions are dropped in it. */
  readonly isDropping?: boolean;
}

function upgradeTo(
  { last, reads, isDropping = false, ...rest }: UpgradeScenario,
  options: VersionScenarioOptions,
): Scenario {
  return {
    ...rest,
    setup: async (ports) => {
      for (const path of ["/temp", directory, "/temp/setup", "/temp/auditor", "/temp/ada", "/temp/bob"])
        await ports.disk.mkdir(path);
      const generations = await open(ports, "setup", options);
      for (let version = 1; version <= last; version++)
        await build(ports.disk, generations, version, isDropping || version < last);
    },
    actors: { ada: isDropping ? dropper(last, options) : upgrader(last, options), bob: reader(reads, options) },
    killsMax: 1,
    mortal: ["ada"],
    isUnseen: (operation, path) => path.startsWith("/temp/") || ["sync", "sync directory"].includes(operation),
    check: onlyOwn,
    audit: (ports) => isWhole(ports, options),
  };
}

export function eventVersionScenarios(options: VersionScenarioOptions = {}): Scenario[] {
  const scenarios: UpgradeScenario[] = [
    {
      name: "versions: an older reader beside an upgrade",
      about: "The reader of version 1 gets its own documents before, during and after the switch to version 2.",
      last: 2,
      reads: 1,
    },
    {
      name: "versions: an upgrade after a rollback",
      about: "Programs went back from version 2 to 1. The switch to version 3 leaves them the documents of version 1.",
      last: 3,
      reads: 1,
    },
    {
      name: "versions: a reader three versions behind",
      about: "The switch to version 4 removes the documents of version 1. Their reader gets them, or is refused.",
      last: 4,
      reads: 1,
    },
    {
      name: "versions: documents are dropped under an older reader",
      about: "The reader of version 1 gets its own documents, or is refused.",
      last: 2,
      reads: 1,
      isDropping: true,
    },
  ];
  return scenarios.map((scenario) => upgradeTo(scenario, options));
}
