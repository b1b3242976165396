// One checkpoint: how far a piece of work on a log has come, and under which fence.
import { countOf, flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

export interface Checkpoint {
  /** The ground whose locks gave the fence. When somebody has removed it, a new one counts from the beginning again. */
  readonly ground: string;
  /** Of whoever works on it, or did last. 0: nobody yet. */
  readonly fence: number;
  /** Everything up to here is done. */
  readonly position: number;
  /** Of the line of that position: tells this log from one that was restored and went on otherwise. */
  readonly checksum: string;
  /** False until it is decided where it starts. */
  readonly isBegun: boolean;
  /** Whoever worked on it last has said that nothing more of his will come. */
  readonly isOver: boolean;
  /** For good: nobody works on it any more. */
  readonly isClosed: boolean;
  /** Who was cut off, and up to where his work counts: he may still write, but what lies beyond that is void. Only where that matters. */
  readonly cutOff: readonly (readonly [fence: number, position: number])[];
}

/** What `findChecksum` says of position 0. */
const nothing = "00000000";

export const unbegun: Checkpoint = {
  ground: "",
  fence: 0,
  position: 0,
  checksum: nothing,
  isBegun: false,
  isOver: true,
  isClosed: false,
  cutOff: [],
};

/**
 * For one who slept while his append went by. When somebody else has taken over it may have counted before; to call it refused is right all the same, because he
 * must stop now either way.
 */
export function counts(state: Checkpoint, id: string): boolean {
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
