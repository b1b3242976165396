// In place of a status.csv that everyone edits: everyone reports, and one process at a time writes the file for people.
import { readFile } from "node:fs/promises";
import { openEvents, openProjection, type NewEvent } from "holdfast/events";
import { publishFile } from "holdfast/handoff";

type Reported = NewEvent<"Reported", { station: string; state: string }>;

const folder = process.argv[2] ?? "shared/status";
const csv = `${folder}/status.csv`;

// Each station opens the log by itself, on its own machine.
const stations = await Promise.all(["press", "oven", "saw"].map(async (name) => ({ name, log: await openEvents<Reported>(folder) }))); // prettier-ignore
const report = ({ name, log }: (typeof stations)[number], state: string) =>
  log.append({ type: "Reported", data: { station: name, state }, tags: [`station:${name}`] });

// Any number of processes may run this part. One of them does the work, and another one if that one dies.
const { log } = stations[0]!;
const latest = await openProjection(log, {
  name: "latest",
  query: { types: ["Reported"] },
  key: ({ data }) => data.station,
  apply: (_: { state: string } | undefined, { data }) => ({ state: data.state }),
});
const folding = latest.run();
const writing = log.consume("status.csv", { types: ["Reported"] }, async (batch) => {
  await latest.waitUntilProcessed(batch.at(-1)!.position);
  const lines: string[] = [];
  for await (const [station, { state }] of latest.all()) lines.push(`${station},${state}`);
  await publishFile(csv, `station,state\n${lines.sort().join("\n")}\n`, { replace: true });
});
for (const { done } of [folding, writing]) done.catch((error: unknown) => console.error(error));

// All at once, and each several times: no report is lost.
const states = ["idle", "heating", "busy", "cleaning", "ready"];
await Promise.all(stations.map(async (station) => { for (const state of states) await report(station, state); })); // prettier-ignore

const head = await log.head();
await writing.waitUntilProcessed(head);
console.log(head, "reports");
process.stdout.write(await readFile(csv, "utf8"));
for await (const { data } of log.read({ tags: ["station:oven"] }, { backwards: true, limit: 2 }))
  console.log("history of the oven:", data.state);
for (const each of stations) await each.log.close();
