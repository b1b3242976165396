// No machine that runs the tests is sure to have a bad file system, so here the command line
// examines simulated ones.
import { expect, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { examine } from "../../src/doctor/doctor.ts";
import type { ServerQuirks } from "../../src/testing/sim/server.ts";
import { folder, Simulation } from "../doctor/simulation.ts";

let quirks: ServerQuirks = {};

vi.mock("../../src/doctor/index.ts", () => ({
  doctor: async () => {
    const simulation = new Simulation({ quirks: { watch: "hints", ...quirks } });
    await simulation.furnish();
    return examine(simulation.ports("p"), folder);
  },
}));

async function run(...args: string[]): Promise<{ exitCode: number; stdout: string }> {
  let stdout = "";
  const streams = { stdout: { write: (text: string) => (stdout += text) }, stderr: { write: () => undefined } };
  return { exitCode: await runCommandLine(["doctor", folder, ...args], streams, new AbortController().signal), stdout };
}

test("a file system that Holdfast must not be used on ends with 5", async () => {
  quirks = { noHardLinks: true };
  const { exitCode, stdout } = await run();
  expect(exitCode).toBe(5);
  expect(stdout).toMatch(/^bad {6}hard-link /m);
  expect(stdout).toMatch(/To do: /);
  expect(stdout).toMatch(/\nunusable: Holdfast must not be used here/);
  expect((await run("--json")).exitCode).toBe(5);
});

test("one with limits ends with 0, and tells them", async () => {
  quirks = { osLocks: "none" };
  const { exitCode, stdout } = await run();
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^limited {2}os-lock /m);
  expect(stdout).toMatch(/\nlimited: Holdfast can be used here, within the limits above\.\n$/);
});

test("a clean one ends with 0", async () => {
  quirks = {};
  const { exitCode, stdout } = await run();
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/\nok: Holdfast can be used here\.\n$/);
  expect(stdout).not.toMatch(/To do/);
});
