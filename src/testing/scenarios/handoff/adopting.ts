// Scenarios of adoption: files of a program that knows nothing of Holdfast, and says by a done file that they are
// complete.
import type { Box } from "../../../handoff/box/box.ts";
import { Adopter } from "../../../handoff/foreign/adopter.ts";
import { openForeignFolder } from "../../../handoff/foreign/folder.ts";
import { publish } from "../../../handoff/publish/publisher.ts";
import { reap } from "../../../handoff/recover/reap.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { openToWork, orTold } from "./handoff-actors.ts";
import { handoffScenario, ticketsIn } from "./handoff-audit.ts";
import { declareDead, holdersBut, openBox } from "./handoff-world.ts";

export const folder = "/in";

export type Adopt = (box: Box) => Promise<unknown>;

const adoptOnce: Adopt = async (box) => {
  const found = await openForeignFolder(box, folder, async (path) => ({ path, disk: box.disk }));
  const parts = {
    box,
    publish: (what: Parameters<typeof publish>[1]) => publish(box, what),
    mustHaveRoom: async () => undefined,
  };
  return await new Adopter(parts, found, { by: "done-file", done: "{base}.ok" }).pass();
};

function adopter(adopt: Adopt): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) => orTold(context, async () => void (await adopt(box))),
  });
}

async function write({ disk }: Ports, text: string): Promise<void> {
  await disk.createFile(`${folder}/a.csv`, Buffer.from(text), { sync: true });
  // It need not be new: the program touches it.
  await disk.createFile(`${folder}/a.ok`, new Uint8Array(), { sync: true }).catch(() => undefined);
}

/** Writes the next file under the same name as soon as the first one was fetched. */
const foreigner: Actor = actor({
  run: async ({ ports, note }) => {
    if (await ports.disk.canOpen(`${folder}/a.csv`)) return;
    await write(ports, "2");
    note("wrote");
  },
});

/** After the next adopter has come, each file that was written has made one ticket. */
async function mustBeAdopted(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const box = await openBox({ name: "auditor", ports });
  for (const holder of await holdersBut(ports, box)) await declareDead(ports, holder);
  // What one round gives back, the next one adopts.
  for (let round = 0; round < 3; round++) await adoptOnce(box);
  // A ticket whose key was won is published by the next reaper.
  await reap(box);
  const count = (await ticketsIn(ports)).size;
  const written = 1 + facts.filter(({ what }) => what === "wrote").length;
  mustHold(count === written, `of ${written} files ${count} were adopted`);
  const left = await ports.disk.list(folder);
  mustHold(left.length === 0, `${left.join(" and ")} is left`);
}

export function adoptScenarios(adopt: Adopt = adoptOnce): Scenario[] {
  const world: Pick<Scenario, "setup" | "audit"> = {
    setup: async (ports) => {
      await ports.disk.mkdir(folder);
      await write(ports, "1");
    },
    audit: mustBeAdopted,
  };
  const own = handoffScenario({
    ...world,
    name: "handoff: an adopter, and a program that writes the next file",
    about: "The done file is claimed before the file that it stands for: the next one has its own.",
    actors: { ada: adopter(adopt), pro: foreigner },
  });
  return [
    {
      ...own,
      isUnseen: (operation, path) => path.startsWith("/box/adopting") || own.isUnseen?.(operation, path) === true,
    },
    handoffScenario({
      ...world,
      name: "handoff: an adopter is killed",
      about: "At any step: the next one completes the claim or gives the files back, and one ticket comes of them.",
      actors: { ada: adopter(adopt) },
      killsMax: 1,
    }),
  ];
}
