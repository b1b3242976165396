// The manifest of an index: which runs are read, and what is removed when the next ones are named.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { retryIfSwept } from "../../durable/publish/staging.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { RunFacts } from "./key-run.ts";

/** The `open` file of the first manifest. It is there when the bucket is. */
export const firstOpen: string = openOf("first");

/** The name of the `open` file of the manifest that this merge names. */
export function openOf(merge: string): string {
  return `${merge}.open`;
}

export interface Manifest {
  readonly number: number;
  /**
   * A file in `runs/` that is there for as long as this manifest may be read: it is removed before
   * anything that this manifest needs.
   */
  readonly open: string;
  /** From the oldest to the newest. */
  readonly runs: readonly RunFacts[];
  /** Announcements that this manifest was the first to have in its runs. */
  readonly merged: readonly string[];
  /** Files of the manifest before this one, below the index: removed when the next one is named. */
  readonly last: readonly string[];
  /** Files of the one before that: removed when this one is named, and gone before the next is. */
  readonly due: readonly string[];
}

/** What the manifest that comes after this one brings. */
export type NextManifest = Pick<Manifest, "open" | "runs" | "merged">;

export function manifestAfter(state: Manifest, { open, runs, merged }: NextManifest): Manifest {
  const isKept = new Set(runs.map(({ file }) => file));
  // The open file first: a process that finds it has missed nothing.
  const last = [
    `runs/${state.open}`,
    ...state.runs.filter(({ file }) => !isKept.has(file)).map(({ file }) => `runs/${file}`),
    ...state.merged.map((name) => `new/${name}`),
  ];
  return { number: state.number + 1, open, runs, merged, last, due: state.last };
}

/** Whether a file of the index is one that this manifest, or one before it, knows. */
export function isKnown({ open, runs, merged, last, due }: Manifest, path: string): boolean {
  if (path === `runs/${open}` || last.includes(path) || due.includes(path)) return true;
  return runs.some(({ file }) => path === `runs/${file}`) || merged.some((name) => path === `new/${name}`);
}

export async function openManifests({ place, layout }: OpenBucket): Promise<RollingChain<Manifest>> {
  return await retryIfSwept(() =>
    RollingChain.open<Manifest>(place.staging, layout.manifests, {
      kind: manifestKind,
      initial: { number: 0, open: firstOpen, runs: [], merged: [], last: [], due: [] },
      // Otherwise unknown: what was written stays, and a later merge removes it if no manifest names it.
      counts: async ({ open, runs }, id) =>
        open === openOf(id) || runs.some(({ file }) => file === id) ? true : undefined,
      slotsPerEpoch: 64,
      bootId: place.ground.ports.host.bootId,
    }),
  );
}

const manifestKind: RecordKind<Manifest> = {
  kind: "manifest",
  decode: (value) => {
    const { number, open, runs, merged, last, due } = objectOf(value);
    return {
      number: countOf(number),
      open: textOf(open),
      runs: listOf(runs, runOf),
      merged: listOf(merged, textOf),
      last: listOf(last, textOf),
      due: listOf(due, textOf),
    };
  },
};

function runOf(value: unknown): RunFacts {
  const { file, size } = objectOf(value);
  return { file: textOf(file), size: countOf(size) };
}
