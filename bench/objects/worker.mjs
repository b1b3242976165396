// One of the processes of crowd.mjs: puts to the one key as often as it is told to.
import { openNodePorts } from "../../dist/ports/node/ports.js";
import { openHoldfast, openLocked } from "./contestants.mjs";

const [way, directory, puts] = process.argv.slice(2);
const user =
  way === "holdfast"
    ? await openHoldfast(await openNodePorts(directory), directory)
    : { ...openLocked(directory), close: async () => undefined };
process.send("ready");
process.once("message", () => void work());
process.once("disconnect", () => void leave());

async function work() {
  for (let count = 0; count < Number(puts); count++) await user.put();
  process.send("done");
}

async function leave() {
  await user.close();
  process.exit(0);
}
