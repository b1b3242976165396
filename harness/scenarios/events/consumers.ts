// Scenarios of consumers and read models: a worker sleeps past its lease while another takes over. Workers are killed
// at any step, and the power fails at any step. The lease itself is a path lock with its own scenarios. Here each
// worker simply has a fence, and the explorer lets the older one sleep anywhere.
import { RollingChain } from "../../../src/durable/chain/rolling-chain.ts";
import type { ChainOpener } from "../../../src/durable/chain/state-chain.ts";
import { getRecord } from "../../../src/durable/publish/record-file.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../../src/errors.ts";
import {
  documentKind,
  documentName,
  hashOf,
  newestOf,
  shardOf,
  type Document,
} from "../../../src/events/projection/document.ts";
import { DocumentWriter, listShard } from "../../../src/events/projection/document-writer.ts";
import type { Checkpoint } from "../../../src/part/progress/checkpoint.ts";
import { Checkpoints, type LeasedWork } from "../../../src/part/progress/checkpoints.ts";
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
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";

const directory = "/documents";
const key = "doc";
/** The shard directory of the only document. */
export const shard: string = `${directory}/${shardOf(hashOf(key))}`;

/** The effect of an event on the document. */
type Effect = "add" | "delete";

export interface FollowScenarioOptions {
  /** The parts under test: the real ones, or known-wrong variants. */
  readonly CheckpointsClass?: typeof Checkpoints;
  readonly WriterClass?: typeof DocumentWriter;
  readonly find?: typeof findDocument;
  /** Returns the mark of a position of a log. */
  readonly markOf?: (log: string, position: number) => string;
}

interface Setting extends FollowScenarioOptions {
  readonly effects: readonly Effect[];
  /** The id of the existing log. A restored log has another one. */
  readonly log?: string;
  readonly slotsPerEpoch?: number;
}

/** Finds the document as a reader does while nothing changes. */
export async function findDocument(disk: Disk, checkpoint: Checkpoint): Promise<Document | undefined> {
  const name = newestOf(await listShard(disk, shard), checkpoint).get(hashOf(key));
  if (name === undefined || name.isDeletion) return undefined;
  return await getRecord(disk, documentKind, `${shard}/${documentName(name)}`);
}

async function openCheckpoints(ports: Ports, name: string, setting: Setting): Promise<Checkpoints> {
  const { CheckpointsClass = Checkpoints, effects, log = "a", slotsPerEpoch = 64, markOf = plainMark } = setting;
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  const chains: ChainOpener = { ports, openChain: (path, options) => RollingChain.open(staging, path, options) };
  return await CheckpointsClass.open(chains, `${directory}/checkpoint`, {
    ground: "ground",
    slotsPerEpoch,
    remembersCutOff: true,
    sequence: {
      findMark: async (position) => (position > effects.length ? undefined : markOf(log, position)),
      rewound: (position) => holdfastError("LOG_REWOUND", "The log was restored.", { position }),
      mayLag: false,
    },
  });
}

function plainMark(log: string, position: number): string {
  return `${log}${position}`;
}

function applied(state: unknown, effect: Effect | undefined, position: number): string | undefined {
  return effect === "delete" ? undefined : `${typeof state === "string" ? state : ""}${position}`;
}

/** The document after the first `position` events. */
function expectedAt(effects: readonly Effect[], position: number): string | undefined {
  let state: string | undefined;
  for (let each = 1; each <= position; each++) state = applied(state, effects[each - 1], each);
  return state;
}

/** Folds all events up to a position in one batch. Returns false if another worker has taken over. */
async function foldUpTo(
  writer: DocumentWriter,
  leased: LeasedWork,
  { effects }: Setting,
  upTo: number,
): Promise<boolean> {
  if (leased.saved.position >= upTo) return true;
  return await leased.orLost(async () => {
    const before = await writer.find(key);
    let state = before?.state;
    for (let position = leased.saved.position + 1; position <= upTo; position++)
      state = applied(state, effects[position - 1], position);
    const document = { key, position: upTo, ...(state === undefined ? {} : { state }), tags: [], seen: [] };
    return await writer.commit(before === undefined && state === undefined ? [] : [document], upTo);
  });
}

