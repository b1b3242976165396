// One at a time: a lock file made by hand, the usual package, and the gate.
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import lockfile from "proper-lockfile";
import { ensureDirectory, openGate } from "../../dist/durable/index.js";

export async function gateGroup({ directory, ground }) {
  await ensureDirectory(ground.staging.disk, `${directory}/store`);
  const gate = await openGate(ground, `${directory}/store`);
  writeFileSync(`${directory}/peer`, "");
  return {
    title: "gate: acquire and release, uncontended",
    baseline: "raw: create exclusively, unlink",
    contenders: [
      {
        name: "raw: create exclusively, unlink",
        call: async () => {
          closeSync(openSync(`${directory}/raw.lock`, "wx"));
          unlinkSync(`${directory}/raw.lock`);
        },
      },
      { name: "proper-lockfile", call: async () => (await lockfile.lock(`${directory}/peer`))() },
      { name: "holdfast gate acquire, release", call: async () => (await gate.acquire()).release() },
      { name: "holdfast gate tryAcquire, release", call: async () => (await gate.tryAcquire()).release() },
    ],
    close: () => gate.close(),
  };
}
