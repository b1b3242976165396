import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkLinearizability, mustBeLinearizable, type Operation } from "../../src/testing/history/linearizability.ts";
import { lockModel, type LockInput, type LockOutput } from "../../src/testing/history/lock-model.ts";
import { counterModel, registerModel } from "../../src/testing/history/register-model.ts";
import type {
  CounterInput,
  CounterOutput,
  RegisterInput,
  RegisterOutput,
} from "../../src/testing/history/register-model.ts";
import type { RegisterValue } from "../../src/testing/history/register-model.ts";
import { blurred, isLinearizableByForce, stepOf, stepsOf } from "./history-bench.ts";

type Times = readonly [calledAt: number, returnedAt: number | "never"];

function operation<Input, Output>(process: string, [calledAt, returnedAt]: Times, input: Input, output?: Output) {
  return { process, input, calledAt, returnedAt, ...(output === undefined ? {} : { output }) };
}

const read = (process: string, times: Times, value: RegisterValue): Operation<RegisterInput, RegisterOutput> =>
  operation(process, times, { kind: "read" }, { kind: "read", value });
const write = (process: string, times: Times, value: RegisterValue): Operation<RegisterInput, RegisterOutput> =>
  operation(process, times, { kind: "write", value }, { kind: "written" });
const add = (process: string, times: Times, count: number): Operation<CounterInput, CounterOutput> =>
  operation(process, times, { kind: "add", by: 1 }, { count });
const lock = (
  kind: LockInput["kind"],
  hold: string,
  times: Times,
  output?: LockOutput,
): Operation<LockInput, LockOutput> => operation(hold, times, { kind, name: "a", hold }, output);
const granted = (hold: string, times: Times, fence: number) => lock("acquire", hold, times, { kind: "granted", fence });
const lockKinds = ["acquire", "release", "expire", "commit"] as const;
const done = { kind: "done" } as const;

/** A register that does one thing at a time. */
function realRegister() {
  const values = new Map<string, RegisterValue>();
  return (input: RegisterInput): RegisterOutput => {
    const key = input.key ?? "";
    const value = values.get(key) ?? null;
    if (input.kind === "read") return { kind: "read", value };
    if (input.kind === "compareAndSet" && value !== input.expected) return { kind: "refused" };
    values.set(key, input.value);
    return { kind: "written" };
  };
}

const value = fc.constantFrom(null, 1, 2, 3);
const key = fc.constantFrom("x", "y");
const registerInput: fc.Arbitrary<RegisterInput> = fc.oneof(
  fc.record({ kind: fc.constant("read" as const), key }),
  fc.record({ kind: fc.constant("write" as const), key, value }),
  fc.record({ kind: fc.constant("compareAndSet" as const), key, expected: value, value }),
);

describe("a history is accepted when", () => {
  it("it comes from a register that does one thing at a time, however the calls overlap", () => {
    fc.assert(
      fc.property(stepsOf(registerInput, 4, 60), (steps) => {
        mustBeLinearizable(registerModel(), blurred(steps, realRegister()));
      }),
      { numRuns: 300 },
    );
  });

  it("it comes from a lock that is held by one at a time, with crashes, expiry and late releases", () => {
    const step = fc.record({
      kind: fc.constantFrom(...lockKinds),
      name: fc.constantFrom("a", "b"),
    });
    fc.assert(
      fc.property(stepsOf(step, 4, 60), (steps) => {
        const holders = new Map<string, string>();
        const holds: Record<string, string> = {};
        let fence = 0;
        const inputs = steps.map((each, index) => {
          const who = `${each.process}/${each.input.name}`;
          if (each.input.kind === "acquire") holds[who] = `h${index}`;
          const input: LockInput = { ...each.input, hold: holds[who] ?? "none" };
          return { ...each, input };
        });
        const answer = ({ kind, name, hold }: LockInput): LockOutput => {
          const isHeld = holders.get(name) === hold;
          if (kind === "acquire") {
            if (holders.has(name)) return { kind: "refused" };
            holders.set(name, hold);
            return { kind: "granted", fence: (fence += 2) };
          }
          if (!isHeld) return { kind: "notHeld" };
          if (kind !== "commit") holders.delete(name);
          return done;
        };
        mustBeLinearizable(lockModel(), blurred(inputs, answer));
      }),
      { numRuns: 300 },
    );
  });

  it("a read that overlaps a write sees either value", () => {
    for (const seen of [null, 1])
      expect(checkLinearizability(registerModel(), [write("p", [1, 4], 1), read("q", [2, 3], seen)]).verdict).toBe(
        "linearizable",
      );
  });

  it("a write that never returned is seen much later, or never", () => {
    const lost = operation<RegisterInput, RegisterOutput>("p", [1, "never"], { kind: "write", value: 1 });
    mustBeLinearizable(registerModel(), [lost, read("q", [5, 6], null), read("q", [100, 101], 1)]);
    mustBeLinearizable(registerModel(), [lost, read("q", [5, 6], null), read("q", [100, 101], null)]);
  });

  it("a lock of a stopped holder goes to the next one once it may have expired", () => {
    mustBeLinearizable(lockModel(), [
      granted("h1", [1, 2], 1),
      lock("expire", "h1", [3, "never"]),
      granted("h2", [10, 11], 2),
      lock("commit", "h1", [12, 13], { kind: "notHeld" }),
      lock("release", "h1", [14, 15], { kind: "notHeld" }),
      lock("release", "h2", [16, 17], done),
    ]);
  });
});

