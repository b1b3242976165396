// The manifest of an index names the current runs, and the files to remove when the next manifests
// are named.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { retryIfSwept } from "../../durable/publish/staging.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { RunFacts } from "./key-run.ts";

/** The `open` file of the first manifest. It is created with the bucket. */
export const firstOpenFile: string = openFileOf("first");

/** The `open` file of the manifest that this merge names. */
export function openFileOf(merge: string): string {
  return `${merge}.open`;
}

export interface Manifest {
  readonly number: number;
  /**
   * A file in `runs/` that shows that this manifest may be read: it is removed before anything that
   * the manifest needs.
   */
  readonly open: string;
  /** Oldest first. */
  readonly runs: readonly RunFacts[];
  /** Announcements that were merged into runs for this manifest. */
  readonly merged: readonly string[];
  /**
   * Files of the previous manifest, relative to the index. They are removed when the next manifest
   * is named.
   */
  readonly last: readonly string[];
  /**
   * Files of the manifest before that. They are removed when this one is named, and are gone before
   * the next is named.
   */
  readonly due: readonly string[];
}

/** The content of the next manifest. */
export type NextManifest = Pick<Manifest, "open" | "runs" | "merged">;

export function manifestAfter(state: Manifest, { open, runs, merged }: NextManifest): Manifest {
  const isKept = new Set(runs.map(({ file }) => file));
  // The `open` file is removed first: a process that still finds it has missed nothing.
  const last = [
    `runs/${state.open}`,
    ...state.runs.filter(({ file }) => !isKept.has(file)).map(({ file }) => `runs/${file}`),
    ...state.merged.map((name) => `new/${name}`),
  ];
  return { number: state.number + 1, open, runs, merged, last, due: state.last };
}

/** True if this manifest or an earlier one knows the file. */
export function isKnown({ open, runs, merged, last, due }: Manifest, path: string): boolean {
  if (path === `runs/${open}` || last.includes(path) || due.includes(path)) return true;
  return runs.some(({ file }) => path === `runs/${file}`) || merged.some((name) => path === `new/${name}`);
}

export async function openManifests({ storage, layout }: OpenBucket): Promise<RollingChain<Manifest>> {
  return await retryIfSwept(() =>
    RollingChain.open<Manifest>(storage.staging, layout.manifests, {
      kind: manifestKind,
      initial: { number: 0, open: firstOpenFile, runs: [], merged: [], last: [], due: [] },
      // True if the manifest was named; undefined if unknown. Then the written files stay, and a
      // later merge removes them if no manifest names them.
      counts: async ({ open, runs }, id) =>
        open === openFileOf(id) || runs.some(({ file }) => file === id) ? true : undefined,
      slotsPerEpoch: 64,
      bootId: storage.ground.ports.host.bootId,
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
