// Kills of producers, consumers and the server: nothing acknowledged is lost, nothing is doubled, and
// every group stays in order.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { Database } from "../../src/postgres/connection/database.ts";
import { until } from "../waiting.ts";
import { startOwnServer } from "./stores.ts";

const program = fileURLToPath(new URL("handoff-worker.mjs", import.meta.url));
const library = new URL("../../dist/handoff/index.js", import.meta.url).href;
const [clientKills, serverKills] = [20, 5];
const pauseMs = { min: 200, max: 600 };

/** What all producers said. */
class Said {
  readonly tried = new Set<string>();
  readonly acknowledged = new Set<string>();
  readonly failed: string[] = [];

  add(line: string): void {
    const [word, n = ""] = line.split(" ");
    if (word === "try") this.tried.add(n);
    if (word === "ok") this.acknowledged.add(n);
    if (word === "failed" || word === "ended") this.failed.push(line);
  }
}

function start(url: string, role: string, name: string, said: Said): ChildProcess {
  const child = spawn(process.execPath, [program, library, url, role, name], { stdio: ["pipe", "pipe", "inherit"] });
  createInterface({ input: child.stdout }).on("line", (line) => said.add(line));
  child.stdin.on("error", () => undefined);
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function pause(): Promise<void> {
  // Time passes: a kill hits another moment each time.
  await nodeClock.sleep(pauseMs.min + Math.random() * (pauseMs.max - pauseMs.min));
}

it(`${clientKills} kills of processes and ${serverKills} of the server lose and double nothing`, async () => {
  const server = await startOwnServer({ settings: ["fsync=on"] });
  onTestFinished(() => server.stop());
  const said = new Said();
  let count = 0;
  const starting = (role: string): ChildProcess => start(server.url, role, `${role}-${++count}`, said);
  for (const name of ["box", "other"]) await (await openHandoff(`${server.url}#handoff/${name}`)).close();
  const roles = ["producer", "producer", "consumer", "consumer", "consumer"];
  const children = roles.map((role) => ({ role, child: starting(role) }));
  await until(() => said.acknowledged.size > 10);
  const every = clientKills / serverKills;
  for (let kill = 1; kill <= clientKills; kill++) {
    await pause();
    const victim = children[kill % children.length]!;
    victim.child.kill("SIGKILL");
    if (kill % every === 0) {
      await server.kill();
      await pause();
      await server.restart();
    }
    await pause();
    victim.child = starting(victim.role);
  }
  await pause();
  for (const { role, child } of children)
    if (role === "producer") {
      child.stdin!.end();
      await once(child, "exit");
    }
  const box = await openHandoff(`${server.url}#handoff/box`);
  onTestFinished(() => box.close());
  await until(async () => {
    const { incoming, delayed, processing } = await box.stats();
    return incoming + delayed + processing === 0;
  });
  for (const { child } of children) child.stdin!.end();

  const database = await Database.open(server.url, nodeClock);
  onTestFinished(() => database.close());
  const contents = async (name: string): Promise<string[]> =>
    (
      await database.query<{ n: string }>(
        `select split_part(encode(substring(t.inline from 1), 'escape'), E'\\n', 1) as n from hf_ticket t
             join hf_part p on p.p = t.p where p.room = 'handoff' and p.name = $1 and t.inline is not null`,
        [name],
      )
    ).map(({ n }) => n);
  const results = (
    await database.query<{ n: string }>(
      `select d.result ->> 'result' as n from hf_done d join hf_part p on p.p = d.p where p.name = 'box'`,
    )
  ).map(({ n }) => n);
  const sent = await contents("other");
  expect(said.failed).toEqual([]);
  expect([...said.acknowledged].filter((n) => !results.includes(n))).toEqual([]);
  expect(results.filter((n) => !said.tried.has(n))).toEqual([]);
  expect(new Set(results).size).toBe(results.length);
  expect([...sent].sort()).toEqual([...results].sort());
  expect(await box.stats()).toMatchObject({ archive: results.length, error: 0 });
  const outOfOrder = await database.query(
    `select * from (
         select t.grp, t.place, t.settled, lag(t.settled) over (partition by t.p, t.grp order by t.place) as before
         from hf_ticket t where t.grp is not null) x where x.before > x.settled`,
  );
  expect(outOfOrder).toEqual([]);
  expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
  expect(results.length).toBeGreaterThan(200);
}, 600_000);
