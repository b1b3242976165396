// The files of a rolling chain that has one epoch and no slots: the same state, with numbers that
// continue. A backup has no older epochs.
import { randomName } from "../../format/id.ts";
import { slotName } from "../../format/name.ts";
import { encodeRecord } from "../../format/record.ts";
import { epochKind, type Epoch } from "./epoch.ts";

export interface OnlyEpoch {
  /** The number of the state. The next append has a higher one. */
  readonly from: number;
  readonly base: unknown;
  readonly synced: boolean;
  readonly deltas: boolean;
}

/** A boot that no machine has: an epoch that is not synced ends with the first process that opens it. */
const noBoot = "restored";
/** So few that the first process soon names an epoch of its usual length. */
const slots = 64;

/** Returns the files, by their path in the directory of the chain. */
export function encodeEpochOf(
  kind: string,
  { from, base, synced, deltas }: OnlyEpoch,
  random: Uint8Array,
): { readonly name: string; readonly bytes: Uint8Array }[] {
  const directory = `${slotName(1)}-${randomName(random)}`;
  const epoch: Epoch<unknown> = {
    ...{ directory, bootId: noBoot, synced, from, slots, base },
    ...(deltas ? { deltas: true } : {}),
  };
  const state = { kind, decode: (value: unknown) => value };
  const { formatOf, newestFormat, ...rest } = epochKind(state, { hasDeltas: deltas });
  const record = {
    kind: rest.kind,
    ...(newestFormat === undefined ? {} : { newestFormat }),
    formatOf: () => formatOf?.(epoch) ?? 1,
    decode: (value: unknown) => value,
  };
  const entry = { number: 1, id: directory, body: epoch };
  return [
    { name: `${directory}/open`, bytes: new Uint8Array() },
    { name: `epochs/${slotName(1)}`, bytes: encodeRecord(record, entry) },
  ];
}
