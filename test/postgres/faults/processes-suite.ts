// Processes that sleep past their lease, and processes whose clocks are wrong.
import { describeHistory } from "./audit.ts";
import { leaseMs } from "./world.ts";

const hourMs = 3_600_000;

describeHistory("processes that sleep past their lease", {
  enough: 100,
  rage: async (world) => {
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    for (let stop = 0; stop < 6; stop++) {
      await world.work(1_000);
      const { child } = world.workers[stop % world.workers.length]!;
      child.kill("SIGSTOP");
      // Others take over what it holds.
      await world.work(leaseMs + 1_500);
      child.kill("SIGCONT");
    }
  },
});

describeHistory("processes whose clocks are an hour behind, an hour ahead, and jump", {
  enough: 100,
  rage: async (world) => {
    world.start();
    world.start({ clock: -hourMs });
    world.start({ clock: hourMs });
    world.start({ clock: "jumps" });
    await world.ready();
    // A lease and more, after which a clock that counts would have made a difference.
    await world.work(2 * leaseMs);
    await world.kill(world.workers[2]!);
    await world.work(2 * leaseMs);
  },
});
