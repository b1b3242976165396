// Folders of programs that do not know Holdfast: adopts from them and exports to them.
import type { Running } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { checkOptions } from "../../format/known-options.ts";
import { Loop, type Loops, type LoopSignals } from "../../part/loop.ts";
import { consume } from "../deliver/consumer.ts";
import type { DeliveryFeed } from "../deliver/feed.ts";
import type { ConsumeOptions } from "../model/consume-options.ts";
import type { Delivery } from "../model/delivery.ts";
import type { AdoptOptions, ExportOptions } from "../model/handoff.ts";
import type { BoxPublisher } from "../publish/box-publisher.ts";
import { Adopter } from "./adopter.ts";
import { adoptUntilStopped, everyMsDefault } from "./adopting-loop.ts";
import { Exporter } from "./exporter.ts";
import { openForeignFolder, type OpenFolder } from "./folder.ts";
import { checkAdoptRule, checkExportRule, type AdoptRule, type ExportRule } from "../model/foreign-rule.ts";

/**
 * Exports are retried without limit: a slow receiver or a read-only folder must not make dead
 * letters.
 */
const exportOptions: ConsumeOptions = {
  attempts: Number.MAX_SAFE_INTEGER,
  backoffMs: { min: 200, max: 10_000 },
  // A ticket with names that conflict in one folder can never be exported.
  onError: (error) => (isHoldfastError(error, "INVALID_NAME") ? "fail" : "retry"),
};

export class ForeignFolders {
  readonly #publisher: BoxPublisher;
  readonly #feed: DeliveryFeed;
  readonly #loops: Loops;
  readonly #openFolder: OpenFolder;

  /** `loops` throws CLOSED once the box is closed. */
  constructor(publisher: BoxPublisher, feed: DeliveryFeed, loops: Loops, openFolder: OpenFolder) {
    this.#publisher = publisher;
    this.#feed = feed;
    this.#loops = loops;
    this.#openFolder = openFolder;
  }

  async adopt(directory: string, rule: AdoptRule, options: AdoptOptions): Promise<number> {
    checkAdoptRule(rule);
    checkAdoptOptions("adopt", options, {});
    const { signal } = options;
    this.#loops.mustBeOpen();
    signal?.throwIfAborted();
    const adopter = await this.#openAdopter(directory, rule, options, true);
    if (rule.by !== "guess-by-quiet-size") return await adopter.pass(signal);
    // With a rule about quiet files, the first pass only records sizes.
    const count = await adopter.pass(signal);
    await this.#loops.clock.sleep(rule.quietMs, { signal });
    return count + (await adopter.pass(signal));
  }

  keepAdopting(directory: string, rule: AdoptRule, options: AdoptOptions & { everyMs?: number | undefined }): Running {
    checkAdoptRule(rule);
    checkAdoptOptions("keepAdopting", options, { everyMs: true });
    const { everyMs = everyMsDefault, signal } = options;
    if (!(Number.isFinite(everyMs) && everyMs >= 1))
      throw new RangeError(`everyMs must be a number of milliseconds from 1, not ${everyMs}.`);
    const { ports } = this.#publisher.box.ground;
    const adopting = async (stopping: AbortSignal): Promise<void> => {
      const adopter = await this.#openAdopter(directory, rule, options, false);
      await adoptUntilStopped(adopter, ports, directory, everyMs, stopping);
    };
    return new Loop(this.#loops, ({ stopping }) => adopting(stopping), { signal });
  }

  async export(directory: string, rule: ExportRule, options: ExportOptions): Promise<number> {
    checkExport("export", rule, options);
    const { signal } = options;
    this.#loops.mustBeOpen();
    signal?.throwIfAborted();
    let count = 0;
    const exporting = async (signals: LoopSignals): Promise<void> => {
      count = await this.#export(directory, rule, options, { idleMs: 0, signals });
    };
    await new Loop(this.#loops, exporting, { signal }).done;
    signal?.throwIfAborted();
    return count;
  }

  keepExporting(directory: string, rule: ExportRule, options: ExportOptions): Running {
    checkExport("keepExporting", rule, options);
    const exporting = async (signals: LoopSignals): Promise<void> => {
      await this.#export(directory, rule, options, { idleMs: Infinity, signals });
    };
    return new Loop(this.#loops, exporting, { signal: options.signal });
  }

  async #openAdopter(
    directory: string,
    rule: AdoptRule,
    { onProblem }: AdoptOptions,
    isSinglePass: boolean,
  ): Promise<Adopter> {
    const folder = await openForeignFolder(this.#publisher.box, directory, this.#openFolder);
    return new Adopter(this.#publisher, folder, rule, { onProblem, isSinglePass });
  }

  /**
   * Exports until stopped, or until there was no ticket for `idleMs`. Returns how many tickets it
   * exported.
   */
  async #export(
    directory: string,
    rule: ExportRule,
    { onDeadLetter }: ExportOptions,
    { idleMs, signals }: { readonly idleMs: number; readonly signals: LoopSignals },
  ): Promise<number> {
    const { box } = this.#publisher;
    const exporter = new Exporter(box, await openForeignFolder(box, directory, this.#openFolder), rule);
    let count = 0;
    const exportOne = async (delivery: Delivery): Promise<void> => {
      await exporter.export(delivery);
      count++;
    };
    await exporter.removeLeftovers();
    await consume(this.#feed, exportOne, { ...exportOptions, idleMs, onDeadLetter }, signals);
    await exporter.removeLeftovers();
    return count;
  }
}

function checkAdoptOptions(call: string, options: AdoptOptions, others: { readonly everyMs?: true }): void {
  checkOptions(call, options, { signal: true, onProblem: true, ...others });
  if (options.onProblem !== undefined && typeof options.onProblem !== "function")
    throw new TypeError("onProblem must be a function.");
}

function checkExport(call: string, rule: ExportRule, options: ExportOptions): void {
  checkExportRule(rule);
  checkOptions(call, options, { signal: true, onDeadLetter: true });
}
