// Files of a log are deleted, cut, altered, put back and copied over at random, while programs have
// it open or not. Every read without an error gives the log as it was acknowledged, no position is
// given twice, and a repair keeps all whole lines.
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SequencedEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import type { EventStore, LogMode } from "../../src/events/model/event-store.ts";
import { verifyEvents } from "../../src/events/index.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { Chance } from "../../harness/processes/chance.ts";
import { makeScratch } from "../sites/scratch.ts";
import { listOf, openOn } from "../sites/event-logs.ts";

const lost = "holdfast:lost";

/** One log, the events acknowledged in it, and the stores that have it open. */
class World {
  readonly directory: string = join(makeScratch(), "log");
  readonly copy: string = `${this.directory}.copy`;
  readonly chance: Chance;
  readonly mode: LogMode;
  /**
   * The possible contents of the log, the data of position n at n - 1. Several after files were put
   * back, until a read shows which one it is.
   */
  timelines: unknown[][] = [[]];
  /** When the copy was made. */
  copied: unknown[] = [];
  stores: EventStore[] = [];
  #appended = 0;

  constructor(mode: LogMode, seed: number) {
    this.mode = mode;
    this.chance = new Chance(seed);
  }

  async open(): Promise<EventStore> {
    const segmentBytesMax = this.chance.pick([500, 900, 100_000]);
    const store = await openOn(await openNodePorts(this.directory), this.directory, {
      mode: this.mode,
      segmentBytesMax,
    });
    this.stores.push(store);
    return store;
  }

  async closeAll(): Promise<void> {
    for (const store of this.stores.splice(0)) await store.close();
  }

  async append(store: EventStore): Promise<void> {
    const data = `event ${++this.#appended}`;
    const { first } = await store.append({ type: "Counted", data, tags: [data] });
    const fitting = this.timelines.filter((timeline) => timeline.length === first - 1);
    expect(fitting, `${data} was given position ${first}`).not.toEqual([]);
    this.timelines = fitting.map((timeline) => [...timeline, data]);
  }

  async read(store: EventStore): Promise<void> {
    const events = await listOf(store.read());
    const data = events.map((event) => event.data);
    expect(this.timelines, "what is read without an error").toContainEqual(data);
    expect(events.map(({ position }) => position)).toEqual(data.map((_, index) => index + 1));
    this.timelines = [data];
    const head = await store.head();
    expect(head).toBe(data.length);
  }

  path(...names: string[]): string {
    return join(this.directory, ...names);
  }

  segments(): string[] {
    const names = readdirSync(this.path("segments")).filter((name) => name.endsWith(".ndjson"));
    return names.sort().map((name) => this.path("segments", name));
  }
}

/** Each returns true when the log may be as it was at the time of the copy from then on. */
const deeds: Readonly<Record<string, (world: World) => boolean | void>> = {
  "the record is deleted": (world) => rmSync(world.path("log.json")),
  "a segment is deleted": ({ chance, ...world }) => rmSync(chance.pick(segmentsOf(world.directory)) ?? ""),
  "a segment is cut": ({ chance, directory }) => {
    const path = chance.pick(segmentsOf(directory)) ?? "";
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, Math.floor(chance.between(0, bytes.length))));
  },
  "a byte of a segment is altered": ({ chance, directory }) => {
    const path = chance.pick(segmentsOf(directory)) ?? "";
    const bytes = readFileSync(path);
    const at = Math.floor(chance.between(0, bytes.length));
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(chance.between(0, 8)));
    writeFileSync(path, bytes);
  },
  "a file is put where the next segment belongs": ({ chance, directory }) => {
    const paths = segmentsOf(directory);
    const next = join(directory, "segments", `${String(paths.length + 1).padStart(10, "0")}.ndjson`);
    writeFileSync(next, chance.happens(0.5) ? readFileSync(chance.pick(paths) ?? "") : "garbage\n");
  },
  "the newest segment is put back": ({ directory, copy }) => {
    const name = segmentsOf(copy).at(-1)?.split("/").at(-1) ?? "";
    copyFileSync(join(copy, "segments", name), join(directory, "segments", name));
  },
  "what says how far it goes is deleted": ({ mode, directory }) => {
    if (mode === "local") rmSync(join(directory, "head"));
    else rmSync(join(directory, "tenures/epochs"), { recursive: true });
  },
  "what says how far it goes is replaced by itself": ({ directory }) => {
    const path = join(directory, existsSync(join(directory, "head")) ? "head" : "tenures");
    cpSync(path, `${path}.new`, { recursive: true });
    rmSync(path, { recursive: true });
    renameSync(`${path}.new`, path);
  },
  "the head is put back": ({ mode, directory, copy }) => {
    if (mode === "local") copyFileSync(join(copy, "head"), join(directory, "head"));
  },
  "the copy is put over it": ({ directory, copy }) => {
    cpSync(copy, directory, { recursive: true, force: true });
    return true;
  },
  "the copy is put in its place": ({ directory, copy, chance }) => {
    if (chance.happens(0.5)) renameSync(directory, `${directory}.moved`);
    else rmSync(directory, { recursive: true });
    cpSync(copy, directory, { recursive: true });
    return true;
  },
  nothing: () => undefined,
};

