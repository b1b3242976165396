// A put, from the call to its answer:
//
//   body      read and hash it; above `inlineMax` it goes to a file in bodies/,
//             synced                                                           stage-body.ts
//   settings  read them: they apply as of now, when the body is complete       bucket/open-bucket.ts
//   newest    find the newest entry of the key                                 key/key-head.ts
//   judge     check the conditions against that entry                          preconditions.ts
//   stage     the new entry, with a small body inside, synced
//   announce  a new key only: listings find it                                 listing/announcements.ts
//   link      the entry under the next number: the version exists              key/key-slots.ts
//   sync      the directory of the link; check that the key still exists
//   answer    the version id
//
// `KeyChain.append` repeats the steps from newest to sync: a put that loses the number judges again
// and links again, but uploads and stages once.
import type { Body } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { mustLock, type OpenBucket } from "../bucket/open-bucket.ts";
import { nothing, retry } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { attributesOf, type KeyVersion } from "../key/key-versions.ts";
import type { PutEntry, StoredRetention } from "../model/entry.ts";
import type { BucketConfig, ContentHeaders, ObjectVersion, PutOptions } from "../model/object.ts";
import { describe, findCurrent, isCurrent } from "./find-version.ts";
import { hasPreconditions, mustMeet, type WriteConditions } from "./preconditions.ts";
import { discardBody, stageBody, type DeclaredBody, type StagedBody } from "./stage-body.ts";

const dayMs = 86_400_000;

/** The attributes of a version besides its body. */
export type VersionFacts = Pick<PutEntry, "headers" | "metadata" | "tags" | "retention" | "legalHold" | "acl">;

export interface PutRequest {
  readonly key: string;
  readonly facts: VersionFacts;
  readonly preconditions: WriteConditions;
  /**
   * Finds the version if an earlier try has put it; then nothing is added. Throws if it must not be
   * put any more.
   */
  readonly findExisting?: ((head: KeyHead | undefined, open: OpenKey) => Promise<KeyVersion | undefined>) | undefined;
}

/** Announces a new life of a key before it begins, so that listings find the key. */
export type AnnounceKey = (bucket: OpenBucket, key: string, incarnation: string) => Promise<void>;

/**
 * `open` returns the bucket's current state. Throws PRECONDITION_FAILED, BAD_DIGEST, NO_SUCH_BUCKET
 * or OUTCOME_UNKNOWN.
 */
export async function putBody(
  open: () => Promise<OpenBucket>,
  request: PutRequest,
  body: Body,
  options: DeclaredBody & { readonly inlineMax: number },
  announce: AnnounceKey,
): Promise<ObjectVersion> {
  const { staged, holding } = await stageBody(open, request.key, body, options);
  try {
    options.signal?.throwIfAborted();
    const bucket = holding ?? (await open());
    await holding?.readAgain();
    return await putStaged(bucket, request, staged, announce);
  } catch (error) {
    // After OUTCOME_UNKNOWN, a version may name the body, so the body stays.
    if (holding !== undefined && !isHoldfastError(error, "OUTCOME_UNKNOWN")) await discardBody(holding, staged);
    throw error;
  }
}

/** Throws PRECONDITION_FAILED, NO_SUCH_KEY, NO_SUCH_BUCKET or OUTCOME_UNKNOWN. */
export async function putStaged(
  bucket: OpenBucket,
  { key, facts, preconditions, findExisting }: PutRequest,
  { inline, stageIn, ...body }: StagedBody,
  announce: AnnounceKey,
  id: string = bucket.storage.newId(),
): Promise<ObjectVersion> {
  const hasConditions = hasPreconditions(preconditions);
  return await bucket.useKey(key, async (open) => {
    let slot: ObjectVersion | undefined;
    let replaced: KeyHead | undefined;
    let entry: PutEntry | undefined;
    const added = await bucket.append(
      key,
      open,
      async (newest) => {
        const found = await findExisting?.(newest, open);
        if (found !== undefined) {
          slot = describe(found, await isCurrent(open, newest, found));
          return nothing;
        }
        // Without a condition, an unreadable entry does not block a put.
        if (hasConditions) {
          const current = await findCurrent(open, newest);
          if (current === "replaced") return retry;
          mustMeet(key, current, preconditions);
        }
        replaced = newest;
        // Staged once, unless the settings change.
        if (entry?.config !== bucket.state.number) {
          const { name, settings, state, storage } = bucket;
          const put = putEntryOf({ name, settings, config: state.number, nowMs: storage.nowMs() }, key, facts, id);
          entry = { ...put, ...body };
        }
        return { add: { entry, inline, stageIn } };
      },
      {
        isJudged: hasConditions || findExisting !== undefined,
        announce: (incarnation) => announce(bucket, key, incarnation),
      },
    );
    if (slot !== undefined) return slot;
    if (added === undefined || entry === undefined) throw new Error("A put always adds an entry.");
    if (entry.isNull) await discardSuperseded(bucket, replaced);
    return describe({ slot: added.number, entry, bodyAt: added.bodyAt, ...attributesOf(entry) }, true);
  });
}

/** What a put needs to know of its bucket. */
export interface PutSettings {
  readonly name: string;
  readonly settings: BucketConfig;
  /** The number of the configuration. */
  readonly config: number;
  readonly nowMs: number;
}

/** Returns the entry of a put, without its body. Throws a TypeError for a retention in a bucket without object lock. */
export function putEntryOf(
  { name, settings, config, nowMs: atMs }: PutSettings,
  key: string,
  facts: VersionFacts,
  id: string,
): Omit<PutEntry, keyof StagedBody> & { readonly size: number; readonly etag: string } {
  if (facts.retention !== undefined || facts.legalHold === true) mustLock(name, settings);
  const { retention = defaultRetention(settings.defaultRetention, atMs), ...rest } = facts;
  return {
    kind: "put",
    id,
    key,
    config,
    atMs,
    isNull: settings.versioning !== "enabled",
    size: 0,
    etag: "",
    ...rest,
    ...(retention === undefined ? {} : { retention }),
  };
}

function defaultRetention(
  rule: { readonly mode: StoredRetention["mode"]; readonly days: number } | undefined,
  atMs: number,
): StoredRetention | undefined {
  return rule && { mode: rule.mode, untilMs: atMs + rule.days * dayMs };
}

/**
 * Removes the files of the null version that this put replaced. Files of older ones are left to a
 * collection.
 */
async function discardSuperseded(bucket: OpenBucket, before: KeyHead | undefined): Promise<void> {
  const { entry } = before ?? {};
  if (entry?.kind === "put" && entry.isNull) await discardBody(bucket, entry);
}

const headerNames = [
  "contentType",
  "contentEncoding",
  "contentDisposition",
  "contentLanguage",
  "cacheControl",
  "expires",
] as const satisfies readonly (keyof ContentHeaders)[];

/** The attributes that a caller passes with a body. */
export function factsOf(options: PutOptions): VersionFacts {
  const { metadata = {}, tags = {}, retention, legalHold, acl } = options;
  const headers: Record<string, string> = {};
  for (const name of headerNames) if (options[name] !== undefined) headers[name] = options[name];
  return {
    headers,
    metadata: { ...metadata },
    tags: { ...tags },
    ...(retention === undefined ? {} : { retention: { mode: retention.mode, untilMs: retention.until.getTime() } }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(acl === undefined ? {} : { acl }),
  };
}
