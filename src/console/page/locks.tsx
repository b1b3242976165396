// The locks: a tree of held paths, who waits for whom and for how long, and release by force.
import type { JSX } from "preact";
import { useData } from "./api.ts";
import { ask } from "./dialog.tsx";
import { ago, duration } from "./format.ts";
import type { Holder, Lock } from "./model.ts";
import type { ViewProps } from "./page.tsx";
import { Badge, HolderName, LifeBadge, Panel, plural, Table, Text, Time, Trouble, Waiting } from "./parts.tsx";
import { plainOf } from "./visible-text.ts";

interface Semaphore {
  readonly path: string;
  readonly holder: Holder;
  readonly since: string;
  readonly tag?: string;
  readonly why: string;
}

/** A directory of the tree; its locks are on exactly this path. */
interface Branch {
  readonly name: string;
  readonly path: string;
  readonly locks: Lock[];
  readonly below: Map<string, Branch>;
}

export function LocksView({ live, allowActions }: ViewProps): JSX.Element {
  const { data, error, reload } = useData<{ locks: readonly Lock[]; semaphores: readonly Semaphore[] }>("locks", {}, [
    live.sample?.locks,
  ]);
  if (data === undefined) return error === undefined ? <Waiting /> : <Trouble error={error} />;
  const { locks, semaphores } = data;
  const waiting = locks.reduce((sum, lock) => sum + lock.waiting.length, 0);
  return (
    <>
      <Trouble error={error} />
      <Panel
        title="Path locks"
        aside={
          <span class="quiet">
            {plural(locks.length, "lock")} held, {waiting} waiting
          </span>
        }
      >
        {locks.length === 0 ? <p class="empty">Nothing is locked.</p> : null}
        <ul class="tree">
          {[...treeOf(locks).below.values()].map((branch) => (
            <BranchItem branch={branch} allowActions={allowActions} onDone={reload} />
          ))}
        </ul>
      </Panel>
      {semaphores.length === 0 ? null : (
        <Panel title="Semaphore files">
          <Table
            caption="Semaphore files"
            rows={semaphores}
            keyOf={({ path }) => path}
            empty=""
            columns={[
              { title: "File", kind: "wide", cell: ({ path }) => <Text value={path} /> },
              { title: "Holder", cell: ({ holder }) => <HolderName holder={holder} /> },
              { title: "Since", cell: ({ since }) => <Time at={since} /> },
              { title: "State", cell: ({ why }) => <Text value={why} /> },
            ]}
          />
        </Panel>
      )}
    </>
  );
}

function treeOf(locks: readonly Lock[]): Branch {
  const root: Branch = { name: "", path: "", locks: [], below: new Map() };
  for (const lock of locks) {
    let branch = root;
    for (const name of lock.path === "" ? ["the whole tree"] : lock.path.split("/")) {
      const path = branch.path === "" ? name : `${branch.path}/${name}`;
      const next = branch.below.get(name) ?? { name, path, locks: [], below: new Map() };
      branch.below.set(name, next);
      branch = next;
    }
    branch.locks.push(lock);
  }
  return root;
}

function BranchItem({ branch, ...props }: { branch: Branch; allowActions: boolean; onDone: () => void }): JSX.Element {
  const { name, locks, below } = branch;
  return (
    <li>
      <span class="path">
        <Text value={below.size > 0 ? `${name}/` : name} />
      </span>
      {locks.map((lock) => (
        <LockCard key={lock.holdId} lock={lock} {...props} />
      ))}
      {below.size === 0 ? null : (
        <ul class="tree">
          {[...below.values()].map((each) => (
            <BranchItem branch={each} {...props} />
          ))}
        </ul>
      )}
    </li>
  );
}

function LockCard({
  lock,
  allowActions,
  onDone,
}: {
  lock: Lock;
  allowActions: boolean;
  onDone: () => void;
}): JSX.Element {
  const { holder, mode, shared, since, tag, fence, waiting, path } = lock;
  const name = path === "" ? "the whole tree" : path;
  return (
    <div class="card">
      <p>
        <Badge tone="busy">{shared ? "shared" : "exclusive"}</Badge> held by <HolderName holder={holder} />{" "}
        <LifeBadge state={holder.state} />
        {tag === undefined ? null : (
          <>
            {" "}
            “<Text value={tag} />”
          </>
        )}
      </p>
      <p class="quiet">
        {mode === "tree" ? "this path and everything below" : "this path"} · requested {ago(since)}, at{" "}
        <Time at={since} /> · fence {fence} · {leaseOf(holder)}
      </p>
      {allowActions ? (
        <button
          type="button"
          class="danger"
          onClick={() =>
            ask({
              title: "Release a lock by force",
              subject: name,
              verb: "Release by force",
              isDangerous: true,
              consequence: `The process ${nameOf(holder)} loses its locks on this path. It is not stopped: it notices the loss, and everything that it commits through Holdfast from now on is refused. What it writes without Holdfast is not held back. ${waiting.length > 0 ? "The next process that waits gets the lock." : ""}`,
              requests: [{ action: "actions/release", body: { path } }],
              onDone,
            })
          }
        >
          Release …
        </button>
      ) : null}
      {waiting.map((each) => (
        <p class="waiter">
          <Badge tone="warn">waits</Badge> <HolderName holder={each.holder} /> waits{" "}
          {duration(Date.now() - Date.parse(each.since))}
          {each.path === path ? null : (
            <>
              {" "}
              to lock <Text value={each.path === "" ? "the whole tree" : each.path} />
            </>
          )}{" "}
          <span class="quiet">({each.shared ? "shared" : "exclusive"})</span>
        </p>
      ))}
    </div>
  );
}

function nameOf({ name, pid, host }: Holder): string {
  return name === undefined || name === "" ? `${pid} on ${host}` : `${plainOf(name)} (pid ${pid} on ${host})`;
}

function leaseOf({ leaseMs, lastSeenAt }: Holder): string {
  if (leaseMs === undefined) return "no lease: held until its process ends";
  const left = leaseMs - (Date.now() - Date.parse(lastSeenAt));
  return `lease ${duration(leaseMs)}, ${left > 0 ? `${duration(left)} left without another heartbeat` : "overdue"}`;
}
