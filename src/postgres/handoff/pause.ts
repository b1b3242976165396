// The pause of a box. The claim statement checks it, so no separate query is needed.
import type { PgBox } from "./pg-box.ts";

const reasonLengthMax = 1_024;

export class PgPause {
  readonly #box: PgBox;
  /** The state that the last claim or call of this process has seen. */
  #isSeen = false;

  constructor(box: PgBox) {
    this.#box = box;
  }

  /** Records that a claim was refused. */
  reportPaused(): void {
    this.#isSeen = true;
  }

  /** Pauses the box; durable when it resolves. A second call replaces the reason. */
  async begin(reason: string | undefined): Promise<void> {
    if (reason !== undefined && (typeof reason !== "string" || reason.length > reasonLengthMax))
      throw new TypeError(`The reason of a pause must be a text of at most ${reasonLengthMax} characters.`);
    const { database, ground, p } = this.#box;
    const record = { host: ground.ports.host.name, reason };
    await database.query("update hf_box set paused = $2 where p = $1", [p, JSON.stringify(record)]);
    this.#isSeen = true;
  }

  async end(): Promise<void> {
    await this.#box.database.query("update hf_box set paused = null where p = $1", [this.#box.p]);
    this.#isSeen = false;
  }

  async isPaused(): Promise<boolean> {
    if (this.#isSeen) this.#isSeen = (await this.find()) !== undefined;
    return this.#isSeen;
  }

  /** Returns the pause; undefined if the box is not paused. */
  async find(): Promise<{ readonly reason?: string } | undefined> {
    const { database, p } = this.#box;
    const [row] = await database.query<{ paused: { reason?: string } | null }>(
      "select paused from hf_box where p = $1",
      [p],
    );
    return row?.paused ?? undefined;
  }
}
