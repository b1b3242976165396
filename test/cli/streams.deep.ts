// What stands behind stdin and stdout: a full disk, a directory, a reader who goes away. What was
// not printed must not look printed.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { main } from "./holdfast-process.ts";

interface Told {
  readonly status: number | null;
  readonly stderr: string;
}

let log = "";
beforeAll(() => {
  log = mkdtempSync(join(tmpdir(), "holdfast-streams-"));
  execFileSync(process.execPath, [main, "events", "append", log, "--type", "Sold"]);
});
afterAll(() => rmSync(log, { recursive: true, force: true }));

/** By a shell, which is what redirects. LOG is a log with an event or more: one for all, as each start takes a while. */
function inShell(script: string): Told {
  const command = script.replace("holdfast", `"${process.execPath}" "${main}"`).replace("LOG", `"${log}"`);
  const { status, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
  return { status, stderr };
}

describe.skipIf(!existsSync("/dev/full"))("a full disk behind stdout", () => {
  test.each([
    "holdfast events export LOG",
    "holdfast events read LOG",
    "holdfast events append LOG --type Sold",
    "holdfast events head LOG",
    "holdfast events verify LOG",
    "holdfast --help",
  ])("is a failure of %s, and said", (command) => {
    const { status, stderr } = inShell(`${command} > /dev/full`);
    expect(status).toBe(1);
    expect(stderr).toMatch(/stdout could not be written \(ENOSPC\): what was printed is not whole/);
  });
});

const hasGnuTail = /GNU/.test(spawnSync("tail", ["--version"], { encoding: "utf8" }).stdout ?? "");

test.skipIf(!hasGnuTail)("tail ends when its reader has gone, though no event comes any more", () => {
  const { status, stderr } = inShell(`set -o pipefail; holdfast events tail LOG --after 0 --quiet | head -1`);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

describe.skipIf(process.platform === "win32")("a shell", () => {
  test.each(["append", "import"])("that gives a directory as the input of %s is told so", (verb) => {
    const { status, stderr } = inShell(`holdfast events ${verb} LOG < /`);
    expect(status).toBe(1);
    expect(stderr).toMatch(/stdin could not be read \(EISDIR\)/);
  });

  test.each(["events read LOG", "events export LOG", "events head LOG", "events verify LOG", "--help"])(
    "that reads nothing of %s finds no failure",
    (command) => {
      const { status, stderr } = inShell(`set -o pipefail; holdfast ${command} | true`);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    },
  );
});
