// What one call asks of the disk and of the operating system: counted by wrapping what it goes
// through, so that nothing has to be traced.
export class Counts {
  #counts = new Map();

  reset() {
    this.#counts.clear();
  }

  add(operation, times = 1) {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + times);
  }

  get total() {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  describe() {
    return [...this.#counts]
      .map(([operation, count]) => (count === 1 ? operation : `${count} ${operation}`))
      .join(", ");
  }
}

/** Ports whose disk and OS locks are counted. */
export function countingPorts(ports, counts) {
  const { disk, osLock } = ports;
  const open = async (path) => countingCalls(await osLock.open(path), (name) => counts.add(name));
  return {
    ...ports,
    disk: countingCalls(
      disk,
      (name, args) => addDiskCall(counts, name, args),
      (name, result) => (name === "open" ? result.then((file) => countingSyncs(file, counts)) : result),
    ),
    osLock: { open },
  };
}

/** `calls` with each of its functions counted; `wrap` may change what one gives. */
export function countingCalls(calls, count, wrap = (_name, result) => result) {
  return new Proxy(calls, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args) => {
        count(String(name), args);
        return wrap(String(name), value.apply(target, args));
      };
    },
  });
}

/** Of an open file what waits for the disk. */
function countingSyncs(file, counts) {
  return countingCalls(file, (name) => {
    if (name === "sync") counts.add("sync");
  });
}

function addDiskCall(counts, name, args) {
  // One look for each name on the way.
  if (name === "hasLink") counts.add("lstat", args[1].split("/").length);
  else counts.add(name === "createFile" && args[2]?.sync ? "createFile+sync" : name);
}

/** How often the disk is waited for, among counted operations. */
export function syncsIn(described) {
  let syncs = 0;
  for (const [, times = "1", name] of described.matchAll(/(?:(\d+) )?([A-Za-z+]+)/g))
    if (/sync/i.test(name)) syncs += Number(times);
  return syncs;
}
