// One call of a simulated process to the simulated disk, and how it may end.
import { diskError } from "../../ports/disk-error.ts";
import type { FileNode } from "../../ports/memory/tree.ts";
import type { SimCall, CallOutcome, Touch } from "./call.ts";
import type { ClientCache, Lookup } from "./client-cache.ts";
import { parentOf } from "./paths.ts";
import type { SimServer } from "./server.ts";

/** Errors that the simulated disk may return. */
export interface InjectedErrors {
  /** The POSIX names of the errors. */
  readonly errnos: readonly string[];
  /** The operations that may fail. Default: all. */
  readonly operations?: readonly string[];
}

export interface DiskOperation<T> {
  readonly name: string;
  /** The paths, for people. */
  readonly detail: string;
  /** A function if it may change while the call is parked. */
  readonly touches: readonly Touch[] | (() => readonly Touch[]);
  /** Names that must exist. */
  readonly needs?: readonly string[];
  readonly makes?: readonly string[];
  readonly removes?: readonly string[];
  /** A directory that the call concerns as a whole. */
  readonly directory?: string;
  readonly run: (at: Lookup) => T;
  /** True if the client always asks the server, whatever it has cached. */
  readonly isFresh?: boolean;
  /**
   * The errno that a client gets if it repeats the request after it was executed. Undefined for operations that may
   * be repeated.
   */
  readonly repeated?: string;
  /** Another answer that this client may give now, from its cache. */
  readonly remembered?: () => { readonly answer: T } | undefined;
  /** The effect on the file that this machine has cached under a name, instead of the one that is there now. */
  readonly onOldFile?: { readonly path: string; readonly run: (file: FileNode, at: Lookup) => T };
  /** A further effect of a failure. */
  readonly onError?: (() => void) | undefined;
  /** Performs the first half, if the operation does not happen in one step. */
  readonly half?: (() => void) | undefined;
  /** The answer is settled once this name exists, if that name is permanent. */
  readonly settledBy?: string | undefined;
}

/** The state that all calls of one process share. */
export interface DiskCallContext {
  readonly server: SimServer;
  readonly cache: ClientCache;
  readonly errors: InjectedErrors | undefined;
  readonly isPermanent: ((path: string) => boolean) | undefined;
}

export class DiskCall<T> implements SimCall<T> {
  readonly operation: string;
  readonly detail: string;
  readonly #what: DiskOperation<T>;
  readonly #context: DiskCallContext;
  readonly #settledBy: string | undefined;

  constructor(operation: DiskOperation<T>, context: DiskCallContext) {
    this.operation = operation.name;
    this.detail = operation.detail;
    this.#what = operation;
    this.#context = context;
    const { settledBy } = operation;
    this.#settledBy = settledBy !== undefined && context.isPermanent?.(settledBy) ? settledBy : undefined;
  }

  get touches(): readonly Touch[] {
    const { touches } = this.#what;
    return typeof touches === "function" ? touches() : touches;
  }

  get half(): (() => void) | undefined {
    return this.#what.half;
  }

  isSettled(): boolean {
    return this.#settledBy !== undefined && this.#context.server.find(this.#settledBy) !== undefined;
  }

  ordinary(): T {
    return this.#answered();
  }