describe("a history is rejected for", () => {
  /** What the check says of a history that it must reject. */
  function complaint<Input, Output>(found: ReturnType<typeof checkLinearizability<unknown, Input, Output>>) {
    if (found.verdict !== "violated") throw new Error(`It was found to be ${found.verdict}.`);
    return { misfit: found.misfit, prefix: found.prefix, message: found.message };
  }
  const ofRegister = (history: readonly Operation<RegisterInput, RegisterOutput>[]) =>
    complaint(checkLinearizability(registerModel(), history));
  const ofLock = (history: readonly Operation<LockInput, LockOutput>[]) =>
    complaint(checkLinearizability(lockModel(), history));

  it("a stale read", () => {
    const stale = read("q", [5, 6], 1);
    const history = [write("p", [1, 2], 1), write("p", [3, 4], 2), stale];
    expect(ofRegister(history)).toMatchObject({ misfit: stale, prefix: history.slice(0, 2) });
  });

  it("a lost update", () => {
    const history = [add("p", [1, 4], 1), add("q", [2, 3], 1)];
    expect(complaint(checkLinearizability(counterModel(), history)).misfit).toBe(history[0]);
  });

  it("two compare-and-sets that both found the same value", () => {
    const input = { kind: "compareAndSet", expected: null, value: 1 } as const;
    const both = ["p", "q"].map((process) =>
      operation<RegisterInput, RegisterOutput>(process, [1, 2], input, { kind: "written" }),
    );
    expect(ofRegister(both).message).toMatch(/^Not linearizable/);
  });

  it("two holders", () => {
    const second = granted("h2", [3, 4], 2);
    const history = [granted("h1", [1, 2], 1), second, lock("release", "h1", [5, 6], done)];
    expect(ofLock(history).misfit).toBe(second);
  });

  it("a holder that is let in before the one before it can have expired", () => {
    const early = granted("h2", [3, 4], 2);
    expect(ofLock([granted("h1", [1, 2], 1), early, lock("expire", "h1", [5, "never"])]).misfit).toBe(early);
  });

  it("a fence that goes back", () => {
    const back = granted("h2", [5, 6], 6);
    expect(ofLock([granted("h1", [1, 2], 7), lock("release", "h1", [3, 4], done), back]).misfit).toBe(back);
  });

  it("a fence that is given out twice", () => {
    const again = granted("h2", [5, 6], 7);
    expect(ofLock([granted("h1", [1, 2], 7), lock("release", "h1", [3, 4], done), again]).misfit).toBe(again);
  });

  it("a commit that was let through after another one got the lock", () => {
    const late = lock("commit", "h1", [12, 13], done);
    const history = [granted("h1", [1, 2], 1), lock("expire", "h1", [3, "never"]), granted("h2", [10, 11], 2), late];
    expect(ofLock(history).misfit).toBe(late);
  });

  it("a refusal when no process can have held the lock", () => {
    const refused = lock("acquire", "h2", [5, 6], { kind: "refused" });
    const history = [granted("h1", [1, 2], 1), lock("release", "h1", [3, 4], done), refused];
    expect(ofLock(history).misfit).toBe(refused);
    mustBeLinearizable(lockModel({ mayRefuseFree: true }), history);
  });

  it("a write that was seen and then unseen", () => {
    const unseen = read("r", [5, 6], null);
    const history = [write("p", [1, 10], 1), read("q", [2, 3], 1), unseen];
    expect(ofRegister(history)).toMatchObject({ misfit: unseen, prefix: [history[0], history[1]] });
  });

  it("an unanswered write that was seen and then unseen", () => {
    const unseen = read("r", [5, 6], null);
    const lost = operation<RegisterInput, RegisterOutput>("p", [1, "never"], { kind: "write", value: 1 });
    expect(ofRegister([lost, read("q", [2, 3], 1), unseen]).misfit).toBe(unseen);
  });

  it("a fault in one of many parts, which it names", () => {
    const on = (key: string, process: string, times: Times, value: number) => [
      operation<RegisterInput, RegisterOutput>(process, times, { kind: "write", key, value }, { kind: "written" }),
    ];
    const stale = operation<RegisterInput, RegisterOutput>(
      "r",
      [9, 10],
      { kind: "read", key: "b/c" },
      { kind: "read", value: null },
    );
    const found = ofRegister([
      ...on("a", "p", [1, 2], 1),
      ...on("b/c", "p", [3, 4], 2),
      ...on("a", "q", [5, 6], 3),
      stale,
    ]);
    expect(found.message).toBe(
      [
        "Not linearizable (b/c). This operation fits nowhere:",
        '  r [9, 10] {"kind":"read","key":"b/c"} -> {"kind":"read","value":null}',
        "The longest beginning that can be put in order, 1 in all:",
        '  p [3, 4] {"kind":"write","key":"b/c","value":2} -> {"kind":"written"}',
        "That leaves the state 2.",
        "No other operation was in progress.",
      ].join("\n"),
    );
  });
});

