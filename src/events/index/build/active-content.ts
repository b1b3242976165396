// The content of an index file for one segment, taken from its index in memory.
import type { ActiveIndex } from "../memory/active-index.ts";
import type { StoredLine } from "../file/index-layout.ts";
import type { IndexContent, StoredKey } from "./index-writer.ts";

const listLength = 1024;

export function contentOf(index: ActiveIndex): IndexContent {
  return {
    times: [index.times],
    keyCount: index.chains.keyCount,
    lineCount: index.lines.length,
    lines: async function* () {
      yield linesOf(index);
    },
    // Yields several keys at a time: the writer yields to the event loop after each list.
    keys: async function* () {
      const sorted = index.chains.sortedKeys();
      for (let from = 0; from < sorted.length; from += listLength)
        yield storedKeysOf(index, sorted.subarray(from, from + listLength));
    },
  };
}

function* linesOf({ first: origin, lines }: ActiveIndex): Generator<StoredLine> {
  for (let index = 0; index < lines.length; index++) {
    const { first, offset, bytes } = lines.at(index);
    yield { first: first - origin, segment: 0, offset, bytes };
  }
}

function storedKeysOf({ chains }: ActiveIndex, keys: Uint32Array): StoredKey[] {
  return Array.from(keys, (key) => {
    const { high, low } = chains.hashOf(key);
    const positions: number[] = [];
    for (let entry = chains.newestOf(key); entry !== 0; entry = chains.previousOf(entry))
      positions.push(chains.eventOf(entry));
    return { high, low, count: positions.length, positions: positions.reverse() };
  });
}
