// Mutants of adoption: the order in which a foreign file and its done file are taken.
import { unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { publish } from "../../../src/handoff/publish/publisher.ts";
import { adoptScenarios, folder, type Adopt } from "../../scenarios/handoff/adopting.ts";
import { publication } from "../../scenarios/handoff/handoff-world.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Takes the file first, and removes its done file at the end. */
const doneFileLast: Adopt = async (box) => {
  const { disk } = box;
  if (!(await disk.canOpen(`${folder}/a.ok`))) return;
  await publish(box, publication("1"));
  await unlinkIfThere(disk, `${folder}/a.csv`);
  await unlinkIfThere(disk, `${folder}/a.ok`);
};

export const handoffAdoptMutants: readonly Mutant[] = [
  {
    name: "done file removed last",
    about: "By then the name belongs to the done file of the next file, which is then never adopted.",
    scenario: scenarioNamed(
      adoptScenarios(doneFileLast),
      "handoff: an adopter, and a program that writes the next file",
    ),
    breaks: /were adopted|is left/,
  },
];
