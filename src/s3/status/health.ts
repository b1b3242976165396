// Health reports whether the gateway can work: the folder must respond within a time that suits a
// load balancer.
import type { ObjectStore } from "../../objects/index.ts";
import type { Answer } from "../http/answer.ts";

export interface HealthOptions {
  /** Default 2_000. */
  readonly timeoutMs?: number | undefined;
  /**
   * How long a result is reused, so that many requests cause one check of the folder. Default
   * 1_000.
   */
  readonly freshMs?: number | undefined;
}

/** The name of the bucket that the check looks up. It need not exist. */
const probe = "holdfast-health";

export class Health {
  readonly #objects: Pick<ObjectStore, "findBucket">;
  readonly #timeoutMs: number;
  readonly #freshMs: number;
  #known: { readonly isHealthy: boolean; readonly atMs: number } | undefined;
  #asking: Promise<boolean> | undefined;

  constructor(objects: Pick<ObjectStore, "findBucket">, { timeoutMs = 2_000, freshMs = 1_000 }: HealthOptions = {}) {
    this.#objects = objects;
    this.#timeoutMs = timeoutMs;
    this.#freshMs = freshMs;
  }

  /** 200, or 503 while the folder does not respond or the gateway is closing. */
  async answer(isClosing: boolean): Promise<Answer> {
    const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
    if (isClosing) return { status: 503, headers, body: "closing\n" };
    return (await this.#isHealthy())
      ? { status: 200, headers, body: "ok\n" }
      : { status: 503, headers, body: "the folder does not respond\n" };
  }

  async #isHealthy(): Promise<boolean> {
    if (this.#known !== undefined && performance.now() - this.#known.atMs < this.#freshMs) return this.#known.isHealthy;
    // Only one check runs at a time: if the folder hangs, checks must not pile up.
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), this.#timeoutMs);
    });
    try {
      return await Promise.race([this.#asking, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #ask(): Promise<boolean> {
    const isHealthy = await this.#objects.findBucket(probe).then(
      () => true,
      () => false,
    );
    this.#known = { isHealthy, atMs: performance.now() };
    return isHealthy;
  }
}
