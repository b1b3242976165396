// A directory on a real disk with a ground in it whose disk operations are counted.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ground } from "../dist/durable/index.js";
import { openNodePorts } from "../dist/ports/node/ports.js";

export async function openBench() {
  const directory = mkdtempSync(join(process.env.HOLDFAST_BENCH_DIR ?? tmpdir(), "holdfast-bench-"));
  const ports = await openNodePorts(directory);
  const counts = new Counts();
  const ground = await Ground.open({ ...ports, disk: counting(ports.disk, counts) }, `${directory}/ground`);
  return {
    directory,
    ground,
    counts,
    close: async () => {
      await ground.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

class Counts {
  #counts = new Map();
  reset() {
    this.#counts.clear();
  }
  add(operation) {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
  }
  describe() {
    return [...this.#counts]
      .map(([operation, count]) => (count === 1 ? operation : `${count} ${operation}`))
      .join(", ");
  }
}

function counting(disk, counts) {
  return new Proxy(disk, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args) => {
        counts.add(name === "createFile" && args[2]?.sync ? "createFile+sync" : String(name));
        return value.apply(target, args);
      };
    },
  });
}
