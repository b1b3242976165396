// A shell command that processes a ticket: it gets the files and their metadata, and its exit code
// decides the outcome.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { pipeline, Readable } from "node:stream";
import type { Delivery } from "../../../handoff/index.ts";
import type { OutputSink } from "../../output.ts";
import { ProcessGroup, type GroupEnd } from "./process-group.ts";
import { environmentOf } from "./ticket-environment.ts";

/** How much of the end of a command's stderr is kept as the reason. */
const reasonLengthMax = 2_000;

export interface CommandEnd extends GroupEnd {
  /** The end of the command's stderr. */
  readonly said: string;
}

export interface CommandSurroundings {
  /** The directory of the box. */
  readonly box: string;
  readonly stderr: OutputSink;
  readonly stop: AbortSignal;
  /** The commands that run now. */
  readonly running: Set<ProcessGroup>;
  readonly note: (text: string) => void;
}

/** Thrown if the command was not started, or did not get all of its input. */
export class NotRun extends Error {
  override readonly name: string = "";
  /**
   * True if the machine has no free process, memory or file descriptor now, so that the ticket is
   * not to blame.
   */
  readonly isShortage: boolean;

  constructor(what: string, cause: unknown) {
    super(`The command ${what}: ${(cause as Error).message}`, { cause });
    this.isShortage = shortages.has((cause as NodeJS.ErrnoException).code ?? "");
  }
}

const shortages = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"]);

/**
 * Runs `text` in a shell. Its stdout and stderr go to our stderr; its stdin is the first file. It
 * counts as ended when everything that it started has closed its output. If `stop` aborts, the
 * whole group is asked to end, then killed. Throws NotRun.
 */
export async function runOnTicket(
  text: string,
  delivery: Delivery,
  { box, stderr, stop, running, note }: CommandSurroundings,
): Promise<CommandEnd> {
  await using environment = await environmentOf(delivery, box).catch(notStarted);
  for (const each of environment.notes) note(`holdfast: ticket ${delivery.id}: ${each}`);
  const child = await start(text, environment.variables).catch(notStarted);
  const group = new ProcessGroup(child);
  running.add(group);
  const end = (): void => group.end();
  try {
    if (stop.aborted) end();
    else stop.addEventListener("abort", end, { once: true });
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => void stderr.write(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      stderr.write(chunk);
      said = (said + chunk.toString("utf8")).slice(-reasonLengthMax);
    });
    const input = new Input(delivery, group);
    // An error is ignored: the command need not read its input to the end.
    pipeline(Readable.from(input.pieces(), { objectMode: false }), child.stdin, () => undefined);
    const ended = await group.ended();
    if (input.failure !== undefined) throw new NotRun("did not get all of its input", input.failure);
    return { ...ended, said: said.trim() };
  } finally {
    running.delete(group);
    stop.removeEventListener("abort", end);
  }
}

/** The first file of a ticket. */
class Input {
  readonly #delivery: Delivery;
  readonly #group: ProcessGroup;
  failure: unknown;

  constructor(delivery: Delivery, group: ProcessGroup) {
    this.#delivery = delivery;
    this.#group = group;
  }

  /**
   * If the file cannot be read, the command is killed before its input ends: it must not take half
   * a file for the whole.
   */
  async *pieces(): AsyncGenerator<Uint8Array> {
    const [first] = this.#delivery.files;
    if (first === undefined) return;
    const pieces = this.#delivery.stream(first.name)[Symbol.asyncIterator]();
    let left = first.size;
    try {
      for (;;) {
        const next = await pieces.next().catch((error: unknown) => this.#fail(error));
        if (next.done === true) break;
        left -= next.value.length;
        yield next.value;
      }
      if (left > 0) this.#fail(new Error(`the last ${left} bytes of ${JSON.stringify(first.name)} are gone`));
    } finally {
      await pieces.return?.();
    }
  }

  #fail(error: unknown): never {
    this.failure = error;
    this.#group.kill();
    throw error;
  }
}

async function start(
  text: string,
  variables: Readonly<Record<string, string>>,
): Promise<ChildProcessWithoutNullStreams> {
  const child = spawn(text, {
    shell: true,
    // A group of its own: Ctrl-C then reaches only us, so the command can finish, and we can end
    // everything that it starts.
    detached: process.platform !== "win32",
    // On Windows a console of its own does the same.
    windowsHide: true,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...variables },
  });
  // Without a pid, the child may have no pipes either.
  if (child.pid === undefined) throw (await once(child, "error"))[0];
  return child;
}

function notStarted(error: unknown): never {
  throw new NotRun("could not be started", error);
}
