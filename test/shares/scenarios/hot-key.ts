// 640 puts of three machines to one key: in peace, and while machines sleep, lose packets and the
// server restarts.
import type { Bed } from "../bed.ts";
import { until } from "../command.ts";
import { faultsOf, type Workers } from "../faults.ts";
import type { Guest } from "../guest.ts";
import { bucketName, hotKey, type PutOrders, type PutReport } from "../guest/object-puts.ts";
import { Hand } from "../hand.ts";
import type { Report, Scenario } from "../scenario.ts";
import type { Script } from "../script.ts";

const processes = 16;
const putsEach = 40;
const leaseMs = 5000;
const msMax = 600_000;
/** A machine that is killed takes its acknowledgements with it; these come back. */
const faults = ["paused", "processes stopped on", "10 % of packets lost by", "server restarted beside"];

export const hotKeyScenarios: readonly Scenario[] = [false, true].map((isTroubled) => ({
  name: `objects-640-puts${isTroubled ? "-under-faults" : ""}`,
  about: "640 puts of three machines to one key are 640 versions, all listed, all whole, each under its own id",
  run: async (bed, report) => await run(bed, report, isTroubled),
}));

async function run(bed: Bed, report: Report, isTroubled: boolean): Promise<void> {
  const directory = `${await bed.directory("hot-key")}/objects`;
  const hand = await Hand.open(bed, bed.guest(1));
  try {
    await hand.do("createVersionedBucket", directory);
    const startMs = performance.now();
    const crew = new PutCrew(bed, directory);
    if (isTroubled) await trouble(bed, crew, report);
    await until("640 puts", msMax, () => crew.isOver || undefined);
    const seconds = Math.round((performance.now() - startMs) / 100) / 10;
    for (const failure of crew.failures) report.violate(failure);
    const { acknowledged, unknown } = crew;
    report.note(`${acknowledged.length} acknowledged and ${unknown.length} in doubt within ${seconds} s`);
    report.must(acknowledged.length === processes * putsEach, `${acknowledged.length} puts were acknowledged`);
    const found = new Map(await hand.do<[string, string][]>("readVersions", directory, hotKey));
    judge(report, acknowledged, unknown, found);
  } finally {
    await hand.close();
  }
}

/** Every version that was acknowledged is there, whole, under its id; what was in doubt once at most; and nothing else. */
function judge(
  report: Report,
  acknowledged: PutCrew["acknowledged"],
  unknown: PutCrew["unknown"],
  found: ReadonlyMap<string, string>,
): void {
  report.note(`${found.size} versions of ${bucketName}/${hotKey} are listed and readable`);
  const ids = new Set(acknowledged.map(({ versionId }) => versionId));
  report.must(ids.size === acknowledged.length, "two puts were given the same version id");
  for (const { versionId, text } of acknowledged)
    report.must(found.get(versionId) === text, `${text} was acknowledged as ${versionId} and is lost`);
  const inDoubt = new Set(unknown.map(({ text }) => text));
  for (const [id, text] of found) {
    if (ids.has(id)) continue;
    report.must(inDoubt.delete(text), `${text} is there as ${id}, twice or without a put`);
  }
}

async function trouble(bed: Bed, crew: PutCrew, report: Report): Promise<void> {
  const all = faultsOf(bed, leaseMs).filter(({ name }) => faults.includes(name));
  for (const [index, fault] of all.entries()) {
    const before = crew.acknowledged.length;
    const victim = bed.guest((index % bed.guests.length) + 1);
    await fault.run(victim, crew);
    report.note(`${fault.name} ${victim.name}: ${crew.acknowledged.length - before} acknowledged meanwhile`);
  }
}

type Acknowledged = Extract<PutReport, { kind: "acknowledged" }>;
type Unknown = Extract<PutReport, { kind: "unknown" }>;

/** The processes that put, some in each guest. */
class PutCrew implements Workers {
  readonly acknowledged: Acknowledged[] = [];
  readonly unknown: Unknown[] = [];
  readonly failures: string[] = [];
  readonly #scripts = new Map<Guest, Script<PutReport>[]>();

  constructor(bed: Bed, directory: string) {
    for (let index = 0; index < processes; index++) {
      const guest = bed.guest((index % bed.guests.length) + 1);
      const orders: PutOrders = { directory, name: `${guest.name}-${index}`, puts: putsEach };
      const script = guest.run<PutReport>(bed.module("test/shares/guest/put-many.ts"), [JSON.stringify(orders)], {
        onMessage: (heard) =>
          void (heard.kind === "unknown" ? this.unknown.push(heard) : this.acknowledged.push(heard)),
      });
      void script.ended.then(({ code, stderr }) => {
        if (code !== 0) this.failures.push(`${orders.name} ended with ${code}: ${stderr}`);
      });
      this.#scripts.set(guest, [...this.scripts(guest), script]);
    }
  }

  get isOver(): boolean {
    return [...this.#scripts.values()].flat().every(({ ending }) => ending !== undefined);
  }

  scripts(guest: Guest): Script<PutReport>[] {
    return this.#scripts.get(guest) ?? [];
  }

  start(): void {
    // No fault of this scenario kills a machine.
  }

  async bury(): Promise<void> {
    // Nothing is left that a person would have to remove.
  }
}
