// A unique username: no table with a unique index, no reservation; the name itself is the tag that two sign-ups meet at.
// Run it: node node_modules/holdfast/dist/examples/events/unique-username.js (here: node dist/examples/events/unique-username.js)
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type AccountRegistered = NewEvent<"AccountRegistered", { username: string }>;
type AccountClosed = NewEvent<"AccountClosed", { username: string }>;
type UsernameChanged = NewEvent<"UsernameChanged", { from: string; to: string }>;
export type AccountEvent = AccountRegistered | AccountClosed | UsernameChanged;

/** A name that was given up stays taken for a while, so that no user gets the mail of another. */
const reservedMs = 3 * 24 * 60 * 60 * 1000;

type Claim = { taken: boolean; freeSince?: string };

const unclaimed: Claim = { taken: false };

const model = modelsOf<AccountEvent>();

/** Names are compared without letter case. */
const tagOf = (username: string): string => `username:${username.toLowerCase()}`;

const claimOn = (username: string) =>
  model({
    query: { types: ["AccountRegistered", "AccountClosed", "UsernameChanged"], tags: [tagOf(username)] },
    initial: unclaimed,
    apply: (_, { type, data, time }): Claim => {
      const isGivenUp =
        type === "AccountClosed" || (type === "UsernameChanged" && tagOf(data.from) === tagOf(username));
      return isGivenUp ? { taken: false, freeSince: time } : { taken: true };
    },
  });

/** Throws when the name cannot be had now. */
function checkFree(username: string, { taken, freeSince }: Claim, now: Date): void {
  if (taken) throw new Error(`The name ${username} is taken.`);
  if (freeSince !== undefined && now.getTime() - Date.parse(freeSince) < reservedMs)
    throw new Error(`The name ${username} was given up less than three days ago.`);
}

export async function register(store: EventStore<AccountEvent>, username: string, now = new Date()): Promise<void> {
  await decide(store, { claim: claimOn(username) }, ({ claim }) => {
    checkFree(username, claim, now);
    return { type: "AccountRegistered", data: { username }, tags: [tagOf(username)] };
  });
}

export async function closeAccount(store: EventStore<AccountEvent>, username: string): Promise<void> {
  await decide(store, { claim: claimOn(username) }, ({ claim }) => {
    if (!claim.taken) throw new Error(`There is no account ${username}.`);
    return { type: "AccountClosed", data: { username }, tags: [tagOf(username)] };
  });
}

/** Rests on both names: neither can change hands meanwhile. */
export async function rename(
  store: EventStore<AccountEvent>,
  from: string,
  to: string,
  now = new Date(),
): Promise<void> {
  await decide(store, { old: claimOn(from), wanted: claimOn(to) }, ({ old, wanted }) => {
    if (!old.taken) throw new Error(`There is no account ${from}.`);
    checkFree(to, wanted, now);
    return { type: "UsernameChanged", data: { from, to }, tags: [tagOf(from), tagOf(to)] };
  });
}

export async function main(): Promise<void> {
  const store = memoryEvents<AccountEvent>();
  const ends = await Promise.allSettled([register(store, "Ada"), register(store, "ada")]);
  for (const end of ends) console.log(end.status === "fulfilled" ? "registered" : String(end.reason));
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
