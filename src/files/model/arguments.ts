// The arguments of the calls of a tree, checked before anything is done. TypeErrors name the call and the argument.
import type { Body, Cancel } from "../../common.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type {
  AddOptions,
  ChangesOptions,
  FileOptions,
  FilesOptions,
  ListOptions,
  OpenFilesOptions,
  WriteOptions,
} from "./file-tree.ts";

const fileOptions: OptionNames<FileOptions> = { timeoutMs: true, signal: true, within: true };
const writeOptions: OptionNames<WriteOptions> = { ...fileOptions, ifStamp: true };
const addOptions: OptionNames<AddOptions> = { ...fileOptions, naming: true };
const listOptions: OptionNames<ListOptions> = { signal: true, deep: true };
const changesOptions: OptionNames<ChangesOptions> = { signal: true, under: true, after: true };
const filesOptions: OptionNames<FilesOptions> = {
  index: true,
  locks: true,
  timeoutMs: true,
  leaseMs: true,
  extract: true,
  embed: true,
  summarize: true,
  sessions: true,
  functionTimeoutMs: true,
};
const namings: readonly unknown[] = ["replace", "fail", "suffix"];

/** TypeError for what is not a text. What a path may be is for the tree to say: INVALID_PATH. */
export function checkPath(call: string, argument: string, path: unknown): void {
  if (typeof path !== "string") throw new TypeError(`${call}: ${argument} must be a path, not ${typeof path}.`);
}

export function checkCancel(call: string, options: Cancel): void {
  checkOptions(call, options, { signal: true });
}

export function checkFileOptions(call: string, options: FileOptions): void {
  checkOptions(call, options, fileOptions);
  checkWait(options);
}

export function checkWrite(path: unknown, body: unknown, options: WriteOptions): asserts body is Body {
  checkPath("write", "path", path);
  checkOptions("write", options, writeOptions);
  checkWait(options);
  const isBody =
    typeof body === "string" ||
    body instanceof Uint8Array ||
    (typeof body === "object" && body !== null && Symbol.asyncIterator in body);
  if (!isBody) throw new TypeError("write: body must be a string, bytes, or an async iterable of bytes.");
  const { ifStamp } = options;
  if (ifStamp !== undefined && ifStamp !== null && typeof ifStamp !== "string")
    throw new TypeError("write: ifStamp must be a stamp, or null for a file that is not there.");
}

export function checkAdd(path: unknown, staged: unknown, options: AddOptions): void {
  checkPath("add", "path", path);
  checkPath("add", "staged", staged);
  checkOptions("add", options, addOptions);
  checkWait(options);
  const { naming = "replace" } = options;
  if (!namings.includes(naming))
    throw new TypeError(`add: naming is one of ${namings.join(", ")}, not ${naming as string}.`);
}

export function checkList(under: unknown, options: ListOptions): void {
  checkPath("list", "under", under);
  checkOptions("list", options, listOptions);
}

export function checkChanges(options: ChangesOptions): void {
  checkOptions("changes", options, changesOptions);
  const { under = "", after = 0 } = options;
  checkPath("changes", "under", under);
  if (!(Number.isSafeInteger(after) && after >= 0))
    throw new RangeError(`changes: after must be a whole number from 0, not ${after}.`);
}

/** `call` is "openFiles", or "files" of a store, whose ground has the lease and the locks. */
export function checkFilesOptions(call: "openFiles" | "files", options: FilesOptions | OpenFilesOptions): void {
  const { locks: _locks, leaseMs: _leaseMs, ...ofStore } = filesOptions;
  if (call === "files") checkOptions<Partial<FilesOptions>>(call, options, ofStore as OptionNames<FilesOptions>);
  else checkOptions<OpenFilesOptions>(call, options, { ...filesOptions, work: true, create: true, id: true });
  if (options.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
}

function checkWait({ timeoutMs }: FileOptions): void {
  if (timeoutMs !== undefined) checkTimeout(timeoutMs);
}
