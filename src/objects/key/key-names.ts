// The names in the directory of a key: slots by number, in blocks, each with its incarnation.
import { slotName, slotNumberMax } from "../../format/name.ts";
import { holdfastError } from "../../errors.ts";

/** How many slots one directory holds, so that listing it stays cheap. */
export const slotsPerBlock = 256;

const slotPattern = /^([0-9a-z]{26})-([0-9]{10})$/;
const blockPattern = /^([0-9a-z]{26})-b([0-9]{1,10})$/;
const numberPattern = /^[0-9]{10}$/;

/** The parsed listing of a key's directory. */
export interface KeyListing {
  /** Undefined: the key is dying, or its directory is empty. */
  readonly incarnation: string | undefined;
  /** The highest slot of block 0. */
  readonly number: number;
  readonly block: number;
}

export class KeyNames {
  readonly directory: string;
  readonly #slotsPerBlock: number;

  constructor(directory: string, perBlock: number = slotsPerBlock) {
    this.directory = directory;
    this.#slotsPerBlock = perBlock;
  }

  /** Returns the number of the block that has this slot; the first block is 0. */
  blockOf(number: number): number {
    return Math.floor((number - 1) / this.#slotsPerBlock);
  }

  /** The first slot vouches for its block: while it exists, the entries of the block count. */
  firstOf(block: number): number {
    return block * this.#slotsPerBlock + 1;
  }

  lastOf(block: number): number {
    return (block + 1) * this.#slotsPerBlock;
  }

  isFirst(number: number): boolean {
    return this.firstOf(this.blockOf(number)) === number;
  }

  /** Returns the directory of a block. The slots of block 0 are in the key's own directory. */
  blockPath(incarnation: string, block: number): string {
    return block === 0 ? this.directory : `${this.directory}/${incarnation}-b${block}`;
  }

  /** Returns the name of a slot in its block. */
  nameOf(incarnation: string, number: number): string {
    if (number > slotNumberMax) {
      const message = `${this.directory} has ${slotNumberMax} entries, which is the limit. Use another key.`;
      throw holdfastError("TOO_LARGE", message, { limit: slotNumberMax, actual: number });
    }
    return this.blockOf(number) === 0 ? `${incarnation}-${slotName(number)}` : slotName(number);
  }

  slotPath(incarnation: string, number: number): string {
    return `${this.blockPath(incarnation, this.blockOf(number))}/${this.nameOf(incarnation, number)}`;
  }

  /**
   * Parses the names in a key's directory. Ignores those of older incarnations, which may still be
   * there and do not count.
   */
  readListing(names: readonly string[]): KeyListing {
    const incarnation = findIncarnation(names);
    let number = 0;
    let block = 0;
    for (const name of names) {
      const slot = slotPattern.exec(name);
      if (slot?.[1] === incarnation && slot?.[2] !== undefined) number = Math.max(number, Number(slot[2]));
      const found = blockPattern.exec(name);
      if (found?.[1] === incarnation && found?.[2] !== undefined) block = Math.max(block, Number(found[2]));
    }
    return { incarnation, number, block };
  }
}

/**
 * Finds the living incarnation in a listing of a key's directory; undefined if the key is dying or
 * the directory is empty.
 */
export function findIncarnation(names: readonly string[]): string | undefined {
  for (const name of names) {
    const slot = slotPattern.exec(name);
    if (slot !== null && Number(slot[2]) === 1) return slot[1];
  }
  return undefined;
}

export function isBlockName(name: string): boolean {
  return blockPattern.test(name);
}

/** True if `name` is a slot, in the directory of a key or of a block. */
export function isSlotName(name: string): boolean {
  return slotPattern.test(name) || numberPattern.test(name);
}

/** Parses the slot numbers in a block other than 0. */
export function numbersIn(names: readonly string[]): number[] {
  return names.filter((name) => numberPattern.test(name)).map(Number);
}

/** Orders names by age: slots by number, then blocks by number. */
export function compareNames(a: string, b: string): number {
  const [blockOfA, blockOfB] = [a, b].map((name) => Number(blockPattern.exec(name)?.[2] ?? 0));
  return (blockOfA ?? 0) - (blockOfB ?? 0) || (a < b ? -1 : 1);
}
