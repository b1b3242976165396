// The processes of index scenarios: how they stop half-way before the scenario begins, how they work on tickets, and
// what the next process must find when all of them are done or dead.
import { GroundLayout } from "../../../durable/liveness/holder-record.ts";
import { FilesLayout } from "../../../files/tree/layout.ts";
import { TreeWork, type Commit } from "../../../files/operations/tree-work.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import { minuteName } from "../../../handoff/box/layout.ts";
import { claimNext } from "../../../handoff/consume/claim.ts";
import type { Delivery } from "../../../handoff/consume/delivery.ts";
import { StagedOutputs } from "../../../handoff/consume/outputs.ts";
import { archive, commitResult } from "../../../handoff/consume/settle.ts";
import { BoxHandoff } from "../../../handoff/handoff.ts";
import type { TicketState } from "../../../handoff/model/handoff.ts";
import { findCommitted } from "../../../handoff/ledger/ledger.ts";
import { recover } from "../../../handoff/recover/reap.ts";
import type { RedoDraft } from "../../../locks/redo/draft.ts";
import type { Ports } from "../../../ports/ports.ts";
import { Machine } from "../../sim/machine.ts";
import { actor, mustHold, type Actor, type ActorContext, type Scenario } from "../../explorer/scenario.ts";
import { fill, ground, isKnown, isUnseen, longLeaseMs, root, staged, textsBelow } from "./file-actors.ts";
import { openIndexed, type IndexProcess, type OpenIndexOptions } from "./index-world.ts";

/** Where a process stops before the scenario begins, and goes on with it. */
export class Gate {
  readonly reached: Promise<void>;
  readonly #opened: Promise<void>;
  #reach = (): void => undefined;
  #open = (): void => undefined;

  constructor() {
    this.reached = new Promise((resolve) => (this.#reach = resolve));
    this.#opened = new Promise((resolve) => (this.#open = resolve));
  }

  async pass(): Promise<void> {
    this.#reach();
    await this.#opened;
  }

  open(): void {
    this.#open();
  }
}

/** Stops when its change is announced, or when it is committed. */
function stoppingAt(gate: Gate, moment: "announced" | "committed", Base: typeof TreeWork): typeof TreeWork {
  return class extends Base {
    override async commit(draft: RedoDraft, commit: Commit): Promise<Change> {
      if (moment === "announced") {
        const apply = draft.commit.bind(draft);
        draft.commit = async () => {
          await gate.pass();
          await apply();
        };
      }
      const change = await super.commit(draft, commit);
      if (moment === "committed") await gate.pass();
      return change;
    }
  };
}

/** A process that has begun an operation before the scenario begins, and come to this moment of it. */
export function operator(
  options: OpenIndexOptions,
  moment: "announced" | "committed",
  operate: (process: IndexProcess) => Promise<unknown>,
  andThen: (context: ActorContext, process: IndexProcess) => Promise<unknown> = async () => undefined,
): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const gate = new Gate();
      const WorkClass = stoppingAt(gate, moment, options.WorkClass ?? TreeWork);
      const process = await openToWork(ports, { ...options, WorkClass });
      const operating = operate(process);
      await Promise.race([gate.reached, operating]);
      return { gate, process, operating };
    },
    run: async (context, { gate, process, operating }) => {
      gate.open();
      await operating;
      context.note("operated");
      await andThen(context, process);
    },
  });
}

/** An actor that has opened the tree, and can publish and claim, before the scenario begins. */
export function indexer(
  options: OpenIndexOptions,
  run: (context: ActorContext, process: IndexProcess) => Promise<unknown>,
  before: (process: IndexProcess) => Promise<unknown> = async () => undefined,
): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const process = await openToWork(ports, options);
      await before(process);
      return process;
    },
    run: async (context, process) => void (await run(context, process)),
  });
}

/** So long that each offer of a lock is over. It sleeps while another process can go on. */
export const time: Actor = actor({ run: ({ ports }) => ports.clock.sleep(longLeaseMs + 1) });

