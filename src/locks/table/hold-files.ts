// Three kinds of files: the hold files of requests, `holds/<id>`; files of offers, `holds/<id>.<hash>.transfer`; and
// receipts of transferred requests, `holds/<receiver>.<…>.received`.
import type { Ground } from "../../durable/liveness/ground.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { Holds } from "./request-table.ts";
import type { TableRequest, Transfer } from "./request.ts";

export class HoldFiles implements Holds {
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

  /** For a process that must not write. On a share the answer may be stale. */
  async canOpen(id: string): Promise<boolean> {
    return await this.#ground.staging.disk.canOpen(this.pathOf(id));
  }

  async remove(id: string): Promise<void> {
    await unlinkIfThere(this.#ground.staging.disk, this.pathOf(id));
  }

  /**
   * Created before the table says that the request waits for a receiver: the offer expires by the stamp of this file.
   */
  async createOffer(id: string, transfer: Transfer): Promise<void> {
    await createUniqueFile(this.#ground.staging.disk, this.#offerOf(id, transfer), new Uint8Array(), { sync: false });
  }

  async removeOffer(id: string, transfer: Pick<Transfer, "secretHash">): Promise<void> {
    await unlinkIfThere(this.#ground.staging.disk, this.#offerOf(id, transfer));
  }

  /**
   * Created before a hold is received. A hold file is named after the process that acquired it, and the names of
   * these files show whether a living process holds anything. The receipt carries the receiver's name.
   */
  async createReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await createUniqueFile(this.#ground.staging.disk, this.#receiptOf(id, receiver), new Uint8Array(), { sync: false });
  }

  /** Never fails: a receipt that stays only says that its process holds something, and is swept once that is over. */
  async removeReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await unlinkIfThere(this.#ground.staging.disk, this.#receiptOf(id, receiver)).catch(() => undefined);
  }

  /**
   * True if no process accepted an offered hold in time. Compares two stamps of the server, so that no machine's
   * clock decides.
   */
  async isLapsed({ id, transfer }: Pick<TableRequest, "id" | "transfer">): Promise<boolean> {
    if (transfer === undefined) return false;
    const { staging } = this.#ground;
    return await withServerClock(staging, async (clock) => {
      const ageMs = await clock.findAgeMs(this.#offerOf(id, transfer));
      return ageMs === undefined || ageMs > transfer.expiresMs;
    });
  }

  /** Each offer has its own file: if several shared one name, a client could confuse a new one with an old one. */
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
