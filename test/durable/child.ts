// Real processes that run the built library, one for each part that a test needs on another side.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { onTestFinished } from "vitest";

const durable = new URL("../../dist/durable/index.js", import.meta.url).href;

export class Child {
  readonly process: ChildProcess;
  readonly #lines: Interface;
  readonly #heard: string[] = [];
  #listening: (() => void)[] = [];
  #isSilent = false;

  constructor(process: ChildProcess) {
    this.process = process;
    this.#lines = createInterface({ input: process.stdout! });
    this.#lines.on("line", (line) => {
      this.#heard.push(line);
      this.#wake();
    });
    this.#lines.on("close", () => {
      this.#isSilent = true;
      this.#wake();
    });
  }

  /** The next line that it says. */
  async hear(): Promise<string> {
    for (;;) {
      const line = this.#heard.shift();
      if (line !== undefined) return line;
      if (this.#isSilent) throw new Error("the child ended and said nothing more");
      await new Promise<void>((resolve) => this.#listening.push(resolve));
    }
  }

  tell(line: string): void {
    this.process.stdin!.write(`${line}\n`);
  }

  async end(signal?: NodeJS.Signals): Promise<void> {
    const exited = once(this.process, "exit");
    if (signal === undefined) this.process.stdin!.end();
    else this.process.kill(signal);
    await exited;
  }

  #wake(): void {
    const listening = this.#listening;
    this.#listening = [];
    for (const resolve of listening) resolve();
  }
}

/**
 * Starts a process that runs `program`: the body of a module which finds everything of
 * "holdfast/durable" in `durable`, its arguments in `args`, the lines it is told in `told`, and
 * speaks by `say`. It ends when its standard input does. Killed at the end of the test.
 */
export function startChild(program: string, ...args: string[]): Child {
  const prelude = `
    import * as durable from ${JSON.stringify(durable)};
    import { createInterface } from "node:readline";
    const args = process.argv.slice(1);
    const say = (line) => process.stdout.write(line + "\\n");
    const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", `${prelude}\n${program}`, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return new Child(child);
}

/**
 * Joins the ground in a directory, says the id of its holder, and stays until it is told anything;
 * then it closes and says "closed".
 */
export function startHolder(directory: string, leaseMs = 30_000): Child {
  return startChild(
    `
    const ground = await durable.openGround(args[0], { leaseMs: Number(args[1]), name: "child" });
    say((await ground.session()).holder.id);
    await told.next();
    await ground.close();
    say("closed");
    process.stdin.destroy();`,
    directory,
    String(leaseMs),
  );
}
