// The work on a projection: one of all processes keeps the generation that is read up to date, and one builds its successor beside it.
import type { SequencedEvent } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Checkpoint } from "../follow/checkpoint.ts";
import type { LoopSignals } from "../follow/loop.ts";
import { underLease, workThrough, type EventSource, type Outcome, type Work } from "../follow/work-through.ts";
import type { Catalog, GenerationFacts } from "./catalog.ts";
import type { CheckedDefinition } from "./definition.ts";
import { DocumentWriter } from "./document-writer.ts";
import { Fold } from "./fold.ts";
import { openGeneration, type Generation, type ProjectionFiles } from "./generation.ts";

/** Events that are read and folded at a time. */
const batch = 1000;
/** While there are more, documents are written only when so many have changed, or after so long: of those that change with every batch it saves all writes but the last. */
const documentsMax = 5000;
const foldMsMax = 5000;
/** After so many crashes the list of those who were cut off is as large as a document: a new generation begins without it. */
const cutOffMax = 1000;

export interface ProjectionWorkOptions {
  readonly place: ProjectionFiles;
  readonly catalog: Catalog;
  readonly definition: CheckedDefinition;
  readonly source: EventSource;
}

type Progress = (position: number, head: number) => void;

export class ProjectionWork {
  readonly #place: ProjectionFiles;
  readonly #catalog: Catalog;
  readonly #definition: CheckedDefinition;
  readonly #source: EventSource;

  constructor({ place, catalog, definition, source }: ProjectionWorkOptions) {
    this.#place = place;
    this.#catalog = catalog;
    this.#definition = definition;
    this.#source = source;
  }

