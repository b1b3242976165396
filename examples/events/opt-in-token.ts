// Opt-in tokens: confirm an address by a token that is used once and expires, without a table of pending tokens.
// Run it: node node_modules/holdfast/dist/examples/events/opt-in-token.js (here: node dist/examples/events/opt-in-token.js)
import { randomInt } from "node:crypto";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type SignUpBegun = NewEvent<"SignUpBegun", { email: string; name: string; token: string }>;
type SignUpConfirmed = NewEvent<"SignUpConfirmed", { email: string; name: string }>;
export type SignUpEvent = SignUpBegun | SignUpConfirmed;

const validMs = 60 * 60 * 1000;

const model = modelsOf<SignUpEvent>();

/** Address and token together: a token that was guessed is worth nothing without the address that it was sent to. */
const tagOf = (email: string, token: string): string => `sign-up:${email.toLowerCase()}:${token}`;

const signUp = (email: string, token: string) =>
  model({
    query: { types: ["SignUpBegun", "SignUpConfirmed"], tags: [tagOf(email, token)] },
    initial: undefined as { name: string; since: string; isUsed: boolean } | undefined,
    apply: (_, { type, data, time }) => ({ name: data.name, since: time, isUsed: type === "SignUpConfirmed" }),
  });

const accountOf = (email: string) =>
  model({
    query: { types: ["SignUpConfirmed"], tags: [`email:${email.toLowerCase()}`] },
    initial: false,
    apply: () => true,
  });

const newToken = (): string => String(randomInt(1_000_000)).padStart(6, "0");

/** Gives the token that is to be sent by mail. */
export async function beginSignUp(
  store: EventStore<SignUpEvent>,
  { email, name }: { email: string; name: string },
  token = newToken(),
): Promise<string> {
  await decide(store, { hasAccount: accountOf(email), pending: signUp(email, token) }, ({ hasAccount, pending }) => {
    if (hasAccount) throw new Error(`${email} has an account already.`);
    // By chance the same one as before: one in a million.
    if (pending !== undefined) throw new Error("This token was sent before. Please try again.");
    return { type: "SignUpBegun", data: { email, name, token }, tags: [tagOf(email, token)] };
  });
  return token;
}

export async function confirmSignUp(
  store: EventStore<SignUpEvent>,
  { email, token }: { email: string; token: string },
  now = new Date(),
): Promise<void> {
  await decide(store, { hasAccount: accountOf(email), pending: signUp(email, token) }, ({ hasAccount, pending }) => {
    if (pending === undefined) throw new Error("This token is not valid.");
    if (pending.isUsed) throw new Error("This token was used before.");
    if (hasAccount) throw new Error(`${email} has an account already.`);
    if (now.getTime() - Date.parse(pending.since) > validMs) throw new Error("This token has expired.");
    const tags = [tagOf(email, token), `email:${email.toLowerCase()}`];
    return { type: "SignUpConfirmed", data: { email, name: pending.name }, tags };
  });
}

export async function main(): Promise<void> {
  const store = memoryEvents<SignUpEvent>();
  const token = await beginSignUp(store, { email: "ada@example.com", name: "Ada" });
  // A double click.
  const clicks = [1, 2].map(() => confirmSignUp(store, { email: "ada@example.com", token }));
  for (const end of await Promise.allSettled(clicks))
    console.log(end.status === "fulfilled" ? "confirmed" : String(end.reason));
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
