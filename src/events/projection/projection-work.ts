// The work on a projection: one of all processes keeps the current generation up to date, and one
// builds its successor beside it.
import type { SequencedEvent } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { GenerationEntry, Generations } from "../../part/generations.ts";
import type { LoopSignals } from "../../part/loop.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import { underLease, type WorkOutcome } from "../../part/under-lease.ts";
import { workThrough, type EventSource, type Work } from "../follow/work-through.ts";
import type { CheckedDefinition } from "./definition.ts";
import { DocumentWriter } from "./document-writer.ts";
import { Fold } from "./fold.ts";
import type { Generation, ProjectionFiles } from "./generation.ts";

/** Events that are read and folded at a time. */
const batch = 1000;
/**
 * While there are more events, documents are written only when so many have changed, or after so
 * long. A document that changes in every batch is then written once and not each time.
 */
const documentsMax = 5000;
const foldMsMax = 5000;
/** After so many crashes `cutOff` is as large as a document. A new generation begins without it. */
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

  constructor({ files, definition, source }: ProjectionWorkOptions) {
    this.#files = files;
    this.#generations = files.generations;
    this.#definition = definition;
    this.#source = source;
  }

  /**
   * Until it is stopped. NEWER_FORMAT when a program with a newer version of the definition has
   * taken over.
   */
  async run(signals: LoopSignals): Promise<void> {
    while (!signals.stopping.aborted) {
      const { current, building } = await this.#generations.read();
      if (current === undefined && building === undefined) await this.#beginFirst();
      else if (current === undefined || (await this.#isOutdated(current))) await this.#replace(current, signals);
      else await this.#keep(current, signals);
    }
  }

  /**
   * True when a new generation of this version is current. False when it was stopped before.
   * NEWER_FORMAT as above.
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
   * Builds a successor of `outdated`, or waits until another process has. False: read the catalog
   * again.
   */
  async #replace(
    outdated: GenerationEntry | undefined,
    signals: LoopSignals,
    onProgress?: OnProgress,
  ): Promise<boolean> {
    const { current, building } = await this.#generations.nameBuilding(this.#definition.version, outdated?.number);
    // Checked again: since `outdated` was read, another process may have switched to a version that
    // is unknown here.
    if (current !== undefined) this.#mustKnow(current);
    if (current?.number !== outdated?.number || building === undefined) return false;
    this.#mustKnow(building);
    let isBuilt = false;
    await underLease(this.#files.work.leases, this.#files.leaseOf(building.number), signals, async (hold) => {
      const now = await this.#generations.read();
      if (now.building?.number !== building.number) {
        // Another process has finished this one, or has begun another one since.
        isBuilt = now.current?.number === building.number;
        return "finished";
      }
      const outcome = await this.#buildUnder(hold, building, signals, onProgress);
      isBuilt = outcome === "finished" && (await this.#isCurrent(building.number));
      return outcome;
    });
    return isBuilt;
  }

  async #buildUnder(
    hold: PathHold,
    { number }: GenerationEntry,
    signals: LoopSignals,
    onProgress: OnProgress | undefined,
  ): Promise<WorkOutcome> {
    try {
      const generation = await this.#files.openGeneration(number);
      await generation.checkpoints.begin(0);
      const { state } = await generation.checkpoints.read();
      if (!this.#isOfAnotherGround(state)) return await this.#catchUp(generation, hold, signals, onProgress);
    } catch (error) {
      // LOG_REWOUND: the log was replaced since this generation was begun. Not named: its files
      // were removed.
      if (!isHoldfastError(error, "LOG_REWOUND") && (await this.#isNamed(number))) throw error;
    }
    // The next one begins at 0, under a new number.
    await this.#generations.abandon(number);
    return "finished";
  }

  /**
   * Works up to the head, closes the current generation, works up to where that ended, and
   * switches.
   */
  async #catchUp(
    generation: Generation,
    hold: PathHold,
    signals: LoopSignals,
    onProgress: OnProgress | undefined,
  ): Promise<WorkOutcome> {
    const options = { untilHead: true, ...(onProgress && { onProgress }) };
    const outcome = await this.#fold(generation, hold, signals, options);
    if (outcome !== "finished" || signals.stopping.aborted) return outcome;
    const { current, building } = await this.#generations.read();
    // Overtaken: the newer build may take long, and the current generation must not stand still
    // until then.
    if (building?.number !== generation.number) return "finished";
    if (current !== undefined) {
      // Closed before the switch: a reader that saw the old generation at a position never sees the
      // new one at an earlier one. A crash in between leaves the old one readable and standing
      // still, until a process finishes this.
      await (await this.#files.openGeneration(current.number)).checkpoints.close();
      const rest = await this.#fold(generation, hold, signals, options);
      if (rest !== "finished" || signals.stopping.aborted) return rest;
    }
    const now = await this.#generations.switchTo(generation.number);
    // Overtaken after all: generations older than this one are still read.
    if (now.current?.number !== generation.number) return "finished";
    this.#files.work.loops.progressed();
    await this.#generations.removeOlderThan(generation.number);
    return "finished";
  }

  async #isNamed(number: number): Promise<boolean> {
    const { current, building } = await this.#generations.read();
    return current?.number === number || building?.number === number;
  }

  async #isCurrent(number: number): Promise<boolean> {
    return (await this.#generations.read()).current?.number === number;
  }

  /** The first generation begins before it is named, so that a reader finds it begun. */
  async #beginFirst(): Promise<void> {
    const { checkpoints } = await this.#files.openGeneration(1);
    await checkpoints.begin(0);
    await this.#generations.nameFirst(this.#definition.version);
  }

  async #isOutdated(current: GenerationEntry): Promise<boolean> {
    this.#mustKnow(current);
    if (current.version < this.#definition.version) return true;
    try {
      const { state } = await (await this.#files.openGeneration(current.number)).checkpoints.read();
      return state.isClosed || this.#isOfAnotherGround(state) || state.cutOff.length >= cutOffMax;
    } catch (error) {
      // If it is not named any more, its files were removed, and another one is current.
      if (await this.#isNamed(current.number)) throw error;
      return true;
    }
  }

  /**
   * Names of documents are made of fences, and fences of a ground that was removed cannot be
   * compared with new ones.
   */
  #isOfAnotherGround({ fence, ground }: Checkpoint): boolean {
    return fence > 0 && ground !== this.#files.work.access.ground.id;
  }

  /** Until it is stopped, or another generation is current. */
  async #keep({ number }: GenerationEntry, signals: LoopSignals): Promise<void> {
    const isCurrent = (): Promise<boolean> => this.#isCurrent(number);
    await underLease(this.#files.work.leases, this.#files.leaseOf(number), signals, async (hold) => {
      try {
        if (!(await isCurrent())) return "finished";
        // A builder may have died after the switch.
        await this.#generations.removeOlderThan(number);
        const generation = await this.#files.openGeneration(number);
        if ((await generation.checkpoints.read()).state.isClosed) return "finished";
        return await this.#fold(generation, hold, signals, { isWanted: isCurrent });
      } catch (error) {
        // If another one is current, the files of this one were removed.
        if (await isCurrent()) throw error;
        return "finished";
      }
    });
  }

  async #fold(
    { checkpoints, directory }: Generation,
    hold: PathHold,
    signals: LoopSignals,
    { onProgress, ...options }: Pick<Work, "untilHead" | "isWanted"> & { readonly onProgress?: OnProgress },
  ): Promise<WorkOutcome> {
    const leased = await checkpoints.take(hold.fence);
    if (leased === undefined) return "lost";
    const writer = new DocumentWriter(this.#files.disk, directory, leased);
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
        // After the last event `commit` is called without events. If the work is stopped before,
        // the next one folds again.
        if (events.length === batch && !isEnough) return true;
        writtenMs = clock.monotonicMs();
        return await writer.commit(fold.take(), position);
      });
      if (isCommitted) onProgress?.(position, await source.head());
      return isCommitted;
    };
    const work: Work = { ...options, source, access, query: definition.query, batch, commit };
    const outcome = await workThrough(work, leased, hold, signals);
    if (outcome !== "abandoned") await writer.end();
    return outcome;
  }

  #mustKnow({ version }: GenerationEntry): void {
    if (version <= this.#definition.version) return;
    const path = this.#files.directory;
    const writtenBy = `version ${version} of the projection`;
    const message = `${path}: the documents are made by ${writtenBy} now, and this program has version ${this.#definition.version}. Upgrade this program.`;
    throw holdfastError("NEWER_FORMAT", message, { path, writtenBy });
  }
}
