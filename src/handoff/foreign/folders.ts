// Folders of programs that know nothing of Holdfast: what a box takes from them, and what it puts there.
import type { Cancel, Running } from "../../common.ts";
import { checkOptions } from "../../format/known-options.ts";
import { Loop, type Loops, type LoopSignals } from "../../part/loop.ts";
import type { DeliveryFeed } from "../consume/feed.ts";
import type { OpenDelivery } from "../consume/delivery.ts";
import type { ExportOptions } from "../model/handoff.ts";
import { Adopter, recoverClaims, type AdopterParts } from "./adopter.ts";
import { adoptUntilStopped, everyMsDefault } from "./adopting-loop.ts";
import { Exporter } from "./exporter.ts";
import { exportUntilStopped } from "./exporting-loop.ts";
import { claimsInBox, openForeignFolder, type OpenFolder } from "./folder.ts";
import { checkAdoptRule, checkExportRule, type AdoptRule, type ExportRule } from "./rule.ts";

export interface FoldersParts extends AdopterParts {
  readonly loops: Loops;
  readonly openFolder: OpenFolder;
  /** Gives what is exported. Asked for late: it recovers what this one has claimed. */
  readonly feed: () => DeliveryFeed;
  /** CLOSED. */
  readonly mustBeOpen: () => void;
}

export class ForeignFolders {
  readonly #parts: FoldersParts;

  constructor(parts: FoldersParts) {
    this.#parts = parts;
  }

  /** Completes or gives back what dead processes were adopting into the box. */
  async recover(): Promise<void> {
    await recoverClaims(this.#parts, claimsInBox(this.#parts.box));
  }

  async adopt(directory: string, rule: AdoptRule, options: Cancel): Promise<number> {
    checkAdoptRule(rule);
    checkOptions("adopt", options, { signal: true });
    const { box, mustBeOpen } = this.#parts;
    const { signal } = options;
    mustBeOpen();
    signal?.throwIfAborted();
    const adopter = await this.#openAdopter(directory, rule);
    if (rule.by !== "guess-by-quiet-size") return await adopter.pass(signal);
    // The first look only shows sizes.
    const count = await adopter.pass(signal);
    await box.ground.ports.clock.sleep(rule.quietMs, { signal });
    return count + (await adopter.pass(signal));
  }

  keepAdopting(directory: string, rule: AdoptRule, options: Cancel & { everyMs?: number | undefined }): Running {
    checkAdoptRule(rule);
    checkOptions("keepAdopting", options, { signal: true, everyMs: true });
    const { everyMs = everyMsDefault, signal } = options;
    if (!(Number.isFinite(everyMs) && everyMs >= 1))
      throw new RangeError(`everyMs must be a number of milliseconds from 1, not ${everyMs}.`);
    const { box, loops } = this.#parts;
    const adopting = async (stopping: AbortSignal): Promise<void> => {
      const adopter = await this.#openAdopter(directory, rule);
      await adoptUntilStopped(adopter, box.ground.ports, directory, everyMs, stopping);
    };
    return new Loop(loops, ({ stopping }) => adopting(stopping), { signal });
  }

  async export(directory: string, rule: ExportRule, options: ExportOptions): Promise<number> {
    checkExport("export", rule, options);
    const { loops, mustBeOpen } = this.#parts;
    const { signal } = options;
    mustBeOpen();
    signal?.throwIfAborted();
    let count = 0;
    const exporting = async (signals: LoopSignals): Promise<void> => {
      count = await this.#export(directory, rule, options, { idleMs: 0, signals });
    };
    await new Loop(loops, exporting, { signal }).done;
    signal?.throwIfAborted();
    return count;
  }

  keepExporting(directory: string, rule: ExportRule, options: ExportOptions): Running {
    checkExport("keepExporting", rule, options);
    const exporting = async (signals: LoopSignals): Promise<void> => {
      await this.#export(directory, rule, options, { idleMs: Infinity, signals });
    };
    return new Loop(this.#parts.loops, exporting, { signal: options.signal });
  }

  async #openAdopter(directory: string, rule: AdoptRule): Promise<Adopter> {
    const { box, openFolder } = this.#parts;
    return new Adopter(this.#parts, await openForeignFolder(box, directory, openFolder), rule);
  }

  async #export(
    directory: string,
    rule: ExportRule,
    { onDeadLetter }: ExportOptions,
    { idleMs, signals }: { readonly idleMs: number; readonly signals: LoopSignals },
  ): Promise<number> {
    const { box, feed, openFolder } = this.#parts;
    const { clock, random } = box.ground.ports;
    const next = (attempts: number, stopping: AbortSignal): Promise<OpenDelivery | undefined> =>
      feed().next(attempts, idleMs, stopping, { onDeadLetter });
    const folder = await openForeignFolder(box, directory, openFolder);
    return await exportUntilStopped(new Exporter(box, folder, rule), { clock, random, next }, signals);
  }
}

function checkExport(call: string, rule: ExportRule, options: ExportOptions): void {
  checkExportRule(rule);
  checkOptions(call, options, { signal: true, onDeadLetter: true });
}
