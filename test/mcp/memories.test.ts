// The files that archives become.
import { expect, it } from "vitest";
import { memoriesOf } from "../../src/mcp/memories.ts";

it.each([
  ["monday", "memories/monday/3.md"],
  ["../src/main", "memories/%2E%2E%2Fsrc%2Fmain/3.md"],
  ["..", "memories/%2E%2E/3.md"],
])("the memory of session %s stays among the memories", async (session, path) => {
  const messages = [{ role: "user", content: "The shelf is green." }];
  const made = await memoriesOf({ session, number: 3, user: "ada", messages });
  expect(made).toEqual([{ path, text: expect.stringContaining("The shelf is green.") as string }]);
});
