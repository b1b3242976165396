// The content of an index file for one segment, from the index of that segment in memory.
import type { ActiveIndex } from "./active-index.ts";
import type { IndexContent, StoredKey, StoredLine } from "./index-writer.ts";

export function contentOf(index: ActiveIndex): IndexContent {
  return {
    keyCount: index.chains.keyCount,
    lineCount: index.lines.length,
    // One list: it is all in memory anyway.
    lines: async function* () {
      yield linesOf(index);
    },
    keys: async function* () {
      yield keysOf(index);
    },
  };
}

function* linesOf({ first: origin, lines }: ActiveIndex): Generator<StoredLine> {
  for (let index = 0; index < lines.length; index++) {
    const { first, offset, bytes } = lines.at(index);
    yield { first: first - origin, segment: 0, offset, bytes };
  }
}

function* keysOf({ chains }: ActiveIndex): Generator<StoredKey> {
  for (const key of chains.sortedKeys()) {
    const { high, low } = chains.hashOf(key);
    const positions: number[] = [];
    for (let entry = chains.newestOf(key); entry !== 0; entry = chains.previousOf(entry))
      positions.push(chains.eventOf(entry));
    yield { high, low, count: positions.length, positions: positions.reverse() };
  }
}
