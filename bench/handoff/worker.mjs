// One of the processes of crowd.mjs: works until the box is empty, and tells how many tickets it
// got and how many it tried to get.
import { openNodePorts } from "../../dist/ports/node/ports.js";
import { countingCalls } from "../counts.mjs";
import { openHoldfast } from "./contestants.mjs";

const [directory] = process.argv.slice(2);
let [tried, claimed] = [0, 0];
const ports = await openNodePorts(directory);
const disk = countingCalls(ports.disk, (name, [, to = ""]) => {
  if (name === "rename" && to.includes("/processing/")) tried++;
});
const holdfast = await openHoldfast({ ...ports, disk }, directory);
process.send("ready");
process.once("message", () => void work());
process.once("disconnect", () => void leave());

async function work() {
  while (await holdfast.consume()) claimed++;
  process.send({ tried, claimed });
}

async function leave() {
  await holdfast.close();
  process.exit(0);
}
