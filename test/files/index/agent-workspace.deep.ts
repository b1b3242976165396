// The example of agents that share a workspace does what it says.
import { expect, test } from "vitest";
import { openWorkspace, runAgent } from "../../../examples/agent-workspace/agents.ts";
import { makeScratch } from "../../sites/scratch.ts";

test("agents in one workspace lose no line of the note that they share, and find each other's notes", async () => {
  const folder = makeScratch();
  const names = ["ada", "bob", "eve"];
  const workspaces = await Promise.all(names.map(() => openWorkspace(folder)));
  await Promise.all(workspaces.map((files, index) => runAgent(files, names[index] ?? "")));
  const [files] = workspaces;
  await files?.settled();
  expect((await files?.readText("notes/plan.md"))?.split("\n").sort()).toEqual([
    "",
    ...names.map((name) => `- ${name} was here`),
  ]);
  const found = await files?.search("wolves", { under: "notes" });
  expect(found?.map(({ path }) => path).sort()).toEqual(names.map((name) => `notes/${name}.md`));
  expect(await files?.readText("memories/eve/work-of-eve-1.md")).toBe("2 messages, the last: Done.");
  expect(await files?.readText("notes/.overview.md")).toContain("- bob.md");
  for (const each of workspaces) await each.close();
});
