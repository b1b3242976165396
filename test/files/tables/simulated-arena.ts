// The simulated disk as an arena: a process dies in the middle of a call, and time passes only by hand.
import { openWorked, works } from "../../../harness/processes/files/works.ts";
import type { IndexedFiles } from "../../../src/files/indexed-files.ts";
import type { Volume } from "../../../src/ports/disk.ts";
import { World } from "../../sites/world.ts";
import type { Arena, Doomed } from "./arena.ts";
import { leaseMs } from "./arena.ts";

const root = "/share/tree";
const staged = "/share/staged";
const stepMs = 20;
const stepsMax = 6_000;

/** Plays `play`, and lets the time pass until it is over. */
export async function onSimulatedDisk(volume: Volume, play: (arena: Arena) => Promise<void>): Promise<void> {
  const world = new World({ volume });
  let isOver = false;
  const playing = play(arenaIn(world)).finally(() => (isOver = true));
  playing.catch(() => undefined);
  for (let step = 0; step < stepsMax && !isOver; step++) await world.advance(stepMs);
  if (!isOver) throw new Error("it hangs");
  await playing;
}

function arenaIn(world: World): Arena {
  const open: Arena["open"] = async (name, options) =>
    // On a machine of its own: what the caches of another one hold is another matter.
    await openWorked(world.ports(name, `m-${name}`), { root, staged }, { leaseMs, ...options });

  let doomedCount = 0;
  /** Resolves when the process comes to its point. */
  const run = async (
    { work, at, time = 1, hasSummaries = false, leaseMs: ownLeaseMs = leaseMs }: Doomed,
    onPoint: (name: string) => Promise<void>,
  ): Promise<{ readonly working: Promise<unknown>; readonly files: IndexedFiles }> => {
    const name = `doomed-${++doomedCount}`;
    let times = 0;
    let hasCome: () => void = () => undefined;
    const coming = new Promise<void>((resolve) => (hasCome = resolve));
    const ports = world.ports(name, `m-${name}`);
    const files = await openWorked(
      ports,
      { root, staged },
      {
        leaseMs: ownLeaseMs,
        work: false,
        hasSummaries,
        at: async (point) => {
          if (point !== at || ++times !== time) return;
          hasCome();
          await onPoint(name);
        },
      },
    );
    const working = works[work](files, { root, staged });
    // The ticket of an operation may come after its answer.
    const inVain = working.then(async () => {
      await files.close();
      throw new Error(`A process that ${work} never came to the point "${at}".`);
    });
    await Promise.race([coming, inVain]);
    inVain.catch(() => undefined);
    return { working, files };
  };

  const { disk, clock } = world.ports("watcher", "m-watcher");
  return {
    root,
    staged,
    disk,
    pause: () => clock.sleep(stepMs),
    nowMs: () => world.nowMs,
    open,
    killAt: async (doomed) => {
      const kill = async (name: string): Promise<never> => {
        world.kill(name);
        return await new Promise<never>(() => undefined);
      };
      await run(doomed, kill);
    },
    holdAt: async (doomed) => {
      let goOn: () => void = () => undefined;
      const going = new Promise<void>((resolve) => (goOn = resolve));
      const { working, files } = await run(doomed, () => going);
      return {
        goOn: async () => {
          goOn();
          await working;
        },
        end: () => files.close(),
      };
    },
  };
}
