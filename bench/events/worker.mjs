// A process of the crowd: opens the log, says so, appends for as long as it is told, and says how
// often.
import { setTimeout as sleep } from "node:timers/promises";
import { ownCpuUs } from "../cpu.mjs";
import { openHoldfast } from "./contestants.mjs";

const [directory, mode, callers] = process.argv.slice(2);
const { append, close } = await openHoldfast(directory, { mode });
process.send({ ready: true });
process.on("message", async ({ fromMs, untilMs }) => {
  await sleep(Math.max(0, fromMs - Date.now()));
  const before = ownCpuUs();
  let count = 0;
  const call = async () => {
    while (Date.now() < untilMs) {
      await append();
      // What was finished too late is not counted.
      if (Date.now() < untilMs) count++;
    }
  };
  await Promise.all(Array.from({ length: Number(callers) }, call));
  process.send({ count, cpuUs: ownCpuUs() - before });
});
process.once("disconnect", () => void close().then(() => process.exit(0)));
