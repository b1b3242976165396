// Whether the gateway can do its work: the folder answers, within a time in which a load balancer
// wants to know.
import type { ObjectStore } from "../../objects/index.ts";
import type { Answer } from "../http/answer.ts";

export interface HealthOptions {
  /** Default 2_000. */
  readonly timeoutMs?: number | undefined;
  /** How long an answer counts: a crowd of questions asks the folder once. Default 1_000. */
  readonly freshMs?: number | undefined;
}

/** A name that a bucket may have; whether there is one is all the same. */
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

  /** 200, or 503 while the folder does not answer or the gateway is about to end. */
  async answer(isClosing: boolean): Promise<Answer> {
    const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
    if (isClosing) return { status: 503, headers, body: "closing\n" };
    return (await this.#isHealthy())
      ? { status: 200, headers, body: "ok\n" }
      : { status: 503, headers, body: "the folder does not answer\n" };
  }

  async #isHealthy(): Promise<boolean> {
    if (this.#known !== undefined && performance.now() - this.#known.atMs < this.#freshMs) return this.#known.isHealthy;
    // One question at a time: a folder that hangs would keep every other one.
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
