// Who hears of a failure. Whoever had caught it from `waitUntilProcessed` died of it all the same, because `done` had rejected too and nobody had listened there.
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const module = new URL("../../../dist/events/index.js", import.meta.url).href;

/** A process of its own, because it may die of it. `waitFor`, `stop` and `done` are those of the work, which fails at event 2. */
function run(
  work: keyof typeof works,
  script: string,
  /** How long it stays after the script. Whoever is to die needs no more than it takes; who is to go on shows that it does not die of what comes right after. */
  staysMs = 50,
): { readonly status: number | null; readonly said: string[]; readonly died: string } {
  const program = `
    import { memoryEvents, openProjection } from ${JSON.stringify(module)};
    const store = memoryEvents();
    const fail = ({ position }) => { if (position === 2) throw new Error("no mail today"); };
    ${works[work]}
    const append = (count) => store.append(Array.from({ length: count }, () => ({ type: "Sold", data: null })));
    const told = (error) => console.log("told: " + error.message);
    ${script}
    // Time passes: in which it could die of a failure that was not told.
    await new Promise((resolve) => setTimeout(resolve, ${staysMs}));
    console.log("goes on");
    await store.close();`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return { status: child.status, said: child.stdout.split("\n").filter(Boolean), died: child.stderr };
}

const works = {
  consumer: `
    const running = store.consume("mailer", "all", async ([event]) => fail(event));
    const waitFor = (position, options) => running.waitUntilProcessed(position, options);`,
  projection: `
    const projection = await openProjection(store, {
      name: "sales", query: "all", key: () => "all", apply: (count = 0, event) => { fail(event); return count + 1; },
    });
    const running = projection.run();
    const waitFor = (position, options) => projection.waitUntilProcessed(position, options);`,
};

const longMs = 30_000;
const each = test.each(["consumer", "projection"] as const);

each("the failure of a %s that was told by a wait is told: the program goes on", (work) => {
  const { status, said, died } = run(
    work,
    `await append(1);
    await waitFor(1);
    await Promise.all([append(2), waitFor(3).catch(told)]);
    await running.stop();`,
  );
  expect({ status, said, died }).toEqual({ status: 0, said: ["told: no mail today", "goes on"], died: "" });
});

each("whoever listens to `done` of a %s is told there as well, also after a wait was", (work) => {
  const { status, said, died } = run(
    work,
    `await Promise.all([append(2), waitFor(2).catch(told)]);
    await running.done.catch(told);`,
  );
  expect({ status, said, died }).toEqual({
    status: 0,
    said: [...Array(2).fill("told: no mail today"), "goes on"],
    died: "",
  });
});

each("the failure of a %s that nobody was told ends the program", (work) => {
  const { status, said, died } = run(work, "await append(2);", longMs);
  expect({ status, said }).toEqual({ status: 1, said: [] });
  expect(died).toContain("no mail today");
});

each("a wait that ended otherwise was not told of the failure of a %s: that ends the program", (work) => {
  const { status, said, died } = run(
    work,
    `const call = new AbortController();
    const calledOff = waitFor(9, { signal: call.signal }).catch((reason) => console.log("called off: " + reason));
    call.abort("enough");
    await calledOff;
    await append(1);
    await waitFor(1);
    await append(1);`,
    longMs,
  );
  expect({ status, said }).toEqual({ status: 1, said: ["called off: enough"] });
  expect(died).toContain("no mail today");
});
