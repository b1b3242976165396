// The processes of index scenarios: how they stop half-way before the scenario begins, how they work on tickets, and
// the rules that the next process checks when all of them are done or dead.
import { GroundLayout } from "../../../src/durable/liveness/holder-record.ts";
import { FilesLayout } from "../../../src/files/tree/layout.ts";
import type { Tenure } from "../../../src/files/queue/log-worker.ts";
import type { Tree } from "../../../src/files/tree/tree.ts";
import { minuteName } from "../../../src/handoff/box/layout.ts";
import { claimNext } from "../../../src/handoff/consume/claim.ts";
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import { StagedOutputs } from "../../../src/handoff/consume/outputs.ts";
import { archive, commitResult } from "../../../src/handoff/consume/settle.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { TicketState } from "../../../src/handoff/model/handoff.ts";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { Machine } from "../../../src/testing/sim/machine.ts";
import {
  actor,
  mustHold,
  type Actor,
  type ActorContext,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { fill, ground, isKnown, isUnseen, longLeaseMs, root, staged, textsBelow } from "./file-actors.ts";
import { withCommits, wrapping } from "./wrapped-tree.ts";
import { openIndexed, type IndexProcess, type OpenIndexOptions } from "./index-world.ts";

/** A point at which a process stops before the scenario begins, and from which it continues in it. */
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

/** Stops when a change is announced, or when it is committed. */
function stoppingAt(gate: Gate, moment: "announced" | "committed", tree: Tree): Tree {
  if (moment === "announced")
    return withCommits(tree, async (draft) => {
      await gate.pass();
      await draft.commit();
    });
  const { changes } = tree;
  const discard: typeof changes.discard = async (change) => {
    await changes.discard(change);
    await gate.pass();
  };
  return wrapping(tree, { changes: wrapping(changes, { discard }) });
}

/** Has begun an operation and reached this moment of it before the scenario begins. */
export function operator(
  options: OpenIndexOptions,
  moment: "announced" | "committed",
  operate: (process: IndexProcess) => Promise<unknown>,
  andThen: (context: ActorContext, process: IndexProcess) => Promise<unknown> = async () => undefined,
): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const gate = new Gate();
      const treeOf = (tree: Tree): Tree => stoppingAt(gate, moment, tree);
      const process = await openToWork(ports, { ...options, treeOf });
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

/** Has opened the tree, and can publish and claim, before the scenario begins. */
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

/** Sleeps so long that each offer of a lock has expired. It sleeps while another process can go on. */
export const time: Actor = actor({ run: ({ ports }) => ports.clock.sleep(longLeaseMs + 1) });

export async function openToWork(ports: Ports, options: OpenIndexOptions): Promise<IndexProcess> {
  const process = await openIndexed(ports, options);
  const session = await process.box.ground.session();
  await process.box.processing(session);
  await process.box.staging(session);
  // Opens the box; the query finds nothing.
  await process.queue.findByChange(1_000_000, undefined);
  return process;
}

/** Claims a ticket, works on it, and commits. Returns the result, or undefined if there was no ticket. */
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
  box.inProgress.delete(claim.path);
  return result;
}

/** Opens the next process after all others have died: it gives back their tickets, makes missing ones, and works. */
export async function nextProcess(ports: Ports, options: OpenIndexOptions = {}): Promise<IndexProcess> {
  const layout = new GroundLayout(ground);
  const holders = (await ports.disk.list(layout.holders)).filter((name) => name.endsWith(".json"));
  const dead = holders.map((name) => name.slice(0, -".json".length));
  for (const id of dead) await ports.disk.rename(layout.record(id), layout.deathRecord(id));
  const process = await openToWork(ports, options);
  const { box } = process;
  for (const id of dead) mustHold(await box.ground.settle(id), `what ${id} has left cannot be removed`);
  for (const parent of [box.layout.stagings, box.layout.processings])
    for (const id of await box.names(parent)) if (dead.includes(id)) await recoverHolder(box, id);
  return process;
}

/** Works on all changes of the log, and on all tickets that are left or made. */
export async function followAndWork(process: IndexProcess): Promise<void> {
  await process.follower.refresh();
  const last = await process.tree.changes.last();
  await followLog(process, await process.takeLog());
  await workOff(process);
  // The work may produce more changes.
  if ((await process.tree.changes.last()) > last) await followAndWork(process);
}

