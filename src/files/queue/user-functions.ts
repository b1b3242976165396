// UserFunctions calls the functions that a user passes, each with a timeout, and checks their
// results.
import type { Cancel, Content } from "../../common.ts";
import { orAborted } from "../../part/body.ts";
import type { Clock } from "../../ports/clock.ts";
import { textLengthMax } from "../documents/document.ts";
import type { FilesOptions } from "../model/file-tree.ts";
import type { Archive, Message } from "../model/session.ts";

type Given = Pick<FilesOptions, "index" | "extract" | "embed" | "summarize" | "sessions" | "functionTimeoutMs">;

/**
 * A function that queued work may need; "index" stands for a process opened without `index: false`.
 */
export type FunctionName = "index" | "extract" | "embed" | "summarize" | "sessions.extract";

const timeoutMsDefault = 120_000;
const vectorLengthMax = 65_536;

export interface Summary {
  readonly abstract: string;
  readonly overview: string;
}

export interface ExtractedMemory {
  readonly path: string;
  readonly text: string;
}

export class UserFunctions {
  /** The functions that this process has. */
  readonly names: readonly FunctionName[];
  readonly #given: Given;
  readonly #clock: Clock;

  constructor(clock: Clock, given: Given) {
    this.#clock = clock;
    this.#given = given;
    const { index, extract, embed, summarize, sessions } = given;
    const all = { index: index !== false, extract, embed, summarize, "sessions.extract": sessions?.extract };
    this.names = (Object.keys(all) as FunctionName[]).filter((name) => all[name] !== undefined && all[name] !== false);
  }

  has(name: FunctionName): boolean {
    return this.names.includes(name);
  }

  /**
   * Returns the text of a file; undefined if it is not indexed. Without a user function, decodes
   * the content as UTF-8.
   */
  async extract(path: string, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<string | undefined> {
    const { extract } = this.#given;
    if (extract === undefined) return findText(bytes)?.slice(0, textLengthMax);
    const text = await this.#call(`extract of ${path}`, signal, (options) => extract(path, contentOf(bytes), options));
    if (text !== undefined && typeof text !== "string")
      throw new TypeError(`extract of ${path} did not return a string.`);
    return text?.slice(0, textLengthMax);
  }

  /** Returns the vector of a text; undefined without such a function. */
  async embed(text: string, signal: AbortSignal | undefined): Promise<readonly number[] | undefined> {
    const { embed } = this.#given;
    if (embed === undefined) return undefined;
    const vector = await this.#call("embed", signal, (options) => embed(text, options));
    const isVector = Array.isArray(vector) && vector.length > 0 && vector.length <= vectorLengthMax;
    if (!isVector || !vector.every((each) => typeof each === "number" && Number.isFinite(each)))
      throw new TypeError(`embed must return 1 to ${vectorLengthMax} numbers.`);
    return vector as readonly number[];
  }

  async summarize(directory: string, entries: readonly string[], signal: AbortSignal): Promise<Summary> {
    const { summarize } = this.#given;
    if (summarize === undefined) throw new TypeError("This process has no function `summarize`.");
    const summary = await this.#call(`summarize of ${directory || "the root"}`, signal, (options) =>
      summarize(directory, entries, options),
    );
    for (const name of ["abstract", "overview"] as const)
      if (typeof summary?.[name] !== "string") throw new TypeError(`summarize did not return a string as ${name}.`);
    return summary;
  }

  /** Returns the summary of an archive; undefined without such a function. */
  async archiveSummary(messages: readonly Message[], signal: AbortSignal | undefined): Promise<string | undefined> {
    const archiveSummary = this.#given.sessions?.archiveSummary;
    if (archiveSummary === undefined) return undefined;
    const summary = await this.#call("archiveSummary", signal, (options) => archiveSummary(messages, options));
    if (typeof summary !== "string") throw new TypeError("archiveSummary did not return a string.");
    return summary;
  }

  /** Returns the memories of an archive; empty without such a function. */
  async memories(archive: Archive, signal: AbortSignal): Promise<readonly ExtractedMemory[]> {
    const extract = this.#given.sessions?.extract;
    if (extract === undefined) return [];
    const memories = await this.#call(`extract of session ${archive.session}`, signal, (options) =>
      extract(archive, options),
    );
    for (const memory of memories)
      if (typeof memory?.path !== "string" || typeof memory.text !== "string")
        throw new TypeError("extract of a session must return { path, text } for each memory.");
    return memories;
  }

  /** If a function takes too long, its signal aborts and the caller stops waiting. */
  async #call<T>(what: string, signal: AbortSignal | undefined, call: (options: Cancel) => Promise<T>): Promise<T> {
    const { functionTimeoutMs = timeoutMsDefault } = this.#given;
    const over = new AbortController();
    const stop = this.#clock.alarm(functionTimeoutMs, () =>
      over.abort(new Error(`${what} took longer than ${functionTimeoutMs} ms.`)),
    );
    const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
    try {
      // Turns a synchronous throw into a rejection.
      return await orAborted(
        Promise.resolve().then(() => call({ signal: either })),
        either,
      );
    } finally {
      stop();
    }
  }
}

/** Decodes bytes as text; undefined if they are not text. */
function findText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function contentOf(bytes: Uint8Array): Content {
  return {
    bytes: async () => bytes,
    text: async () => Buffer.from(bytes).toString("utf8"),
    stream: async function* () {
      yield bytes;
    },
  };
}
