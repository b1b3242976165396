// A client that is a program of its own: where it is, and how it is run; a folder of files for it; and the gateway.
import { execFile, execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import { GatewayProcess } from "../gateway-process.ts";

const execute = promisify(execFile);

/** What it says of itself; undefined, with a line that says why its tests are left out, where it is not installed. */
export function findTool(name: string, debianPackage: string): string | undefined {
  try {
    return execFileSync(name, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    console.warn(`left out: ${name} is not installed (apt-get install ${debianPackage})`);
    return undefined;
  }
}

export interface Bench {
  readonly directory: string;
  readonly gateway: GatewayProcess;
  /** Rejects, with what it said, when it does not end with success. */
  readonly run: (command: string, args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<string>;
}

/** A gateway with the bucket "tools", for all tests of a file. */
export function useGateway(): () => Bench {
  let bench: Bench | undefined;
  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
    const gateway = await GatewayProcess.start([join(directory, "objects"), "--bucket", "tools"]);
    bench = {
      directory,
      gateway,
      run: async (command, args, env = {}) => {
        const { stdout } = await execute(command, args, {
          cwd: directory,
          env: { ...environment(), HOME: directory, ...env },
          maxBuffer: 64 * 1024 * 1024,
        });
        return stdout;
      },
    };
  });
  afterAll(async () => {
    bench?.gateway.kill("SIGKILL");
    await bench?.gateway.ended;
    if (bench !== undefined) rmSync(bench.directory, { recursive: true, force: true });
  });
  return () => {
    if (bench === undefined) throw new Error("the gateway has not started");
    return bench;
  };
}

/** Without what this machine's user has set up for AWS. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("AWS_")));
}

/** Names that break programs which encode them wrongly, and sizes around the limits of parts. */
export function makeFiles(directory: string): void {
  const files: Readonly<Record<string, number>> = {
    "plain.txt": 5,
    empty: 0,
    "with space/and+plus.txt": 100,
    "ümläut/日本語.txt": 100,
    "deep/a/b/c/d.bin": 70_000,
    "brackets[1](2)'x'.txt": 10,
    "large.bin": 20 * 1024 * 1024 + 17,
  };
  for (const [name, size] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), randomBytes(size));
  }
}

/** The digest of each file below a directory. */
export function digestsOf(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  const files = names.filter((name) => statSync(join(directory, name)).isFile());
  return Object.fromEntries(
    files.map((name) => [
      name,
      createHash("sha256")
        .update(readFileSync(join(directory, name)))
        .digest("hex"),
    ]),
  );
}
