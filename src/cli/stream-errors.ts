// Failures of stdin and stdout that are not bugs: a full disk behind `>`, a directory behind `<`, a
// closed pipe.
import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { Readable } from "node:stream";
import { HoldfastError } from "../index.ts";

/** True if the reader is gone (`… | head`), which is not a failure. */
export function isNobodyReading({ code }: NodeJS.ErrnoException): boolean {
  return code === "EPIPE";
}

/**
 * Aborts when the reader of stdout is gone. Node cannot detect that without writing, so a child
 * process does: a `tail` that watches its own stdout, like GNU's. Without one, or if stdout is not
 * a pipe, the signal never aborts, and the next write fails.
 */
export function watchReader(): { readonly signal: AbortSignal } & Disposable {
  const gone = new AbortController();
  const { stdout } = process;
  const isPipe = stdout instanceof Socket && !stdout.isTTY;
  const watcher = isPipe ? spawn("tail", ["-f", "/dev/null"], { stdio: ["ignore", "inherit", "ignore"] }) : undefined;
  // The system may have no such program.
  watcher?.once("error", () => undefined);
  watcher?.once("exit", (_code, signal) => {
    if (signal === "SIGPIPE") gone.abort();
  });
  watcher?.unref();
  return { signal: gone.signal, [Symbol.dispose]: () => void watcher?.kill() };
}

export function cannotWrite(error: NodeJS.ErrnoException): HoldfastError {
  const errno = error.code ?? "EIO";
  const message = `stdout could not be written (${errno}): what was printed is not whole.`;
  return new HoldfastError(errno === "ENOSPC" ? "DISK_FULL" : "IO_ERROR", message, { path: "stdout", errno }, error);
}

export function cannotRead(error: unknown): never {
  const errno = (error as NodeJS.ErrnoException).code;
  if (typeof errno !== "string") throw error;
  throw new HoldfastError("IO_ERROR", `stdin could not be read (${errno}).`, { path: "stdin", errno }, error);
}

/**
 * For stdin that it cannot read, such as a directory, Node returns an empty stream, which would
 * hide the mistake.
 */
export async function* checkedStdin(): AsyncGenerator<Uint8Array | string, void> {
  const { stdin } = process;
  if (Object.getPrototypeOf(stdin) === Readable.prototype)
    throw Object.assign(new Error("stdin is neither a file nor a pipe"), { code: "EISDIR" });
  yield* stdin as AsyncIterable<Uint8Array>;
}
