// Pausing a box: a record that all consumers on all machines see before they take a ticket.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { isThere } from "../../durable/store/store-record.ts";
import { isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";

export interface PauseRecord {
  readonly at: string;
  readonly host: string;
  readonly reason?: string;
}

const pauseKind: RecordKind<PauseRecord> = {
  kind: "pause",
  decode: (value) => {
    const { at, host, reason } = objectOf(value);
    return { at: textOf(at), host: textOf(host), ...(reason === undefined ? {} : { reason: textOf(reason) }) };
  },
};

/** How long an answer of a share is believed: the question costs a few requests. */
const believedMs = 1_000;
const reasonLengthMax = 1_024;

export class Pause {
  readonly #box: Box;
  #seen: { readonly isPaused: boolean; readonly atMs: number } | undefined;

  constructor(box: Box) {
    this.#box = box;
  }

  /** Durable when it resolves. A second one gives another reason. */
  async begin(reason: string | undefined): Promise<void> {
    if (reason !== undefined && (typeof reason !== "string" || reason.length > reasonLengthMax))
      throw new TypeError(`The reason of a pause must be a text of at most ${reasonLengthMax} characters.`);
    const { ground, layout, isSynced } = this.#box;
    const record: PauseRecord = {
      at: new Date(await this.#box.nowMs()).toISOString(),
      host: ground.ports.host.name,
      ...(reason === undefined ? {} : { reason }),
    };
    await replace(ground.staging, layout.pauseRecord, encodeRecord(pauseKind, record), { sync: isSynced });
    this.#seen = undefined;
  }

  async end(): Promise<void> {
    const { disk, layout } = this.#box;
    await unlinkIfThere(disk, layout.pauseRecord);
    await this.#box.sync(parentOf(layout.pauseRecord));
    this.#seen = undefined;
  }

  /** As the file system itself knows: a client of a share may remember that there was none. */
  async isPaused(): Promise<boolean> {
    const { disk, layout, ground } = this.#box;
    if (disk.volume.kind === "local") return await disk.canOpen(layout.pauseRecord);
    const atMs = ground.ports.clock.monotonicMs();
    if (this.#seen === undefined || atMs - this.#seen.atMs > believedMs)
      this.#seen = { isPaused: await isThere(disk, layout.pauseRecord), atMs };
    return this.#seen.isPaused;
  }

  /** Undefined when the box is not paused. A record that is damaged pauses as any other, and has no reason. */
  async find(): Promise<Partial<PauseRecord> | undefined> {
    const { disk, layout } = this.#box;
    if (!(await isThere(disk, layout.pauseRecord))) return undefined;
    try {
      return await findRecord(disk, pauseKind, layout.pauseRecord);
    } catch (error) {
      if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) return {};
      throw error;
    }
  }
}
