// Checks the arguments of a tree's calls before anything is done. TypeErrors name the call and the
// argument.
import type { Body, Cancel } from "../../common.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type { DerivedIndex } from "./derived-index.ts";
import type { SessionFunctions } from "./session.ts";
import type {
  AddOptions,
  ChangesOptions,
  FileOptions,
  FilesOptions,
  HistoryOptions,
  ListOptions,
  OpenFilesOptions,
  WriteOptions,
} from "./file-tree.ts";

const fileOptions: OptionNames<FileOptions> = { timeoutMs: true, signal: true, within: true };
const writeOptions: OptionNames<WriteOptions> = { ...fileOptions, ifStamp: true };
const addOptions: OptionNames<AddOptions> = { ...fileOptions, naming: true };
const listOptions: OptionNames<ListOptions> = { signal: true, deep: true, onProblem: true };
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
  work: true,
};
/** A timer with a longer time would fire at once. */
const timerMsMax = 2 ** 31 - 1;
const namings: readonly unknown[] = ["replace", "fail", "suffix"];

/** Throws TypeError unless it is a string. The tree decides which paths are valid: INVALID_PATH. */
export function checkPath(call: string, argument: string, path: unknown): void {
  if (typeof path !== "string") throw new TypeError(`${call}: ${argument} must be a path, not ${typeof path}.`);
}

export function checkCancel(call: string, options: Cancel): void {
  checkCall<Cancel>(call, options, { signal: true });
}

/** Checks the names of options, and the options that many calls share. */
export function checkCall<O extends object>(call: string, options: O, names: OptionNames<O>): void {
  checkOptions(call, options, names);
  const { signal, under, onProgress, onProblem } = options as Readonly<Record<string, unknown>>;
  if (signal !== undefined && !isSignal(signal)) throw new TypeError(`${call}: signal must be an AbortSignal.`);
  if (under !== undefined) checkPath(call, "under", under);
  checkFunction(call, "onProgress", onProgress);
  checkFunction(call, "onProblem", onProblem);
}

export function checkFileOptions(call: string, options: FileOptions): void {
  checkCall(call, options, fileOptions);
  checkWait(options);
}

export function checkUpdate(call: string, path: unknown, change: unknown, options: FileOptions): void {
  checkPath(call, "path", path);
  if (typeof change !== "function") throw new TypeError(`${call}: change must be a function.`);
  checkFileOptions(call, options);
}

export function checkWrite(path: unknown, body: unknown, options: WriteOptions): asserts body is Body {
  checkPath("write", "path", path);
  checkCall("write", options, writeOptions);
  checkWait(options);
  const isBody =
    typeof body === "string" ||
    body instanceof Uint8Array ||
    (typeof body === "object" && body !== null && Symbol.asyncIterator in body);
  if (!isBody) throw new TypeError("write: body must be a string, bytes, or an async iterable of bytes.");
  const { ifStamp } = options;
  if (ifStamp !== undefined && ifStamp !== null && typeof ifStamp !== "string")
    throw new TypeError("write: ifStamp must be a stamp, or null for a file that does not exist.");
}

export function checkAdd(path: unknown, staged: unknown, options: AddOptions): void {
  checkPath("add", "path", path);
  checkPath("add", "staged", staged);
  checkCall("add", options, addOptions);
  checkWait(options);
  const { naming = "replace" } = options;
  if (!namings.includes(naming))
    throw new TypeError(`add: naming is one of ${namings.join(", ")}, not ${naming as string}.`);
}

export function checkList(under: unknown, options: ListOptions): void {
  checkPath("list", "under", under);
  checkCall("list", options, listOptions);
}

export function checkChanges(options: ChangesOptions): void {
  checkCall("changes", options, changesOptions);
  const { under = "", after = 0 } = options;
  checkPath("changes", "under", under);
  if (!(Number.isSafeInteger(after) && after >= 0))
    throw new RangeError(`changes: after must be a whole number from 0, not ${after}.`);
}

export function checkHistory(options: HistoryOptions): void {
  checkCall("history", options, { signal: true, under: true, after: true, before: true, limit: true });
  const { under = "", after = 0, before = 0, limit = 0 } = options;
  checkPath("history", "under", under);
  for (const [name, value] of Object.entries({ after, before, limit }))
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw new RangeError(`history: ${name} must be a whole number from 0, not ${value}.`);
}

/** `call` is "openFiles", or "files" of a store, whose ground has the lease and the locks. */
export function checkFilesOptions(call: "openFiles" | "files", options: FilesOptions | OpenFilesOptions): void {
  const { locks: _locks, leaseMs: _leaseMs, ...ofStore } = filesOptions;
  if (call === "files") checkOptions<Partial<FilesOptions>>(call, options, ofStore as OptionNames<FilesOptions>);
  else
    checkOptions<OpenFilesOptions>(call, options, { ...filesOptions, create: true, id: true, name: true, names: true });
  if (options.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
  const { index, sessions, functionTimeoutMs, work } = options;
  if (index !== undefined && index !== false) checkIndex(call, index);
  for (const name of ["extract", "embed", "summarize"] as const) checkFunction(call, name, options[name]);
  if (sessions !== undefined) checkSessions(call, sessions);
  if (functionTimeoutMs !== undefined) checkFunctionTimeout(call, functionTimeoutMs);
  if (work !== undefined && typeof work !== "boolean") throw new TypeError(`${call}: work must be true or false.`);
}

function checkIndex(call: string, index: DerivedIndex): void {
  const calls = ["upsert", "remove", "rename", "search"] as const;
  const isIndex =
    typeof index === "object" && index !== null && calls.every((name) => typeof index[name] === "function");
  if (!isIndex) throw new TypeError(`${call}: index must be false, or an object with ${calls.join(", ")}.`);
}

function checkSessions(call: string, sessions: SessionFunctions): void {
  checkOptions<SessionFunctions>(`${call}, sessions`, sessions, { archiveSummary: true, extract: true });
  for (const name of ["archiveSummary", "extract"] as const) checkFunction(call, `sessions.${name}`, sessions[name]);
}

function checkFunctionTimeout(call: string, ms: number): void {
  if (typeof ms === "number" && ms >= 1 && ms <= timerMsMax) return;
  throw new RangeError(`${call}: functionTimeoutMs must be a number from 1 to ${timerMsMax}, not ${String(ms)}.`);
}

function checkFunction(call: string, name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function") throw new TypeError(`${call}: ${name} must be a function.`);
}

function isSignal(value: unknown): value is AbortSignal {
  return typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value;
}

function checkWait({ timeoutMs }: FileOptions): void {
  if (timeoutMs !== undefined) checkTimeout(timeoutMs);
}
