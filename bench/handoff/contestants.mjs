// The ways to hand a small message over that are compared: each publishes it durably, and takes it
// and notes durably that it is done.
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, writeSync } from "node:fs";
import { openBox } from "../../dist/handoff/box/open-box.js";
import { BoxHandoff } from "../../dist/handoff/handoff.js";

export const message = JSON.stringify({ invoice: 4711, lines: Array.from({ length: 8 }, (_, line) => ({ line })) });
/** In how many pieces `publishMany` and the peers publish. */
export const batch = 64;

function syncDirectory(path) {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}

/** By hand, as teams do it: temp file, rename; list, rename, rename. No keys, no attempts, no recovery. */
export function openNaive(directory) {
  for (const name of ["temp", "incoming", "processing", "done"]) mkdirSync(`${directory}/${name}`, { recursive: true });
  let n = 0;
  return {
    name: "by hand: temp, fsync, rename; list, rename",
    publish: async () => {
      const name = `${String(++n).padStart(9, "0")}.json`;
      const fd = openSync(`${directory}/temp/${name}`, "wx");
      writeSync(fd, message);
      fsyncSync(fd);
      closeSync(fd);
      renameSync(`${directory}/temp/${name}`, `${directory}/incoming/${name}`);
      syncDirectory(`${directory}/incoming`);
    },
    consume: async () => {
      const [name] = readdirSync(`${directory}/incoming`).sort();
      if (name === undefined) return false;
      renameSync(`${directory}/incoming/${name}`, `${directory}/processing/${name}`);
      readFileSync(`${directory}/processing/${name}`);
      renameSync(`${directory}/processing/${name}`, `${directory}/done/${name}`);
      syncDirectory(`${directory}/done`);
      return true;
    },
    close: async () => undefined,
  };
}

export async function openHoldfast(ports, directory) {
  const box = new BoxHandoff(await openBox(ports, directory, {}));
  let n = 0;
  const item = () => ({ files: { "invoice.json": message }, key: `${process.pid}-${++n}` });
  return {
    name: "holdfast",
    box,
    publish: () => box.publish({ "invoice.json": message }),
    publishWithKey: () => {
      const { files, ...options } = item();
      return box.publish(files, options);
    },
    publishBatch: async () => {
      for await (const published of box.publishMany(Array.from({ length: batch }, item)))
        if (published.duplicate) throw new Error("a key was used twice");
    },
    consume: async () => {
      const delivery = await box.take();
      if (delivery === undefined) return false;
      await delivery.bytes("invoice.json");
      await delivery.ack({ isBooked: true });
      return true;
    },
    /** As a program does it that runs all day: a handler, many at a time. */
    drain: async (count, concurrency) => {
      let left = count;
      const done = Promise.withResolvers?.() ?? withResolvers();
      const consumer = box.consume(
        async (delivery) => {
          await delivery.bytes("invoice.json");
          if (--left === 0) done.resolve();
          return { isBooked: true };
        },
        { concurrency },
      );
      void consumer.done.catch(done.reject);
      await done.promise;
      await consumer.stop();
    },
    close: () => box.close(),
  };
}

function withResolvers() {
  let resolve, reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}
