import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { examine } from "../../src/doctor/doctor.ts";
import { folder, Simulation } from "./simulation.ts";

const page = readFileSync(new URL("../../docs/doctor.md", import.meta.url), "utf8");

test("docs/doctor.md has a row with its question for every check", async () => {
  const simulation = new Simulation();
  await simulation.furnish();
  const [report] = await Promise.all(
    ["a", "b"].map((name) => examine(simulation.ports(name), folder, { withPeer: true })),
  );
  const rows = page
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const described = new Map(rows.map(([, id, question]) => [id?.replaceAll("`", ""), question]));
  expect(report?.checks.length).toBeGreaterThan(20);
  for (const { id, question } of report?.checks ?? [])
    expect([id, described.get(id === "mount-options" ? "mount-option:…" : id)]).toEqual([id, question]);
});
