// The audit of a history: compares what the processes were told with what is stored. Nothing acknowledged is lost,
// nothing is doubled, no lock has two holders, and nothing stands still.
import { createHash } from "node:crypto";
import { Client } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../../waiting.ts";
import { listOf, numbers, positionsOf } from "../../sites/event-logs.ts";
import { openPgStore, startOwnServer } from "../stores.ts";
import { lockWaitMs, nowUs } from "./waits.ts";
import { leaseMs, World } from "./world.ts";

/** After a fault any work may stand still for so long: the lease of a dead process and ten seconds. */
const standstillMs = leaseMs + 10_000;

export interface History {
  /** Settings of the server. */
  readonly settings?: readonly string[];
  /** Makes the folder of the server. Default: a new one. */
  readonly directory?: () => string;
  /** Called when the server has ended. */
  readonly after?: () => void;
  /** Errors that the processes meet besides those that every program must expect. */
  readonly expected?: readonly string[];
  /** So many calls of each kind are acknowledged before the history ends. */
  readonly enough: number;
  /** Starts processes and makes faults. */
  readonly rage: (world: World) => Promise<void>;
}

/** Describes a history with faults, and its audit. */
export function describeHistory(title: string, { settings = [], expected = [], enough, rage, ...more }: History): void {
  describe(title, () => {
    let world: World;

    beforeAll(async () => {
      const directory = more.directory?.();
      const server = await startOwnServer({
        settings: ["fsync=on", ...settings],
        ...(directory !== undefined && { directory }),
      });
      world = new World(server, expected);
      try {
        await world.prepare();
        await rage(world);
        await world.recover();
        // A slow machine takes its time.
        await world.until(() =>
          [world.report.events, world.report.tickets, world.report.versions].every(({ length }) => length > enough),
        );
        await world.end();
      } finally {
        world.destroy();
      }
      return async () => {
        await world.server.stop();
        more.after?.();
      };
    }, 3_000_000);

    const query = async <R extends object>(text: string): Promise<R[]> => {
      const client = new Client(world.server.url);
      await client.connect();
      try {
        return (await client.query(text)).rows as R[];
      } finally {
        await client.end();
      }
    };

    it("surprises no process with an error that a program need not expect", () => {
      expect(world.report.failed).toEqual([]);
      console.log(world.report.describe());
    });

    it("loses no event, doubles none, and sells no seat twice", async () => {
      const events = await (await openPgStore("main", { url: world.server.url })).events();
      const stored = await listOf(events.read());
      expect(positionsOf(stored)).toEqual(numbers(1, stored.length));
      const positions = new Map(stored.map(({ id, position }) => [id, position]));
      expect(positions.size).toBe(stored.length);
      expect(world.report.events.filter(({ id, first }) => positions.get(id) !== first)).toEqual([]);
      expect(stored.filter(({ id }) => !world.report.tried.has(id))).toEqual([]);
      expect(new Set(stored.map(({ tags }) => tags[0])).size).toBe(stored.length);
      expect(await events.verify()).toMatchObject({ ok: true, checked: stored.length });
    });

    it("loses no ticket, commits none twice, and keeps the groups in order", async () => {
      const box = await (await openPgStore("main", { url: world.server.url })).handoff("box");
      const consumer = box.consume((delivery) => delivery.text("n"), { attempts: 10_000 });
      await until(async () => {
        const { incoming, delayed, processing } = await box.stats();
        return incoming + delayed + processing === 0;
      });
      await consumer.stop();
      const done = await query<{ id: string; key: string; n: string }>(
        "select t.id, d.key, d.result ->> 'result' as n from hf_done d join hf_ticket t using (p, key)",
      );
      const ids = new Set(done.map(({ id }) => id));
      expect(world.report.tickets.filter(({ id }) => !ids.has(id))).toEqual([]);
      const results = new Set(done.map(({ n }) => n));
      expect(world.report.tickets.filter(({ n, duplicate }) => !duplicate && !results.has(n))).toEqual([]);
      expect(done.filter(({ n }) => !world.report.tried.has(n))).toEqual([]);
      expect(results.size).toBe(done.length);
      expect(new Set(done.map(({ key }) => key)).size).toBe(done.length);
      const outOfOrder = await query(
        `select * from (
           select t.grp, t.place, t.settled, lag(t.settled) over (partition by t.p, t.grp order by t.place) as before
           from hf_ticket t where t.grp is not null) x where x.before > x.settled`,
      );
      expect(outOfOrder).toEqual([]);
      expect(await box.stats()).toMatchObject({ archive: done.length, error: 0 });
      expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
    });

    it("loses no version of an object, doubles none, and lets one put of a new key win", async () => {
      const objects = await (await openPgStore("main", { url: world.server.url })).objects();
      const stored = await listOf((await objects.bucket("bucket")).versions());
      const digests = new Map(stored.map(({ key, versionId, etag }) => [`${key} ${versionId}`, etag]));
      const digestOf = (body: string): string => createHash("md5").update(body).digest("hex");
      const lost = world.report.versions.filter(
        (put) => digests.get(`${put.key} ${put.versionId}`) !== digestOf(put.body),
      );
      expect(lost).toEqual([]);
      const tried = new Set([...world.report.tried].map(digestOf));
      expect(stored.filter(({ etag }) => !tried.has(etag))).toEqual([]);
      expect(new Set(stored.map(({ etag }) => etag)).size).toBe(stored.length);
      const once = stored.filter(({ key }) => key.startsWith("once/")).map(({ key }) => key);
      expect(new Set(once).size).toBe(once.length);
      expect(await objects.verify()).toMatchObject({ ok: true, problems: [] });
    });

    it("never lets two holders into one lock, and its fences grow", () => {
      for (const holds of world.report.holds()) {
        expect(holds.length).toBeGreaterThan(0);
        for (const [index, { inUs, fence }] of holds.entries()) {
          const before = holds[index - 1];
          if (before === undefined) continue;
          expect(inUs).toBeGreaterThan(before.outUs);
          expect(fence).toBeGreaterThan(before.fence);
        }
      }
    });

    it("leaves no call, no lock and no ticket waiting for longer than a lease and ten seconds", async () => {
      const { report, outages, recoveries, endUs } = world;
      const waits = report.waits(endUs).map((wait) => {
        const [, lock] = /^lock (\d)$/.exec(wait.what) ?? [];
        const { what, fromUs, toUs } = wait;
        const ms =
          lock === undefined
            ? outages.msBetween(fromUs, toUs)
            : lockWaitMs(wait, report.livingHolds(Number(lock)), outages);
        return { what, ms, atUs: fromUs };
      });
      const all = [...waits, ...(await ticketWaits()), ...recoveries.map((ms) => ({ what: "recovery", ms, atUs: 0 }))];
      const longest = new Map<string, number>();
      for (const { what, ms } of all) longest.set(what, Math.max(longest.get(what) ?? 0, Math.round(ms)));
      console.log(longest);
      expect(all.filter(({ ms }) => ms > standstillMs)).toEqual([]);
    });

    /**
     * The times between the steps of each ticket: its publication, its attempts, its end. A step of a ticket that
     * queued before it starts the wait again: until then, it waited its turn.
     */
    async function ticketWaits(): Promise<{ what: string; ms: number; atUs: number }[]> {
      const { outages, endUs } = world;
      const rows = await query<{ what: string; steps: number[] }>(
        `select coalesce(t.grp, 'no group') as what, array(
             select (extract(epoch from x.at) * 1000)::float8 from (
               values (t.created), (t.settled) union all
               select n.at from hf_note n where n.p = t.p and n.id = t.id) x(at) order by 1) as steps
         from hf_ticket t`,
      );
      // The clock of the server is the wall clock of this machine.
      const offsetUs = nowUs() - 1000 * Date.now();
      const waits = rows.flatMap(({ what, steps }) =>
        steps
          .slice(1)
          .map((ms, index) => ({ what, fromUs: (steps[index] ?? ms) * 1000 + offsetUs, toUs: ms * 1000 + offsetUs })),
      );
      const stepsUs = new Map<string, number[]>();
      return waits
        .sort((one, other) => one.fromUs - other.fromUs)
        .map(({ what, fromUs, toUs }) => {
          const earlier = stepsUs.get(what) ?? [];
          const turnUs = earlier.reduce((last, us) => (us <= toUs && us > last ? us : last), fromUs);
          stepsUs.set(what, earlier);
          earlier.push(toUs);
          return { what, ms: outages.msBetween(turnUs, Math.min(toUs, endUs)), atUs: fromUs };
        });
    }
  });
}
