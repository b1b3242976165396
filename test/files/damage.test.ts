// One damaged record of a tree costs that record: the table of what each call does then.
import { afterAll, beforeAll, describe, it } from "vitest";
import { checkDamaged, checkNewer, makeTree, records, removeTree } from "./damage.ts";

describe("a damaged record of a tree", () => {
  let tree = "";
  beforeAll(async () => {
    tree = await makeTree();
  });
  afterAll(() => removeTree(tree));

  // One of every kind at once. Each of them alone, and with every damage, is in damage.deep.ts.
  it.each(["one flipped bit", "a directory", "nothing"] as const)(
    "costs that record, and a repair makes the tree whole: %s in the place of one of every kind",
    async (damage) => {
      await checkDamaged(tree, Object.keys(records), damage);
    },
  );

  it.each(["a change", "the record of the index", "the record of the queue", "an open message"])(
    "that a newer release has written is refused by name, and blocks no file: %s",
    async (name) => {
      await checkNewer(tree, name);
    },
  );
});
