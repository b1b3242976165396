// The configuration of a bucket is a rolling chain. Its newest state names the living incarnation
// and has its settings. Each state has a number, which the entries of keys carry.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { retryIfSwept } from "../../durable/publish/staging.ts";
import { countOf, flagOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { RecordKind } from "../../format/record.ts";
import { checkSettings } from "../model/arguments.ts";
import { textsOf } from "../model/entry.ts";
import type { BucketConfig, LifecycleRule, Versioning } from "../model/object.ts";
import type { ObjectsStorage } from "./objects-storage.ts";

/**
 * How many ids of changes a state keeps. With them, a process that slept during its own change can
 * tell whether it was made.
 */
const idsMax = 16;

export interface ConfigState {
  /** Grows with each change. A new incarnation continues the numbers. */
  readonly number: number;
  /** Undefined: the bucket does not exist. */
  readonly incarnation?: string;
  readonly createdAtMs: number;
  readonly settings: BucketConfig;
  /** Ids of the last changes, oldest first. */
  readonly ids: readonly string[];
}

export const defaultSettings: BucketConfig = {
  versioning: "off",
  objectLock: false,
  lifecycle: [],
  tags: {},
  documents: {},
};

export class ConfigChain {
  readonly #storage: ObjectsStorage;
  readonly #chain: RollingChain<ConfigState>;

  private constructor(storage: ObjectsStorage, chain: RollingChain<ConfigState>) {
    this.#storage = storage;
    this.#chain = chain;
  }

  static async open(storage: ObjectsStorage, directory: string): Promise<ConfigChain> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<ConfigState>(storage.staging, directory, {
        kind: configKind,
        initial: { number: 0, createdAtMs: 0, settings: defaultSettings, ids: [] },
        // True if the change with this id was made. Undefined if unknown: more changes may have
        // followed than a state keeps.
        counts: async ({ ids }, id) => (ids.includes(id) ? true : undefined),
        slotsPerEpoch: 64,
        bootId: storage.ground.ports.host.bootId,
      }),
    );
    return new ConfigChain(storage, chain);
  }

  async read(): Promise<ConfigState> {
    return (await this.#chain.read()).state;
  }

  /**
   * Appends the state that `change` derives from the newest one, and returns it. If `change`
   * returns undefined, nothing is appended.
   */
  async change(
    change: (state: ConfigState) => Omit<ConfigState, "number" | "ids"> | undefined,
  ): Promise<ConfigState | undefined> {
    const id = this.#storage.newId();
    const entry = await retryIfSwept(() =>
      this.#chain.append(id, (state) => {
        const next = change(state);
        return next && { ...next, number: state.number + 1, ids: [...state.ids, id].slice(-idsMax) };
      }),
    );
    return entry?.state;
  }
}

const configKind: RecordKind<ConfigState> = {
  kind: "bucket",
  decode: (value) => {
    const { number, incarnation, createdAtMs, settings, ids } = objectOf(value);
    return {
      number: countOf(number),
      ...(incarnation === undefined ? {} : { incarnation: textOf(incarnation) }),
      createdAtMs: countOf(createdAtMs),
      settings: settingsOf(settings),
      ids: listOf(ids, textOf),
    };
  },
};

export const versionings: readonly Versioning[] = ["off", "enabled", "suspended"];
/** Returns the settings of a new bucket. Throws TypeError. */
export function newSettings(options: {
  versioning?: Versioning | undefined;
  objectLock?: boolean | undefined;
}): BucketConfig {
  checkOptions("createBucket", options, { versioning: true, objectLock: true });
  const { objectLock = false, versioning = objectLock ? "enabled" : "off" } = options;
  if (!versionings.includes(versioning))
    throw new TypeError(`versioning is one of ${versionings.join(", ")}, not ${versioning as string}.`);
  checkSettings("createBucket", { objectLock });
  if (objectLock && versioning !== "enabled") throw new TypeError("Object lock needs versioning to be enabled.");
  return { ...defaultSettings, versioning, objectLock };
}

const modes = ["governance", "compliance"] as const;

export function settingsOf(value: unknown): BucketConfig {
  const { versioning, objectLock, defaultRetention, lifecycle, tags, documents } = objectOf(value);
  return {
    versioning: wordOf(versioning, versionings),
    objectLock: flagOf(objectLock),
    ...(defaultRetention === undefined ? {} : { defaultRetention: defaultRetentionOf(defaultRetention) }),
    lifecycle: listOf(lifecycle, ruleOf),
    tags: textsOf(tags),
    documents: textsOf(documents),
  };
}

function defaultRetentionOf(value: unknown): NonNullable<BucketConfig["defaultRetention"]> {
  const { mode, days } = objectOf(value);
  return { mode: wordOf(mode, modes), days: countOf(days) };
}

function ruleOf(value: unknown): LifecycleRule {
  const { id, prefix, tags, bytesAbove, bytesBelow, ...does } = objectOf(value);
  const { expireDays, expireAtMs, noncurrent, abortUploadsDays, removeLoneMarkers } = does;
  return {
    ...(id === undefined ? {} : { id: textOf(id) }),
    ...(prefix === undefined ? {} : { prefix: textOf(prefix) }),
    ...(tags === undefined ? {} : { tags: textsOf(tags) }),
    ...(bytesAbove === undefined ? {} : { bytesAbove: countOf(bytesAbove) }),
    ...(bytesBelow === undefined ? {} : { bytesBelow: countOf(bytesBelow) }),
    ...(expireDays === undefined ? {} : { expireDays: countOf(expireDays) }),
    ...(expireAtMs === undefined ? {} : { expireAtMs: countOf(expireAtMs) }),
    ...(noncurrent === undefined ? {} : { noncurrent: noncurrentOf(noncurrent) }),
    ...(abortUploadsDays === undefined ? {} : { abortUploadsDays: countOf(abortUploadsDays) }),
    ...(removeLoneMarkers === undefined ? {} : { removeLoneMarkers: flagOf(removeLoneMarkers) }),
  };
}

function noncurrentOf(value: unknown): NonNullable<LifecycleRule["noncurrent"]> {
  const { days, keep } = objectOf(value);
  return {
    ...(days === undefined ? {} : { days: countOf(days) }),
    ...(keep === undefined ? {} : { keep: countOf(keep) }),
  };
}