  outcomes(): CallOutcome<T>[] {
    const { errors, cache } = this.#context;
    const outcomes: CallOutcome<T>[] = [{ label: "", run: () => this.#answered() }];
    if (cache.mayBeOld && !this.#what.isFresh) this.#addOldAnswers(outcomes);
    if (this.#what.repeated !== undefined) this.#addLostReplies(outcomes, this.#what.repeated);
    if (this.#context.server.quirks.outages) this.#addOutages(outcomes);
    if (this.#context.server.quirks.staleHandles) this.#addStaleHandles(outcomes);
    if (errors !== undefined && (errors.operations?.includes(this.operation) ?? true))
      for (const errno of errors.errnos)
        outcomes.push({ label: errno, trouble: "error", run: () => this.#fail(errno) });
    return outcomes;
  }

  #answered(): T {
    const { cache } = this.#context;
    const answer = this.#reached();
    if (!cache.mayBeOld) return answer;
    const { server } = this.#context;
    for (const path of [...(this.#what.needs ?? []), ...(this.#what.makes ?? [])])
      cache.files.found(path, server.find(path));
    for (const path of this.#what.makes ?? []) cache.made(path);
    for (const path of this.#what.removes ?? []) {
      cache.removed(path);
      cache.files.forget(path);
    }
    return answer;
  }

  /** The server executes the request, whether or not this client gets the reply. */
  #reached(): T {
    const { cache } = this.#context;
    const { run, needs = [], makes = [] } = this.#what;
    if (!cache.mayBeOld) return run(cache.fresh(this.operation));
    try {
      return run(cache.fresh(this.operation));
    } finally {
      cache.learn(needs, makes);
    }
  }

  /** Adds the other answers that this client may give now, from its cache. */
  #addOldAnswers(outcomes: CallOutcome<T>[]): void {
    const { cache } = this.#context;
    const { needs = [], makes = [], directory, run, remembered } = this.#what;
    const old = remembered?.();
    if (old !== undefined) outcomes.push({ label: "from the cache", trouble: "stale", run: () => old.answer });
    if ([...needs, ...makes.map(parentOf)].some((path) => cache.isWronglyAbsent(path)))
      outcomes.push({ label: "absent, from the cache", trouble: "stale", run: () => this.#refuse("ENOENT") });
    this.#addOldFile(outcomes);
    const directories = new Set([...makes, ...needs].map(parentOf));
    if (directory !== undefined) directories.add(directory);
    for (const under of directories) {
      const found = cache.findOldDirectory(under);
      if (found === undefined) continue;
      const label = `through the directory found before under ${under}`;
      const act = (): T => (found.removed ? this.#refuse("ESTALE") : run(cache.through(under, found, this.operation)));
      outcomes.push({ label, trouble: "stale", run: act });
    }
  }

  #addOldFile(outcomes: CallOutcome<T>[]): void {
    const { onOldFile } = this.#what;
    const { cache } = this.#context;
    const old = onOldFile && cache.files.findOld(onOldFile.path);
    if (onOldFile === undefined || old === undefined) return;
    const act = (): T => (old.links === 0 ? this.#refuse("ESTALE") : onOldFile.run(old, cache.fresh(this.operation)));
    outcomes.push({ label: "on the file found before under that name", trouble: "stale", run: act });
  }

  /** Adds outages: the server fails before or after it has executed the request. */
  #addOutages(outcomes: CallOutcome<T>[]): void {
    const trouble = "outage";
    outcomes.push({ label: "the server goes away", trouble, run: () => this.#fail("EHOSTDOWN") });
    if (this.#what.repeated === undefined) return;
    const run = (): T => {
      this.#reached();
      return this.#refuse("EHOSTDOWN");
    };
    outcomes.push({ label: "done, and the server goes away", trouble, run });
  }

  /** Adds stale handles: the server does not recognize the handle, before or after it has executed the change. */
  #addStaleHandles(outcomes: CallOutcome<T>[]): void {
    if (this.#what.repeated === undefined) return;
    const trouble = "staleHandle";
    const run = (): T => {
      this.#reached();
      return this.#refuse("ESTALE");
    };
    outcomes.push({ label: "a handle is stale", trouble, run: () => this.#refuse("ESTALE") });
    outcomes.push({ label: "done, and a handle is stale", trouble, run });
  }

  /** Adds lost replies: the operation is done, but the process gets no answer, or that of a repeated request. */
  #addLostReplies(outcomes: CallOutcome<T>[], repeated: string): void {
    const thenRefuse = (errno: string) => (): T => {
      this.#reached();
      return this.#refuse(errno);
    };
    outcomes.push(
      { label: "done, but the reply is lost", trouble: "lostReply", run: thenRefuse("EIO") },
      { label: "done, and the repeated request fails", trouble: "retransmit", run: thenRefuse(repeated) },
    );
  }

  #fail(errno: string): never {
    this.#what.onError?.();
    return this.#refuse(errno);
  }

  #refuse(errno: string): never {
    throw diskError(errno, this.operation, this.detail);
  }
}
