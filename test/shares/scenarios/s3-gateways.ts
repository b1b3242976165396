// Three gateways on one folder, each on a machine of its own: together they are one S3, while one
// machine is killed and another one is cut off for longer than its lease.
import type { Bed } from "../bed.ts";
import { faultsOf } from "../faults.ts";
import { GatewayCrew, textOfMark } from "../gateway-crew.ts";
import type { Guest } from "../guest.ts";
import { hotKeys, onceKey } from "../guest/s3-messages.ts";
import { Hand } from "../hand.ts";
import type { Report, Scenario } from "../scenario.ts";

/** Of a gateway that is started by the command. */
const leaseMs = 30_000;
/** What the guests may take beyond what the server does. */
const graceMs = 15_000;
const startMsMax = 180_000;
const answerMsMax = 120_000;
const calmRaces = 20;
const putsEach = 10;
const shownMax = 10;

export const s3Gateways: Scenario = {
  name: "s3-gateways",
  about: "gateways of three machines are one S3, while one machine is killed and another cut off past the lease",
  async run(bed, report) {
    const directory = `${await bed.directory("s3")}/objects`;
    const hand = await Hand.open(bed, bed.guest(1));
    await hand.do("createVersionedBucket", directory);
    await hand.close();
    const crew = new GatewayCrew(bed, directory);
    const races = new Races(crew, report);
    try {
      for (const guest of bed.guests) crew.start(guest);
      const started = await crew.waitForPuts(bed.guests, putsEach, startMsMax);
      if (started === undefined) report.fail(`not all gateways got to work within ${startMsMax} ms`);
      else {
        for (let count = 0; count < calmRaces; count++) await races.run(bed.guests);
        // Guest 1 is spared, so that there is one gateway that nothing has happened to.
        await suffer(bed, crew, races, "killed", bed.guest(2), report);
        await suffer(bed, crew, races, "cut off", bed.guest(3), report);
        await crew.finish();
        await judge(bed, crew, races, report);
      }
      for (const warning of crew.warnings) report.note(warning);
    } finally {
      await crew.kill();
    }
    for (const failure of crew.failures.slice(0, shownMax)) report.fail(failure);
  },
};

/** Conditional puts: the same key by several clients at once, one key after the other. */
class Races {
  readonly #crew: GatewayCrew;
  readonly #report: Report;
  /** By the number of the key: how many clients were asked. */
  readonly asked = new Map<number, number>();

  constructor(crew: GatewayCrew, report: Report) {
    this.#crew = crew;
    this.#report = report;
  }

  async run(guests: readonly Guest[]): Promise<void> {
    const number = this.asked.size;
    this.asked.set(number, guests.length);
    await this.#crew.race(number, guests, answerMsMax);
  }

  /** Who was told that its put is done: one, or none where an answer is missing. */
  judge(): ReadonlyMap<number, string> {
    const winners = new Map<number, string>();
    const statuses = new Map<string, number>();
    for (const [number, asked] of this.asked) {
      const answers = this.#crew.once.filter((each) => each.number === number);
      for (const { status = "none" } of answers) statuses.set(`${status}`, (statuses.get(`${status}`) ?? 0) + 1);
      const won = answers.filter(({ status }) => status === 200);
      const lost = answers.filter(({ status }) => status === 412 || status === 409);
      const told = answers.map(({ name, status, code }) => `${name} ${status ?? "none"} ${code}`).join(", ");
      const isClear = won.length + lost.length === asked;
      this.#report.must(won.length <= 1, `${onceKey(number)} was put by two clients: ${told}`);
      this.#report.must(!isClear || won.length > 0, `${onceKey(number)} was put by no client: ${told}`);
      for (const each of answers) {
        const isKnown = [undefined, 200, 409, 412, 503].includes(each.status);
        this.#report.must(isKnown, `${onceKey(number)}: ${told}`);
      }
      if (won[0] !== undefined) winners.set(number, textOfMark(won[0]));
    }
    const counts = [...statuses].map(([status, count]) => `${status}: ${count}`).join(", ");
    this.#report.note(`${this.asked.size} keys were put by If-None-Match, answers ${counts}`);
    return winners;
  }
}

