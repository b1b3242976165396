// The whole damage table: every kind of record, alone, with every kind of damage.
import { afterAll, beforeAll, describe, it } from "vitest";
import { checkDamaged, checkNewer, damages, makeTree, records, removeTree, type Damage } from "./damage.ts";

describe("a damaged record of a tree", () => {
  let tree = "";
  beforeAll(async () => {
    tree = await makeTree();
  });
  afterAll(() => removeTree(tree));

  const cells = Object.keys(records).flatMap((name) =>
    (Object.keys(damages) as Damage[]).map((damage) => ({ name, damage })),
  );
  it.each(cells)("costs that record: $damage in the place of $name", async ({ name, damage }) => {
    if (damage === "a newer format") await checkNewer(tree, name);
    else await checkDamaged(tree, [name], damage);
  });
});
