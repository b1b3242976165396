// The end of a grant by the will of its owner, or after it was lost: its request is passed on, handed over or released, once.
import type { Acquirer } from "./acquire.ts";
import type { Grant } from "./grant.ts";
import type { HoldMonitor } from "./monitor.ts";
import type { LockTable } from "../table/lock-table.ts";
import type { Interop } from "../interop/interop.ts";
import { discardDrafts, settleRedos } from "../redo/draft.ts";
import { handOver } from "./transfer.ts";

export interface ReleaserOptions {
  readonly table: LockTable;
  readonly entrance: Acquirer;
  readonly watch: HoldMonitor;
  readonly mirror: () => Interop | undefined;
}

export class Releaser {
  readonly #options: ReleaserOptions;

  constructor(options: ReleaserOptions) {
    this.#options = options;
  }

  /** Once: said again, it does nothing, because the request may be another's by then. What fails is made again, by the next call or by the watch. */
  async release(grant: Grant): Promise<void> {
    try {
      await grant.inTurn(() => this.#release(grant));
    } catch (error) {
      // Whoever asked for it may be gone, and others wait.
      if (!grant.isGivenUp) this.#options.watch.releaseLater(grant);
      throw error;
    }
  }

  async transfer(
    grant: Grant,
    { expiresMs = grant.life.holder.leaseMs }: { readonly expiresMs?: number | undefined },
  ): Promise<string> {
    return await grant.inTurn(async () => {
      grant.mustHold();
      grant.beginToEnd();
      let token: string;
      try {
        await this.#finish(grant, "what it is within was transferred");
        token = await handOver(this.#options.table, grant, { expiresMs });
      } catch (error) {
        grant.goOn();
        throw error;
      }
      await this.#options.mirror()?.leave(grant);
      this.#giveUp(grant);
      grant.place?.leave();
      return token;
    });
  }

  async #release(grant: Grant): Promise<void> {
    if (grant.isGivenUp) return;
    grant.beginToEnd();
    await this.#finish(grant, "what it is within was released");
    const { table, entrance } = this.#options;
    const mirror = this.#options.mirror();
    if (mirror !== undefined && !grant.isCovered) await mirror.hide(grant);
    const wasHeld = this.#giveUp(grant);
    try {
      if (grant.isCovered) return;
      // Foreign programs would not see it change hands.
      if (wasHeld && mirror === undefined && (await entrance.passOn(grant))) return;
      // Also when it was lost: nothing will be done under it any more, and others need not find that out by themselves. What fails here is made again by the table.
      const removal = table.release(grant.id);
      await (wasHeld ? removal : removal.catch(() => undefined));
    } finally {
      grant.place?.leave();
    }
  }

  /** What others take for the end of all effects must be that. If it cannot be settled now, the request stands. */
  async #finish(grant: Grant, why: string): Promise<void> {
    for (const inner of grant.inner) {
      inner.lose(inner.lost(why));
      await this.release(inner);
    }
    // An append that finds its request in the list now may be linked when that is another's.
    await this.untilQuiet(grant);
    await settleRedos(this.#options.table, grant);
    await discardDrafts(grant);
  }

  protected async untilQuiet(grant: Grant): Promise<void> {
    await grant.quiet();
  }

  #giveUp(grant: Grant): boolean {
    this.#options.watch.grants.delete(grant);
    return grant.release();
  }
}
