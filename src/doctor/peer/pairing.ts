// Pairs exactly two of all doctors that look for a peer, however many there are.
import type { Waiting } from "../../common.ts";
import type { Ports } from "../../ports/ports.ts";
import { seeking, type Intent, type Presence, type SeenDoctor } from "./presence.ts";

export type Role = "first" | "second";

export interface Pairing {
  /** The lower id is first. */
  readonly role: Role;
  /** The id of the peer. */
  readonly peer: string;
}

export interface PairingOptions extends Waiting {
  readonly timeoutMs: number;
  /** Called by the first side before the second can know of the pair. */
  readonly prepare: (peer: string) => Promise<void>;
}

const lookEveryMs = 100;
/** Extra time for a doctor that times out while another is choosing it: leaving now would strand the other. */
const graceMs = 3_000;

/** Undefined if no peer came in time. */
export async function findPeer(
  { clock }: Pick<Ports, "clock">,
  presence: Presence,
  { timeoutMs, signal, prepare }: PairingOptions,
): Promise<Pairing | undefined> {
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  let intent: Intent = seeking;
  await presence.show(intent);
  for (;;) {
    signal?.throwIfAborted();
    await presence.look();
    const next = decideRole(presence.id, intent, presence.others());
    if (next.state === "takes") await prepare(next.whom);
    if (next.state !== intent.state || next.whom !== intent.whom) await presence.show(next);
    if (next.state === "takes") return { role: "first", peer: next.whom };
    if (next.state === "with") return { role: "second", peer: next.whom };
    intent = next;
    if (clock.monotonicMs() >= deadlineMs + (intent.state === "accepts" ? graceMs : 0)) return undefined;
    await clock.sleep(lookEveryMs, { signal });
    await presence.keepUp();
  }
}

/**
 * The higher id accepts, the lower one takes. Each waits only for a lower id, so there is no cycle;
 * and only the taker decides, alone and once, so a pair has two members. It uses neither exclusive
 * create nor link: the pair is about to examine those.
 */
export function decideRole(me: string, intent: Intent, others: readonly SeenDoctor[]): Intent {
  if (intent.state === "accepts") {
    const chosen = others.find(({ id }) => id === intent.whom);
    if (chosen?.intent.state === "takes" && chosen.intent.whom === me) return { state: "with", whom: chosen.id };
    // Changing its choice while the other decides would strand the other.
    if (chosen !== undefined && isFree(chosen)) return intent;
  }
  const lower = others.find((other) => other.id < me && isFree(other));
  if (lower !== undefined) return { state: "accepts", whom: lower.id };
  const acceptor = others.find((other) => other.intent.state === "accepts" && other.intent.whom === me);
  return acceptor === undefined ? seeking : { state: "takes", whom: acceptor.id };
}

function isFree({ intent }: SeenDoctor): boolean {
  return intent.state === "seeks" || intent.state === "accepts";
}