interface WorkerOptions {
  readonly fence: number;
  readonly upTo: number;
  /** True if the worker has taken over before the scenario begins. */
  readonly hasTaken?: boolean;
}

function worker(setting: Setting, { fence, upTo, hasTaken = false }: WorkerOptions): Actor {
  const { WriterClass = DocumentWriter } = setting;
  return actor({
    prepare: async ({ ports, name }) => {
      const checkpoints = await openCheckpoints(ports, name, setting);
      return { checkpoints, leased: hasTaken ? await checkpoints.take(fence) : undefined };
    },
    run: async ({ ports, note }, { checkpoints, leased: taken }) => {
      const leased = taken ?? (await checkpoints.take(fence));
      if (leased === undefined) return note("refused");
      const writer = new WriterClass(ports.disk, directory, leased);
      const isDone = await foldUpTo(writer, leased, setting, upTo);
      note(isDone ? "committed" : "refused", upTo);
      await writer.end();
    },
  });
}

/** Saves a checkpoint, as a consumer does after its handler. The successor also deletes old epochs. */
function saver(setting: Setting, { fence, upTo, hasTaken = false }: WorkerOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const checkpoints = await openCheckpoints(ports, name, setting);
      return { checkpoints, leased: hasTaken ? await checkpoints.take(fence) : undefined };
    },
    run: async ({ note }, { checkpoints, leased: taken }) => {
      const leased = taken ?? (await checkpoints.take(fence));
      const isDone = leased !== undefined && (await leased.save(upTo));
      note(isDone ? "committed" : "refused", upTo);
      if (!hasTaken) await checkpoints.collect();
    },
  });
}

/** Every acknowledged checkpoint counts: the position never goes back. */
async function checkpointIsRight(ports: Ports, facts: readonly Fact[], setting: Setting): Promise<void> {
  const { state } = await (await openCheckpoints(ports, "auditor", setting)).read();
  for (const position of valuesOf<number>(facts, "committed"))
    mustHold(
      state.position >= position,
      `position ${position} was acknowledged, and the checkpoint is ${state.position}`,
    );
}

/**
 * Every acknowledged checkpoint counts, the document is the result of the events up to the checkpoint, and the next
 * worker can finish the work. The document lists the events that it has seen, so a skipped one shows.
 */
async function documentIsRight(ports: Ports, facts: readonly Fact[], setting: Setting): Promise<void> {
  const { effects, find = findDocument, WriterClass = DocumentWriter } = setting;
  const checkpoints = await openCheckpoints(ports, "auditor", setting);
  const { state: before } = await checkpoints.read();
  for (const position of valuesOf<number>(facts, "committed"))
    mustHold(
      before.position >= position,
      `position ${position} was acknowledged, and the checkpoint is ${before.position}`,
    );
  const mustBe = async (checkpoint: Checkpoint): Promise<void> => {
    const found = (await find(ports.disk, checkpoint))?.state;
    const expected = expectedAt(effects, checkpoint.position);
    mustHold(found === expected, `at ${checkpoint.position} the document is "${String(found)}", not "${expected}"`);
  };
  await mustBe(before);
  const leased = await checkpoints.take(1000);
  mustHold(
    leased !== undefined &&
      (await foldUpTo(new WriterClass(ports.disk, directory, leased), leased, setting, effects.length)),
    "the next worker cannot finish the work",
  );
  await mustBe((await checkpoints.read()).state);
}

function followScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  setting: Setting,
): Scenario {
  return {
    setup: async (ports) => {
      for (const path of ["/temp", directory, "/temp/auditor", "/temp/setup"]) await ports.disk.mkdir(path);
      for (const name of Object.keys(scenario.actors)) await ports.disk.mkdir(`/temp/${name}`);
      // The first event is processed before the scenario begins.
      const checkpoints = await openCheckpoints(ports, "setup", { ...setting, log: "a" });
      await checkpoints.begin(0);
      const leased = await checkpoints.take(1);
      if (leased === undefined) return;
      const writer = new (setting.WriterClass ?? DocumentWriter)(ports.disk, directory, leased);
      await foldUpTo(writer, leased, setting, 1);
      await writer.end();
    },
    // No epoch is collected, and a shard is never removed.
    isPermanent: (path) => path === directory || path === shard || path.startsWith(`${directory}/checkpoint`),
    isUnseen: (operation, path) =>
      path.startsWith("/temp/") || (!scenario.powerCuts && ["sync", "sync directory"].includes(operation)),
    audit: (ports, facts) => documentIsRight(ports, facts, setting),
    ...scenario,
  };
}

/** A worker that holds the lease, and one that takes over, work on one document. */
function takenOver(name: string, about: string, setting: Setting, more: Partial<Scenario> = {}): Scenario {
  const last = setting.effects.length;
  const actors = {
    ada: worker(setting, { fence: 2, upTo: 2, hasTaken: true }),
    bob: worker(setting, { fence: 3, upTo: last }),
  };
  return followScenario({ name, about, actors, ...more }, setting);
}

export function eventConsumerScenarios(options: FollowScenarioOptions = {}): Scenario[] {
  const adding: Setting = { ...options, effects: ["add", "add", "add"] };
  const deleting: Setting = { ...options, effects: ["add", "add", "delete"] };
  const rolling: Setting = { ...adding, slotsPerEpoch: 1 };
  const profiles: readonly CrashProfile[] = ["ext4-ordered", "weak"];
  return [
    takenOver(
      "consumers: a sleeper and its successor",
      "Both workers add to a document, and the successor gets further.",
      adding,
      {
        size: "medium",
        killsMax: 1,
      },
    ),
    takenOver(
      "consumers: a sleeper and a successor that deletes",
      "The sleeper's late document must not count, although the deletion has left no trace.",
      deleting,
      { size: "medium" },
    ),
    followScenario(
      {
        name: "consumers: a sleeper whose epoch is collected",
        size: "medium",
        about:
          "The chain rolls with every checkpoint, and the successor deletes the epoch that the sleeper appends to.",
        actors: {
          ada: saver(rolling, { fence: 2, upTo: 2, hasTaken: true }),
          bob: saver(rolling, { fence: 3, upTo: 3 }),
        },
        isPermanent: (path) => path === directory || path.startsWith(`${directory}/checkpoint/epochs`),
        audit: (ports, facts) => checkpointIsRight(ports, facts, rolling),
      },
      rolling,
    ),
    ...profiles.map((profile) =>
      followScenario(
        {
          name: `consumers: a worker that adds and deletes, power cuts (${profile})`,
          about: "The power fails at any step. Checkpointed documents survive, and deleted ones stay deleted.",
          actors: { ada: worker(deleting, { fence: 2, upTo: 3 }) },
          profile,
          powerCuts: true,
        },
        deleting,
      ),
    ),
    followScenario(
      {
        name: "consumers: a log that was restored",
        about: "The log now has another line at the checkpoint: a consumer that resumes there would skip events.",
        actors: {
          ada: actor({
            prepare: ({ ports, name }) => openCheckpoints(ports, name, { ...adding, log: "b" }),
            run: async ({ note }, checkpoints) => {
              try {
                await checkpoints.take(2);
                note("resumed");
              } catch (error) {
                if (!isHoldfastError(error, "LOG_REWOUND")) throw error;
              }
            },
          }),
        },
        check: (facts) => mustHold(valuesOf(facts, "resumed").length === 0, "the consumer resumed in another log"),
        audit: async () => undefined,
      },
      adding,
    ),
  ];
}
