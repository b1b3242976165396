// The watch over the holds of this process: who was dropped by others, who hangs, and who was forgotten by his owner.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Grant } from "./grant.ts";
import type { PathHold } from "./path-hold.ts";

/** How often this process looks whether its holds still stand: cheap on a local disk, and part of the lease elsewhere. */
const localCheckMs = 1000;
const networkCheckPart = 1 / 8;

export interface HoldMonitorOptions {
  readonly ports: Ports;
  readonly closed: AbortSignal;
  /** One look at the disk for all; loses those that no longer stand. */
  readonly check: (grants: readonly Grant[]) => Promise<void>;
  readonly giveUp: (grant: Grant, why: string) => Promise<void>;
  readonly release: (grant: Grant) => Promise<void>;
}

export class HoldMonitor {
  readonly grants: Set<Grant> = new Set();
  readonly #options: HoldMonitorOptions;
  readonly #forgotten: FinalizationRegistry<Grant>;
  /** Their release has failed. */
  readonly #owed = new Set<Grant>();
  readonly #lives = new WeakSet<HolderSession>();
  #isWatching = false;

  constructor(options: HoldMonitorOptions) {
    this.#options = options;
    this.#forgotten = new FinalizationRegistry((grant) => this.#releaseForgotten(grant));
  }

  begin(grant: Grant, hold: PathHold, idleMs: number | undefined): void {
    this.grants.add(grant);
    this.#forgotten.register(hold, grant, grant);
    grant.onOver.push(() => this.#forgotten.unregister(grant));
    if (grant.parent !== undefined) grant.onOver.push(() => this.#releaseInner(grant));
    this.#watchLife(grant.life);
    // Its owner may be busy and ask for nothing: then somebody has to ask for him.
    if (!this.#isWatching) this.#inBackground(this.#watchAll());
    if (idleMs !== undefined && idleMs < Infinity) this.#inBackground(this.#watchIdle(grant, idleMs));
  }

  /** Tries to release it again, until it is done. */
  releaseLater(grant: Grant): void {
    if (this.#owed.has(grant)) return;
    this.#owed.add(grant);
    this.#inBackground(this.#releaseOwed(grant));
  }

  /** All that were not given up. */
  get unreleased(): Set<Grant> {
    return new Set([...this.grants, ...this.#owed]);
  }

  /** When it is over, so are all holds of it, and they are told at once. One listener for all of them. */
  #watchLife(life: HolderSession): void {
    if (this.#lives.has(life)) return;
    this.#lives.add(life);
    const tellAll = (): void => {
      for (const grant of this.grants) if (grant.life === life) grant.lose(life.signal.reason);
    };
    life.signal.addEventListener("abort", tellAll, { once: true });
  }

  async #watchAll(): Promise<void> {
    this.#isWatching = true;
    try {
      while (this.grants.size > 0) {
        await this.#sleep(this.#checkMs);
        // A look that fails says nothing: each hold still has its own deadline.
        for (const grant of [...this.grants]) if (grant.isOver) this.grants.delete(grant);
        await this.#options.check([...this.grants]).catch(() => undefined);
      }
    } finally {
      this.#isWatching = false;
    }
  }

  async #releaseOwed(grant: Grant): Promise<void> {
    while (!grant.isGivenUp) {
      await this.#sleep(this.#checkMs);
      // If it fails it is still owed.
      await this.#options.release(grant).catch(() => undefined);
    }
    this.#owed.delete(grant);
  }

  async #watchIdle(grant: Grant, idleMs: number): Promise<void> {
    const { clock } = this.#options.ports;
    const over = new AbortController();
    grant.onOver.push(() => over.abort());
    grant.touch(clock);
    for (let leftMs = idleMs; leftMs > 0; leftMs = idleMs - grant.idleMs(clock))
      await clock.sleep(leftMs, { background: true, signal: over.signal });
    if (grant.isHeld) await this.#options.giveUp(grant, `nothing was done under it for ${idleMs} ms (option idleMs)`);
  }

  /** It ends no later than what it is within, whatever its owner does; in a life that is over by its lease, as that does. */
  #releaseInner(grant: Grant): void {
    if (!grant.isGivenUp && !grant.isCovered && !grant.life.isOver) this.#inBackground(this.#options.release(grant));
  }

  #releaseForgotten(grant: Grant): void {
    if (!grant.isHeld) return;
    const paths = grant.asked.map(({ path }) => path || ".").join(", ");
    const message = `A lock on ${paths} was never released and nobody has it any more: it is released now.`;
    this.#options.ports.host.warn(message);
    // Its signal may still be in use: the caller that has it must stop.
    this.#inBackground(this.#options.giveUp(grant, "it was not kept, and so it was collected as garbage"));
  }

  get #checkMs(): number {
    if (this.#options.ports.disk.volume.kind === "local") return localCheckMs;
    return Math.min(...[...this.unreleased].map(({ life }) => life.holder.leaseMs)) * networkCheckPart;
  }

  async #sleep(ms: number): Promise<void> {
    await this.#options.ports.clock.sleep(ms, { background: true, signal: this.#options.closed });
  }

  /** It fails when the locks are closed, when a hold that was watched is over, or when one cannot be released: that one is owed then. */
  #inBackground(work: Promise<void>): void {
    work.catch(() => undefined);
  }
}
