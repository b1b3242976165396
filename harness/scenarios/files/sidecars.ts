// Scenarios of sidecars: of many refreshes of a directory only the newest version writes, and in the end the sidecars
// show every entry.
import { hashOf } from "../../../src/files/documents/layout.ts";
import { SidecarVersion } from "../../../src/files/sidecars/sidecar-version.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { root, textsBelow } from "./file-actors.ts";
import { indexer, indexScenario, nextProcess, workOff, workOnce } from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions, OpenIndexOptions } from "./index-world.ts";

const directory = "a";
const never = new AbortController().signal;

/** The sidecars contain the names of the files. */
const functions: OpenIndexOptions["functions"] = {
  summarize: async (_directory, entries) => ({ abstract: entries.join(), overview: entries.join() }),
};

export function sidecarScenarios(options: IndexScenarioOptions = {}): Scenario[] {
  const summarising = { ...options, functions, writesPlainly: true };
  return [
    indexScenario({
      name: "files sidecars: a version that is late against the next one",
      size: "medium",
      about: "A file arrives while its directory is being summarised. In the end the sidecars show it.",
      files: { "a/x": "x" },
      actors: {
        ada: indexer(
          summarising,
          (_context, process) => summarise(process, 1),
          (process) => want(process, options),
        ),
        bob: indexer(summarising, async (_context, process) => {
          await addFile(process);
          await summarise(process, await want(process, options));
        }),
      },
      audit: (ports) => mustShowAll(ports),
    }),
    indexScenario({
      name: "files sidecars: a process that dies while it asks and writes",
      about: "A process is killed between its version request, its ticket and the sidecars. The next one writes them.",
      files: { "a/x": "x" },
      killsMax: 1,
      actors: {
        bob: indexer(
          summarising,
          async (_context, process) => {
            await process.sidecars.request([directory]);
            await workOnce(process);
          },
          addFile,
        ),
      },
      audit: async (ports) => {
        const next = await nextProcess(ports, { functions, writesPlainly: true });
        // The work on the change is repeated: its outcome is made after the request.
        await next.sidecars.request([directory]);
        await workOff(next);
        await mustShowAll(ports);
      },
    }),
  ];
}

async function addFile({ tree }: IndexProcess): Promise<void> {
  await tree.disk.createFile(tree.pathOf("a/y"), Buffer.from("y"), { sync: true });
}

async function summarise({ sidecars }: IndexProcess, version: number): Promise<void> {
  await sidecars.write({ task: "summary", directory, version }, never);
}

/** Requests a version, without a ticket. */
async function want({ tree }: IndexProcess, { VersionClass = SidecarVersion }: IndexScenarioOptions): Promise<number> {
  const { ground, layout } = tree;
  const path = `${layout.directory}/sidecars/${hashOf(directory)}`;
  const versions = await VersionClass.open(ground.staging, path, ground.ports.host.bootId);
  return (await versions.want()).version;
}

async function mustShowAll({ disk }: Ports): Promise<void> {
  const texts = await textsBelow(disk, root);
  for (const name of ["a/.abstract.md", "a/.overview.md"])
    mustHold(texts[name] === "x,y", `${name} shows ${texts[name]}, and there are x and y`);
}
