// One checkpoint: how far a piece of work has come, and under which fence.
import { countOf, flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

export interface Checkpoint {
  /**
   * The id of the ground whose locks gave the fence. A ground that is removed and created again
   * counts from the start.
   */
  readonly ground: string;
  /** The fence of the process that works on it, or worked on it last. 0: none yet. */
  readonly fence: number;
  /** Everything up to here is done. */
  readonly position: number;
  /** The mark of `position` (see `MarkedSequence`); `checksum` is its name on the disk. */
  readonly checksum: string;
  /** False until the start is decided. */
  readonly isBegun: boolean;
  /** True if the last worker stated that its work is complete. */
  readonly isOver: boolean;
  /** True if no process will work on it again. */
  readonly isClosed: boolean;
  /**
   * Workers that were cut off, each with the position up to which its work counts. A late write of
   * such a worker beyond that position is void. Empty where late writes do no harm.
   */
  readonly cutOff: readonly (readonly [fence: number, position: number])[];
}

/** The mark of position 0, before everything. */
const startMark = "00000000";

export const initialCheckpoint: Checkpoint = {
  ground: "",
  fence: 0,
  position: 0,
  checksum: startMark,
  isBegun: false,
  isOver: true,
  isClosed: false,
  cutOff: [],
};

/**
 * True if the append `id` counts. A process asks this if it slept past its append. After a takeover
 * the result is false although the append may have counted before: the process must stop either
 * way.
 */
export function doesCount(state: Checkpoint, id: string): boolean {
  const [fence = "", what = "", position = ""] = id.split(".");
  if (what === "begin") return state.isBegun;
  if (what === "close") return state.isClosed;
  if (state.fence !== Number(fence)) return false;
  return what === "end" ? state.isOver : what === "take" || state.position >= Number(position);
}

export const checkpointKind: RecordKind<Checkpoint> = {
  kind: "checkpoint",
  decode: (value) => {
    const { ground, fence, position, checksum, isBegun, isOver, isClosed, cutOff } = objectOf(value);
    return {
      ground: textOf(ground),
      fence: countOf(fence),
      position: countOf(position),
      checksum: textOf(checksum),
      isBegun: flagOf(isBegun),
      isOver: flagOf(isOver),
      isClosed: flagOf(isClosed),
      cutOff: listOf(cutOff, (pair) => {
        const [cutFence, cutPosition] = listOf(pair, countOf);
        return [countOf(cutFence), countOf(cutPosition)] as const;
      }),
    };
  },
};
