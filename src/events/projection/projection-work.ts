// The work on a projection. Of all processes with one version of the definition, one keeps the generation of that
// version up to date, and one builds its successor beside it.
import type { SequencedEvent } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { findOfVersion, type GenerationEntry, type Generations } from "../../part/generations.ts";
import type { LoopSignals } from "../../part/loop.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import { underLease, type WorkOutcome } from "../../part/under-lease.ts";
import { processEvents, type EventSource, type EventWork } from "../follow/process-events.ts";
import type { CheckedDefinition } from "./definition.ts";
import { Fold } from "./fold.ts";
import type { Generation, ProjectionFiles } from "./generation.ts";

/** Events that are read and folded at a time. */
const batch = 1000;
/**
 * While there are more events, documents are written after this many have changed, or after `foldMsMax`. A document
 * that changes in every batch is then written once, not each time.
 */
const documentsMax = 5000;
const foldMsMax = 5000;
/** After this many crashes, `cutOff` is as large as a document, so a new generation is begun. */
const cutOffMax = 1000;

export interface ProjectionWorkOptions {
  readonly files: ProjectionFiles;
  readonly definition: CheckedDefinition;
  readonly source: EventSource;
}

type OnProgress = (position: number, head: number) => void;

export class ProjectionWork {
  readonly #files: ProjectionFiles;
  readonly #generations: Generations;
  readonly #definition: CheckedDefinition;
  readonly #source: EventSource;
  /** The number of the generation in which this process found damage. */
  #damaged = 0;

  constructor({ files, definition, source }: ProjectionWorkOptions) {
    this.#files = files;
    this.#generations = files.generations;
    this.#definition = definition;
    this.#source = source;
  }

