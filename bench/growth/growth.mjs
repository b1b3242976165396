// What a call costs while a part grows: the same calls at each size, with processor time and time by the clock. Not
// synced where a part allows it: what grows is work, and syncs would hide it.
import { mkdirSync } from "node:fs";
import { ownCpuUs } from "../cpu.mjs";
import { median } from "../measure.mjs";
import { printTable } from "../report.mjs";
import { recorder } from "../result.mjs";
import { isWanted, sized } from "../settings.mjs";
import { growingParts } from "./parts.mjs";

const callsEach = sized(200, 5);

export async function growthGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  for (const [part, { unit, sizes, open }] of Object.entries(growingParts)) {
    if (!isWanted(part)) continue;
    mkdirSync(`${directory}/growth-${part}`);
    const { fill, calls, close } = await open(`${directory}/growth-${part}`);
    const points = new Map(Object.keys(calls).map((name) => [name, []]));
    for (const size of sizes) {
      await fill(size);
      // What is compared is code that has been running for a while.
      if (size === sizes[0]) for (const call of Object.values(calls)) await time(call);
      for (const [name, call] of Object.entries(calls)) points.get(name).push({ size, ...(await time(call)) });
    }
    await close();
    const curve = { part, unit, calls: [...points].map(([name, points]) => ({ name, points })) };
    recorder.addCurve(curve);
    print(curve);
  }
}

async function time(call) {
  const before = ownCpuUs();
  const times = [];
  for (let n = 0; n < callsEach; n++) {
    const start = performance.now();
    await call();
    times.push(performance.now() - start);
  }
  return {
    ms: Number(median(times).toPrecision(4)),
    cpuUs: Number(((ownCpuUs() - before) / callsEach).toPrecision(4)),
  };
}

function print({ part, unit, calls }) {
  const sizes = calls[0].points.map(({ size }) => size);
  printTable(
    `growth: ${part}, CPU of a call in µs`,
    calls.map(({ name, points }) => ({ name, figures: points.map(({ cpuUs }) => cpuUs.toFixed(0)) })),
    sizes.map((size) => `${size.toLocaleString("en")} ${unit}`),
  );
}
