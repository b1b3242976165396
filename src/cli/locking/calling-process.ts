// The process that called this command: its name, and if it is a wrapper that ends together with
// the command.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** A single command with its arguments, after which a shell runs nothing else. */
const onlyHoldfast = /^['"]?([^\s'"]*[\\/])?holdfast(\.\w+)?['"]?(\s[^;&|\n]*)?$/;

/**
 * Returns `npx` or `npm exec` if it was started only to run Holdfast: then npm and its shell end
 * together with this command. npm reports this in the environment, also to processes that Holdfast
 * starts. Returns undefined if there is none, or if it cannot be determined: pnpm, `timeout`,
 * subshells and pipes leave no trace.
 */
export function findWrapper(env: NodeJS.ProcessEnv): string | undefined {
  if (env["npm_command"] !== "exec" || env["npm_lifecycle_event"] !== "npx") return undefined;
  return onlyHoldfast.test(env["npm_lifecycle_script"] ?? "") ? "npx" : undefined;
}

/** Returns the name of the program that a process runs, for people, if the system reports it. */
export async function findProcessName(pid: number): Promise<string | undefined> {
  // On Linux, `/proc` and not `ps`: small images have none, or one without `-p`.
  const [command, ...args] =
    process.platform === "linux" ? ["cat", `/proc/${pid}/comm`] : ["ps", "-o", "comm=", "-p", String(pid)];
  try {
    const { stdout } = await promisify(execFile)(command ?? "", args, { timeout: 2000 });
    return stdout.trim() === "" ? undefined : stdout.trim();
  } catch {
    // On Windows, or if the process has ended, only its number is known.
    return undefined;
  }
}