function segmentsOf(directory: string): string[] {
  const names = readdirSync(join(directory, "segments")).filter((name) => name.endsWith(".ndjson"));
  return names.sort().map((name) => join(directory, "segments", name));
}

/** True when it was done; false when it was refused with an expected error. */
async function tried(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "CLOSED", "IO_ERROR", "LOCK_LOST")) throw error;
    return false;
  }
}

async function useAll(world: World): Promise<boolean> {
  let isAllDone = true;
  const { chance } = world;
  for (let time = 0; time < 6; time++) {
    const store = chance.pick(world.stores);
    if (store === undefined || chance.happens(0.3)) isAllDone = (await tried(() => world.open())) && isAllDone;
    else isAllDone = (await tried(() => (chance.happens(0.5) ? world.append(store) : world.read(store)))) && isAllDone;
  }
  return isAllDone;
}

async function expectMended(world: World): Promise<void> {
  const before = world.timelines;
  const report = await verifyEvents(world.directory, { repair: true });
  expect(report, "after a repair").toMatchObject({ ok: true });
  const store = await world.open();
  const events = await listOf(store.read());
  const isKept = ({ data, type, position }: SequencedEvent, timeline: readonly unknown[]): boolean =>
    type === lost || data === timeline[position - 1];
  const fitting = before.filter(
    (timeline) => events.length >= timeline.length && events.every((event) => isKept(event, timeline)),
  );
  expect(fitting, `none is given a position of another: ${JSON.stringify(events.map(({ data }) => data))}`).not.toEqual(
    [],
  );
  world.timelines = [events.map(({ data }) => data)];
  await world.append(store);
  await world.read(store);
}

async function play(mode: LogMode, seed: number, deed: string): Promise<void> {
  const world = new World(mode, seed);
  const { chance } = world;
  const first = await world.open();
  for (let n = Math.floor(chance.between(1, 8)); n > 0; n--) await world.append(first);
  world.copied = [...(world.timelines[0] ?? [])];
  cpSync(world.directory, world.copy, { recursive: true });
  for (let n = Math.floor(chance.between(0, 8)); n > 0; n--) await world.append(first);
  if (chance.happens(0.5)) await world.read(await world.open());
  if (chance.happens(0.4)) await world.closeAll();
  if (deeds[deed]?.(world) === true) world.timelines.push([...world.copied]);
  if (await useAll(world)) return;
  await world.closeAll();
  if (await tried(() => world.open().then((store) => world.read(store)))) return;
  await world.closeAll();
  expect((await verifyEvents(world.directory)).ok, "what cannot be opened or read is damaged").toBe(false);
  await expectMended(world);
}

/** Each deed in a quarter of the rounds. */
export function damageAtRandom(rounds: readonly number[]): void {
  it.each(["local", "share"] as const)(
    "a read that is not refused gives the acknowledged events, whatever happens to the files: mode %s",
    { timeout: 300_000 },
    async (mode) => {
      for (const round of rounds)
        for (const [index, deed] of Object.keys(deeds).entries()) {
          if ((round + index) % 4 !== 0) continue;
          const seed = round * 100 + index;
          try {
            await play(mode, seed, deed);
          } catch (error) {
            throw new Error(`${mode}, seed ${seed}: ${deed}: ${String(error)}`, { cause: error });
          }
        }
    },
  );
}
