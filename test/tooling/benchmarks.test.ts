// docs/benchmarks.md and its curves are what bench/result.json says, and the writer leaves prose alone.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { drawCurve } from "../../bench/page/curve.mjs";
import { blocksFor, curveName, noRun, type Curve, type Result } from "../../bench/page/page.mjs";
import { readResult } from "../../bench/result.mjs";
import { blocksOf, withBlocks } from "../../tools/generated-block.mjs";

const inRepository = (path: string): URL => new URL(`../../${path}`, import.meta.url);
const page = readFileSync(inRepository("docs/benchmarks.md"), "utf8");

const curve: Curve = {
  part: "events",
  unit: "events",
  calls: [
    { name: "append & sync", points: [1, 2, 4].map((cpuUs, index) => ({ size: 10 ** (index + 1), ms: 0.5, cpuUs })) },
    { name: "read", points: [4, 4, 4].map((cpuUs, index) => ({ size: 10 ** (index + 1), ms: 0.25, cpuUs })) },
  ],
};
const rate = { operations: "2 sync", notes: [] };
const result: Result = {
  date: "2026-11-20T03:04:05.678Z",
  command: "npm run bench -- --page",
  isQuick: false,
  machine: { processor: "A", cores: 2, memoryGb: 8, system: "Linux 6", fileSystem: "ext4", load: 0.1 },
  versions: { holdfast: "0.2.0", node: "20.19.0", "proper-lockfile": "4.1.2" },
  comparisons: [
    {
      title: "locks: acquire and release",
      baseline: "wx, unlink",
      rows: [
        { name: "path lock", rateRatio: 0.5, cpuRatio: 2, rate: 5_000, cpuUs: 200, ...rate },
        { name: "flock(1)", rateRatio: null, cpuRatio: null, rate: 0, cpuUs: null, ...rate },
        { name: "wx, unlink", rateRatio: 1, cpuRatio: 1, rate: 10_000, cpuUs: 100, ...rate },
      ],
    },
  ],
  curves: [curve],
};

describe("docs/benchmarks.md", () => {
  const file = inRepository("bench/result.json");
  const recorded = existsSync(file) ? readResult(file) : undefined;

  it("has the figures, the date, the machine, the versions and the command of bench/result.json", async () => {
    expect(blocksOf(page)).toEqual(blocksOf(await withBlocks(page, blocksFor(recorded))));
  });

  it("is formatted by its writer as by the formatter of the house", async () => {
    expect(await withBlocks(page, {})).toBe(page);
  });

  it("has the curves of bench/result.json", () => {
    for (const each of recorded?.curves ?? [])
      expect(readFileSync(inRepository(`docs/images/${curveName(each.part)}`), "utf8")).toBe(drawCurve(each));
  });
});

describe("the writer of the page", () => {
  const template = "# Title\n\nProse.\n\n<!-- begin run -->\nold\n<!-- end run -->\n\nMore prose.\n";

  it("replaces what is between its markers, and nothing else", async () => {
    const written = await withBlocks(template, { run: noRun });
    expect(written).toBe(template.replace("\nold\n", `\n\n${noRun}\n\n`));
    expect(await withBlocks(written, { run: noRun })).toBe(written);
  });

  it("refuses a block that the page does not have", async () => {
    await expect(withBlocks(template, { rates: "" })).rejects.toThrow("no block rates");
  });

  it("says where a run came from, and names the peer first", () => {
    const { run, rates } = blocksFor(result);
    for (const fact of ["2026-11-20", "`npm run bench -- --page`", "2 cores", "ext4", "proper-lockfile 4.1.2"])
      expect(run).toContain(fact);
    expect(
      rates
        .split("\n")
        .slice(2)
        .map((line) => line.split("|")[1]?.trim()),
    ).toEqual(["**locks: acquire and release**", "wx, unlink", "path lock", "flock(1)"]);
    expect(rates).toMatch(/flock\(1\) +\| – +\| – +\| 0\/s +\| – +\|/);
    expect(rates).toMatch(/path lock +\| 0.50 × +\| 2.00 × +\| 5,000\/s +\| 200 µs +\| 2 sync/);
  });

  it("marks the figures of a quick run as meaningless", () => {
    expect(blocksFor({ ...result, isQuick: true }).run).toContain("its figures mean nothing");
  });

  it("shows each curve as an image and as a table, with its growth", () => {
    const { growth } = blocksFor(result);
    expect(growth).toContain("](images/growth-events.svg)");
    expect(growth).toMatch(/append & sync +\| 1 µs, 0.50 ms +\| 2 µs, 0.50 ms +\| 4 µs, 0.50 ms +\| 4.00 ×/);
  });
});

describe("a curve", () => {
  const svg = drawCurve(curve);
  const points = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map((match) =>
    (match[1] ?? "").split(" ").map((point) => point.split(",").map(Number)),
  );

  it("rises by the same step for each doubling, and is level for the same cost", () => {
    const [rising = [], level = []] = points.map((line) => line.map(([, y = 0]) => y));
    const [first = 0, second = 0, third = 0] = rising;
    expect(first - second).toBeGreaterThan(0);
    expect(first - second).toBeCloseTo(second - third, 0);
    expect(new Set(level).size).toBe(1);
    expect(third).toBe(level[2]);
  });

  it("has labels that do not overlap, text for those who do not see it, and colours for dark readers", () => {
    const labels = [...svg.matchAll(/<text x="450" y="([\d.]+)"/g)].map((match) => Number(match[1]));
    expect(Math.abs((labels[0] ?? 0) - (labels[1] ?? 0))).toBeGreaterThanOrEqual(16);
    expect(svg).toContain("append &amp; sync: 1 µs to 4 µs");
    expect(svg).toContain("prefers-color-scheme: dark");
    expect(svg.replaceAll("&amp;", "").includes("&")).toBe(false);
  });
});
