// Scenarios of the semaphore: contenders for a free name, takers of a stale lock, and the holder of
// an old lock.
import { SemaphoreProtocol } from "../../../src/locks/semaphore/protocol.ts";
import { observe } from "../../../src/locks/semaphore/observe.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  agedHolder,
  agedMs,
  directory,
  foreignTaker,
  foreignWorker,
  helperOf,
  keeper,
  lateForeignTaker,
  passerBy,
  path,
  unluckyWorker,
  worker,
} from "./semaphore-actors.ts";
import { share } from "../volumes.ts";

const scriptPid = 50;

/** Returns the actors that have entered and have neither left nor died. */
function inside(facts: readonly Fact[]): string[] {
  const names = new Set<string>();
  for (const { actor: name, what } of facts) {
    if (what === "enter") names.add(name);
    else if (what !== "stopped") names.delete(name);
  }
  return [...names];
}

/**
 * The rule beside a program that removes without a guard: no Holdfast process may be inside with another process,
 * unless that program has removed a lock that was not stale. The program reports that only after it has checked; until
 * then nothing is checked here.
 */
function mustNotMeet(facts: readonly Fact[]): void {
  const said = facts.filter(({ actor: name }) => name === "shell").map(({ what }) => what);
  if (said.includes("robbed") || said.at(-1) === "removes") return;
  for (let length = 1; length <= facts.length; length++) {
    const names = inside(facts.slice(0, length));
    mustHold(
      names.length <= 1 || names.every((name) => name === "shell"),
      `${names.join(" and ")} are inside together`,
    );
  }
}

async function plantStaleFile({ disk, clock }: Ports): Promise<void> {
  const timestamp = Math.floor((clock.wallMs() - agedMs) / 1000);
  await disk.createFile(path, Buffer.from(`pid=4711\ntimestamp=${timestamp}\ntag=left behind\n`), { sync: false });
}

async function plantStaleDirectory({ disk, clock }: Ports): Promise<void> {
  const timestamp = Math.floor((clock.wallMs() - agedMs) / 1000);
  await disk.mkdir(path);
  await disk.createFile(`${path}/owner`, Buffer.from(`pid=4711\ntimestamp=${timestamp}\n`), { sync: false });
}

/** Closing the guard changes nothing: it was unlocked before, and the file stays. */
function isClosing(operation: string, file: string): boolean {
  return operation === "close" && file === `${path}.guard`;
}

/**
 * Operations on names with random bits do not interfere either: only their maker knows them. This holds only where
 * each lock is created in one step. Otherwise its maker may write to a lock that was moved to such a name, and the
 * moment of an observation matters.
 */
function isUnseen(operation: string, file: string): boolean {
  return /\.([0-9a-z]{26}\.tmp|removed)$/.test(file) || isClosing(operation, file);
}

type Plan = Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>;

function scenario({ setup, ...plan }: Plan): Scenario {
  return {
    setup: async (ports) => {
      await ports.disk.mkdir(directory);
      await setup?.(ports);
    },
    isPermanent: (file) => file === `${path}.guard`,
    check: (facts) => mustHold(inside(facts).length <= 1, `${inside(facts).join(" and ")} are inside together`),
    ...plan,
  };
}

