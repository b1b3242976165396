// Appending lines to one file: a sync for each, and a sync for all who came meanwhile.
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { AppendFile, GroupCommit } from "../../dist/durable/index.js";

const callers = 64;

export async function commitGroup({ directory, ground }) {
  const line = Buffer.from(`${"x".repeat(99)}\n`);
  const fd = openSync(`${directory}/raw`, "a");
  const file = new AppendFile(await ground.ports.disk.open(`${directory}/log`, "create"), 0);
  const commits = new GroupCommit({
    commit: async (lines) => {
      await file.append(Buffer.concat(lines));
      return lines;
    },
  });
  return {
    title: "group commit: a line of 100 bytes, durable",
    baseline: "raw: append, fdatasync",
    contenders: [
      {
        name: "raw: append, fdatasync",
        call: async () => {
          writeSync(fd, line);
          fdatasyncSync(fd);
        },
      },
      { name: "holdfast, one caller", call: () => commits.add(line) },
      {
        name: `holdfast, ${callers} callers`,
        callsPerRun: callers,
        call: () => Promise.all(Array.from({ length: callers }, () => commits.add(line))),
      },
    ],
    close: async () => {
      await commits.drained();
      await file.close();
      closeSync(fd);
    },
  };
}
