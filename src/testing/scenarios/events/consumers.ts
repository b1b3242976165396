// Scenarios of what follows a log: checkpoints and documents of one who slept past his lease while another has taken over, killed anywhere, and power cuts.
//
// The lease itself is a path lock and has its own scenarios; here two simply have their fences, and the explorer lets the older one sleep wherever it likes.
import { getRecord } from "../../../durable/publish/record-file.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { Checkpoint } from "../../../events/follow/checkpoint.ts";
import { Checkpoints } from "../../../events/follow/checkpoints.ts";
import type { LeasedWork } from "../../../events/follow/tenure.ts";
import { documentKind, documentName, hashOf, newestOf, shardOf } from "../../../events/projection/document.ts";
import type { Document } from "../../../events/projection/document.ts";
import { DocumentWriter, listShard } from "../../../events/projection/document-writer.ts";
import type { Disk } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import type { Profile } from "../../sim/persistence.ts";

const directory = "/documents";
const key = "doc";
/** Where the one document lies. */
export const shard: string = `${directory}/${shardOf(hashOf(key))}`;

/** What an event of a small log does to the document. */
type Effect = "add" | "delete";

export interface FollowScenarioOptions {
  /** What the scenarios run on: the real ones, or known-wrong variants. */
  readonly CheckpointsClass?: typeof Checkpoints;
  readonly WriterClass?: typeof DocumentWriter;
  readonly find?: typeof findDocument;
}

interface Place extends FollowScenarioOptions {
  readonly effects: readonly Effect[];
  /** Tells one log from another. */
  readonly log?: string;
  readonly slotsPerEpoch?: number;
}

/** As a reader does for whom nothing moves. */
export async function findDocument(disk: Disk, checkpoint: Checkpoint): Promise<Document | undefined> {
  const name = newestOf(await listShard(disk, shard), checkpoint).get(hashOf(key));
  if (name === undefined || name.isDeletion) return undefined;
  return await getRecord(disk, documentKind, `${shard}/${documentName(name)}`);
}

async function openCheckpoints(ports: Ports, name: string, place: Place): Promise<Checkpoints> {
  const { CheckpointsClass = Checkpoints, effects, log = "a", slotsPerEpoch = 64 } = place;
  const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => `/temp/${name}` };
  return await CheckpointsClass.open(staging, `${directory}/checkpoint`, {
    ground: "ground",
    bootId: ports.host.bootId,
    slotsPerEpoch,
    remembersCutOff: true,
    findChecksum: async (position) => (position > effects.length ? undefined : `${log}${position}`),
  });
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

/** Folds all events up to a position in one batch; false when somebody else has taken over. */
async function foldUpTo(
  writer: DocumentWriter,
  tenure: LeasedWork,
  { effects }: Place,
  upTo: number,
): Promise<boolean> {
  if (tenure.saved.position >= upTo) return true;
  return await tenure.orLost(async () => {
    const before = await writer.find(key);
    let state = before?.state;
    for (let position = tenure.saved.position + 1; position <= upTo; position++)
      state = applied(state, effects[position - 1], position);
    const document = { key, position: upTo, ...(state === undefined ? {} : { state }), tags: [], seen: [] };
    return await writer.commit(before === undefined && state === undefined ? [] : [document], upTo);
  });
}

interface WorkerOptions {
  readonly fence: number;
  readonly upTo: number;
  /** It has the lease when the scenario begins. */
  readonly hasTaken?: boolean;
}

function worker(place: Place, { fence, upTo, hasTaken = false }: WorkerOptions): Actor {
  const { WriterClass = DocumentWriter } = place;
  return actor({
    prepare: async ({ ports, name }) => {
      const checkpoints = await openCheckpoints(ports, name, place);
      return { checkpoints, tenure: hasTaken ? await checkpoints.take(fence) : undefined };
    },
    run: async ({ ports, note }, { checkpoints, tenure: taken }) => {
      const tenure = taken ?? (await checkpoints.take(fence));
      if (tenure === undefined) return note("told");
      const writer = new WriterClass(ports.disk, directory, tenure);
      const isDone = await foldUpTo(writer, tenure, place, upTo);
      note(isDone ? "committed" : "told", upTo);
      await writer.end();
    },
  });
}

/** Has handled the events up to a position, and says so; the successor also deletes what is long replaced. */
function saver(place: Place, { fence, upTo, hasTaken = false }: WorkerOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const checkpoints = await openCheckpoints(ports, name, place);
      return { checkpoints, tenure: hasTaken ? await checkpoints.take(fence) : undefined };
    },
    run: async ({ note }, { checkpoints, tenure: taken }) => {
      const tenure = taken ?? (await checkpoints.take(fence));
      const isDone = tenure !== undefined && (await tenure.save(upTo));
      note(isDone ? "committed" : "told", upTo);
      if (!hasTaken) await checkpoints.collect();
    },
  });
}

