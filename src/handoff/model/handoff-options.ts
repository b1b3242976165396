// The options of a hand-off, checked before anything is opened: a mistake is a TypeError or a RangeError that
// names it.
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type { HandoffOptions } from "./handoff.ts";

const inStore: OptionNames<Omit<HandoffOptions, "leaseMs">> = {
  durability: true,
  limits: true,
  retention: true,
  create: true,
  id: true,
};

/** `call` is what the caller called. The options that a store gives to all its parts are not its own. */
export function checkHandoffOptions(
  call: string,
  options: HandoffOptions,
  { isInStore = false }: { readonly isInStore?: boolean } = {},
): void {
  if (isInStore) checkOptions(call, options, inStore);
  else checkOptions<HandoffOptions>(call, options, { leaseMs: true, ...inStore });
  const { leaseMs, durability, limits, retention } = options;
  // Before anything is made; its upper limit is that of timers, which the ground knows.
  if (leaseMs !== undefined && !(leaseMs >= 1))
    throw new RangeError(`leaseMs must be a number from 1, not ${leaseMs}.`);
  if (durability !== undefined && !["fsync", "none"].includes(durability))
    throw new TypeError(`durability is "fsync" or "none", not ${durability as string}.`);
  checkOptions(`${call}: limits`, limits, { tickets: true, bytes: true, inFlight: true });
  for (const [name, count] of Object.entries(limits ?? {}))
    if (count !== undefined && !(Number.isSafeInteger(count) && count >= 1))
      throw new RangeError(`limits.${name} must be a whole number from 1, not ${String(count)}.`);
  checkOptions(`${call}: retention`, retention, { archiveMs: true, errorMs: true, ledgerMs: true });
  for (const [name, ms] of Object.entries(retention ?? {}))
    if (ms !== undefined && !(typeof ms === "number" && ms >= 0))
      throw new RangeError(`retention.${name} must be a number of milliseconds from 0, not ${String(ms)}.`);
}
