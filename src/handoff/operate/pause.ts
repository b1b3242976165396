// Pauses a box by a record that all consumers on all machines check before they claim a ticket.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import { nameExists } from "../box/names.ts";

export interface PauseRecord {
  readonly at: string;
  readonly host: string;
  readonly reason?: string;
}

export const pauseKind: RecordKind<PauseRecord> = {
  kind: "pause",
  decode: (value) => {
    const { at, host, reason } = objectOf(value);
    return { at: textOf(at), host: textOf(host), ...(reason === undefined ? {} : { reason: textOf(reason) }) };
  },
};

/** On a share, how long a result is reused: a check costs a few requests. */
const believedMs = 1_000;
const reasonLengthMax = 1_024;

export class Pause {
  readonly #box: Box;
  #seen: { readonly isPaused: boolean; readonly atMs: number } | undefined;

  constructor(box: Box) {
    this.#box = box;
  }

  /** Pauses the box, durably when it resolves. A second call replaces the reason. */
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

  /** Asks the server: the client of a share may have cached that there is no record. */
  async isPaused(): Promise<boolean> {
    const { disk, layout, ground } = this.#box;
    if (disk.volume.kind === "local")
      return await disk.canOpen(layout.pauseRecord).catch((error: unknown) => {
        // Anything under this name pauses the box, even a directory.
        if (isUnreadable(error)) return true;
        throw error;
      });
    const atMs = ground.ports.clock.monotonicMs();
    if (this.#seen === undefined || atMs - this.#seen.atMs > believedMs)
      this.#seen = { isPaused: await nameExists(disk, layout.pauseRecord), atMs };
    return this.#seen.isPaused;
  }

  /**
   * Returns undefined if the box is not paused. A damaged record also pauses the box, without a
   * reason.
   */
  async find(): Promise<Partial<PauseRecord> | undefined> {
    const { disk, layout } = this.#box;
    if (!(await nameExists(disk, layout.pauseRecord))) return undefined;
    try {
      return await findRecord(disk, pauseKind, layout.pauseRecord);
    } catch (error) {
      if (isUnreadable(error)) return {};
      throw error;
    }
  }
}
