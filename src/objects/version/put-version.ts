// Putting a version: the body is staged once, and its record is linked behind the newest entry of
// its key.
import type { Body } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { attributesOf, type KeyVersion } from "../key/key-history.ts";
import type { PutEntry, StoredRetention } from "../model/entry.ts";
import type { ContentHeaders, ObjectVersion, PutOptions } from "../model/object-store.ts";
import { appendEntry } from "./append-entry.ts";
import { describe, findCurrent } from "./find-version.ts";
import { hasPreconditions, mustMeet, type Wanted } from "./preconditions.ts";
import { discardBody, stageBody, type StagedBody } from "./stage-body.ts";

const dayMs = 86_400_000;

/** What a version says beside its body. */
export type VersionFacts = Pick<PutEntry, "headers" | "metadata" | "tags" | "retention" | "legalHold" | "acl">;

export interface PutRequest {
  readonly key: string;
  readonly facts: VersionFacts;
  readonly preconditions: Wanted;
  /** Finds this very version if it was put before: then nothing is added. Throws when it must not be put any more. */
  readonly findPlaced?: ((head: KeyHead | undefined, open: OpenKey) => Promise<KeyVersion | undefined>) | undefined;
}

/** Called before a life of a key begins, so that a listing knows of it. */
export type Announce = (bucket: OpenBucket, key: string, incarnation: string) => Promise<void>;

/**
 * `open` gives the bucket as it is at that moment. It is asked when the body is complete: what holds
 * then decides whether the put adds a version, however long its body took.
 */
export async function putBody(
  open: () => Promise<OpenBucket>,
  request: PutRequest,
  body: Body,
  options: Pick<PutOptions, "size" | "md5" | "checksum" | "signal"> & { readonly inlineMax: number },
  announce: Announce,
): Promise<ObjectVersion> {
  let holding: OpenBucket | undefined;
  const holdBody = async (): Promise<OpenBucket> => (holding = await open());
  const staged = await stageBody(holdBody, request.key, body, options, options.inlineMax);
  if (holding === undefined) {
    options.signal?.throwIfAborted();
    return await putStaged(await open(), request, staged, announce);
  }
  try {
    options.signal?.throwIfAborted();
    await holding.readAgain();
    return await putStaged(holding, request, staged, announce);
  } catch (error) {
    // When it is not known whether a version names the body, it stays.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) await discardBody(holding, staged);
    throw error;
  }
}

/** PRECONDITION_FAILED, NO_SUCH_KEY, NO_SUCH_BUCKET, OUTCOME_UNKNOWN. */
export async function putStaged(
  bucket: OpenBucket,
  { key, facts, preconditions, findPlaced }: PutRequest,
  { inline, temp, ...body }: StagedBody,
  announce: Announce,
  id: string = bucket.place.newId(),
): Promise<ObjectVersion> {
  const isJudged = hasPreconditions(preconditions) || findPlaced !== undefined;
  return await bucket.useKey(key, async (open) => {
    let placed: KeyVersion | undefined;
    let isLatest = false;
    const judge = async (head: KeyHead | undefined): Promise<"go on" | "again" | undefined> => {
      placed = await findPlaced?.(head, open);
      const current = await findCurrent(open, head);
      if (current === "again") return current;
      isLatest = placed !== undefined && current?.slot === placed.slot;
      if (placed !== undefined) return undefined;
      mustMeet(key, current, preconditions);
      return "go on";
    };
    const make = (): PutEntry => ({ ...putEntryOf(bucket, key, facts, id), ...body });
    const added = await appendEntry(
      bucket,
      key,
      open,
      { judge: isJudged ? judge : undefined, make, inline, temp },
      { isJudged, announce: (incarnation) => announce(bucket, key, incarnation) },
    );
    if (added === undefined && placed !== undefined) return describe(placed, isLatest);
    if (added === undefined) throw new Error("A put always adds an entry.");
    const { head, before } = added;
    const entry = head.entry as PutEntry;
    if (entry.isNull) await discardSuperseded(bucket, before);
    return describe({ slot: head.number, entry, bodyAt: head.bodyAt, ...attributesOf(entry) }, true);
  });
}

function putEntryOf(
  bucket: OpenBucket,
  key: string,
  facts: VersionFacts,
  id: string,
): Omit<PutEntry, keyof StagedBody> & { readonly size: number; readonly etag: string } {
  const { place, state, settings } = bucket;
  if (facts.retention !== undefined || facts.legalHold === true) bucket.mustLock();
  const atMs = place.nowMs();
  const { retention = defaultRetention(settings.defaultRetention, atMs), ...rest } = facts;
  return {
    kind: "put",
    id,
    key,
    config: state.number,
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
 * The null version right before this one is gone for good, and its files with it. Older ones are
 * left to a collection.
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

/** The facts that a caller gives with a body. */
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
