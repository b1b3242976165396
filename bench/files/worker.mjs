// One of the processes of search.mjs: opens the tree and searches once, or writes until it is told to stop.
import { openFiles } from "../../dist/files/index.js";
import { ownCpuUs } from "../cpu.mjs";

const [task, root] = process.argv.slice(2);
await { search, write }[task]();

/** From the opening to the first hits. */
async function search() {
  const startMs = performance.now();
  const before = ownCpuUs();
  const files = await openFiles(root, { work: false });
  await files.search("bear");
  console.log(JSON.stringify({ tookMs: performance.now() - startMs, cpuMs: (ownCpuUs() - before) / 1000 }));
  await files.close();
}

async function write() {
  const files = await openFiles(root);
  let isOver = false;
  process.once("message", () => (isOver = true));
  process.send("writing");
  let written = 0;
  for (; !isOver; written++) await files.write(`all/0/${written % 50}.md`, `# Note\n\nbear number ${written}\n`);
  process.send({ written });
  await files.close();
  process.disconnect();
}