export async function openToWork(ports: Ports, options: OpenIndexOptions): Promise<IndexProcess> {
  const process = await openIndexed(ports, options);
  const session = await process.box.ground.session();
  await process.box.processing(session);
  await process.box.staging(session);
  // Opens the box, and finds nothing.
  await process.queue.findByChange(1_000_000);
  return process;
}

/** Claims a ticket, works on it, and commits. What it came to; undefined when there is none. */
export async function workOnce({ box, worker }: IndexProcess): Promise<unknown> {
  const claim = await claimNext(box);
  if (claim === undefined) return undefined;
  if ("damage" in claim) throw claim.damage;
  const { manifest } = claim.ticket;
  const before = await findCommitted(box, box.layout.ledger(manifest.key, 0));
  if (before !== undefined) {
    await archive(box, claim, before);
    return before.committed.result;
  }
  const { signal } = new AbortController();
  const result = await worker.handle({ ...manifest, signal } as Delivery);
  const entry = await commitResult(box, claim, String(result), new StagedOutputs(box, claim));
  await archive(box, claim, entry);
  box.inHand.delete(claim.path);
  return result;
}

/** The next process, when all others are dead: it gives back what they had, makes missing tickets, and works. */
export async function nextProcess(ports: Ports, options: OpenIndexOptions = {}): Promise<IndexProcess> {
  const layout = new GroundLayout(ground);
  const holders = (await ports.disk.list(layout.holders)).filter((name) => name.endsWith(".json"));
  const dead = holders.map((name) => name.slice(0, -".json".length));
  for (const id of dead) await ports.disk.rename(layout.record(id), layout.deathRecord(id));
  const process = await openToWork(ports, options);
  const { box } = process;
  for (const id of dead) mustHold(await box.ground.settle(id), `what ${id} has left cannot be removed`);
  for (const parent of [box.layout.stagings, box.layout.processings])
    for (const id of await box.names(parent)) if (dead.includes(id)) await recover(box, id);
  return process;
}

/** Makes the tickets of changes that are missing, and works off all there are. */
export async function dispatchAndWork(process: IndexProcess): Promise<void> {
  await process.follower.refresh();
  const work = await process.takeDispatch();
  mustHold(await process.dispatcher.pass(work), "the dispatcher has lost its lease");
  await workOff(process);
}

export async function workOff(process: IndexProcess): Promise<void> {
  // Work may lead to more of it.
  for (let round = 0; round < 20; round++) {
    if ((await workOnce(process)) !== undefined) continue;
    await process.tickets.drain();
    if ((await process.queue.unfinished()).length === 0) return;
  }
  mustHold(false, `${JSON.stringify(await process.queue.unfinished())} cannot be worked off`);
}

/** What the index of a process has is what the tree has: no file is missing, and none is there that is gone. */
export async function mustAgree({ place, follower, index }: IndexProcess): Promise<void> {
  await follower.refresh();
  const pending = follower.pendingUpTo(await place.changes.last());
  mustHold(pending.length === 0, `change ${pending.join()} has no outcome`);
  const [found, there] = [JSON.stringify(index.texts), JSON.stringify(await textsBelow(place.disk, root))];
  mustHold(found === there, `the index has ${found}, and the tree ${there}`);
}

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];

/** Every change has one ticket, whichever process has made it. */
export async function mustHaveOneTicketEach({ box, place }: IndexProcess, from = 1): Promise<void> {
  const handoff = new BoxHandoff({ box, ownsGround: false });
  const counts = new Map<string, number>();
  for (const state of states)
    for await (const { meta } of handoff.list(state)) {
      const { change } = meta as { change?: number };
      counts.set(String(change), (counts.get(String(change)) ?? 0) + 1);
    }
  for (let number = from; number <= (await place.changes.last()); number++)
    mustHold(counts.get(String(number)) === 1, `change ${number} has ${counts.get(String(number)) ?? 0} tickets`);
}

