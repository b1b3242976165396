// Real processes as an arena: the one that dies is a child, and ends itself by SIGKILL at its point.
import { realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { openNodeFolder, openNodePorts } from "../../../src/ports/node/ports.ts";
import { Child, type Ending } from "../../../harness/processes/child.ts";
import type { TreeChildOrders, TreeChildReport } from "../../../harness/processes/files/child.ts";
import { openWorked } from "../../../harness/processes/files/works.ts";
import { compiledModule } from "../../../harness/processes/compiled-module.ts";
import { makeScratch } from "../../sites/scratch.ts";
import { until } from "../../waiting.ts";
import { leaseMs, type Arena, type Doomed } from "./arena.ts";

const module = compiledModule(new URL("../../../harness/processes/files/child.ts", import.meta.url));
/** For what hangs. */
const finishMs = 120_000;
const pauseMs = 20;

export async function makeProcessArena(): Promise<Arena> {
  const directory = realpathSync(makeScratch());
  const [root, staged] = [`${directory}/tree`, `${directory}/staged`];
  const { disk } = await openNodePorts(directory);

  /** Resolves when the process comes to its point. */
  const run = async (
    { work, at, time = 1, hasSummaries = false, leaseMs: ownLeaseMs = leaseMs }: Doomed,
    how: TreeChildOrders["how"],
  ): Promise<{ child: Child; ended: Promise<Ending>; reports: readonly TreeChildReport[] }> => {
    const orders: TreeChildOrders = { root, staged, work, point: at, time, how, hasSummaries, leaseMs: ownLeaseMs };
    const reports: TreeChildReport[] = [];
    let hasCome: () => void = () => undefined;
    const coming = new Promise<void>((resolve) => (hasCome = resolve));
    let hasEnded: (ending: Ending) => void = () => undefined;
    const ended = new Promise<Ending>((resolve) => (hasEnded = resolve));
    const child = new Child({
      name: work,
      module,
      args: [JSON.stringify(orders)],
      onReport: (_, value) => {
        reports.push(value as TreeChildReport);
        if ((value as TreeChildReport).kind === "reached") hasCome();
      },
      onEnd: (_, ending) => hasEnded(ending),
    });
    onTestFinished(() => child.kill());
    child.start();
    const inVain = ended.then(({ code, signal, stderr }) => {
      const end = `${code ?? signal} ${JSON.stringify(reports)} ${stderr}`;
      throw new Error(`A process that ${work} never came to the point "${at}", and ended with ${end}`);
    });
    await Promise.race([coming, inVain]);
    inVain.catch(() => undefined);
    return { child, ended, reports };
  };

  return {
    root,
    staged,
    disk,
    // Time passes: between two looks at what other processes do.
    pause: () => sleep(pauseMs),
    nowMs: () => performance.now(),
    open: async (_name, options) => {
      const ports = await openNodePorts(root);
      const files = await openWorked(ports, { root, staged }, { leaseMs, ...options, openFolder: openNodeFolder });
      onTestFinished(() => files.close());
      return files;
    },
    killAt: async (doomed) => {
      const { ended } = await run(doomed, "kill");
      const { signal } = await ended;
      if (signal !== "SIGKILL") throw new Error(`It was not killed: ${signal}.`);
    },
    holdAt: async (doomed) => {
      const { child, ended, reports } = await run(doomed, "wait");
      return {
        goOn: async () => {
          child.goOn();
          const end = ended.then(({ code, signal, stderr }) => {
            throw new Error(`It ended with ${code ?? signal}: ${stderr}`);
          });
          await Promise.race([until(() => reports.length > 1), end]);
          end.catch(() => undefined);
          expect(reports.at(-1)).toEqual({ kind: "done" });
        },
        end: async () => expect(await child.finish(finishMs)).toBe(true),
      };
    },
  };
}
