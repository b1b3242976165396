// The part of the bed that runs in the machine's own namespaces: it says what is not possible,
// installs, and starts the rest in namespaces of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseBedArguments, type BedArguments, type ServerKind } from "./arguments.ts";
import { findObstacles, prepareFor } from "./machine.ts";

/** What `main.ts` gets as its only argument, as JSON. */
export interface InsideOrders extends BedArguments {
  readonly kind: ServerKind;
  /** Of this repository. */
  readonly root: string;
  /** Where the compiled code is. */
  readonly scratch: string;
  /** Where logs, exports and results go. */
  readonly work: string;
}

/** Neither passed nor failed: nothing could be run. */
const notPossible = 3;
const interruptedCode = 130;

/**
 * The exit code: 0 when everything has passed, 1 when something failed, 2 for wrong usage, 3 when
 * something is not possible here, 130 when interrupted.
 */
export async function runOutside(root: string, scratch: string, words: readonly string[]): Promise<number> {
  const code = await runWhatIsPossible(root, scratch, words);
  if (words.includes("--keep") || code === 1) console.log(`Logs, exports and compiled code: ${scratch}`);
  else rmSync(scratch, { recursive: true, force: true });
  return code;
}

async function runWhatIsPossible(root: string, scratch: string, words: readonly string[]): Promise<number> {
  let wanted: BedArguments;
  try {
    wanted = parseBedArguments(words);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
  const obstacles = findObstacles();
  if (obstacles.length > 0) {
    console.error(["Not possible on this machine:", ...obstacles].join("\n  "));
    return notPossible;
  }
  const codes: number[] = [];
  for (const kind of wanted.servers) {
    if (codes.includes(interruptedCode)) break;
    const work = join(scratch, kind);
    mkdirSync(work);
    codes.push(isPossible(kind) ? await runInside({ ...wanted, kind, root, scratch, work }) : notPossible);
  }
  return [interruptedCode, 1, notPossible].find((code) => codes.includes(code)) ?? Math.max(...codes);
}

function isPossible(kind: ServerKind): boolean {
  const reason = prepareFor(kind, (text) => console.log(`${kind}: ${text}`));
  if (reason !== undefined) console.error(`${kind}: not possible on this machine: ${reason}`);
  return reason === undefined;
}

/**
 * A network without a way out, mounts that no other program sees, and a process table whose first
 * process is `main.ts`: when that ends, however it ends, the kernel ends every guest and server
 * with it, and bridge, taps and mounts are gone.
 */
async function runInside(orders: InsideOrders): Promise<number> {
  const apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  const main = join(orders.scratch, "test/shares/main.js");
  const inside = spawn("unshare", [...apart, process.execPath, main, JSON.stringify(orders)], {
    // The channel is a lifeline: it breaks when this process dies.
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, PATH: `/usr/sbin:/usr/bin:/sbin:/bin:${process.env["PATH"] ?? ""}` },
    // Not in the group that a terminal interrupts: it is told by us, and says so.
    detached: true,
  });
  const interrupt = (): void => void inside.send("interrupt", () => undefined);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupt);
  const [code] = (await once(inside, "exit")) as [number | null];
  for (const signal of signals) process.off(signal, interrupt);
  return code ?? 1;
}