/** Works on all current changes of the log, and moves the checkpoint. */
export async function followLog({ log }: IndexProcess, tenure: Tenure): Promise<void> {
  // Works on one change after the other. Changes whose paths are locked get a ticket at the second attempt.
  do {
    await log.begin(tenure, 1);
    await Promise.all(tenure.inProgress.values());
    if (tenure.failure !== undefined) throw tenure.failure.error;
  } while (tenure.open.size > 0);
  mustHold(await log.save(tenure), "the log worker has lost its lease");
}

export async function workOff(process: IndexProcess): Promise<void> {
  // The work may produce more tickets.
  for (let round = 0; round < 20; round++) {
    if ((await workOnce(process)) !== undefined) continue;
    if ((await process.queue.unfinished()).length === 0) return;
  }
  mustHold(false, `${JSON.stringify(await process.queue.unfinished())} cannot be worked off`);
}

/** The index matches the tree: no file is missing, and no removed file is left. */
export async function mustAgree({ tree, follower, index }: IndexProcess): Promise<void> {
  await follower.refresh();
  const pending = follower.pendingUpTo(await tree.changes.last());
  mustHold(pending.length === 0, `change ${pending.join()} has no outcome`);
  const [found, there] = [JSON.stringify(index.texts), JSON.stringify(await textsBelow(tree.disk, root))];
  mustHold(found === there, `the index has ${found}, and the tree ${there}`);
}

const states: readonly TicketState[] = ["incoming", "delayed", "processing", "archive", "error"];

/** No change has two tickets, whichever processes made them. */
export async function mustHaveOneTicketAtMost({ box }: IndexProcess): Promise<void> {
  const handoff = new BoxHandoff({ box, ownsGround: false });
  const counts = new Map<string, number>();
  for (const state of states)
    for await (const { meta } of handoff.list(state)) {
      const { change } = meta as { change?: number };
      counts.set(String(change), (counts.get(String(change)) ?? 0) + 1);
    }
  for (const [change, count] of counts) mustHold(count === 1, `change ${change} has ${count} tickets`);
}

const stays =
  /^\/(tree|ground(\/(holders|temp|holds|redo|ground\.json|files(\/(changes.*|sessions.*|sidecars.*|indexed.*|queue(\/(box\.json|incoming(\/\d(\/.{1,20})?)?|delayed|parked|processing|staging|trash|keys(\/.*)?|ledger(\/...)?|notes(\/.*)?|(archive|error)(\/\d+)?|data(\/..)?))?))?))?)$/;
/** Permanent unless the scenario deletes the index. A document is removed when a later one has replaced it. */
const staysInIndex = /^\/ground\/files\/documents(\/(index\.json|..|outcomes.*))?$/;
const ownInQueue = /^\/ground\/files\/queue\/(trash|data|(staging|processing)\/[0-9a-z]{36})/;
const otherPriorities = /^\/ground\/files\/queue\/incoming\/[0-46-9]/;

export interface IndexScenario extends Scenario {
  /** Files in the tree that the index does not know unless `begin` announces them. */
  readonly files?: Readonly<Record<string, string>>;
  readonly incoming?: Readonly<Record<string, string>>;
  /** The work that a process has done before the scenario begins. Its tickets stay. */
  readonly begin?: (process: IndexProcess) => Promise<unknown>;
  /** True if a person deletes the index. */
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
      // Uses the actors' boot id: after another boot the lock table would begin anew.
      const ports = { ...given, host: { ...given.host, bootId: new Machine("m1").bootId } };
      await makeWorld(ports, files, incoming);
      const process = await openToWork(ports, {});
      await process.derived.decideIndex();
      await begin(process);
      await process.close();
    },
    isPermanent,
    isUnseen: (operation, path) => {
      // A directory that does not exist yet has no entries, like an empty one.
      if (isKnown(operation, path, isPermanent) || ownInQueue.test(path) || otherPriorities.test(path)) return true;
      // A file of the tree never changes while it is read: another file replaces it.
      if (path.startsWith(`${root}/`) && ["close", "stat", "sync directory"].includes(operation)) return true;
      if (!isDeleted && path.startsWith(`${ground}/files/index/`)) return true;
      // No chain reaches the end of its first epoch.
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
  // An index that begins with an empty tree has nothing to do: changes announce every file.
  const process = await openIndexed(ports);
  await process.derived.decideIndex();
  await process.close();
  await fill(disk, root, files);
}
