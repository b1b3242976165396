// The state of a rolling chain that shows whether it counts right: the id of every append that is
// part of it, in order.
import { RollingChain, type RollingChainOptions } from "../../src/durable/chain/rolling-chain.ts";
import type { Staging } from "../../src/durable/publish/staging.ts";
import { objectOf, textOf } from "../../src/format/decoding.ts";

export interface ListedIds {
  readonly ids: readonly string[];
}

export const listOptions: RollingChainOptions<ListedIds> = {
  kind: { kind: "list", decode: (body) => ({ ids: (objectOf(body).ids as unknown[]).map(textOf) }) },
  initial: { ids: [] },
  counts: ({ ids }, id) => ids.includes(id),
  slotsPerEpoch: 3,
  bootId: "boot-1",
};

export async function openList(
  staging: Staging,
  directory: string,
  options: Partial<RollingChainOptions<ListedIds>> = {},
): Promise<RollingChain<ListedIds>> {
  return await RollingChain.open(staging, directory, { ...listOptions, ...options });
}

/** Appends an id to the list; the number that it got. */
export async function add(chain: RollingChain<ListedIds>, id: string): Promise<number> {
  const entry = await chain.append(id, ({ ids }) => ({ ids: [...ids, id] }));
  return entry!.number;
}
