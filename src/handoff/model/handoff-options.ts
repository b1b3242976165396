// Checks the options of a hand-off before anything is opened. A mistake throws a TypeError or
// RangeError that names the option.
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type { HandoffOptions } from "./handoff.ts";

const inStore: OptionNames<Omit<HandoffOptions, "leaseMs">> = {
  durability: true,
  limits: true,
  retention: true,
  create: true,
  id: true,
};

/**
 * `call` names the public function in messages. A box in a store refuses the options that the store
 * sets for all its parts.
 */
export function checkHandoffOptions(
  call: string,
  options: HandoffOptions,
  { isInStore = false }: { readonly isInStore?: boolean } = {},
): void {
  if (isInStore) checkOptions(call, options, inStore);
  else checkOptions<HandoffOptions>(call, options, { leaseMs: true, ...inStore });
  const { leaseMs, durability, limits, retention } = options;
  // Checked before anything is created. The ground checks the upper limit, which is the longest
  // delay of a timer.
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
