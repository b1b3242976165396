// Determines on Windows whether a path is on a disk of this machine alone. Written from the
// documentation of Windows; not run on Windows itself.
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { win32 } from "node:path";
import { promisify } from "node:util";
import type { Volume } from "../../disk.ts";

/** The questions to Windows. Tests pass their own answers. */
export interface DriveQuestions {
  /** Runs a program and returns what it printed. Rejects if it fails. */
  readonly run: (program: string, args: readonly string[]) => Promise<string>;
  /** Returns the serial number of the volume that `path` is on. */
  readonly serialOf: (path: string) => Promise<bigint>;
  /** The drive of Windows itself, which is always fixed: "C:". */
  readonly systemDrive: string;
}

/**
 * `real` is a path as `realpath` returns it: it resolves a mapped drive to its UNC path, and a
 * drive made by SUBST to the folder behind it. So a drive letter that is left stands for a volume.
 * Only NTFS and ReFS on a fixed drive count as local. A volume that is mounted on a folder is
 * unknown, because a cluster shared volume (CSVFS) looks like that.
 */
export async function findOnWindows(real: string, questions: DriveQuestions = windows): Promise<Volume> {
  if (real.startsWith("\\\\")) return { kind: "network", type: "unc", mountOptions: [] };
  const drive = /^[a-z]:/i.exec(real)?.[0].toUpperCase();
  if (drive === undefined) return unknown("unknown");
  try {
    const serial = await questions.serialOf(`${drive}\\`);
    if ((await questions.serialOf(real)) !== serial) return unknown("a volume mounted on a folder");
    const { type, isFixed } = await driveOf(drive, serial, questions);
    return isFixed && ["ntfs", "refs"].includes(type)
      ? { kind: "local", type, mountOptions: [] }
      : unknown(type === "" ? "unknown" : type);
  } catch {
    // The programs are missing or forbidden: an unknown volume is a valid answer.
    return unknown("unknown");
  }
}

interface Drive {
  /** The name of its file system in lower case; "" if no program tells it. */
  readonly type: string;
  readonly isFixed: boolean;
}

/** Asking takes a process, and a process opens many disks. A letter may get another volume later. */
const known = new WeakMap<DriveQuestions, Map<string, Promise<Drive>>>();

async function driveOf(drive: string, serial: bigint, questions: DriveQuestions): Promise<Drive> {
  const answers = known.get(questions) ?? new Map<string, Promise<Drive>>();
  known.set(questions, answers);
  const key = `${drive}${serial}`;
  const answer = answers.get(key) ?? askFsutil(drive, questions).catch(() => askPowerShell(drive, questions));
  answers.set(key, answer);
  return await answer;
}

/** Fast. Old versions of Windows refuse it to users that are not administrators. */
async function askFsutil(drive: string, { run, systemDrive }: DriveQuestions): Promise<Drive> {
  const ask = (question: string, of: string): Promise<string> => run("fsutil.exe", ["fsinfo", question, of]);
  const type = findFileSystem(await ask("volumeinfo", `${drive}\\`));
  if (type === undefined) throw new Error("fsutil printed something else");
  if (drive === systemDrive.toUpperCase()) return { type, isFixed: true };
  // The words are translated. So the answer for this drive is compared with that for a fixed one.
  const [own, fixed] = [await ask("drivetype", drive), await ask("drivetype", systemDrive)];
  return { type, isFixed: withoutDrive(own) === withoutDrive(fixed) };
}

/**
 * Labels are translated, their order is the same: name of the volume, serial number, longest name,
 * file system. The name of a volume is free text, and may be "NTFS".
 */
function findFileSystem(text: string): string | undefined {
  const fourth = text.split(/\r?\n/).filter((line) => line.trim() !== "")[3];
  return /:\s*([a-z0-9_]+)\s*$/i.exec(fourth ?? "")?.[1]?.toLowerCase();
}

function withoutDrive(text: string): string {
  return text.replace(/^\s*[a-z]:\\?/i, "").trim();
}

/** Slow: it takes about half a second to start. Its words are not translated. */
async function askPowerShell(drive: string, { run }: DriveQuestions): Promise<Drive> {
  const script = `$d = [IO.DriveInfo]::new('${drive}'); "$($d.DriveType) $($d.DriveFormat)"`;
  const program = "WindowsPowerShell\\v1.0\\powershell.exe";
  const [kind, type = ""] = (await run(program, ["-NoProfile", "-NonInteractive", "-Command", script]))
    .trim()
    .split(/\s+/);
  return { type: type.toLowerCase(), isFixed: kind === "Fixed" };
}

function unknown(type: string): Volume {
  return { kind: "unknown", type, mountOptions: [] };
}

const windows: DriveQuestions = {
  run: async (program, args) => {
    const path = win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", program);
    return (await promisify(execFile)(path, args, { timeout: 10_000, windowsHide: true })).stdout;
  },
  // Some versions of libuv give 64 bits of it by name, and 32 where they take another call.
  serialOf: async (path) => BigInt.asUintN(32, (await stat(path, { bigint: true })).dev),
  systemDrive: process.env["SystemDrive"] ?? "C:",
};
