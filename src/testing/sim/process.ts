// One simulated process: the ports of its machine, with a way to park its calls.
import type { Clock } from "../../ports/clock.ts";
import { elapsedMs, type BeatTimes, type Heart } from "../../ports/heart.ts";
import type { Host } from "../../ports/host.ts";
import { openOrMake, type OsLock } from "../../ports/os-lock.ts";
import { patientDisk } from "../../ports/patient-disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Random } from "../../ports/random.ts";
import type { Watch } from "../../ports/watch.ts";
import { encodeBeat } from "../../format/beat.ts";
import type { Park } from "./call.ts";
import { createSimDisk, type InjectedErrors, type SimDisk } from "./disk.ts";
import { SimFile } from "./file.ts";
import type { Machine } from "./machine.ts";
import { SimOsLockFile, type OpenedLock } from "./os-lock-file.ts";
import type { SimOsLocks } from "./os-locks.ts";
import type { SimServer } from "./server.ts";

export interface SimProcessOptions {
  readonly name: string;
  readonly machine: Machine;
  readonly server: SimServer;
  readonly osLocks: SimOsLocks;
  readonly park: Park;
  /** Returns the true time. */
  readonly now: () => number;
  /** Called with every answer that did not park, because the next action of the process may depend on it. */
  readonly observed: (what: string) => void;
  readonly pid: number;
  /** Its container, if any. */
  readonly processSpace?: string | undefined;
  /** Returns the state of another process in the process table. */
  readonly processState: (pid: number, startMark: string) => "alive" | "dead";
  /** How many beats its heart makes before the scenario silences it. */
  readonly beatsMax: number;
  readonly errors?: InjectedErrors | undefined;
  readonly isPermanent?: ((path: string) => boolean) | undefined;
  readonly onImpermanence?: ((what: string) => void) | undefined;
}

export function createSimPorts(options: SimProcessOptions): Ports {
  const clock = simClock(options);
  const disk = createSimDisk({ ...options, process: options.name });
  return {
    disk: patientDisk(disk, clock),
    clock,
    random: simRandom(options.name),
    host: simHost(options),
    heart: simHeart(clock, options.beatsMax),
    osLock: simOsLock(options, disk),
    watch: simWatch(options),
  };
}

function simClock({ now, machine, park, observed }: SimProcessOptions): Clock {
  const read = (value: number): number => {
    observed(String(value));
    return value;
  };
  return {
    wallMs: () => read(now() + machine.wallOffsetMs),
    monotonicMs: () => read(now()),
    async sleep(ms, { signal, background = false } = {}) {
      signal?.throwIfAborted();
      const dueMs = now() + ms;
      await park({
        operation: "sleep",
        detail: `${ms} ms`,
        touches: [],
        dueMs,
        background,
        outcomes: () => (now() >= dueMs || signal?.aborted ? [{ label: "", run: () => undefined }] : []),
      });
      signal?.throwIfAborted();
    },
    alarm(ms, ring) {
      const dueMs = now() + ms;
      let isStopped = false;
      const rung = park({
        operation: "sleep",
        detail: `${ms} ms`,
        touches: [],
        dueMs,
        background: false,
        outcomes: () => (now() >= dueMs || isStopped ? [{ label: "", run: () => undefined }] : []),
      });
      rung.then(
        () => (isStopped ? undefined : ring()),
        () => undefined, // Its process has crashed.
      );
      return () => (isStopped = true);
    },
  };
}

/** Returns bytes that depend only on the name of the process and on how many it has drawn. */
function simRandom(name: string): Random {
  let state = 2166136261;
  for (const letter of name) state = Math.imul(state ^ letter.charCodeAt(0), 16777619);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return { bytes: (length) => Uint8Array.from({ length }, () => next() & 255), fraction: () => next() / 4294967296 };
}

function simHost({ name, machine, pid, processSpace = "", processState, observed }: SimProcessOptions): Host {
  return {
    name: machine.name,
    pid,
    bootId: machine.bootId,
    processSpace,
    startedAtMs: 0,
    startMark: `start-of-${name}`,
    processState: (other, startMark) => {
      const state = processState(other, startMark);
      observed(state);
      return state;
    },
    startMarkOf: (other) => (other === pid ? `start-of-${name}` : ""),
    findStartMs: () => undefined,
    warn: () => undefined,
  };
}

function simHeart(clock: Clock, beatsMax: number): Heart {
  return {
    start(file, { everyMs, from, gapMsMax, after, leaseMs, onLost }) {
      const stopped = new AbortController();
      let last: BeatTimes | undefined;
      let previous = after;
      let writing: Promise<void> = Promise.resolve();
      const write = async (count: number): Promise<void> => {
        const times = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
        if (previous !== undefined && elapsedMs(previous, times) > gapMsMax) throw new Error("the heart came too late");
        previous = times;
        await file.write(0, encodeBeat(count, times.wallMs, leaseMs));
        await file.sync();
        last = times;
      };
      const beat = async (): Promise<void> => {
        for (let count = from; count < from + beatsMax && !stopped.signal.aborted; count++) {
          await (writing = write(count));
          await clock.sleep(everyMs, { signal: stopped.signal, background: true });
        }
      };
      beat().catch((cause: unknown) => {
        if (!stopped.signal.aborted) onLost(cause);
      });
      const stop = async (): Promise<void> => {
        stopped.abort();
        // No beat may be written after this: the real heart has ended its thread by now. Whether the last beat
        // succeeded does not matter any more.
        await writing.catch(() => undefined);
      };
      if (file instanceof SimFile) file.use(stop);
      return { lastBeat: () => last, stop };
    },
  };
}

function simOsLock({ osLocks, park, name, machine, server }: SimProcessOptions, disk: SimDisk): OsLock {
  return {
    async open(path, { make } = {}) {
      osLocks.mustBeSupported(path);
      const open = async (): Promise<OpenedLock> => {
        const openThere = (): Promise<SimFile> => disk.open(path, "write");
        const file = await (make === undefined ? disk.openOrCreate(path) : openOrMake(openThere, make));
        const isNamed = (): boolean => server.find(path) === file.node;
        return { file, owner: { process: name, machine: machine.name, file: file.node, path, isNamed } };
      };
      const isCompared = disk.volume.kind === "local" && server.quirks.osLocks !== "uncompared";
      const nameTouch = isCompared ? server.touch(path, false) : undefined;
      return new SimOsLockFile({ path, open, nameTouch, osLocks, park }, await open());
    },
  };
}

/** Hints may always be missing, so a simulated one may never come. */
function simWatch({ server, park }: SimProcessOptions): Watch {
  return {
    start(path, onHint) {
      let isWatching = true;
      if (server.quirks.watch === "hints") queueMicrotask(onHint);
      if (server.quirks.watch === "any time")
        void park({
          operation: "hint",
          detail: path,
          touches: [],
          background: true,
          outcomes: () => (isWatching ? [{ label: "", trouble: "hint", run: onHint }] : []),
        });
      return () => (isWatching = false);
    },
  };
}
