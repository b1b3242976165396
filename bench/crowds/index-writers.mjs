// Four processes that write files of their own, all of which index, beside four without an index.
import { compareCrowds } from "./crowd.mjs";

const processes = 4;

export async function indexWritersGroup({ directory }) {
  const crowds = {
    "without an index": { part: "files", processes },
    "with an index": { part: "indexed files", processes },
  };
  const target = { name: "with an index", ratioMin: 0.7 };
  return { run: () => compareCrowds(directory, `files: ${processes} processes write`, crowds, target) };
}
