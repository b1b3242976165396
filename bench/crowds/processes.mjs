// Eight processes on paths, keys and files of their own, one caller each, beside one process alone: throughput must not
// fall when processes are added.
import { compareCrowds } from "./crowd.mjs";

const processes = 8;
const calls = {
  locks: { what: "acquire and release a path lock", ratioMin: 1 },
  events: { what: "append an event", ratioMin: 0.8 },
  files: { what: "write a file, without an index", ratioMin: 1.2 },
  put: { what: "put 1 KiB to an existing key", ratioMin: 2 },
  publish: { what: "publish a message with a key", ratioMin: 2 },
};

export async function processesGroup({ directory }, part) {
  const { what, ratioMin } = calls[part];
  const together = `${processes} processes`;
  const crowds = { "one process": { part, processes: 1 }, [together]: { part, processes } };
  return { run: () => compareCrowds(directory, `processes: ${what}`, crowds, { name: together, ratioMin }) };
}
