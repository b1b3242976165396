// Actions: the changes that a person may make from the page. Each is appended to a log of the store
// before it runs, and its outcome afterwards.
import { randomUUID } from "node:crypto";
import { causedBy } from "../events/index.ts";
import type { Handoff } from "../handoff/index.ts";
import { openStore, type Store } from "../index.ts";
import { asRequestError, RequestError } from "./http/request-error.ts";

/** The event log of a store that records the actions of all consoles. */
export const actionLog = "console";

/** An action of a console, as `onAction` gets it. */
export interface ConsoleAction {
  /** When it was requested. */
  readonly at: Date;
  /** `release`, `replay`, `discard`, `pause`, `resume`, `restore` or `doctor`. */
  readonly action: string;
  /** The path, box, tickets or version that it changed. */
  readonly what: Readonly<Record<string, unknown>>;
  /** The user: a name from `authorize`, or the account that runs the console. */
  readonly by: string;
  /** The address from which the request came. */
  readonly from: string;
  /** The result, in words; absent if the action failed. */
  readonly result?: string;
  /** Why it failed. */
  readonly error?: string;
}

type Arguments = Readonly<Record<string, unknown>>;
type Act = (store: Store, given: Arguments) => Promise<string>;

/** The page shows at most this many at a time. */
const idsMax = 200;

/** The actions by name. Each returns its result in words. */
const acts: Readonly<Record<string, Act>> = {
  release: async (store, given) => {
    const evicted = await (await store.locks()).break(textOf(given, "path"));
    return evicted.length === 0 ? "Nobody held it any more." : `${counted(evicted.length, "lock")} released.`;
  },
  replay: async (store, given) => {
    const box = await store.handoff(textOf(given, "box"), { create: false });
    const from = stateOf(given);
    const count = await each(given, (id) => box.replay({ from, id }));
    return `${counted(count, "ticket")} returned to the queue.`;
  },
  discard: async (store, given) => {
    const box = await store.handoff(textOf(given, "box"), { create: false });
    const from = stateOf(given);
    const count = await each(given, (id) => box.discard({ from, id }));
    return `${counted(count, "ticket")} removed permanently.`;
  },
  pause: async (store, given) => {
    const box: Handoff = await store.handoff(textOf(given, "box"), { create: false });
    const { reason } = given;
    await box.pause(typeof reason === "string" && reason !== "" ? reason : undefined);
    return "Paused: no worker claims a new ticket.";
  },
  resume: async (store, given) => {
    await (await store.handoff(textOf(given, "box"), { create: false })).resume();
    return "Resumed: workers claim tickets again.";
  },
  restore: async (store, given) => {
    const [key, versionId] = [textOf(given, "key"), textOf(given, "versionId")];
    const bucket = await (await store.objects({ create: false })).bucket(textOf(given, "bucket"));
    const restored = await bucket.copy({ key, versionId }, key);
    return `Restored as version ${restored.versionId}.`;
  },
};

export interface ActionsOptions {
  readonly location: string;
  readonly id: string;
  readonly onAction?: ((action: ConsoleAction) => void) | undefined;
}

export class Actions {
  readonly #options: ActionsOptions;
  /**
   * Actions run one at a time: if two people replay the same tickets, the second sees the result of
   * the first.
   */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ActionsOptions) {
    this.#options = options;
  }

  /**
   * Runs an action, and returns its result in words. Throws a RequestError if there is no such
   * action.
   */
  async run(name: string, what: Arguments, who: Pick<ConsoleAction, "by" | "from">): Promise<string> {
    const act = Object.hasOwn(acts, name) ? acts[name] : undefined;
    if (act === undefined) throw new RequestError(404, "NO_SUCH_ACTION", `There is no action ${name}.`);
    return await this.record(name, what, who, (store) => act(store, what));
  }

  /**
   * Runs `work` between the two records of an action, on the store opened for writing only for that
   * time.
   */
  async record(
    action: string,
    what: Arguments,
    who: Pick<ConsoleAction, "by" | "from">,
    work: (store: Store) => Promise<string>,
  ): Promise<string> {
    const done = this.#last.then(() => this.#record({ at: new Date(), action, what, ...who }, work));
    this.#last = done.catch(() => undefined);
    return await done;
  }

  /** Waits for actions in progress. */
  async close(): Promise<void> {
    await this.#last;
  }

  async #record(asked: ConsoleAction, work: (store: Store) => Promise<string>): Promise<string> {
    const { location, id, onAction } = this.#options;
    const { action, what, by, from } = asked;
    await using store = await openStore(location, { create: false, id, name: `console of ${by}`.slice(0, 200) });
    const log = await store.events(actionLog);
    const metadata = { by, from };
    // Appended before the action runs: no crash can hide who requested it.
    const request = randomUUID();
    await log.append({ id: request, type: "ActionRequested", data: { action, ...what }, tags: [action], metadata });
    const cause = causedBy({ id: request, metadata }, metadata);
    try {
      const result = await work(store);
      await log.append({ type: "ActionDone", data: { action, result }, tags: [action], metadata: cause });
      onAction?.({ ...asked, result });
      return result;
    } catch (failure) {
      const error = asRequestError(failure).message;
      await log.append({ type: "ActionFailed", data: { action, error }, tags: [action], metadata: cause });
      onAction?.({ ...asked, error });
      throw failure;
    }
  }
}

/** Runs `act` for each selected ticket, or once for all tickets in the state if none is named. */
async function each(given: Arguments, act: (id: string | undefined) => Promise<number>): Promise<number> {
  const { ids, all } = given;
  if (all === true && ids === undefined) return await act(undefined);
  if (!Array.isArray(ids) || ids.length === 0 || ids.length > idsMax || ids.some((id) => typeof id !== "string"))
    throw new RequestError(400, "WRONG_REQUEST", `ids must be a list of 1 to ${idsMax} texts.`);
  let count = 0;
  for (const id of ids as readonly string[]) count += await act(id);
  return count;
}

function stateOf(given: Arguments): "error" | "archive" {
  const from = textOf(given, "from");
  if (from !== "error" && from !== "archive")
    throw new RequestError(400, "WRONG_REQUEST", "from must be error or archive.");
  return from;
}

function textOf(given: Arguments, name: string): string {
  const text = given[name];
  if (typeof text === "string") return text;
  throw new RequestError(400, "WRONG_REQUEST", `${name} must be a text.`);
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