describe("the check", () => {
  it("agrees with trying every order of small histories, sound or not", () => {
    const times = fc.tuple(fc.nat(12), fc.nat(6), fc.nat(9));
    const answer: fc.Arbitrary<RegisterOutput> = fc.oneof(
      fc.record({ kind: fc.constant("read" as const), value: fc.constantFrom(null, 1, 2) }),
      fc.constantFrom({ kind: "written" } as const, { kind: "refused" } as const),
    );
    const input: fc.Arbitrary<RegisterInput> = fc.oneof(
      fc.constant({ kind: "read" } as const),
      fc.record({ kind: fc.constant("write" as const), value: fc.constantFrom(1, 2) }),
      fc.constantFrom({ kind: "compareAndSet", expected: 1, value: 2 } as const),
    );
    const fitting = ([input, answer]: [RegisterInput, RegisterOutput]): boolean =>
      input.kind === "read" ? answer.kind === "read" : input.kind === "write" ? answer.kind === "written" : true;
    const one = fc.tuple(fc.tuple(input, answer).filter(fitting), times).map(([[input, output], [from, ms, never]]) => {
      const isLost = never === 0;
      return operation<RegisterInput, RegisterOutput>(
        "p",
        [from, isLost ? "never" : from + ms],
        input,
        isLost ? undefined : output,
      );
    });
    const seen = { sound: 0, unsound: 0 };
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 6 }), (history) => {
        const isSound = isLinearizableByForce(registerModel(), history);
        seen[isSound ? "sound" : "unsound"]++;
        expect(checkLinearizability(registerModel(), history).verdict).toBe(isSound ? "linearizable" : "violated");
      }),
      { numRuns: 3000 },
    );
    // Both kinds came up often enough to mean something.
    expect(Math.min(seen.sound, seen.unsound)).toBeGreaterThan(200);
  });

  it("takes 10 000 operations of 8 processes in about a second", () => {
    const steps = fc.sample(stepOf(registerInput, 8), { numRuns: 10_000, seed: 7 });
    const answered = steps.map((step) => ({ ...step, fate: "answered" as const }));
    const history = blurred(answered, realRegister(), 2);
    const startedAtMs = performance.now();
    const found = checkLinearizability(registerModel(), history);
    expect(found.verdict).toBe("linearizable");
    expect(found.steps).toBeLessThan(100_000);
    expect(performance.now() - startedAtMs).toBeLessThan(5000);
  });

  it("says that it does not know, rather than search for ever", () => {
    const lost = Array.from({ length: 40 }, (_, index) =>
      operation<CounterInput, CounterOutput>(`p${index}`, [0, "never"], { kind: "add", by: 2 ** index }),
    );
    const impossible = operation<CounterInput, CounterOutput>("q", [1, 2], { kind: "read" }, { count: 0.5 });
    const found = checkLinearizability(counterModel(), [...lost, impossible], { stepsMax: 20_000 });
    expect(found).toMatchObject({ verdict: "unknown", message: expect.stringMatching(/^Not decided .*20\d{3} steps/) });
    expect(() => mustBeLinearizable(counterModel(), [...lost, impossible], { stepsMax: 1000 })).toThrow(/Not decided/);
  });

  it("finds the violated part even when another cannot be decided", () => {
    const lost = Array.from({ length: 40 }, (_, index) =>
      operation<CounterInput, CounterOutput>(`p${index}`, [0, "never"], { kind: "add", key: "big", by: 2 ** index }),
    );
    const undecided = operation<CounterInput, CounterOutput>("q", [1, 2], { kind: "read", key: "big" }, { count: 0.5 });
    const wrong = operation<CounterInput, CounterOutput>("q", [3, 4], { kind: "read", key: "small" }, { count: 1 });
    const found = checkLinearizability(counterModel(), [...lost, undecided, wrong], { stepsMax: 1000 });
    expect(found).toMatchObject({ verdict: "violated", misfit: wrong });
  });

  it("refuses an operation that returns before it was called", () => {
    expect(() => checkLinearizability(registerModel(), [read("p", [2, 1], null)])).toThrow(RangeError);
  });
});
