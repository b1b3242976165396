// Scenarios of adoption: another program that does not know Holdfast writes files, and marks them as complete with a
// done file.
import type { Box } from "../../../src/handoff/box/box.ts";
import { Adopter } from "../../../src/handoff/foreign/adopter.ts";
import { openForeignFolder } from "../../../src/handoff/foreign/folder.ts";
import { publish } from "../../../src/handoff/publish/publisher.ts";
import { returnDeadTickets } from "../../../src/handoff/recover/return-tickets.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
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
  // The done file may exist already: the program only touches it.
  await disk.createFile(`${folder}/a.ok`, new Uint8Array(), { sync: true }).catch(() => undefined);
}

/** Writes the next file under the same name as soon as the first one has been fetched. */
const foreigner: Actor = actor({
  run: async ({ ports, note }) => {
    if (await ports.disk.canOpen(`${folder}/a.csv`)) return;
    await write(ports, "2");
    note("wrote");
  },
});

/** After the next adopter has run, each written file has become one ticket. */
async function mustBeAdopted(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const box = await openBox({ name: "auditor", ports });
  for (const holder of await holdersBut(ports, box)) await declareDead(ports, holder);
  // The next round adopts what one round gives back.
  for (let round = 0; round < 3; round++) await adoptOnce(box);
  // The next reaper publishes a ticket whose key was won.
  await returnDeadTickets(box);
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
    about: "The adopter claims the done file before the file that it stands for. The next file has its own done file.",
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
      about:
        "The adopter may be killed at any step. The next one completes the claim or gives the files back, and they become one ticket.",
      actors: { ada: adopter(adopt) },
      killsMax: 1,
    }),
  ];
}
