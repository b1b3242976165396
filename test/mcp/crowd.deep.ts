// Several agents on one tree, each with a server process of its own that is killed at random: no
// acknowledged write is lost.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { startAgent, type Agent } from "./agents.ts";

it("every acknowledged line is in the file once, though the agents are killed", async () => {
  const directory = makeScratch();
  const first = await startAgent(directory, "first");
  await first.call("write", { path: "lines", text: "", stamp: null });
  const acknowledged: string[] = [];
  const agents = new Map<string, Agent>();
  const work = async (name: string): Promise<void> => {
    let agent = await startAgent(directory, name);
    agents.set(name, agent);
    for (let count = 0; count < 20;) {
      const line = `${name} ${count}`;
      try {
        const { text, stamp } = (await agent.call("read", { path: "lines" })).facts as { text: string; stamp: string };
        // A killed server may have written before it could answer.
        if (!text.includes(`${line}\n`)) {
          const { isError } = await agent.call("write", { path: "lines", text: `${text}${line}\n`, stamp });
          if (isError) continue;
        }
        acknowledged.push(line);
        count++;
      } catch {
        agent = await startAgent(directory, name);
        agents.set(name, agent);
      }
    }
  };
  let kills = 0;
  const killing = async (name: string): Promise<void> => {
    for (let count = 0; count < 3;) {
      await first.call("task_take", { wait_seconds: 0.3 });
      const pid = agents.get(name)?.pid;
      if (pid === undefined) continue;
      agents.delete(name);
      process.kill(pid, "SIGKILL");
      kills++;
      count++;
    }
  };
  const names = ["ada", "bob", "cleo"];
  await Promise.all(names.map(work).concat(names.map((name) => killing(name).catch(() => undefined))));
  const { text } = (await first.call("read", { path: "lines" })).facts as { text: string };
  expect(text.trimEnd().split("\n").sort()).toEqual([...new Set(acknowledged)].sort());
  expect(kills).toBeGreaterThanOrEqual(3);
});

it("three agents that are killed at random refactor one tree", async () => {
  const program = fileURLToPath(new URL("../../examples/agents/refactor.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, makeScratch()]);
  expect(stdout).toMatch(/^24 files renamed by 3 agents, \d+ kills, 0 problems\.\n$/);
});
