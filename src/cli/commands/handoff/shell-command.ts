// A shell command that works on a ticket: it gets the files and what is known of them, and says by its exit code
// what became of it.
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import type { Delivery } from "../../../handoff/index.ts";
import type { Sink } from "../../output.ts";

/** How much of what a command says last on stderr is kept as the reason. */
const reasonLengthMax = 2_000;
/** A command that does not end when it is asked to is killed. */
const graceMs = 5_000;

export interface CommandEnd {
  /** 128 + n when signal n has ended it, as shells have it. */
  readonly exitCode: number;
  /** The end of its stderr. */
  readonly said: string;
}

export interface CommandSurroundings {
  /** The directory of the box. */
  readonly box: string;
  readonly stderr: Sink;
  readonly stop: AbortSignal;
}

/**
 * Runs `text` in a shell. Its stdout and stderr go to our stderr, its stdin is the first file. When `stop` aborts, it is
 * asked to end, with all that it has started.
 */
export async function runOnTicket(
  text: string,
  delivery: Delivery,
  { box, stderr, stop }: CommandSurroundings,
): Promise<CommandEnd> {
  const environment = await environmentOf(delivery, box);
  const [first] = delivery.files;
  const child = spawn(text, {
    shell: true,
    // A group of its own: Ctrl-C reaches us alone, and we let it finish.
    detached: process.platform !== "win32",
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => void stderr.write(chunk));
  child.stderr.on("data", (chunk: Buffer) => {
    stderr.write(chunk);
    said = (said + chunk.toString("utf8")).slice(-reasonLengthMax);
  });
  // It may not read its input, or not to the end.
  child.stdin.on("error", () => undefined);
  if (first === undefined) child.stdin.end();
  else
    Readable.from(delivery.stream(first.name))
      .on("error", () => void child.stdin.destroy())
      .pipe(child.stdin);
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    signalGroup(child, "SIGTERM");
    timer = setTimeout(() => signalGroup(child, "SIGKILL"), graceMs);
  };
  if (stop.aborted) end();
  else stop.addEventListener("abort", end, { once: true });
  try {
    return { exitCode: await exitCodeOf(child), said: said.trim() };
  } finally {
    stop.removeEventListener("abort", end);
    clearTimeout(timer);
  }
}

async function environmentOf(delivery: Delivery, box: string): Promise<Record<string, string>> {
  const paths: string[] = [];
  for (const { name } of delivery.files) paths.push(await delivery.path(name));
  const { id, key, attempt, group, meta } = delivery;
  return {
    HOLDFAST_BOX: box,
    HOLDFAST_ID: id,
    HOLDFAST_KEY: key,
    HOLDFAST_ATTEMPT: String(attempt),
    HOLDFAST_FILE: paths[0] ?? "",
    HOLDFAST_FILES: dirname(paths[0] ?? "."),
    HOLDFAST_GROUP: group ?? "",
    HOLDFAST_META: meta === undefined ? "" : JSON.stringify(meta),
  };
}

function exitCodeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      if (child.pid === undefined) reject(error);
    });
    // Not `exit`: what it has said last may still be on its way.
    child.once("close", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
