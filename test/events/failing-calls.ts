// Every disk call of an append fails once, and once for good, with every errno, and every reply is
// lost. What the caller was told holds afterwards, in both modes.
import { describe, expect, it } from "vitest";
import type { NewEvent, SequencedEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import type { EventStore, LogMode } from "../../src/events/model/event-store.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import { nfs, World, type Fault } from "../sites/world.ts";
import { listOf, numbers, positionsOf } from "../sites/event-logs.ts";

/** So long that no process is declared dead for its silence. */
const leaseMs = 3_600_000;
/** An action that takes more steps of 20 ms hangs. */
const stepsMax = 3000;

type FaultKind = Pick<Fault, "label" | "lasting">;

const errnos = ["EIO", "ENOSPC", "EACCES", "ESTALE"];
const faults: readonly FaultKind[] = [
  ...errnos.map((label) => ({ label, lasting: false })),
  ...["EIO", "ENOSPC"].map((label) => ({ label, lasting: true })),
  ...["done, but the reply is lost", "done, and the repeated request fails"].map((label) => ({
    label,
    lasting: false,
  })),
];

/** An action of a simulated world, whose time passes meanwhile. */
async function mustEnd<T>(world: World, action: Promise<T>): Promise<T> {
  let isOver = false;
  const over = action.finally(() => (isOver = true));
  over.catch(() => undefined);
  for (let step = 0; step < stepsMax && !isOver; step++) await world.advance(20);
  if (!isOver) throw new Error("it hangs");
  return await over;
}

type Told = "done" | "not done" | "unknown";

/** Appends, and keeps the answers. Any error that is not Holdfast's fails the test. */
class Ledger {
  readonly told = new Map<string, Told>();
  readonly codes: string[] = [];

  async append(store: EventStore, name: string, { size = 2, timeoutMs = 2000 } = {}): Promise<void> {
    const batch = numbers(1, size).map((part): NewEvent => ({
      type: "Part",
      data: { name, part, of: size },
      tags: [name],
      id: `${name}-${part}`,
    }));
    try {
      await store.append(batch, { timeoutMs });
      this.told.set(name, "done");
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      this.codes.push(error.code);
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) this.told.set(name, "not done");
      else {
        this.told.set(name, "unknown");
        expect(error.ids, "the ids of what is unknown").toEqual(batch.map(({ id }) => id));
      }
    }
  }

  /** All answers hold, and the log is in order. */
  async check(store: EventStore): Promise<void> {
    const events = await listOf(store.read());
    expect(positionsOf(events)).toEqual(numbers(1, events.length));
    const parts = events as SequencedEvent<NewEvent<"Part", { name: string; part: number; of: number }>>[];
    for (const [name, told] of this.told) {
      const own = parts.filter(({ data }) => data.name === name);
      const whole = numbers(1, own[0]?.data.of ?? 0);
      expect(
        own.map(({ data }) => data.part),
        `the parts of ${name}, in one piece`,
      ).toEqual(whole);
      expect(positionsOf(own)).toEqual(whole.map((part) => (own[0]?.position ?? 0) + part - 1));
      if (told !== "unknown") expect([name, own.length > 0]).toEqual([name, told === "done"]);
      expect(positionsOf(await listOf(store.read({ tags: [name] })))).toEqual(positionsOf(own));
    }
  }
}

interface Setting {
  readonly world: World;
  readonly ledger: Ledger;
  readonly open: (process: string) => Promise<LogEventStore<NewEvent>>;
}

/** What the process "ada" does while its disk fails. */
interface Work {
  readonly what: string;
  readonly run: (setting: Setting, ada: LogEventStore<NewEvent>) => Promise<unknown>;
  readonly segmentBytesMax: number;
  readonly faults: typeof faults;
}

const works: readonly Work[] = [
  {
    what: "an append that begins a segment",
    faults,
    segmentBytesMax: 300,
    run: ({ ledger }, ada) => ledger.append(ada, "first"),
  },
  {
    what: "several appends at once and one after them",
    faults: faults.slice(0, 2),
    segmentBytesMax: 1000,
    run: async ({ ledger }, ada) => {
      await Promise.all(["first", "second", "third"].map((name) => ledger.append(ada, name)));
      await ledger.append(ada, "fourth", { size: 1 });
    },
  },
];

