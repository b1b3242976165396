// The suites of `npm test` that run on a share: with the real disk's site, and TMPDIR on the share.
// To add a capability: add a line with its contract suite, and say what of it holds on a local disk
// only.
import { realDisk, realDiskForShares } from "../sites/names.ts";

export interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  /** Only tests whose full name contains it: other sites say nothing about a share. */
  readonly only?: string;
  /** Words of tests that promise what holds on a local disk only: docs/guarantees.md says so. */
  readonly except?: readonly string[];
}

export const suites: readonly Suite[] = [
  { name: "disk", files: testsOf("ports", ["disk"]), only: "as it is opened" },
  {
    name: "mechanisms",
    files: testsOf("durable", ["publish", "chain", "rolling-chain", "directory", "ground", "holder-session"]),
    only: `on ${realDisk}`,
    // A share is always synced.
    except: ["without syncs"],
  },
  {
    name: "path-locks",
    files: testsOf("locks", ["path-locks", "lock-table", "redo", "local-queue"]),
    // A share gives no hints, so a waiter has to poll. A wait of a few hundred milliseconds is over
    // before a share has answered. An open file cannot be removed there. Calls of the same moment
    // queue as soon as their paths are resolved, which takes an answer of the server each.
    except: [
      "costs the waiter next to nothing",
      "told how long it waited in all",
      "of the whole ground",
      "in the order of the calls, within a process",
    ],
  },
  { name: "store-lock", files: testsOf("locks", ["store-lock"]), only: "gate is table" },
  {
    name: "semaphore",
    files: testsOf("locks", ["semaphore", "semaphore-waiting"]),
    // No process takes over on a share, so there is no guard for it either; and there are no hints.
    except: ["taken over", "takes over", "is cleaned", "free or stale", "goes as a whole", "noticed at once"],
  },
  { name: "events", files: testsOf("events", ["contract"]), only: realDiskForShares },
  { name: "handoff", files: testsOf("handoff", ["contract"]), only: realDisk },
  {
    name: "objects",
    files: testsOf("objects", [
      ...["contract", "bodies", "buckets", "multipart", "paging"],
      ...["collect", "key-chain", "linearizable"],
    ]),
    only: `on ${realDisk}`,
  },
  { name: "files", files: testsOf("files", ["operations", "add", "changes"]), only: `on ${realDisk}` },
];

/**
 * Words of tests that an SMB mount does not pass: it has no symbolic links, unless it is told to
 * make them up, and no modes.
 */
export const notOnSmb = ["link", "all spellings of a path", "leads out of the root", "its own user only"];

function testsOf(room: string, names: readonly string[]): string[] {
  return names.map((name) => `test/${room}/${name}.test.ts`);
}
