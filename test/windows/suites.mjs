// The test files that run under Wine, and the tests among them that cannot, each with its reason.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** As test/sites/names.ts says. */
const realDisk = "the real disk";

/** Returns the paths of the files, from `root`. */
export function testFilesOf(root) {
  const units = ["src", "harness"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".test.ts"))
      .map((path) => `${folder}/${path}`),
  );
  return [...units, ...suites];
}

/**
 * Of each file, only the tests whose full name contains the words. Those of simulated disks and of the memory disk say
 * nothing about Windows.
 */
export const only = {
  "test/ports/disk.test.ts": "as it is opened",
  "test/ports/os-lock.test.ts": "the OS lock contract",
  "test/ports/volume.test.ts": "",
  "test/cli/windows.test.ts": "",
  ...ofRoom(
    "durable",
    ["publish", "chain", "rolling-chain", "directory", "ground", "holder-session"],
    `on ${realDisk}`,
  ),
  ...ofRoom("locks", ["path-locks", "lock-table", "redo", "local-queue", "store-lock"], ""),
  ...ofRoom("locks", ["semaphore", "semaphore-waiting"], ""),
  ...ofRoom("events", ["contract"], realDisk),
  ...ofRoom("handoff", ["contract"], realDisk),
  ...ofRoom("objects", ["contract", "bodies", "buckets", "multipart", "paging"], `on ${realDisk}`),
  ...ofRoom("objects", ["collect", "key-chain", "linearizable"], `on ${realDisk}`),
  ...ofRoom("files", ["operations", "add", "changes"], `on ${realDisk}`),
};
const suites = Object.keys(only);

function ofRoom(room, names, words) {
  return Object.fromEntries(names.map((name) => [`test/${room}/${name}.test.ts`, words]));
}

/** A test is left out if its file and full name, as a report shows them, contain `test`. */
export const exceptions = [
  {
    test: "src/errors.test.ts > a HoldfastError > is an Error with a stack",
    reason: "the test files are one bundle, so a stack does not name them",
  },
  {
    test: "src/errors.test.ts > isHoldfastError > knows the errors of another copy",
    reason: "the test files are one bundle, so there is no second copy to load",
  },
  {
    test: "that is a batch file gets its percent signs unchanged",
    reason:
      "cmd.exe of Wine 8 expands variables again in the arguments that a batch file passes on; that of Windows does not",
  },
  {
    test: "a rolling chain on the real disk > refuses an epoch that lost its `open` file or its directory",
    reason: "passes, but takes a minute under Wine",
  },
  ...[
    "a directory on the real disk > is not made behind a symbolic link",
    "a directory on the real disk > is made behind a symbolic link",
    "a directory on the real disk > is not made behind links in a circle",
    "a redo > reaches through a symbolic link",
    "test/locks/semaphore.test.ts > a symbolic link > ",
  ].map((test) => ({ test, reason: "Wine 8 makes no symbolic links" })),
  ...[
    "is not granted to a waiter whose file was deleted before its turn came",
    "tells its holder when the file was deleted or replaced under it",
    "never gives a new file the identity of one that was deleted",
    "leaves it to its user how the file is made, and locks the one that is there",
  ].map((test) => ({
    test,
    reason: "under Wine 8 the name of a deleted file stays until every process has closed the file",
  })),
];
