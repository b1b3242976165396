// The hold files of requests, `holds/<id>`, the files of their offers, `holds/<id>.<hash>.transfer`,
// and the receipts of those that were transferred, `holds/<receiver>.<…>.received`.
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
   * Made before a hold is received: its file has the name of the process that acquired it, and by the
   * names of these files a process tells whether a living one holds anything.
   */
  async createReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await createUniqueFile(this.#ground.staging.disk, this.#receiptOf(id, receiver), new Uint8Array(), { sync: false });
  }

  /** Never fails: one that stays only says that its process holds something, and is swept when that is over. */
  async removeReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await unlinkIfThere(this.#ground.staging.disk, this.#receiptOf(id, receiver)).catch(() => undefined);
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

  #receiptOf(id: string, receiver: string): string {
    return `${this.pathOf(`${receiver}.${id.split(".")[1]}`)}.received`;
  }
}

function isMadeBy(id: string, holder: string): boolean {
  return id.startsWith(`${holder}.`);
}
