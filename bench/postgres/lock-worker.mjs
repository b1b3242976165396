// A process of hot-lock.mjs.
import { openPostgres } from "../../dist/postgres/index.js";
import { answerQuestions } from "../processes.mjs";

let store;
let locks;
answerQuestions(
  {
    open: async ({ url }) => {
      store = await openPostgres(url);
      locks = await store.locks();
    },
    work: async ({ untilMs }) => {
      let passes = 0;
      for (; Date.now() < untilMs; passes++) await (await locks.acquire("hot", { timeoutMs: 60_000 })).release();
      return passes;
    },
  },
  () => store.close(),
);
