// Group commit for the lock table: the appends that wait in one process share a slot and its sync.
//
// The calls of a group change the state one after the other, as if each had its own slot. But they share one id and
// one fence, so two requests that conflict never share a slot.
import type { RollingEntry } from "../../durable/chain/rolling-chain.ts";
import { isHoldfastError } from "../../errors.ts";
import { conflictsWith } from "./conflict.ts";
import type { TableRequest, TableState } from "./request.ts";

/** The values that an append sets in the requests that it creates or changes. */
export type AppendStamp = Pick<TableRequest, "fence" | "change">;

/** Derives the next state from the newest one. Returns undefined to append nothing. */
export type TableChange<S = AppendStamp> = (state: TableState, stamp: S) => TableState | undefined;

/** The append of one caller. */
export interface TableAppend {
  readonly change: TableChange;
  /** With this id the table can determine later whether the append counted. Default: any. */
  readonly id?: string | undefined;
  /**
   * Returns a new path for each attempt. A file is created there before the append, and stays if the append counts.
   */
  readonly keepAs?: (() => string) | undefined;
  /** Removes the file that was created for a change that turned out to be none. */
  readonly discardKept?: (() => Promise<void>) | undefined;
  readonly sync?: boolean | undefined;
}

/** Appends that share one slot if possible. */
export interface TableGroup {
  readonly id: string | undefined;
  /** Returns undefined if none of them changes anything. */
  readonly change: TableChange;
  readonly keepAs: (() => readonly string[]) | undefined;
  readonly sync: boolean | undefined;
}

type Entry = RollingEntry<TableState>;

/** An append that counts, and the work that remains for it. The next group need not wait for that work. */
export interface GroupEntry {
  readonly entry: Entry;
  readonly finish: () => Promise<void>;
}

interface WaitingAppend extends TableAppend {
  readonly resolve: (entry: Entry | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The result of one call when the group was last derived. */
type Outcome = { readonly is: "made" | "none" | "later" } | { readonly is: "failed"; readonly error: unknown };

const groupMax = 64;

export class GroupAppend {
  readonly #append: (group: TableGroup) => Promise<GroupEntry | undefined>;
  #waiting: WaitingAppend[] = [];
  #isRunning = false;

  constructor(append: (group: TableGroup) => Promise<GroupEntry | undefined>) {
    this.#append = append;
  }

  async append(call: TableAppend): Promise<Entry | undefined> {
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ ...call, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, groupMax);
      this.#waiting.unshift(...(await this.#appendTogether(group)));
    }
    this.#isRunning = false;
  }

  /** Returns the calls that must be appended after these. */
  async #appendTogether(group: readonly WaitingAppend[]): Promise<readonly WaitingAppend[]> {
    let outcomes: readonly Outcome[] = [];
    const named = group.find(({ id }) => id !== undefined);
    const paths = group.filter(({ keepAs }) => keepAs !== undefined);
    try {
      const made = await this.#append({
        id: named?.id,
        change: (state, stamp) => {
          const derived = derive(group, named, state, stamp);
          outcomes = derived.outcomes;
          return derived.state;
        },
        keepAs: paths.length === 0 ? undefined : () => paths.map(({ keepAs }) => keepAs?.() ?? ""),
        sync: group.some(({ sync }) => sync) || undefined,
      });
      for (const [index, call] of group.entries()) void settle(call, outcomes[index], made);
      return group.filter((_call, index) => outcomes[index]?.is === "later");
    } catch (error) {
      // Each one alone may fit.
      if (group.length > 1 && isHoldfastError(error, "TOO_LARGE")) {
        for (const call of group) for (const left of await this.#appendTogether([call])) left.reject(error);
        return [];
      }
      for (const call of group) call.reject(error);
      return [];
    }
  }
}

async function settle(call: WaitingAppend, outcome: Outcome | undefined, made: GroupEntry | undefined): Promise<void> {
  // A hold file that cannot be removed is swept after this process has ended.
  if (made !== undefined && outcome?.is !== "made") await call.discardKept?.().catch(() => undefined);
  if (outcome?.is === "later") return;
  try {
    await made?.finish();
    if (outcome?.is === "failed") throw outcome.error;
    call.resolve(outcome?.is === "made" ? made?.entry : undefined);
  } catch (error) {
    call.reject(error);
  }
}

/** Returns the state after all calls of a group, and the outcome of each. */
function derive(
  group: readonly WaitingAppend[],
  named: WaitingAppend | undefined,
  newest: TableState,
  stamp: AppendStamp,
): { readonly state: TableState | undefined; readonly outcomes: readonly Outcome[] } {
  let state = newest;
  const outcomes = group.map(({ change }): Outcome => {
    try {
      const made = change(state, stamp);
      if (made === undefined) return { is: "none" };
      // The first change of a slot cannot conflict: no other request has this slot's number yet.
      if (state !== newest && hasEqualFences(state, made, stamp.fence)) return { is: "later" };
      state = made;
      return { is: "made" };
    } catch (error) {
      return { is: "failed", error };
    }
  });
  // The slot would have the id of an append that is not in it.
  if (named !== undefined && outcomes[group.indexOf(named)]?.is !== "made")
    return { state: undefined, outcomes: outcomes.map((each) => (each.is === "made" ? { is: "later" } : each)) };
  return { state: outcomes.some(({ is }) => is === "made") ? state : undefined, outcomes };
}

/** True if `made` has a new request that conflicts with another one of the same fence in `before`. */
function hasEqualFences(before: TableState, made: TableState, fence: number): boolean {
  const earlier = before.requests.filter((request) => request.fence === fence);
  if (earlier.length === 0) return false;
  const added = made.requests.filter((request) => request.fence === fence && !before.requests.includes(request));
  return added.some(({ claims }) => earlier.some((other) => conflictsWith(claims, other.claims)));
}
