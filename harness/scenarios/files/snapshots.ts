// Scenarios of snapshots: every change that a snapshot lacks has its outcome, at whatever moment its keeper dies.
import type { Follower } from "../../../src/files/search/follower.ts";
import { SnapshotKeeper } from "../../../src/files/search/snapshot-keeper.ts";
import { directoryLeases } from "../../../src/part/leases.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { indexer, indexScenario, nextProcess } from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions } from "./index-world.ts";

const changes = 3;

export interface SnapshotScenarioOptions extends IndexScenarioOptions {
  readonly KeeperClass?: typeof SnapshotKeeper | undefined;
}

export function snapshotScenarios(options: SnapshotScenarioOptions = {}): Scenario[] {
  return [
    indexScenario({
      begin,
      name: "files snapshots: a keeper and power cuts",
      about: "The power may be cut while a snapshot is published and outcomes are removed.",
      powerCuts: true,
      isPermanent: () => false,
      actors: { ada: indexer(options, (_context, process) => keep(process, changes, options)) },
      audit: mustHaveAll,
    }),
  ];
}

/** Makes three changes with their outcomes, and a snapshot that has the first one. */
async function begin(process: IndexProcess): Promise<void> {
  for (let change = 1; change <= changes; change++) {
    await process.tree.changes.append({ kind: "written", path: "a" });
    await process.outcomes.publish({ change, paths: ["a"], documents: [] });
  }
  await keep(process, 1);
}

/** Publishes a snapshot up to this change. Its engine is only a text: the content does not matter here. */
async function keep(
  process: IndexProcess,
  position: number,
  { KeeperClass = SnapshotKeeper }: SnapshotScenarioOptions = {},
): Promise<void> {
  const { tree, derived } = process;
  const { id } = await derived.decideIndex();
  const engine = { toBytes: () => Buffer.from(`up to ${position}`), files: () => [] };
  const follower = { refresh: async () => undefined, findState: () => ({ index: id, position, engine }) };
  const leases = directoryLeases(tree.layout.directory, async () => tree.ground);
  const keeper = new KeeperClass(derived, follower as unknown as Follower, leases);
  await keeper.keep(1);
}

/** A new process gets every change, from the snapshot or from its outcome. */
async function mustHaveAll(ports: Ports): Promise<void> {
  const next = await nextProcess(ports);
  const { id } = await next.derived.decideIndex();
  const snapshot = await next.derived.snapshots.find(id);
  const position = snapshot?.position ?? 0;
  if (snapshot !== undefined) {
    const text = Buffer.from(snapshot.bytes).toString();
    mustHold(text === `up to ${position}`, `the snapshot up to ${position} has "${text}"`);
  }
  for (let change = position + 1; change <= changes; change++)
    mustHold(
      (await next.outcomes.find(change)) !== undefined,
      `change ${change} is in no snapshot, and has no outcome`,
    );
}
