// Random work on one key: puts, conditions, deletions, tags, settings and reads. Each is reported with its times and
// its answer, so that a model can judge it.
import { isHoldfastError } from "../../../src/errors.ts";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import type { Operation } from "../../../src/testing/history/linearizability.ts";
import type { Chance } from "../chance.ts";

/** Every body is different, so a body identifies its version. A marker has none. */
export type KeyInput =
  | { readonly kind: "put"; readonly body: string }
  /** Puts only if there is no object (null), or only if the object is this one. */
  | { readonly kind: "put if"; readonly body: string; readonly expected: string | null }
  | { readonly kind: "delete" }
  /** Null: the null version, whichever it is. */
  | { readonly kind: "delete version"; readonly body: string | null }
  | { readonly kind: "tag"; readonly tag: string }
  | { readonly kind: "get" | "list" | "list versions" | "tags" };

export interface KeyOutput {
  /** The content that a read has found, the newest version first. A tag is found too. */
  readonly found?: readonly string[];
  /** For puts and deletions: true if the operation used the null version. */
  readonly isNull?: boolean;
  /** For deletions: true if the null version is removed and nothing is added. */
  readonly isRemoval?: boolean;
  readonly isRefused?: boolean;
}

export type KeyOperation = Operation<KeyInput, KeyOutput>;

/** Read when an operation begins and when it ends. All processes that take part use one clock. */
export type KeyClock = () => number;

export interface KeyWork {
  readonly bucket: Bucket;
  readonly key: string;
  /** The name of the process. Its bodies begin with it. */
  readonly name: string;
  readonly chance: Chance;
  readonly now: KeyClock;
  /** Called before an operation, so that an operation that never ends is known. */
  readonly onCall?: ((operation: KeyOperation) => void) | undefined;
  readonly onReturn: (operation: KeyOperation) => void;
}

interface Seen {
  readonly body: string;
  readonly etag: string;
}

/** Does one operation after the other. It knows of the key only what it has put and read itself. */
export class KeyWorker {
  readonly #work: KeyWork;
  readonly #ids = new Map<string, string>();
  #seen: Seen | undefined;
  #count = 0;

  constructor(work: KeyWork) {
    this.#work = work;
  }

  async doNext(): Promise<void> {
    const { bucket, key, name, chance } = this.#work;
    const body = `${name}-${++this.#count}`;
    const die = chance.fraction();
    if (die < 0.24) await this.#note({ kind: "put", body }, () => this.#put(body, {}));
    else if (die < 0.4) {
      const expected = this.#seen?.body ?? null;
      const condition = this.#seen === undefined ? ({ ifNoneMatch: "*" } as const) : { ifMatch: this.#seen.etag };
      await this.#note({ kind: "put if", body, expected }, () => this.#put(body, condition));
    } else if (die < 0.48)
      await this.#note({ kind: "delete" }, async () => {
        const { versionId, deleteMarker } = await bucket.delete(key);
        return deleteMarker ? { isNull: versionId === "null" } : { isRemoval: true };
      });
    else if (die < 0.58) await this.#deleteVersion();
    else if (die < 0.66)
      await this.#note({ kind: "tag", tag: body }, async () => {
        await bucket.setTags(key, { tag: body });
        return {};
      });
    else if (die < 0.74)
      await this.#note({ kind: "tags" }, async () => {
        const { tag } = await bucket.tags(key);
        return { found: tag === undefined ? [] : [tag] };
      });
    else await this.#read(die < 0.86 ? "get" : die < 0.93 ? "list" : "list versions");
  }

  async #put(body: string, condition: { ifMatch?: string; ifNoneMatch?: "*" }): Promise<KeyOutput> {
    const { bucket, key } = this.#work;
    const { versionId } = await bucket.put(key, body, { ...condition, metadata: { body } });
    if (versionId !== "null") this.#ids.set(body, versionId);
    return { isNull: versionId === "null" };
  }

  async #deleteVersion(): Promise<void> {
    const { bucket, key, chance } = this.#work;
    const [body, versionId] = chance.pick([...this.#ids]) ?? [null, "null"];
    if (body !== null) this.#ids.delete(body);
    await this.#note({ kind: "delete version", body }, async () => {
      await bucket.delete(key, { versionId });
      return {};
    });
  }

  async #read(kind: "get" | "list" | "list versions"): Promise<void> {
    const { bucket, key } = this.#work;
    await this.#note({ kind }, async () => {
      if (kind === "get") {
        this.#seen = await findObject(bucket, key);
        return { found: this.#seen === undefined ? [] : [this.#seen.body] };
      }
      if (kind === "list") {
        const { objects } = await bucket.list({ prefix: key });
        return { found: objects.map(({ metadata }) => metadata.body ?? "") };
      }
      const found: string[] = [];
      for await (const { deleteMarker, metadata } of bucket.versions({ key }))
        found.push(deleteMarker ? "(marker)" : (metadata.body ?? ""));
      return { found };
    });
  }

  async #note(input: KeyInput, act: () => Promise<KeyOutput>): Promise<void> {
    const { name: process, now, onCall, onReturn } = this.#work;
    const called = { process, input, calledAt: now() };
    onCall?.({ ...called, returnedAt: "never" });
    try {
      const output = await act();
      onReturn({ ...called, output, returnedAt: now() });
    } catch (error) {
      if (isHoldfastError(error, "PRECONDITION_FAILED", "NO_SUCH_KEY"))
        onReturn({ ...called, output: { isRefused: true }, returnedAt: now() });
      else if (isHoldfastError(error, "OUTCOME_UNKNOWN")) onReturn({ ...called, returnedAt: "never" });
      else throw error;
    }
  }
}

async function findObject(bucket: Bucket, key: string): Promise<Seen | undefined> {
  try {
    await using object = await bucket.get(key);
    return { body: await object.text(), etag: object.etag };
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_KEY")) return undefined;
    throw error;
  }
}
