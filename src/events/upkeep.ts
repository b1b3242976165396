// Upkeep of a log, one call each: verify, export, import, rebuild indexes. Only an import creates a
// log if there is none.
import type { SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { holdfastError } from "../errors.ts";
import type { Ports } from "../ports/ports.ts";
import { plainCodec } from "./model/codec.ts";
import { locatePart } from "../part/location.ts";
import { logPart } from "./log/format/log-record.ts";
import { OpenedLog, type LogOptions } from "./open/opened-log.ts";
import { rebuildIndexes, type RebuildOptions, type RebuildResult } from "./verify/rebuild.ts";
import type { Items } from "./model/query.ts";
import { exportLog, type ExportOptions } from "./transfer/export.ts";
import { openExport } from "./transfer/incoming.ts";
import { importInto, type ImportResult, type ImportOptions } from "./transfer/import.ts";
import { exportUpTo, readUpTo, type SalvageOptions } from "./transfer/salvage.ts";
import { verifyDirectory } from "./verify/verify.ts";
import { findUnopenedLog, type UnopenedLog } from "./verify/unopened.ts";

export class Upkeep {
  readonly #ports: Ports;
  readonly #directory: string;

  constructor(ports: Ports, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  async verify(options: VerifyOptions): Promise<VerifyReport> {
    await this.#mustBeThere();
    return await verifyDirectory(this.#ports, this.#directory, options);
  }

  async *export({ upTo, ...options }: ExportOptions): AsyncGenerator<string, void> {
    await this.#mustBeThere();
    if (upTo !== undefined) return yield* this.#unopened((log) => exportUpTo(log, { upTo, ...options }));
    const log = await this.#open({});
    try {
      yield* exportLog(log, options);
    } finally {
      await log.close();
    }
  }

  /** Also works for a log that is damaged after `upTo`. */
  async *readUpTo(items: Items, options: SalvageOptions): AsyncGenerator<SequencedEvent, void> {
    await this.#mustBeThere();
    yield* this.#unopened((log) => readUpTo(log, items, options));
  }

  async import(
    chunks: AsyncIterable<Uint8Array | string>,
    { mode, ...options }: ImportOptions & Pick<LogOptions, "mode">,
  ): Promise<ImportResult> {
    options.signal?.throwIfAborted();
    // Checked first: input that is not an export must not create a log.
    const incoming = await openExport(chunks);
    const log = await this.#open({ mode });
    try {
      return await importInto(log, incoming, options);
    } finally {
      await log.close();
    }
  }

  async rebuild(options: RebuildOptions): Promise<RebuildResult> {
    await this.#mustBeThere();
    const log = await this.#open({});
    try {
      return await rebuildIndexes(log, options);
    } finally {
      await log.close();
    }
  }

  async *#unopened<T>(work: (log: UnopenedLog) => AsyncIterable<T>): AsyncGenerator<T, void> {
    const log = await findUnopenedLog(this.#ports, this.#directory);
    try {
      yield* work(log);
    } finally {
      await log.close();
    }
  }

  /** Reads stored events as they are, without schemas and keys. */
  async #open(options: LogOptions): Promise<OpenedLog> {
    return await OpenedLog.open(this.#ports, this.#directory, plainCodec, options);
  }

  async #mustBeThere(): Promise<void> {
    const path = this.#directory;
    if ((await locatePart(this.#ports.disk, logPart, path, "main")).isThere) return;
    throw holdfastError("NOT_A_STORE", `There is no event log in ${path}. Is the share mounted?`, { path });
  }
}
