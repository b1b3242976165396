import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { removeSession } from "../../src/doctor/peer/presence.ts";
import { doctor, type DoctorReport } from "../../src/index.ts";
import { openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";

const main = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

/** What Holdfast cannot do without. The rest depends on where temporary files are. */
const vital = ["hard-link", "exclusive-create", "rename", "file-sync"];

test("the disk under the temporary directory can be trusted, and its files are left alone", async () => {
  const directory = makeScratch();
  writeFileSync(join(directory, "till-3.csv"), "not yours");
  const report = await doctor(directory);
  expect(report.verdict).not.toBe("unusable");
  const answers = Object.fromEntries(report.checks.map(({ id, verdict }) => [id, verdict]));
  expect(answers).toMatchObject(Object.fromEntries(vital.map((id) => [id, "good"])));
  if (report.volume.kind === "local") expect(answers).toMatchObject({ "os-lock": "good", clock: "good" });
  expect(readdirSync(directory)).toEqual(["till-3.csv"]);
  expect(readFileSync(join(directory, "till-3.csv"), "utf8")).toBe("not yours");
});

test("what a run that was killed has left is removed when it is a day old, and nothing else", async () => {
  const directory = makeScratch();
  const named = (digit: string): string => `.holdfast-doctor-${digit.repeat(26)}`;
  const names = [named("0"), named("1"), ".holdfast-doctor-notes"];
  for (const name of names) {
    mkdirSync(join(directory, name, "below"), { recursive: true });
    writeFileSync(join(directory, name, "below", "file"), "");
  }
  const dayBefore = new Date(Date.now() - 25 * 3_600_000);
  for (const name of [named("0"), ".holdfast-doctor-notes"]) utimesSync(join(directory, name), dayBefore, dayBefore);
  await doctor(directory);
  expect(readdirSync(directory).sort()).toEqual([named("1"), ".holdfast-doctor-notes"]);
});

test("a link that looks like a forgotten run is left alone, and keeps no other from being swept", async () => {
  const directory = makeScratch();
  const named = (digit: string): string => join(directory, `.holdfast-doctor-${digit.repeat(26)}`);
  const stranger = join(makeScratch(), "stranger");
  mkdirSync(stranger);
  writeFileSync(join(stranger, "book"), "not yours");
  const dayBefore = new Date(Date.now() - 25 * 3_600_000);
  symlinkSync(stranger, named("0"));
  symlinkSync(join(directory, "nowhere"), named("1"));
  symlinkSync(named("2"), named("2"));
  // Many, so that in whatever order they are listed some come after the links.
  const forgotten = Array.from("3456789abcdefgh", named);
  for (const path of forgotten) mkdirSync(path);
  for (const path of [stranger, ...forgotten]) utimesSync(path, dayBefore, dayBefore);
  await doctor(directory);
  expect(readdirSync(directory).sort()).toEqual(["0", "1", "2"].map((digit) => basename(named(digit))));
  expect(readdirSync(stranger)).toEqual(["book"]);
});

test("a directory can be named in any way", async () => {
  const directory = makeScratch();
  mkdirSync(join(directory, "ä b"));
  for (const name of [`${directory}/ä b/`, relative(process.cwd(), join(directory, "ä b"))])
    expect((await doctor(name)).directory).toBe(join(directory, "ä b"));
});

test("what is no directory is refused", async () => {
  const directory = makeScratch();
  const file = join(directory, "file");
  writeFileSync(file, "");
  for (const path of ["", "\0", join(directory, "nowhere"), file, join(file, "below")])
    await expect(doctor(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
});

test("a directory that this user may not write to is refused", async () => {
  const directory = makeScratch();
  chmodSync(directory, 0o555);
  await asOrdinaryUser(async () => {
    await expect(doctor(directory)).rejects.toMatchObject({ code: "NO_PERMISSION", path: directory });
  });
});

test("two processes find each other, come to the same verdict, and leave nothing behind", async () => {
  const directory = makeScratch();
  // What a run that was killed leaves: names that are not renewed.
  mkdirSync(join(directory, ".holdfast-doctor-peer"));
  writeFileSync(join(directory, ".holdfast-doctor-peer", `${"0".repeat(26)}.3.seeks.nobody`), "");
  const runs = await Promise.all([examineInChild(directory), examineInChild(directory)]);
  expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  const reports = runs.map(({ stdout }) => JSON.parse(stdout) as DoctorReport);
  for (const [index, report] of reports.entries()) {
    expect(report.peer).toMatchObject({ state: "met", pid: runs[1 - index]?.pid, sameMachine: true });
    const answers = Object.fromEntries(report.checks.map(({ id, verdict }) => [id, verdict]));
    expect(answers).toMatchObject({
      "peer-machines": "limited",
      "peer-link": "good",
      "peer-create": "good",
      "peer-presence": "good",
      "peer-absence": "good",
    });
    if (report.volume.kind === "local") expect(answers).toMatchObject({ "peer-os-lock": "good", "peer-clock": "good" });
    expect(report.verdict).toBe("limited");
  }
  expect(readdirSync(directory)).toEqual([]);
});

test.each(["", "/link"])("what a link in the place of a session%s leads to is left alone", async (below) => {
  const directory = makeScratch();
  const stranger = join(directory, "stranger");
  const session = join(directory, "session");
  mkdirSync(join(stranger, "link"), { recursive: true });
  for (const name of ["book", "link/book"]) writeFileSync(join(stranger, name), "not yours");
  if (below !== "") mkdirSync(session);
  symlinkSync(stranger, `${session}${below}`);
  expect(await removeSession(await openNodeDisk(directory), session)).toBe(false);
  expect(readdirSync(stranger).sort()).toEqual(["book", "link"]);
  expect(readdirSync(join(stranger, "link"))).toEqual(["book"]);
});

interface ChildRun {
  readonly pid: number | undefined;
  readonly exitCode: number | null;
  readonly stdout: string;
}

function examineInChild(directory: string): Promise<ChildRun> {
  return new Promise((resolve, reject) => {
    const args = [main, "doctor", directory, "--with-peer", "--timeout", "50s", "--json"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ pid: child.pid, exitCode, stdout }));
  });
}
