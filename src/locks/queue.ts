// Standing in the list of requests: how a request gets into it, and how it waits there until every earlier one that conflicts is over.
import type { Deadline } from "../durable/deadline.ts";
import type { Life } from "../durable/life.ts";
import { holdfastError } from "../errors.ts";
import type { Claim } from "./claim.ts";
import { Bell } from "./bell.ts";
import { blockersOf, conflictsWith, findDeadlock } from "./conflict.ts";
import type { LockTable } from "./lock-table.ts";
import type { Request, Table } from "./request.ts";

export interface Wanted {
  readonly claims: readonly Claim[];
  readonly life: Life;
  readonly tag?: string | undefined;
  readonly within?: string | undefined;
}

/** In the list, at the end of it when it was made. */
export interface Queued {
  readonly request: Request;
  readonly table: Table;
  readonly blockers: readonly Request[];
}

/** Nothing was appended: these live ones stand in the way. */
export interface Refused {
  readonly blockers: readonly Request[];
}

/**
 * Appends a request. Without `wait` only if nobody alive stands in its way: the dead are judged in this one try, and dropped by the same append. DEADLOCK when
 * it would wait for somebody who waits for it.
 */
export async function enqueue(
  table: LockTable,
  wanted: Wanted,
  options: { readonly wait: boolean },
): Promise<Queued | Refused> {
  const { claims, life, tag, within } = wanted;
  const sinceMs = Math.floor(table.ground.ports.clock.wallMs());
  for (;;) {
    life.mustGoOn();
    let blockers: Request[] = [];
    let circle: Request[] | undefined;
    const make = ({ requests, redos }: Table, made: Pick<Request, "id" | "fence" | "change">): Table | undefined => {
      const request: Request = {
        ...made,
        holder: life.holder.id,
        claims,
        sinceMs,
        ...(tag === undefined ? {} : { tag }),
        ...(within === undefined ? {} : { within }),
      };
      const longer = [...requests, request];
      blockers = blockersOf(longer, request);
      circle = options.wait ? findDeadlock(longer, request) : undefined;
      if (circle !== undefined || (blockers.length > 0 && !options.wait)) return undefined;
      return { requests: longer, redos };
    };
    const entry = await table.request(make);
    if (entry !== undefined) {
      const request = entry.state.requests.find(({ id }) => id === entry.id);
      if (request !== undefined) return { request, table: entry.state, blockers };
    } else if (circle !== undefined) await mustStillWait(table, circle);
    else {
      const living = await table.judge(blockers, { once: true });
      if (living.length > 0) return { blockers: living };
    }
  }
}

export interface WaitOptions {
  readonly deadline: Deadline;
  /** Throws when what the one who waits is part of is over. */
  readonly mustGoOn: () => void;
}

/** Resolves when every one of `blockers` is over: released by its owner, or dropped by an append. LOCK_LOST when the one who waits was dropped himself. */
export async function waitFor(
  table: LockTable,
  { request, blockers }: Queued,
  { deadline, mustGoOn }: WaitOptions,
): Promise<void> {
  const bell = new Bell(table.ground.ports);
  // The last one first: it waits for those before it, so when it is over they mostly are too, and a hand-over wakes one waiter and not all.
  for (const blocker of [...blockers].reverse()) {
    const isOver = (): Promise<boolean> => table.isOver(blocker.id);
    while ((await bell.ring(table.holdFile(blocker.id), isOver, deadline)) === "poll") {
      mustGoOn();
      if (!(await stillBlocks(table, request, blocker))) break;
    }
  }
  // After the last look, because it is acted on: who slept over it may have been dropped meanwhile, and so may who was broken.
  mustGoOn();
  if (await table.isOver(request.id)) throw dropped(request);
}

async function stillBlocks(table: LockTable, request: Request, blocker: Request): Promise<boolean> {
  if ((await table.judge([blocker], { once: false })).length === 0) await table.drop([]);
  const { state } = await table.read();
  const mine = state.requests.find(({ id }) => id === request.id);
  if (mine === undefined) throw dropped(request);
  const listed = state.requests.find(({ id }) => id === blocker.id);
  // Narrowed since: then it may stand beside us.
  if (listed !== undefined) return conflictsWith(mine.claims, listed.claims);
  await table.finishDropped(blocker, state);
  return false;
}

/** A circle of which somebody has let go is none. */
async function mustStillWait(table: LockTable, circle: readonly Request[]): Promise<void> {
  if ((await table.judge(circle, { once: true })).length < circle.length) return;
  const path =
    circle
      .at(-1)
      ?.claims.map((claim) => claim.path)
      .join(", ") ?? "";
  const holders = await Promise.all(circle.map(({ holder }) => table.ground.findHolder(holder)));
  const cycle = holders.filter((holder) => holder !== undefined);
  const message = `Waiting would never end: whoever holds what is asked for waits for ${path}, which this hold is within. Release it and take both at once.`;
  throw holdfastError("DEADLOCK", message, { path, cycle });
}

function dropped({ claims, fence }: Request): Error {
  const path = claims.map((claim) => claim.path).join(", ");
  const message = `The request for ${path} was dropped while it waited: somebody broke it, or took this process for dead.`;
  return holdfastError("LOCK_LOST", message, { path, fence });
}
