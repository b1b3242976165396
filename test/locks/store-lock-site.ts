// Directories with a store lock of a given kind, in this process and in others.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path/posix";
import { onTestFinished } from "vitest";
import { encodeRecord } from "../../src/format/record.ts";
import { openStoreLock, type StoreLock, type StoreLockOptions } from "../../src/locks/index.ts";
import { startChild, type Child } from "../durable/child.ts";
import { asHoldfastWrites, makeScratch } from "../sites/scratch.ts";

const locks = new URL("../../dist/locks/index.js", import.meta.url).href;

export interface Site {
  readonly directory: string;
  /** Each call is like another process: it shares nothing with the others but the directory. */
  readonly open: (options?: StoreLockOptions) => Promise<StoreLock>;
}

/**
 * A new directory whose gate is of this kind. `table` is what the first process on a network mount
 * records; here it can be used on a local disk.
 */
export function makeSite(gate: StoreLock["gate"]): Site {
  const directory = makeScratch();
  if (gate === "table") writeFileSync(join(directory, "gate.json"), gateRecord(gate));
  const open = async (options?: StoreLockOptions): Promise<StoreLock> => {
    const lock = await openStoreLock(directory, options);
    onTestFinished(() => lock.close());
    return lock;
  };
  return { directory, open };
}

export function gateRecord(gate: string): Uint8Array {
  const kind = { kind: "gate", decode: (body: unknown) => body };
  return encodeRecord<unknown>(kind, { id: "someone", gate });
}

/**
 * A process that finds an open store lock of the directory in `lock`, what else it was given in
 * `args`, and `fs`.
 */
export function startLocker(directory: string, program: string, ...args: string[]): Child {
  return startChild(
    `
    import * as fs from "node:fs";
    const { openStoreLock } = await import(args.shift());
    const directory = args.shift();
    const lock = await openStoreLock(directory, { timeoutMs: 30_000 });
    ${program}
    await lock.close();
    process.exit(0);`,
    locks,
    directory,
    ...args,
  );
}

/** Every file below a directory with its content; directories end in a slash. */
export function treeOf(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const name = asHoldfastWrites(entry);
    const path = join(directory, name);
    if (statSync(path).isDirectory()) found[`${name}/`] = "";
    else found[name] = readFileSync(path, "utf8");
  }
  return found;
}
