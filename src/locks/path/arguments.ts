// Checks the arguments of every call of path locks before it does anything. TypeErrors name the call and the
// argument, because plain JavaScript has no compiler to find such mistakes.
import { inspect } from "node:util";
import type { LockMode } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type { LockExtent } from "../table/conflict.ts";
import type { AcquireManyOptions, AcquireOptions, LockRequest } from "./path-locks.ts";

const tagLengthMax = 1000;
const modes: readonly unknown[] = ["exact", "tree"] satisfies readonly LockMode[];

const acquireOptions: OptionNames<AcquireOptions> = {
  timeoutMs: true,
  signal: true,
  mode: true,
  shared: true,
  tag: true,
  within: true,
  idleMs: true,
};

type Extent = Pick<AcquireOptions, "mode" | "shared">;

export class CallArguments {
  readonly #call: string;

  constructor(call: string) {
    this.#call = call;
  }

  text(argument: string, value: unknown): string {
    if (typeof value !== "string") throw this.#wrong(argument, "a string", value);
    return value;
  }

  work<T>(argument: string, value: T): T {
    if (typeof value !== "function") throw this.#wrong(argument, "a function", value);
    return value;
  }

  /** Checks a path and returns its request; `options` say which mode it has, and if it is shared. */
  path(argument: string, path: unknown, options: Extent): LockRequest {
    return { path: this.text(argument, path), ...this.#extent("options", options) };
  }

  list(argument: string, requests: unknown, options: Extent = {}): LockRequest[] {
    if (!Array.isArray(requests)) throw this.#wrong(argument, "a list of paths or requests", requests);
    if (requests.length === 0) throw new TypeError(`${this.#call}: ${argument} is empty: there is nothing to lock.`);
    return requests.map((request: unknown, at) => this.one(`${argument}[${at}]`, request, options));
  }

  /** Checks a path or a request. The options complete what the request omits. */
  one(argument: string, request: unknown, options: Extent): LockRequest {
    if (typeof request === "string") return this.path(argument, request, options);
    if (typeof request !== "object" || request === null)
      throw this.#wrong(argument, "a path, or a request with one", request);
    const { path } = request as Partial<LockRequest>;
    const own = this.#extent(argument, request);
    const others = this.#extent("options", options);
    return {
      path: this.text(`${argument}.path`, path),
      mode: own.mode ?? others.mode,
      shared: own.shared ?? others.shared,
    };
  }

  /** Checks the target of an upgrade or downgrade. */
  change(argument: string, to: unknown): Partial<LockExtent> {
    return typeof to === "string" ? { mode: this.#mode(argument, to) } : this.#extent(argument, to);
  }

  options<O extends AcquireManyOptions>(options: O): O {
    const { tag, idleMs } = this.#object("options", options) as AcquireManyOptions;
    checkOptions<AcquireOptions>(this.#call, options, acquireOptions);
    if (idleMs !== undefined && !(idleMs > 0))
      throw new RangeError(`idleMs must be a number of milliseconds above 0, not ${idleMs}.`);
    if (tag !== undefined && this.text("tag", tag).length > tagLengthMax) throw tooLong(tag);
    return options;
  }

  #extent(argument: string, value: unknown): Partial<LockExtent> {
    const { mode, shared } = this.#object(argument, value) as { readonly mode?: unknown; readonly shared?: unknown };
    if (shared !== undefined && typeof shared !== "boolean")
      throw this.#wrong(`${argument}.shared`, "true or false", shared);
    const extent = mode === undefined ? {} : { mode: this.#mode(`${argument}.mode`, mode) };
    return shared === undefined ? extent : { ...extent, shared };
  }

  #mode(argument: string, value: unknown): LockMode {
    if (!modes.includes(value)) throw this.#wrong(argument, '"exact" or "tree"', value);
    return value as LockMode;
  }

  #object(argument: string, value: unknown): object {
    if (typeof value !== "object" || value === null) throw this.#wrong(argument, "an object", value);
    return value;
  }

  #wrong(argument: string, expected: string, value: unknown): TypeError {
    const shown = inspect(value, { depth: 0, maxStringLength: 100, breakLength: Infinity });
    return new TypeError(`${this.#call}: ${argument} must be ${expected}, not ${shown}.`);
  }
}

function tooLong(tag: string): Error {
  const message = `A tag has at most ${tagLengthMax} characters, not ${tag.length}.`;
  return holdfastError("TOO_LARGE", message, { limit: tagLengthMax, actual: tag.length });
}
