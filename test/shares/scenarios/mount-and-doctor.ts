// Whether the share is mounted as it should be, and what the doctor says of it, alone and together
// with another machine.
import type { DoctorReport } from "../../../src/doctor/report.ts";
import type { Bed } from "../bed.ts";
import { sharePath, type Guest } from "../guest.ts";
import type { Report, Scenario } from "../scenario.ts";

export const mountAndDoctor: Scenario = {
  name: "mount-and-doctor",
  about: "the share is mounted in every guest, and the doctor does not refuse it",
  async run(bed, report) {
    for (const guest of bed.guests) {
      const mounts = (await guest.shell("cat /proc/self/mountinfo")).split("\n");
      const line = mounts.find((each) => each.includes(` ${sharePath} `));
      report.must(line !== undefined, `${guest.name} has no mount at ${sharePath}`);
      if (guest === bed.guests[0]) report.note(line ?? "");
    }
    const boots = await Promise.all(bed.guests.map((guest) => guest.shell("cat /proc/sys/kernel/random/boot_id")));
    report.must(new Set(boots).size === bed.guests.length, `guests share a boot id: ${boots.join(" ")}`);

    const directory = await bed.directory("doctor");
    show(report, "alone", await examine(bed, bed.guest(1), [directory]));
    const together = bed.guests.slice(0, 2).map((guest) => examine(bed, guest, [directory, "--with-peer"]));
    for (const [index, found] of (await Promise.all(together)).entries())
      show(report, `with a peer, ${bed.guest(index + 1).name}`, found);
  },
};

async function examine(bed: Bed, guest: Guest, args: readonly string[]): Promise<DoctorReport> {
  const script = guest.run<DoctorReport>(bed.module("src/cli/main.ts"), ["doctor", "--json", ...args]);
  const { code, stderr } = await script.ended;
  const [found] = script.messages;
  if (found === undefined) throw new Error(`the doctor said nothing, and ended with ${code}: ${stderr}`);
  return found;
}

function show(report: Report, how: string, { verdict, checks, peer }: DoctorReport): void {
  report.must(verdict !== "unusable", `the doctor, ${how}, refuses the share`);
  const odd = checks.filter((check) => check.verdict !== "good");
  report.note(`doctor ${how}: ${verdict}`);
  for (const { id, verdict, finding } of odd) report.note(`  ${verdict}: ${id}: ${finding}`);
  if (peer !== undefined) report.must(peer.state === "met", `the peers did not meet: ${JSON.stringify(peer)}`);
}
