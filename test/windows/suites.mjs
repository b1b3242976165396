// The test files that run under Wine, and the tests among them that cannot, each with its reason.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Returns the paths of the files, from `root`. */
export function testFilesOf(root) {
  const units = ["src", "harness"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((path) => path.endsWith(".test.ts"))
      .map((path) => `${folder}/${path}`),
  );
  return [...units, ...suites];
}

/** Of a file that is named here with words, only the tests whose full name contains them. */
export const only = {
  "test/ports/os-lock.test.ts": "the OS lock contract",
  "test/cli/windows.test.ts": "",
};
const suites = Object.keys(only);

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
