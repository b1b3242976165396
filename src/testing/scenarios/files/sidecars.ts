// Scenarios of sidecars: of many refreshes of a directory only the newest version writes, and in the end the sidecars
// show all that is there.
import { hashOf } from "../../../files/documents/layout.ts";
import { SidecarVersion } from "../../../files/sidecars/sidecar-version.ts";
import type { Ports } from "../../../ports/ports.ts";
import { mustHold, type Scenario } from "../../explorer/scenario.ts";
import { root, textsBelow } from "./file-actors.ts";
import { indexer, indexScenario, nextProcess, workOff, workOnce } from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions, OpenIndexOptions } from "./index-world.ts";

const directory = "a";
const never = new AbortController().signal;

/** The sidecars tell the names of the files. */
const functions: OpenIndexOptions["functions"] = {
  summarize: async (_directory, entries) => ({ abstract: entries.join(), overview: entries.join() }),
};

export function sidecarScenarios(options: IndexScenarioOptions = {}): Scenario[] {
  const summarising = { ...options, functions, writesPlainly: true };
  return [
    indexScenario({
      name: "files sidecars: a version that is late against the next one",
      about: "A file comes while its directory is summarised: in the end the sidecars show it.",
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
      about:
        "One is killed between the version that it asks for, its ticket and the sidecars: the next one writes them.",
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
        // The work on the change comes again: its outcome is made after the request.
        await next.sidecars.request([directory]);
        await workOff(next);
        await mustShowAll(ports);
      },
    }),
  ];
}

async function addFile({ place }: IndexProcess): Promise<void> {
  await place.disk.createFile(place.pathOf("a/y"), Buffer.from("y"), { sync: true });
}

async function summarise({ sidecars }: IndexProcess, version: number): Promise<void> {
  await sidecars.write({ task: "summary", directory, version }, never);
}

/** Asks for a version, without a ticket. */
async function want({ place }: IndexProcess, { VersionClass = SidecarVersion }: IndexScenarioOptions): Promise<number> {
  const { ground, layout } = place;
  const path = `${layout.directory}/sidecars/${hashOf(directory)}`;
  const versions = await VersionClass.open(ground.staging, path, ground.ports.host.bootId);
  return await versions.want();
}

async function mustShowAll({ disk }: Ports): Promise<void> {
  const texts = await textsBelow(disk, root);
  for (const name of ["a/.abstract.md", "a/.overview.md"])
    mustHold(texts[name] === "x,y", `${name} shows ${texts[name]}, and there are x and y`);
}
