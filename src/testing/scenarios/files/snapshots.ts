// Scenarios of snapshots: what a snapshot lacks has its outcome, at whatever moment its keeper comes to an end.
import type { Follower } from "../../../files/search/follower.ts";
import { SnapshotKeeper } from "../../../files/search/snapshot-keeper.ts";
import { Snapshots } from "../../../files/search/snapshots.ts";
import { Leases } from "../../../part/leases.ts";
import type { Ports } from "../../../ports/ports.ts";
import { mustHold, type Scenario } from "../../explorer/scenario.ts";
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

/** Three changes with their outcomes, and a snapshot that has the first one. */
async function begin(process: IndexProcess): Promise<void> {
  for (let change = 1; change <= changes; change++) {
    await process.place.changes.append({ kind: "written", path: "a" });
    await process.outcomes.publish({ change, paths: ["a"], documents: [] });
  }
  await keep(process, 1);
}

/** Publishes a snapshot up to this change. Its engine is a text: what is in it is not what this is about. */
async function keep(
  process: IndexProcess,
  position: number,
  { KeeperClass = SnapshotKeeper }: SnapshotScenarioOptions = {},
): Promise<void> {
  const { place, documents, outcomes, decideIndex } = process;
  const { id } = await decideIndex();
  const engine = { toBytes: () => Buffer.from(`up to ${position}`), files: () => [] };
  const follower = { refresh: async () => undefined, findState: () => ({ index: id, position, engine }) };
  const keeper = new KeeperClass({
    ...{ place, documents, outcomes, decideIndex },
    leases: new Leases(place.layout.directory, async () => place.ground),
    follower: follower as unknown as Follower,
    snapshots: snapshotsOf(process),
  });
  await keeper.keep(1);
}

function snapshotsOf({ place }: IndexProcess): Snapshots {
  const { staging, ports } = place.ground;
  return new Snapshots(staging, place.layout.index, ports.host.bootId);
}

/** A process that begins now has every change: by the snapshot, or by its outcome. */
async function mustHaveAll(ports: Ports): Promise<void> {
  const next = await nextProcess(ports);
  const { id } = await next.decideIndex();
  const snapshot = await snapshotsOf(next).find(id);
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