  /** Runs until it is stopped. Throws NEWER_FORMAT if a program with a newer version of the definition took over. */
  async run(signals: LoopSignals): Promise<void> {
    while (!signals.stopping.aborted) {
      const state = await this.#generations.read();
      const { current, building, last } = state;
      const own = findOfVersion(state, this.#definition.version);
      if (current === undefined && building === undefined && last === 0) await this.#beginFirst();
      else if (own === undefined || (await this.#isOutdated(own))) await this.#replace(current, signals);
      else await this.#keep(own, signals).catch((error: unknown) => this.#noteDamage(own, error));
    }
  }

  /**
   * Returns true once a new generation of this version is current, or false if it was stopped before. Throws
   * NEWER_FORMAT like `run`.
   */
  async build(signals: LoopSignals, onProgress?: OnProgress): Promise<boolean> {
    let isBuilt = false;
    while (!isBuilt && !signals.stopping.aborted) {
      const { current } = await this.#generations.read();
      isBuilt = await this.#replace(current, signals, onProgress);
    }
    return isBuilt;
  }

  /**
   * Builds a successor of `outdated`, or waits until another process has built one. Returns false if the catalog must
   * be read again.
   */
  async #replace(
    outdated: GenerationEntry | undefined,
    signals: LoopSignals,
    onProgress?: OnProgress,
  ): Promise<boolean> {
    const { current, building } = await this.#generations.nameBuilding(this.#definition.version, outdated?.number);
    // Check again: since `outdated` was read, another process may have switched to a newer version.
    if (current !== undefined) this.#mustKnow(current);
    if (current?.number !== outdated?.number || building === undefined) return false;
    this.#mustKnow(building);
    let isBuilt = false;
    await underLease(this.#files.work.leases, this.#files.leaseOf(building.number), signals, async (hold) => {
      const now = await this.#generations.read();
      if (now.building?.number !== building.number) {
        // Another process has finished this generation, or has begun another since.
        isBuilt = now.current?.number === building.number;
        return "finished";
      }
      const outcome = await this.#buildUnder(hold, building, signals, onProgress);
      isBuilt = outcome === "finished" && (await this.#generations.read()).current?.number === building.number;
      return outcome;
    });
    return isBuilt;
  }

  async #buildUnder(
    hold: PathHold,
    { number, version }: GenerationEntry,
    signals: LoopSignals,
    onProgress: OnProgress | undefined,
  ): Promise<WorkOutcome> {
    try {
      const generation = await this.#files.openGeneration(number);
      await generation.checkpoints.begin(0);
      const { state } = await generation.checkpoints.read();
      if (!this.#isOfAnotherGround(state))
        return await this.#catchUp({ ...generation, version }, hold, signals, onProgress);
    } catch (error) {
      // LOG_REWOUND: the log was replaced since this generation began. If the catalog does not name it, its files
      // were removed.
      if (!isHoldfastError(error, "LOG_REWOUND") && (await this.#isNamed(number))) throw error;
    }
    // The next one begins at position 0, under a new number.
    await this.#generations.abandon(number);
    return "finished";
  }

  /**
   * Folds up to the head, and switches. A current generation of the same version is closed first,
   * and this one folds up to where it ended. One of an older version continues for programs of that
   * version.
   */
  async #catchUp(
    generation: Generation & Pick<GenerationEntry, "version">,
    hold: PathHold,
    signals: LoopSignals,
    onProgress: OnProgress | undefined,
  ): Promise<WorkOutcome> {
    const options = { untilHead: true, ...(onProgress && { onProgress }) };
    const outcome = await this.#fold(generation, hold, signals, options);
    if (outcome !== "finished" || signals.stopping.aborted) return outcome;
    const { current, building } = await this.#generations.read();
    // Another build has begun. It may take long, and the current generation must not stall until it is finished.
    if (building?.number !== generation.number) return "finished";
    if (current?.version === generation.version) {
      // Close the old generation before the switch: a reader that saw it at a position must never see the new one at
      // an earlier one. A crash in between leaves the old one readable but stalled, until a process completes the
      // switch.
      await this.#close(current);
      const rest = await this.#fold(generation, hold, signals, options);
      if (rest !== "finished" || signals.stopping.aborted) return rest;
    }
    const now = await this.#generations.switchTo(generation.number);
    // Another build was finished first: generations before this one are still read.
    if (now.current?.number !== generation.number) return "finished";
    this.#files.work.loops.progressed();
    await this.#generations.removeOld();
    return "finished";
  }

  async #close({ number }: GenerationEntry): Promise<void> {
    try {
      await (await this.#files.openGeneration(number)).checkpoints.close();
    } catch (error) {
      // If its checkpoint cannot be read, no process can save one.
      if (!this.#isDamageOf(number, error)) throw error;
    }
  }

  async #isNamed(number: number): Promise<boolean> {
    const { building } = await this.#generations.read();
    return building?.number === number || (await this.#isKept(number));
  }

  /** True while programs of this version read this generation. */
  async #isKept(number: number): Promise<boolean> {
    return findOfVersion(await this.#generations.read(), this.#definition.version)?.number === number;
  }

  /** The first generation begins before the catalog names it, so that a reader always finds one that has begun. */
  async #beginFirst(): Promise<void> {
    const { checkpoints } = await this.#files.openGeneration(1);
    await checkpoints.begin(0);
    await this.#generations.nameFirst(this.#definition.version);
  }

  /** Documents can be rebuilt: damage ends their generation, not the work. */
  #noteDamage({ number }: GenerationEntry, error: unknown): void {
    if (!this.#isDamageOf(number, error)) throw error;
    this.#damaged = number;
  }

  #isDamageOf(number: number, error: unknown): boolean {
    return isHoldfastError(error, "CORRUPT") && error.path.startsWith(`${this.#generations.directoryOf(number)}/`);
  }

  async #isOutdated({ number }: GenerationEntry): Promise<boolean> {
    if (number === this.#damaged) return true;
    try {
      const { state } = await (await this.#files.openGeneration(number)).checkpoints.read();
      // A generation that is named but has not begun has lost its checkpoints.
      if (!state.isBegun || state.isClosed) return true;
      return this.#isOfAnotherGround(state) || state.cutOff.length >= cutOffMax;
    } catch (error) {
      // If the catalog no longer names it, its files were removed, and another one is current.
      if (!this.#isDamageOf(number, error) && (await this.#isNamed(number))) throw error;
      return true;
    }
  }

  /**
   * Names of documents contain fences. If the ground was removed and created again, its new fences cannot be compared
   * with the old ones.
   */
  #isOfAnotherGround({ fence, ground }: Checkpoint): boolean {
    return fence > 0 && ground !== this.#files.work.access.ground.id;
  }

  /** Runs until it is stopped, or until programs of this version read another generation. */
  async #keep({ number }: GenerationEntry, signals: LoopSignals): Promise<void> {
    const isKept = (): Promise<boolean> => this.#isKept(number);
    await underLease(this.#files.work.leases, this.#files.leaseOf(number), signals, async (hold) => {
      try {
        if (!(await isKept())) return "finished";
        // A process that built this one may have died right after the switch.
        await this.#generations.removeOld();
        const generation = await this.#files.openGeneration(number);
        if ((await generation.checkpoints.read()).state.isClosed) return "finished";
        return await this.#fold(generation, hold, signals, { isWanted: isKept });
      } catch (error) {
        // If readers use another generation, the files of this one were removed.
        if (await isKept()) throw error;
        return "finished";
      }
    });
  }

  async #fold(
    { checkpoints, documents }: Generation,
    hold: PathHold,
    signals: LoopSignals,
    { onProgress, ...options }: Pick<EventWork, "untilHead" | "isWanted"> & { readonly onProgress?: OnProgress },
  ): Promise<WorkOutcome> {
    const leased = await checkpoints.take(hold.fence);
    if (leased === undefined) return "lost";
    const writer = documents.openWriter(leased);
    const source = this.#source;
    const definition = this.#definition;
    const { access } = this.#files.work;
    const { clock } = access.ports;
    const fold = new Fold({ definition, source, find: (key) => writer.find(key) });
    let writtenMs = clock.monotonicMs();
    const commit = async (events: readonly SequencedEvent[], position: number): Promise<boolean> => {
      const isCommitted = await leased.orLost(async () => {
        await fold.add(events);
        const isEnough = fold.size >= documentsMax || clock.monotonicMs() - writtenMs >= foldMsMax;
        // After the last event `commit` is called without events. If the work stops before that, the next worker
        // folds these events again.
        if (events.length === batch && !isEnough) return true;
        writtenMs = clock.monotonicMs();
        return await writer.commit(fold.take(), position);
      });
      if (isCommitted) onProgress?.(position, await source.head());
      return isCommitted;
    };
    const work: EventWork = { ...options, source, access, query: definition.query, batch, commit };
    const outcome = await processEvents(work, leased, hold, signals);
    if (outcome !== "abandoned") await writer.end();
    return outcome;
  }

  #mustKnow(entry: GenerationEntry): void {
    this.#files.mustNotBeNewer(entry, this.#definition.version, "are gone, or can no longer be rebuilt");
  }
}
