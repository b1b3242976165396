// Child processes that do what they are asked, one answer to each question.
import { fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/** `worker` is the URL of a module that calls `answerQuestions`. */
export function startWorkers(worker, count) {
  return Array.from({ length: count }, () => startWorker(worker));
}

export function endWorkers(workers) {
  return Promise.all(workers.map((worker) => worker.end()));
}

/** In such a child: `tasks` by name; `close` when the parent has gone. */
export function answerQuestions(tasks, close) {
  process.on("message", async ({ id, task, details }) => {
    try {
      process.send({ id, answer: await tasks[task](details) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.once("disconnect", async () => {
    // After a failure a caller may still hold what is to be closed, and close would wait for it.
    await Promise.race([close(), sleep(2000)]);
    process.exit(0);
  });
}

function startWorker(worker) {
  const child = fork(worker);
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