function makeSetting(mode: LogMode, { segmentBytesMax }: Work): Setting {
  const world = mode === "local" ? new World() : new World({ volume: nfs });
  const open = async (process: string): Promise<LogEventStore<NewEvent>> => {
    const ports = world.ports(process, mode === "local" ? "machine" : `machine of ${process}`);
    const store = new LogEventStore(
      { ports, directory: "/log", codec: plainCodec },
      { mode, leaseMs, segmentBytesMax },
    );
    return await store.open();
  };
  return { world, ledger: new Ledger(), open };
}

/** True when it came to that call. */
async function attempt(mode: LogMode, work: Work, fault: Fault): Promise<boolean> {
  const setting = makeSetting(mode, work);
  const { world, ledger, open } = setting;
  const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
  const bea = await step(open("bea"));
  await step(ledger.append(bea, "before"));
  await step(bea.close());
  const ada = await step(open("ada"));
  const hasCome = await world.withFault(fault, () => step(work.run(setting, ada)).then(() => undefined));
  try {
    // A fresh process sees what was acknowledged, and can append.
    const cyd = await step(open("cyd"));
    await step(ledger.check(cyd));
    await step(ledger.append(cyd, "after"));
    // Between machines a release that failed keeps the lock until its process ends: the test of
    // that is below.
    let owner = ada;
    if (mode === "share" && ledger.codes.at(-1) === "LOCK_TIMEOUT") {
      await step(ada.close());
      owner = await step(open("eve"));
      await step(ledger.append(cyd, "after it"));
    }
    expect(ledger.told.get("after it") ?? ledger.told.get("after")).toBe("done");
    // Definite answers still hold, whatever the next holder of the gate has found and copied.
    await step(ledger.check(cyd));
    // The process that met the fault can append, too; the same ids settle what was unknown.
    for (const [name, told] of ledger.told)
      if (told === "unknown") await step(ledger.append(owner, name, { size: name === "fourth" ? 1 : 2 }));
    await step(ledger.append(owner, "at last"));
    expect(ledger.told.get("at last")).toBe("done");
    expect([...ledger.told.values()]).not.toContain("unknown");
    for (const store of [owner, cyd]) await step(ledger.check(store));
    await step(cyd.close());
    await step(owner.close());
  } catch (cause) {
    const what = `${fault.label}${fault.lasting ? " from there on" : ""} at call ${fault.at} (${world.spoiled.slice(0, 3).join("; ")})`;
    throw new Error(`${what}: told ${JSON.stringify([...ledger.told])}, ${ledger.codes.join()}`, { cause });
  }
  return hasCome;
}

/** Fails each disk call of each work, with those faults that are wanted. */
export function failEachCall(isWanted: (fault: FaultKind) => boolean): void {
  describe.each(["local", "share"] as const)("in mode %s", (mode) => {
    describe.each(works.filter((work) => work.faults.some(isWanted)))("$what", (work) => {
      it.each(work.faults.filter(isWanted))(
        "$label at each of its disk calls (for good: $lasting): its answer holds, and later appends go on",
        async ({ label, lasting }) => {
          const failures: string[] = [];
          let at = 1;
          for (; at < 500; at++)
            try {
              if (!(await attempt(mode, work, { process: "ada", at, label, lasting }))) break;
            } catch (error) {
              const { message, cause } = error as Error;
              failures.push(`${message}: ${cause instanceof Error ? cause.message.split("\n")[0] : String(cause)}`);
              if (failures.length >= 5) break;
            }
          expect(failures).toEqual([]);
          expect(at).toBeGreaterThan(3);
        },
        120_000,
      );
    });
  });
}

/** The process that could not release lives on, and the others wait for it. */
export function failTheRelease(): void {
  it.each([
    ["once, because of an old handle", { label: "ESTALE", lasting: false }],
    ["as everything does for a while", { label: "EIO", lasting: true }],
  ])("a release that fails %s does not keep all other machines out while its process lives", async (_how, kind) => {
    const { world, ledger, open } = makeSetting("share", works[0]!);
    const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
    const [ada, cyd] = [await step(open("ada")), await step(open("cyd"))];
    await step(ledger.append(ada, "before"));
    const fault = { process: "ada", at: "unlink /log/.holdfast/gate/holds", ...kind };
    expect(await world.withFault(fault, () => step(ledger.append(ada, "first")))).toBe(true);
    expect(ledger.told.get("first")).toBe("done");
    // Longer than any lease of a store.
    await step(ledger.append(cyd, "after", { timeoutMs: 45_000 }));
    const told = ledger.told.get("after");
    await step(Promise.all([ada.close(), cyd.close()]));
    expect(told).toBe("done");
  });
}