  /** Until it is stopped. NEWER_FORMAT when programs with a newer version of the definition have taken over. */
  async run(signals: LoopSignals): Promise<void> {
    while (!signals.stopping.aborted) {
      const { current, building } = await this.#catalog.read();
      if (current === undefined && building === undefined) await this.#beginFirst();
      else if (current === undefined || (await this.#isOutdated(current))) await this.#replace(current, signals);
      else await this.#keep(current, signals);
    }
  }

  /** True when a generation of this version that was not read before is read now. False when it was stopped before. NEWER_FORMAT as above. */
  async build(signals: LoopSignals, onProgress?: Progress): Promise<boolean> {
    let isBuilt = false;
    while (!isBuilt && !signals.stopping.aborted) {
      const { current } = await this.#catalog.read();
      isBuilt = await this.#replace(current, signals, onProgress);
    }
    return isBuilt;
  }

  /** Builds a successor of `outdated`, or waits until somebody else has. False when it has come to nothing: then it is time to look again. */
  async #replace(outdated: GenerationFacts | undefined, signals: LoopSignals, onProgress?: Progress): Promise<boolean> {
    const { current, building } = await this.#catalog.nameBuilding(this.#definition.version, outdated?.number);
    // Asked of what was found now: between the look that made us come here and this one, others may have switched to a version that we do not know.
    if (current !== undefined) this.#mustKnow(current);
    if (current?.number !== outdated?.number || building === undefined) return false;
    this.#mustKnow(building);
    let isBuilt = false;
    await underLease(this.#place.following, this.#place.leaseOf(building.number), signals, async (hold) => {
      const now = await this.#catalog.read();
      if (now.building?.number !== building.number) {
        // Somebody else has done it, or has begun another one since.
        isBuilt = now.current?.number === building.number;
        return "over";
      }
      const outcome = await this.#buildUnder(hold, building, signals, onProgress);
      isBuilt = outcome === "over" && (await this.#catalog.read()).current?.number === building.number;
      return outcome;
    });
    return isBuilt;
  }

  async #buildUnder(
    hold: PathHold,
    { number }: GenerationFacts,
    signals: LoopSignals,
    onProgress: Progress | undefined,
  ): Promise<Outcome> {
    try {
      const generation = await openGeneration(this.#place, number);
      await generation.checkpoints.begin(0);
      const { state } = await generation.checkpoints.read();
      if (!this.#isOfAnotherGround(state)) return await this.#catchUp(generation, hold, signals, onProgress);
    } catch (error) {
      // Either it was begun with a log that has been replaced since, or it is nobody's any more, and its files were taken away under our hands.
      if (!isHoldfastError(error, "LOG_REWOUND") && (await this.#isNamed(number))) throw error;
    }
    // From the beginning, under a new number.
    await this.#catalog.abandon(number);
    return "over";
  }

  /** Works up to the head, ends the work on the current generation, comes to where that ended, and switches. */
  async #catchUp(
    generation: Generation,
    hold: PathHold,
    signals: LoopSignals,
    onProgress: Progress | undefined,
  ): Promise<Outcome> {
    const work = { untilHead: true, ...(onProgress && { onProgress }) };
    const outcome = await this.#fold(generation, hold, signals, work);
    if (outcome !== "over" || signals.stopping.aborted) return outcome;
    const { current, building } = await this.#catalog.read();
    // Whoever has overtaken us may need long: the current generation must not stand still until then.
    if (building?.number !== generation.number) return "over";
    if (current !== undefined) {
      // Closed before the switch: whoever has seen the old generation at a position never sees the new one at an earlier one. A crash in between leaves the
      // old one readable and standing still, until somebody has finished this.
      await (await openGeneration(this.#place, current.number)).checkpoints.close();
      const rest = await this.#fold(generation, hold, signals, work);
      if (rest !== "over" || signals.stopping.aborted) return rest;
    }
    const now = await this.#catalog.switchTo(generation.number);
    // Overtaken after all: what is older than ours is still read.
    if (now.current?.number !== generation.number) return "over";
    this.#place.following.progressed();
    await this.#place.removeOlderThan(generation.number);
    return "over";
  }

  async #isNamed(number: number): Promise<boolean> {
    const { current, building } = await this.#catalog.read();
    return current?.number === number || building?.number === number;
  }

  /** The first generation has begun before it is named, so that whoever is led to it finds it. */
  async #beginFirst(): Promise<void> {
    const { checkpoints } = await openGeneration(this.#place, 1);
    await checkpoints.begin(0);
    await this.#catalog.nameFirst(this.#definition.version);
  }

  async #isOutdated(current: GenerationFacts): Promise<boolean> {
    this.#mustKnow(current);
    if (current.version < this.#definition.version) return true;
    try {
      const { state } = await (await openGeneration(this.#place, current.number)).checkpoints.read();
      return state.isClosed || this.#isOfAnotherGround(state) || state.cutOff.length >= cutOffMax;
    } catch (error) {
      // Its files were taken away under our hands: then another one is read by now.
      if (await this.#isNamed(current.number)) throw error;
      return true;
    }
  }

  /** Fences of a ground that was removed say nothing about ours, and the names of documents are made of them. */
  #isOfAnotherGround({ fence, ground }: Checkpoint): boolean {
    return fence > 0 && ground !== this.#place.access.ground.id;
  }

  /** Until it is stopped, or another generation is read. */
  async #keep({ number }: GenerationFacts, signals: LoopSignals): Promise<void> {
    const isCurrent = async (): Promise<boolean> => (await this.#catalog.read()).current?.number === number;
    await underLease(this.#place.following, this.#place.leaseOf(number), signals, async (hold) => {
      try {
        if (!(await isCurrent())) return "over";
        // What a builder has left who came no further.
        await this.#place.removeOlderThan(number);
        const generation = await openGeneration(this.#place, number);
        if ((await generation.checkpoints.read()).state.isClosed) return "over";
        return await this.#fold(generation, hold, signals, { isWanted: isCurrent });
      } catch (error) {
        // Its files were taken away under our hands.
        if (await isCurrent()) throw error;
        return "over";
      }
    });
  }

  async #fold(
    { checkpoints, directory }: Generation,
    hold: PathHold,
    signals: LoopSignals,
    { onProgress, ...options }: Pick<Work, "untilHead" | "isWanted"> & { readonly onProgress?: Progress },
  ): Promise<Outcome> {
    const tenure = await checkpoints.take(hold.fence);
    if (tenure === undefined) return "lost";
    const writer = new DocumentWriter(this.#place.disk, directory, tenure);
    const source = this.#source;
    const definition = this.#definition;
    const { clock } = this.#place.access.ports;
    const fold = new Fold({ definition, source, find: (key) => writer.find(key) });
    let writtenMs = clock.monotonicMs();
    const commit = async (events: readonly SequencedEvent[], position: number): Promise<boolean> => {
      const isCommitted = await tenure.orLost(async () => {
        await fold.add(events);
        const isEnough = fold.size >= documentsMax || clock.monotonicMs() - writtenMs >= foldMsMax;
        // If that was all there is, it is asked for again without events. If it is stopped before that, the next one folds them again.
        if (events.length === batch && !isEnough) return true;
        writtenMs = clock.monotonicMs();
        return await writer.commit(fold.take(), position);
      });
      if (isCommitted) onProgress?.(position, await source.head());
      return isCommitted;
    };
    const work: Work = { ...options, source, access: this.#place.access, query: definition.query, batch, commit };
    const outcome = await workThrough(work, tenure, hold, signals);
    if (outcome !== "left") await writer.end();
    return outcome;
  }

  #mustKnow({ version }: GenerationFacts): void {
    if (version <= this.#definition.version) return;
    const path = this.#place.directory;
    const writtenBy = `version ${version} of the projection`;
    const message = `${path}: the documents are made by ${writtenBy} now, and this program has version ${this.#definition.version}. Upgrade this program.`;
    throw holdfastError("NEWER_FORMAT", message, { path, writtenBy });
  }
}