/** One fault to one machine, while the others go on and race. */
async function suffer(
  bed: Bed,
  crew: GatewayCrew,
  races: Races,
  name: string,
  victim: Guest,
  report: Report,
): Promise<void> {
  const fault = faultsOf(bed, leaseMs).find((each) => each.name === name);
  if (fault === undefined) return;
  const others = bed.guests.filter((guest) => guest !== victim);
  const healthBefore = crew.healthOf(victim).length;
  let isMended = false;
  const during = fault.run(victim, crew).finally(() => (isMended = true));
  // Its failure is told when it is awaited.
  during.catch(() => undefined);
  // A gateway holds no lock that others wait for; but its server may hold something for its machine.
  const msMax = bed.server.leaseMs + graceMs;
  const heldUp = await crew.waitForPuts(others, 1, msMax);
  report.must(heldUp !== undefined, `${name} ${victim.name}: the others did not get on within ${msMax} ms`);
  while (!isMended && crew.failures.length === 0) await races.run(others);
  await during;
  const backMsMax = startMsMax + bed.server.leaseMs;
  const back = await crew.waitForPuts([victim], putsEach, backMsMax);
  report.must(back !== undefined, `${name} ${victim.name}: it did not get on within ${backMsMax} ms afterwards`);
  if (heldUp === undefined || back === undefined) await bed.collect(`s3 ${name}`);
  await races.run(bed.guests);
  if (name === "cut off") {
    const health = crew.healthOf(victim).slice(healthBefore);
    report.must(health.includes(503), `cut off: /-/health of ${victim.name} said ${health.join(", ")}, and never 503`);
    report.must(crew.healthOf(victim).at(-1) === 200, `${victim.name}: /-/health does not say 200 again`);
  }
  report.note(
    `${name} ${victim.name}: the others after ${heldUp ?? "–"} s, itself ${back ?? "–"} s after it was mended`,
  );
}

/**
 * Every version that was acknowledged is there, whole, under its id, through a gateway that nothing
 * happened to and through the one that was cut off; what was in doubt once at most; nothing else.
 */
async function judge(bed: Bed, crew: GatewayCrew, races: Races, report: Report): Promise<void> {
  const winners = races.judge();
  const { found, keys } = await crew.audit(bed.guest(1));
  const again = await crew.audit(bed.guest(3));
  const { acknowledged, refused, broken, killed } = crew;
  const statuses = [...new Set(refused.map(({ status, code }) => `${status ?? "none"} ${code}`))].join(", ");
  report.note(
    `${acknowledged.length} puts acknowledged, ${refused.length} not (${statuses}), ${found.length} versions`,
  );
  for (const what of broken.slice(0, shownMax)) report.violate(`not whole: ${what}`);
  for (const { status, code } of refused)
    report.must(status === undefined || status === 503, `a put was answered ${status} ${code}`);
  const byId = new Map(found.map((each) => [each.versionId, each]));
  report.must(byId.size === found.length, "two versions have the same id");
  report.must(new Set(found.map(textOfMark)).size === found.length, "a put is there twice");
  const ids = new Set(acknowledged.map(({ versionId }) => versionId));
  report.must(ids.size === acknowledged.length, "two puts were given the same version id");
  for (const { key, versionId, ...mark } of acknowledged) {
    const there = byId.get(versionId);
    const isThere = there !== undefined && there.key === key && textOfMark(there) === textOfMark(mark);
    report.must(isThere, `${textOfMark(mark)} was acknowledged as ${versionId} of ${key} and is lost`);
  }
  const inDoubt = new Set(refused.map(textOfMark));
  for (const each of found.filter(({ key, versionId }) => hotKeys.includes(key) && !ids.has(versionId))) {
    const isUnheard = killed.has(each.name) && !acknowledged.some((one) => textOfMark(one) === textOfMark(each));
    const isAllowed = inDoubt.delete(textOfMark(each)) || isUnheard;
    report.must(isAllowed, `${textOfMark(each)} is there as ${each.versionId}, twice or without a put`);
  }
  for (const number of races.asked.keys()) {
    const there = found.filter(({ key }) => key === onceKey(number));
    const winner = winners.get(number);
    report.must(there.length <= 1, `${onceKey(number)} has ${there.length} versions`);
    const isWinner = winner === undefined || (there[0] !== undefined && textOfMark(there[0]) === winner);
    report.must(isWinner, `${onceKey(number)} was acknowledged to ${winner}, and is not there`);
    const isLost = crew.once.some(
      (one) => one.status === 412 && there.some((each) => textOfMark(each) === textOfMark(one)),
    );
    report.must(!isLost, `${onceKey(number)} is there by a client that was told 412`);
  }
  const sorted = (list: typeof found): string =>
    list
      .map(({ key, versionId, ...mark }) => `${key} ${versionId} ${textOfMark(mark)}`)
      .sort()
      .join("\n");
  report.must(sorted(found) === sorted(again.found), "two gateways show different versions");
  const listed = new Set(found.map(({ key }) => key));
  report.must(
    keys.length === listed.size && keys.every((key) => listed.has(key)) && keys.join() === again.keys.join(),
    `a plain listing has ${keys.length} keys, that of versions ${listed.size}`,
  );
}
