// Child processes that do what they are asked, one answer to each question.
import { fork } from "node:child_process";

export function startWorkers(count) {
  return Array.from({ length: count }, startWorker);
}

export function endWorkers(workers) {
  return Promise.all(workers.map((worker) => worker.end()));
}

function startWorker() {
  const child = fork(new URL("worker.mjs", import.meta.url));
  const open = new Map();
  let asked = 0;
  child.on("message", ({ id, answer, error }) => {
    const { resolve, reject } = open.get(id);
    open.delete(id);
    if (error === undefined) resolve(answer);
    else reject(new Error(error));
  });
  const exited = new Promise((resolve) =>
    child.once("exit", (code) => {
      for (const { reject } of open.values()) reject(new Error(`a worker ended with code ${code}`));
      resolve();
    }),
  );
  return {
    ask: (task, details = {}) =>
      new Promise((resolve, reject) => {
        open.set(++asked, { resolve, reject });
        child.send({ id: asked, task, details });
      }),
    end: async () => {
      // A child that ended by itself has rejected the question that it was asked.
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