/** What was acknowledged counts, and whoever has taken over is not set back. */
async function checkpointIsRight(ports: Ports, facts: readonly Fact[], place: Place): Promise<void> {
  const { state } = await (await openCheckpoints(ports, "auditor", place)).read();
  for (const position of valuesOf<number>(facts, "committed"))
    mustHold(state.position >= position, `event ${position} was done, and the checkpoint is ${state.position}`);
}

/**
 * What was acknowledged counts, the document is what the events up to the checkpoint make of it, and whoever comes next can finish the work. Nothing is skipped: the document
 * tells which events it has seen.
 */
async function documentIsRight(ports: Ports, facts: readonly Fact[], place: Place): Promise<void> {
  const { effects, find = findDocument, WriterClass = DocumentWriter } = place;
  const checkpoints = await openCheckpoints(ports, "auditor", place);
  const { state: before } = await checkpoints.read();
  for (const position of valuesOf<number>(facts, "committed"))
    mustHold(before.position >= position, `event ${position} was done, and the checkpoint is ${before.position}`);
  const mustBe = async (checkpoint: Checkpoint): Promise<void> => {
    const found = (await find(ports.disk, checkpoint))?.state;
    const expected = expectedAt(effects, checkpoint.position);
    mustHold(found === expected, `at ${checkpoint.position} the document is "${String(found)}", not "${expected}"`);
  };
  await mustBe(before);
  const tenure = await checkpoints.take(1000);
  mustHold(
    tenure !== undefined &&
      (await foldUpTo(new WriterClass(ports.disk, directory, tenure), tenure, place, effects.length)),
    "nobody can finish the work",
  );
  await mustBe((await checkpoints.read()).state);
}

function followScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  place: Place,
): Scenario {
  return {
    setup: async (ports) => {
      for (const path of ["/temp", directory, "/temp/auditor", "/temp/setup"]) await ports.disk.mkdir(path);
      for (const name of Object.keys(scenario.actors)) await ports.disk.mkdir(`/temp/${name}`);
      // The first event is done.
      const checkpoints = await openCheckpoints(ports, "setup", { ...place, log: "a" });
      await checkpoints.begin(0);
      const tenure = await checkpoints.take(1);
      if (tenure === undefined) return;
      const writer = new (place.WriterClass ?? DocumentWriter)(ports.disk, directory, tenure);
      await foldUpTo(writer, tenure, place, 1);
      await writer.end();
    },
    // Nobody collects, and a shard stays.
    isPermanent: (path) => path === directory || path === shard || path.startsWith(`${directory}/checkpoint`),
    isUnseen: (operation, path) =>
      path.startsWith("/temp/") || (!scenario.powerCuts && ["sync", "sync directory"].includes(operation)),
    audit: (ports, facts) => documentIsRight(ports, facts, place),
    ...scenario,
  };
}

/** The work on one document by one who has the lease, while another takes over. */
function takenOver(name: string, about: string, place: Place, more: Partial<Scenario> = {}): Scenario {
  const last = place.effects.length;
  const actors = {
    ada: worker(place, { fence: 2, upTo: 2, hasTaken: true }),
    bob: worker(place, { fence: 3, upTo: last }),
  };
  return followScenario({ name, about, actors, ...more }, place);
}

export function eventConsumerScenarios(options: FollowScenarioOptions = {}): Scenario[] {
  const adding: Place = { ...options, effects: ["add", "add", "add"] };
  const deleting: Place = { ...options, effects: ["add", "add", "delete"] };
  const rolling: Place = { ...adding, slotsPerEpoch: 1 };
  const profiles: readonly Profile[] = ["ext4-ordered", "weak"];
  return [
    takenOver("followers: a sleeper and its successor", "Both add to a document; the later one goes further.", adding, {
      size: "medium",
      killsMax: 1,
    }),
    takenOver(
      "followers: a sleeper and a successor that deletes",
      "What the sleeper writes late must not come back after the document was deleted and all traces of that are gone.",
      deleting,
    ),
    followScenario(
      {
        name: "followers: a sleeper whose epoch is collected",
        size: "medium",
        about: "The chain rolls with every checkpoint, and the successor deletes what the sleeper has in mind.",
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
          name: `followers: one that adds and deletes, power cuts (${profile})`,
          about: "The power fails at every moment; what is checkpointed is there, and what was deleted stays away.",
          actors: { ada: worker(deleting, { fence: 2, upTo: 3 }) },
          profile,
          powerCuts: true,
        },
        deleting,
      ),
    ),
    followScenario(
      {
        name: "followers: a log that was restored",
        about: "The line at the checkpoint is another one: whoever resumes there would skip what he has never seen.",
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
        check: (facts) => mustHold(valuesOf(facts, "resumed").length === 0, "another log was taken for this one"),
        audit: async () => undefined,
      },
      adding,
    ),
  ];
}
