// The process that called this command: what it is called, and whether it is a wrapper that ends as
// soon as the command does.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** One command and its arguments, and nothing that a shell would run after it. */
const onlyHoldfast = /^['"]?([^\s'"]*[\\/])?holdfast(\.\w+)?['"]?(\s[^;&|\n]*)?$/;

/**
 * `npx` or `npm exec`, if that was asked to run Holdfast and nothing else: it runs the command in a
 * shell of its own, and both end with it. npm says so in the environment, also to what Holdfast
 * itself starts. Undefined where it cannot be told: pnpm, `timeout`, subshells and pipes leave no
 * trace.
 */
export function findWrapper(env: NodeJS.ProcessEnv): string | undefined {
  if (env["npm_command"] !== "exec" || env["npm_lifecycle_event"] !== "npx") return undefined;
  return onlyHoldfast.test(env["npm_lifecycle_script"] ?? "") ? "npx" : undefined;
}

/** For people, as far as the system tells: the name of the program that a process runs. */
export async function findProcessName(pid: number): Promise<string | undefined> {
  // Not `ps` on Linux: small images have none, or one that does not know `-p`.
  const [command, ...args] =
    process.platform === "linux" ? ["cat", `/proc/${pid}/comm`] : ["ps", "-o", "comm=", "-p", String(pid)];
  try {
    const { stdout } = await promisify(execFile)(command ?? "", args, { timeout: 2000 });
    return stdout.trim() === "" ? undefined : stdout.trim();
  } catch {
    // Windows, or a process that has ended since: the number has to do.
    return undefined;
  }
}
