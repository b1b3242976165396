// The hold files of requests, `holds/<id>`, and the files of their offers,
// `holds/<id>.<hash>.transfer`.
import type { Ground } from "../../durable/liveness/ground.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { TableRequest, Transfer } from "./request.ts";

export class HoldFiles {
  readonly #ground: Pick<Ground, "layout" | "staging">;

  constructor(ground: Pick<Ground, "layout" | "staging">) {
    this.#ground = ground;
  }

  pathOf(id: string): string {
    return `${this.#ground.layout.directory}/holds/${id}`;
  }

  async isThere(id: string): Promise<boolean> {
    return await isStillThere(this.#ground.staging, this.pathOf(id));
  }

  /** For a process that may write nothing. On a share the answer may be old. */
  async canOpen(id: string): Promise<boolean> {
    return await this.#ground.staging.disk.canOpen(this.pathOf(id));
  }

  async remove(id: string): Promise<void> {
    await unlinkIfThere(this.#ground.staging.disk, this.pathOf(id));
  }

  /**
   * Made before the table says that the request waits for a receiver: the offer lapses by the stamp
   * of this file.
   */
  async createOffer(id: string, transfer: Transfer): Promise<void> {
    await createUniqueFile(this.#ground.staging.disk, this.#offerOf(id, transfer), new Uint8Array(), { sync: false });
  }

  async removeOffer(id: string, transfer: Pick<Transfer, "secretHash">): Promise<void> {
    await unlinkIfThere(this.#ground.staging.disk, this.#offerOf(id, transfer));
  }

  /**
   * Whether no process took an offered hold in time: by two stamps of the server, so that no clock
   * of a machine decides.
   */
  async isLapsed({ id, transfer }: Pick<TableRequest, "id" | "transfer">): Promise<boolean> {
    if (transfer === undefined) return false;
    const { staging } = this.#ground;
    return await withServerClock(staging, async (clock) => {
      const ageMs = await clock.findAgeMs(this.#offerOf(id, transfer));
      return ageMs === undefined || ageMs > transfer.expiresMs;
    });
  }

  /**
   * Each offer has a file of its own: one name for several could be taken for what it was before.
   */
  #offerOf(id: string, { secretHash }: Pick<Transfer, "secretHash">): string {
    return `${this.pathOf(id)}.${secretHash}.transfer`;
  }
}
