// How failures are told. A program that had caught one from `waitUntilProcessed` once died of it
// all the same: `done` had rejected, too, without a listener.
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const module = new URL("../../../dist/events/index.js", import.meta.url).href;

/**
 * In its own process, which may die. The work fails at event 2; `waitFor`, `stop` and `done` are
 * those of the work.
 */
function run(
  work: keyof typeof works,
  script: string,
  /**
   * How long the process stays after the script: a failure that is not told ends it in that time.
   */
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
    // Time passes: a failure that was not told would end the process now.
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

each("the program goes on when a wait was told of the failure of a %s", (work) => {
  const { status, said, died } = run(
    work,
    `await append(1);
    await waitFor(1);
    await Promise.all([append(2), waitFor(3).catch(told)]);
    await running.stop();`,
  );
  expect({ status, said, died }).toEqual({ status: 0, said: ["told: no mail today", "goes on"], died: "" });
});

each("`done` of a %s rejects as well, also after a wait was told", (work) => {
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

each("the failure of a %s that is told neither by a wait nor by `done` ends the program", (work) => {
  const { status, said, died } = run(work, "await append(2);", longMs);
  expect({ status, said }).toEqual({ status: 1, said: [] });
  expect(died).toContain("no mail today");
});

each("the failure of a %s ends the program when the only waits had ended before", (work) => {
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
