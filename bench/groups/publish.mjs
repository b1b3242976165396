// One small file made durable: by hand, by a peer, and by publish and chains.
import { closeSync, fsyncSync, linkSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import writeFileAtomic from "write-file-atomic";
import { Chain, ensureDirectory, putIfAbsent, replace, RollingChain } from "../../dist/durable/index.js";

const kind = { kind: "bench", decode: (value) => value };

export async function publishGroup({ directory, ground }) {
  const { staging } = ground;
  const bytes = Buffer.from("x".repeat(200));
  for (const name of ["raw", "peer", "put", "replace", "chain"])
    await ensureDirectory(staging.disk, `${directory}/${name}`);
  const chain = new Chain(staging, `${directory}/chain`, kind);
  const options = { kind, initial: 0, counts: () => false, bootId: ground.ports.host.bootId };
  const rolling = await RollingChain.open(staging, `${directory}/rolling`, options);
  const unsynced = await RollingChain.open(staging, `${directory}/unsynced`, { ...options, sync: false });
  let n = 0;
  const raw = (finish) => {
    const temp = `${directory}/raw/temp-${++n}`;
    const fd = openSync(temp, "wx");
    writeSync(fd, bytes);
    fsyncSync(fd);
    closeSync(fd);
    finish(temp);
    const parent = openSync(`${directory}/raw`, "r");
    fsyncSync(parent);
    closeSync(parent);
  };
  return {
    title: "publish: one file of 200 bytes, durable",
    baseline: "raw: create, fsync, rename, fsync directory",
    contenders: [
      {
        name: "raw: create, fsync, rename, fsync directory",
        call: async () => raw((temp) => renameSync(temp, `${directory}/raw/target`)),
      },
      {
        name: "raw: create, fsync, link, fsync directory",
        call: async () =>
          raw((temp) => {
            linkSync(temp, `${directory}/raw/${n}`);
            unlinkSync(temp);
          }),
      },
      { name: "write-file-atomic (no directory sync)", call: () => writeFileAtomic(`${directory}/peer/target`, bytes) },
      { name: "holdfast replace", call: () => replace(staging, `${directory}/replace/target`, bytes) },
      { name: "holdfast putIfAbsent", call: () => putIfAbsent(staging, `${directory}/put/${++n}`, bytes) },
      { name: "holdfast Chain.append", call: () => chain.append(String(++n), () => n) },
      { name: "holdfast RollingChain.append", call: () => rolling.append(String(++n), (count) => count + 1) },
      {
        name: "holdfast RollingChain.append, sync: false",
        call: () => unsynced.append(String(++n), (count) => count + 1),
      },
    ],
  };
}
