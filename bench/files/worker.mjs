// One of the processes of search.mjs: loads the engine as a process does that has just begun, or writes until it is
// told to stop.
import { TextIndex } from "../../dist/files/engine/text-index.js";
import { openFiles } from "../../dist/files/index.js";
import { DocumentsLayout } from "../../dist/files/documents/layout.js";
import { indexKind } from "../../dist/files/documents/index-record.js";
import { Snapshots } from "../../dist/files/search/snapshots.js";
import { openTree } from "../../dist/files/tree/open-tree.js";
import { findRecord } from "../../dist/durable/publish/record-file.js";
import { openNodePorts } from "../../dist/ports/node/ports.js";

const [task, root] = process.argv.slice(2);
await (task === "load" ? load() : write());

async function load() {
  const opened = await openTree(await openNodePorts(root), root);
  const { ground, layout, disk } = opened.place;
  const record = await findRecord(disk, indexKind, new DocumentsLayout(layout.documents).record);
  const startMs = performance.now();
  const before = process.cpuUsage();
  const snapshots = new Snapshots(ground.staging, layout.index, ground.ports.host.bootId);
  const snapshot = await snapshots.find(record.id);
  const index = await TextIndex.open(snapshot.bytes);
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  console.log(
    JSON.stringify({ tookMs, cpuMs: (user + system) / 1000, bytes: snapshot.bytes.length, files: index.count }),
  );
  await opened.close();
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
