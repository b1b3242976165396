// The configuration of a bucket, a rolling chain: which incarnation is the living one, and what
// holds in it. Each state has a number, which entries of keys carry.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { retryIfSwept } from "../../durable/publish/staging.ts";
import { countOf, flagOf, listOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import { textsOf } from "../model/entry.ts";
import type { BucketConfig, LifecycleRule, Versioning } from "../model/object-store.ts";
import type { ObjectsPlace } from "./objects-place.ts";

/** So many changes are remembered by their ids, for a process that slept during its own. */
const idsMax = 16;

export interface ConfigState {
  /** Grows with each change, over all incarnations. */
  readonly number: number;
  /** Undefined: there is no such bucket. */
  readonly incarnation?: string;
  readonly createdAtMs: number;
  readonly settings: BucketConfig;
  /** Of the last changes. */
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
  readonly #place: ObjectsPlace;
  readonly #chain: RollingChain<ConfigState>;

  private constructor(place: ObjectsPlace, chain: RollingChain<ConfigState>) {
    this.#place = place;
    this.#chain = chain;
  }

  static async open(place: ObjectsPlace, directory: string): Promise<ConfigChain> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<ConfigState>(place.staging, directory, {
        kind: configKind,
        initial: { number: 0, createdAtMs: 0, settings: defaultSettings, ids: [] },
        // Unknown when more has changed since than is remembered.
        counts: async ({ ids }, id) => (ids.includes(id) ? true : undefined),
        slotsPerEpoch: 64,
        bootId: place.ground.ports.host.bootId,
      }),
    );
    return new ConfigChain(place, chain);
  }

  async read(): Promise<ConfigState> {
    return (await this.#chain.read()).state;
  }

  /** The state that `change` makes of the newest one, or the newest one when it gives undefined. */
  async change(
    change: (state: ConfigState) => Omit<ConfigState, "number" | "ids"> | undefined,
  ): Promise<ConfigState | undefined> {
    const id = this.#place.newId();
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
const modes = ["governance", "compliance"] as const;

function settingsOf(value: unknown): BucketConfig {
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