export function semaphoreScenarios(Protocol: typeof SemaphoreProtocol = SemaphoreProtocol): Scenario[] {
  const directoryForm = { form: "directory" } as const;
  return [
    scenario({
      name: "semaphore: two processes on a free name",
      size: "medium",
      about: "One process enters twice. One may be killed at any moment, and the other takes its lock at once.",
      actors: { ada: worker(Protocol, { times: 2 }), bob: worker(Protocol) },
      killsMax: 1,
      isUnseen,
    }),
    scenario({
      name: "semaphore: three processes on a free name",
      size: "medium",
      about: "Each process tries once, and one keeps the lock. One is killed at any moment.",
      actors: { ada: passerBy(Protocol), bob: passerBy(Protocol), cleo: keeper(Protocol) },
      killsMax: 1,
      mortal: ["bob"],
      isUnseen,
    }),
    scenario({
      name: "semaphore: two takers of a stale lock",
      size: "medium",
      about: "Both processes find the lock stale, and one replaces it. The other gives up.",
      setup: plantStaleFile,
      actors: { ada: passerBy(Protocol), bob: passerBy(Protocol) },
    }),
    scenario({
      name: "semaphore: two takers and a third on a free name",
      size: "medium",
      about: "The third process takes nothing over, but enters whenever the name is free.",
      setup: plantStaleFile,
      actors: { ada: keeper(Protocol), bob: keeper(Protocol), cleo: keeper(Protocol, { staleMs: null }) },
      alike: ["ada", "bob"],
      isUnseen,
    }),
    scenario({
      name: "semaphore: two takers of a stale lock, one killed",
      size: "medium",
      about:
        "A process may be killed even under the guard, with the stale lock moved away. The other waits until it gets in.",
      setup: plantStaleFile,
      actors: { ada: worker(Protocol), bob: passerBy(Protocol) },
      killsMax: 1,
      mortal: ["bob"],
      isUnseen,
    }),
    scenario({
      name: "semaphore: three takers of a stale lock",
      size: "medium",
      about: "All processes find the lock stale. One replaces and keeps it, and the others give up.",
      setup: plantStaleFile,
      actors: { ada: keeper(Protocol), bob: keeper(Protocol), cleo: keeper(Protocol) },
      alike: ["ada", "bob", "cleo"],
      isUnseen,
    }),
    scenario({
      name: "semaphore: a taker that is stopped",
      size: "medium",
      about:
        "The taker stops at any moment, even between its last check and its rename. A third process comes when it carries on.",
      setup: plantStaleFile,
      actors: {
        ada: keeper(Protocol),
        bob: keeper(Protocol, { afterMs: 15_000 }),
        cleo: keeper(Protocol, { staleMs: null, afterMs: 30_000 }),
      },
      pauses: { ms: 30_000, count: 1, actors: ["ada"] },
      isUnseen,
    }),
    scenario({
      name: "semaphore: an old holder lets go beside a taker and a third",
      size: "medium",
      about: "The holder is alive, but in another container, and its lock is old. The name may be free for a moment.",
      actors: {
        ada: agedHolder(Protocol, false),
        bob: keeper(Protocol, { container: "new" }),
        cleo: keeper(Protocol, { container: "new" }),
      },
      isUnseen,
    }),
    scenario({
      name: "semaphore: an old holder lets go and comes back beside a taker",
      size: "medium",
      about: "The holder must remove its own lock, not the taker's.",
      actors: { ada: agedHolder(Protocol, true), bob: worker(Protocol, { container: "new" }) },
      isUnseen,
    }),
    scenario({
      name: "semaphore: a helper lets go for a script that is killed",
      size: "medium",
      about: "Another process takes a dead process's lock at once, even while a helper is about to release it.",
      actors: {
        script: { pid: scriptPid, run: async ({ ports }) => void (await ports.disk.canOpen(directory)) },
        helper: helperOf(Protocol, scriptPid),
        ada: passerBy(Protocol),
        bob: passerBy(Protocol, { staleMs: null }),
      },
      killsMax: 1,
      mortal: ["script"],
      isUnseen,
    }),
    scenario({
      name: "semaphore: beside a program that follows the protocol",
      size: "medium",
      about: "The program creates the file and then fills it. In between the file is empty, but the lock is held.",
      actors: { ada: worker(Protocol, { times: 2 }), shell: foreignWorker() },
    }),
    scenario({
      name: "semaphore: a taker beside a program that takes over by the letter",
      about:
        "The program removes a lock that it has read as stale, and creates its own. No taker overwrites the new lock.",
      setup: plantStaleFile,
      actors: { ada: passerBy(Protocol), shell: foreignTaker() },
      check: mustNotMeet,
    }),
    scenario({
      name: "semaphore: a taker beside such a program, and a third on a free name",
      size: "medium",
      about: "A taker that moved a lock by mistake puts it back, and the third process has not entered meanwhile.",
      setup: plantStaleFile,
      actors: { ada: keeper(Protocol), shell: lateForeignTaker(), cleo: keeper(Protocol, { staleMs: null }) },
      check: mustNotMeet,
      isUnseen,
    }),
    scenario({
      name: "semaphore: without hard links",
      size: "medium",
      about:
        "The lock is made by exclusive create, as the protocol says. A process may be killed between create and write.",
      quirks: { noHardLinks: true },
      actors: { ada: passerBy(Protocol), bob: worker(Protocol, { retryMs: 1600 }) },
      killsMax: 1,
      mortal: ["ada"],
      isUnseen: isClosing,
    }),
    scenario({
      name: "semaphore: two processes on a free directory",
      size: "medium",
      about: "The directory form: one process wins the mkdir.",
      actors: { ada: worker(Protocol, directoryForm), bob: passerBy(Protocol, directoryForm) },
      isUnseen: isClosing,
    }),
    scenario({
      name: "semaphore: takers of a stale directory",
      size: "medium",
      about:
        "A directory cannot be replaced in one step, so the name is free for a moment. A file and a directory contend for it.",
      setup: plantStaleDirectory,
      actors: { ada: worker(Protocol, directoryForm), bob: passerBy(Protocol) },
      isUnseen: isClosing,
    }),
    scenario({
      name: "semaphore: two machines with old caches and lost replies",
      size: "medium",
      about: "A name that is reported absent may exist, and an operation that failed may have happened.",
      volume: share,
      quirks: { staleAbsence: true },
      actors: { ada: unluckyWorker(Protocol, "m1"), bob: unluckyWorker(Protocol, "m2") },
      troubles: { retransmit: 1, lostReply: 1 },
    }),
    scenario({
      name: "semaphore: two machines whose handles go stale",
      size: "medium",
      about: "Again and again, an opened lock is gone before it is read. No caller sees an error.",
      volume: share,
      quirks: { fileHandles: true },
      actors: { ada: worker(Protocol, { times: 2, machine: "m1" }), bob: worker(Protocol, { machine: "m2" }) },
      troubles: { stale: 3 },
    }),
    scenario({
      name: "semaphore: two machines whose server goes away",
      size: "medium",
      about:
        "A failure strikes before or after a lock is created or removed. The next check shows which, and another process may own the name by then.",
      volume: share,
      quirks: { outages: true },
      actors: { ada: worker(Protocol, { times: 2, machine: "m1" }), bob: worker(Protocol, { machine: "m2" }) },
      troubles: { outage: 1 },
    }),
    scenario({
      name: "semaphore: the power is cut",
      size: "medium",
      about: "The disk keeps a whole lock file or none, whether a process was writing one or replacing another.",
      profile: "weak",
      setup: plantStaleFile,
      actors: { ada: keeper(Protocol, { fsync: true }), bob: keeper(Protocol, { fsync: true }) },
      powerCuts: true,
      audit: async ({ disk }) => {
        const observation = await observe(disk, path);
        mustHold(observation.kind === "free" || observation.record !== undefined, "the lock file is torn");
      },
    }),
  ];
}
