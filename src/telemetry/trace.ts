// Traces operations: publishes the beginning and the end of a call or an iteration on its channels, if somebody
// listens.
import { AsyncLocalStorage } from "node:async_hooks";
import {
  operationChannel,
  type OperationChannel,
  type OperationDetails,
  type OperationMessage,
  type OperationName,
} from "./operation.ts";

/** Runs `work` as the operation `name`. `describe` is called only if somebody listens. */
export function trace<T>(
  name: OperationName,
  describe: () => OperationDetails & Pick<OperationMessage, "location">,
  work: (message?: OperationMessage) => Promise<T>,
): Promise<T> {
  const channel = operationChannel(name);
  if (!channel.hasSubscribers) return work();
  const message: OperationMessage = { operation: name, ...describe() };
  return traceCall(channel, message, () => work(message));
}

/** How the calls of one method are traced. */
export interface TracedMethod<T, Arguments extends readonly unknown[]> {
  /** Describes a call. Its arguments are not checked yet: it may throw, and then the message has no details. */
  readonly about?: (given: Arguments, self: T) => OperationDetails;
  /** The method returns an async iterable; the operation lasts from the first step to the last. */
  readonly iterates?: true;
  /** Returns the arguments with what subscribers have put into the carrier. */
  readonly carry?: (given: Arguments, carrier: Readonly<Record<string, string>>) => Arguments;
}

type ArgumentsOf<F> = F extends (...given: infer A) => unknown ? A : never;
type MethodOf<T> = { [K in keyof T & string]: T[K] extends (...given: never) => unknown ? K : never }[keyof T & string];

/** The operations of one kind of object. Each name is that of a method. */
export interface TracedMethods<T> {
  /** The first part of the names of the operations. */
  readonly part: string;
  readonly location: (self: T) => string;
  /** False for an object that Holdfast itself uses. Default: every object is traced. */
  readonly isTraced?: (self: T) => boolean;
  /** Names every method, so that none is forgotten. */
  readonly methods: { readonly [K in MethodOf<T>]: TracedMethod<T, ArgumentsOf<T[K]>> | "untraced" };
}

/**
 * Replaces the methods of a class that `traced` names and that the class itself defines. Call it in a static block.
 * `except`: methods that every subclass overrides and calls.
 */
export function traceMethods<T extends object>(
  { prototype }: { readonly prototype: object },
  { part, location, isTraced, methods }: TracedMethods<T>,
  { except = [] }: { readonly except?: readonly (keyof T)[] } = {},
): void {
  for (const [name, traced] of Object.entries(methods)) {
    if (traced === "untraced") continue;
    const { value: method, ...rest } = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    if (typeof method !== "function" || except.includes(name as keyof T)) continue;
    const { about, iterates, carry } = traced as TracedMethod<T, readonly unknown[]>;
    const operation = `${part}.${name}` as OperationName;
    const channel = operationChannel(operation);
    const run = method as (this: T, ...given: unknown[]) => unknown;
    const messageOf = (self: T, given: readonly unknown[]): OperationMessage => ({
      operation,
      location: location(self),
      ...(carry === undefined ? {} : { carrier: {} }),
      ...detailsOf(about, given, self),
    });
    const replaced = {
      // A method, for its name in stack traces.
      [name](this: T, ...given: unknown[]): unknown {
        if (!channel.hasSubscribers || isTraced?.(this) === false) return run.apply(this, given);
        const message = messageOf(this, given);
        if (iterates) return new TracedIteration(channel, message, run.apply(this, given) as AsyncIterable<unknown>);
        return traceCall(channel, message, () => {
          return run.apply(this, carry === undefined ? given : carriedBy(carry, given, message)) as Promise<unknown>;
        });
      },
    };
    Object.defineProperty(replaced[name], "length", { value: method.length, configurable: true });
    Object.defineProperty(prototype, name, { ...rest, value: replaced[name] });
  }
}

/** The method itself reports invalid arguments. */
function carriedBy<T>(
  carry: NonNullable<TracedMethod<T, readonly unknown[]>["carry"]>,
  given: unknown[],
  { carrier = {} }: OperationMessage,
): unknown[] {
  if (Object.keys(carrier).length === 0) return given;
  try {
    return [...carry(given, carrier)];
  } catch {
    return given;
  }
}

/** The method itself reports invalid arguments. */
function detailsOf<T>(
  about: TracedMethod<T, readonly unknown[]>["about"],
  given: readonly unknown[],
  self: T,
): OperationDetails {
  try {
    return about?.(given, self) ?? {};
  } catch {
    return {};
  }
}

/** A method that throws at once, instead of returning a rejected promise, still does. */
function traceCall<T>(channel: OperationChannel, message: OperationMessage, work: () => Promise<T>): Promise<T> {
  // Subscribers of `start` have run when `tracePromise` calls this function.
  const inContext = (): Promise<T> => (message.around === undefined ? work() : message.around(work));
  return channel.tracePromise(inContext, message);
}

/** An iteration as one operation. A loop that ends early ends it too. All its steps run in the context of the first. */
class TracedIteration<T> implements AsyncGenerator<T, unknown, unknown> {
  readonly #channel: OperationChannel;
  readonly #message: OperationMessage;
  readonly #source: AsyncIterable<T>;
  #iterator: AsyncIterator<T> | undefined;
  #inContext: (<R>(step: () => R) => R) | undefined;
  #hasEnded = false;

  constructor(channel: OperationChannel, message: OperationMessage, source: AsyncIterable<T>) {
    this.#channel = channel;
    this.#message = message;
    this.#source = source;
  }

  [Symbol.asyncIterator](): TracedIteration<T> {
    // All loops over a generator share it. Other iterables begin anew with each loop.
    if ("next" in this.#source) return this;
    return new TracedIteration(this.#channel, { ...this.#message }, this.#source);
  }

  async next(): Promise<IteratorResult<T, unknown>> {
    return await this.#step((iterator) => iterator.next());
  }

  async return(value?: unknown): Promise<IteratorResult<T, unknown>> {
    // Nothing was begun that could be ended.
    if (this.#inContext === undefined) this.#hasEnded = true;
    return await this.#step(async (iterator) => (await iterator.return?.(value)) ?? { done: true, value });
  }

  async throw(error: unknown): Promise<IteratorResult<T, unknown>> {
    return await this.#step((iterator) => iterator.throw?.(error) ?? Promise.reject(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #step(take: (iterator: AsyncIterator<T>) => Promise<IteratorResult<T, unknown>>): Promise<IteratorResult<T>> {
    this.#iterator ??= this.#source[Symbol.asyncIterator]();
    const iterator = this.#iterator;
    try {
      const step = await (this.#hasEnded ? take(iterator) : this.#run(() => take(iterator)));
      if (step.done === true) this.#end();
      else this.#message.count = (this.#message.count ?? 0) + 1;
      return step as IteratorResult<T>;
    } catch (error) {
      this.#end({ error });
      throw error;
    }
  }

  #run<R>(step: () => R): R {
    if (this.#inContext !== undefined) return this.#inContext(step);
    const message = this.#message;
    return this.#channel.start.runStores(message, () => {
      const begin = (): R => {
        this.#inContext = AsyncLocalStorage.snapshot();
        return step();
      };
      try {
        return message.around === undefined ? begin() : message.around(begin);
      } finally {
        this.#channel.end.publish(message);
      }
    });
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const message = this.#message;
    if (failure !== undefined) {
      message.error = failure.error;
      this.#channel.error.publish(message);
    }
    this.#channel.asyncStart.publish(message);
    this.#channel.asyncEnd.publish(message);
  }
}