const stays =
  /^\/(tree|ground(\/(holders|temp|holds|redo|ground\.json|files(\/(changes.*|sessions.*|sidecars.*|dispatched.*|queue(\/(box\.json|incoming(\/\d(\/.{1,20})?)?|delayed|parked|processing|staging|trash|keys(\/.*)?|ledger(\/...)?|notes(\/.*)?|(archive|error)(\/\d+)?|data(\/..)?))?))?))?)$/;
/** Unless the scenario deletes them. Documents are removed when a later one has replaced them. */
const staysInIndex = /^\/ground\/files\/documents(\/(index\.json|..|outcomes.*))?$/;
const ownInQueue = /^\/ground\/files\/queue\/(trash|data|(staging|processing)\/[0-9a-z]{36})/;
const otherPriorities = /^\/ground\/files\/queue\/incoming\/[0-46-9]/;

export interface IndexScenario extends Scenario {
  /** In the tree, and not known to the index unless `begin` tells it. */
  readonly files?: Readonly<Record<string, string>>;
  readonly incoming?: Readonly<Record<string, string>>;
  /** What a process has done before the scenario begins. Its tickets stay. */
  readonly begin?: (process: IndexProcess) => Promise<unknown>;
  /** A person deletes the index. */
  readonly isDeleted?: boolean;
}

export function indexScenario({
  files = {},
  incoming = {},
  begin = async () => undefined,
  isDeleted = false,
  ...scenario
}: IndexScenario): Scenario {
  const isPermanent = (path: string): boolean =>
    stays.test(path) ||
    (!isDeleted && staysInIndex.test(path)) ||
    path.startsWith(`${ground}/names`) ||
    path.startsWith(`${ground}/holders/`) ||
    `${path}/`.startsWith(`${ground}/table/`);
  return {
    setup: async (given) => {
      // On the machine of the actors: after a boot the lock table would begin anew.
      const ports = { ...given, host: { ...given.host, bootId: new Machine("m1").bootId } };
      await makeWorld(ports, files, incoming);
      const process = await openToWork(ports, {});
      await process.decideIndex();
      await begin(process);
      await process.close();
    },
    isPermanent,
    isUnseen: (operation, path) => {
      // In a directory that is not there yet is nothing, as in one that is empty.
      if (isKnown(operation, path, isPermanent) || ownInQueue.test(path) || otherPriorities.test(path)) return true;
      // A file of the tree is never changed under its readers: another one takes its place.
      if (path.startsWith(`${root}/`) && ["close", "stat", "sync directory"].includes(operation)) return true;
      // There are no snapshots.
      if (path.startsWith(`${ground}/files/index/`)) return true;
      // No chain comes to the end of its first epoch.
      if (/^\/ground\/files\/.*\/epochs(\/|$)/.test(path)) return true;
      return isUnseen(operation, path, scenario);
    },
    ...scenario,
  };
}

async function makeWorld(
  ports: Ports,
  files: Readonly<Record<string, string>>,
  incoming: Readonly<Record<string, string>>,
): Promise<void> {
  const { disk } = ports;
  await disk.mkdir(ground);
  await disk.mkdir(root);
  if (Object.keys(incoming).length > 0) {
    await disk.mkdir(staged);
    await fill(disk, staged, incoming);
  }
  const layout = new FilesLayout(ground);
  const queue = layout.queue;
  const minute = `${queue}/incoming/5/${minuteName(ports.clock.wallMs())}`;
  const made = [layout.directory, layout.changes, layout.changeBlock(1), layout.documents, layout.sessions, queue];
  const rooms = ["incoming", "incoming/5", "processing", "staging", "trash", "delayed", "parked", "keys", "ledger"];
  for (const path of [...made, ...rooms.map((room) => `${queue}/${room}`), minute]) await disk.mkdir(path);
  // An index that begins with an empty tree begins with nothing to do: what is there is told by changes.
  const process = await openIndexed(ports);
  await process.decideIndex();
  await process.close();
  await fill(disk, root, files);
}
