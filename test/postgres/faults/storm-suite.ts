// The storm: the server and its clients are killed, again and again, at every moment of their work.
import { describeHistory } from "./audit.ts";
import type { World } from "./world.ts";

const kills = Number(process.env["HOLDFAST_STORM_KILLS"] ?? 100);
const chance = (max: number): number => Math.floor(Math.random() * max);

describeHistory(`a storm of ${kills} kills of the server and ${kills} of its clients`, {
  enough: 10 * kills,
  rage: async (world: World) => {
    for (let count = 0; count < 4; count++) world.start();
    await world.ready();
    for (let kill = 0; kill < kills; kill++) {
      await world.work(300 + chance(1_200));
      await world.kill(world.workers[0]!);
      const next = world.start();
      await world.work(chance(1_200));
      const end = world.outages.begin();
      await world.server.kill(kill % 4 === 0 ? "SIGQUIT" : "SIGKILL");
      await world.work(chance(300));
      await world.server.restart();
      end();
      // Otherwise a process might be killed before it has done anything.
      await world.ready([next]);
    }
  },
});
