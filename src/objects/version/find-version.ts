// Finds a version of a key, by its id or the current one, and describes it to callers.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { mustBeOf, type OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import {
  attributesOf,
  currentIn,
  findDamagedNull,
  isDamaged,
  type KeyContent,
  type KeyVersion,
} from "../key/key-versions.ts";
import type { DamagedEntry, DamagedSlot, LegibleFields } from "../model/damaged-entry.ts";
import type { Checksum, PutEntry } from "../model/entry.ts";
import type { ObjectVersion } from "../model/object.ts";
import { findVersionName, formatVersionId, nullVersionId } from "../model/version-id.ts";

/**
 * How often a search is repeated because the key was replaced. Beyond that, another process
 * replaces it in a loop.
 */
const attemptsMax = 100;

export interface FoundVersion {
  readonly head: KeyHead;
  readonly version: KeyVersion;
  readonly isLatest: boolean;
}

/** The id of the version in a damaged slot, if it is legible. */
export function findIdOf(slot: number, { id, isNull }: LegibleFields): string | undefined {
  if (isNull === true) return nullVersionId;
  return id === undefined || isNull === undefined ? undefined : formatVersionId({ slot, id });
}

export function versionIdOf({ slot, entry }: Pick<KeyVersion, "slot" | "entry">): string {
  return entry.isNull ? nullVersionId : formatVersionId({ slot, id: entry.id });
}

/**
 * Returns the current version at `head`, which may be a delete marker. "replaced": the key was
 * replaced. Throws if an unreadable entry may be the current version: an older one is never
 * returned in its place.
 */
export async function findCurrent(
  { history }: OpenKey,
  head: KeyHead | undefined,
): Promise<KeyVersion | undefined | "replaced"> {
  if (head === undefined) return undefined;
  const { entry, bodyAt, number: slot } = head;
  // The usual case: the newest entry is the current version, and nothing else is read.
  if (entry.kind === "put" || entry.kind === "marker") return { slot, entry, bodyAt, ...attributesOf(entry) };
  // The next most common case: the newest entry names the slot of the current version.
  if (entry.kind === "remove" || entry.kind === "change")
    return entry.current === 0 ? undefined : ((await history.readOne(head, entry.current)) ?? "replaced");
  const content = await history.read(head);
  if (content === undefined) return "replaced";
  return mustBeReadable(currentIn(content));
}

/** Throws for a damaged slot: it is unknown which version is current. */
export function mustBeReadable(current: KeyVersion | DamagedSlot | undefined): KeyVersion | undefined {
  if (isDamaged(current)) throw currentUnknown(current.entry);
  return current;
}

function currentUnknown({ error }: DamagedEntry): Error {
  if (!isHoldfastError(error, "CORRUPT")) return error;
  const message = `${error.message} Until then it is unknown which version is current: get the others by their ids, or put a new one.`;
  return holdfastError("CORRUPT", message, { path: error.path }, error);
}

/**
 * Returns the version with this id, or the current one, even if it is a delete marker. Undefined if
 * there is none.
 */
export async function findVersion(
  key: OpenKey,
  name: string,
  versionId: string | undefined,
): Promise<FoundVersion | undefined> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const head = await key.chain.findHead();
    if (head === undefined) return undefined;
    mustBeOf(name, head, key);
    const found = versionId === undefined ? await findCurrent(key, head) : await findById(key, head, versionId);
    if (found === "replaced") continue;
    const isLatest = versionId === undefined || (found !== undefined && (await isCurrent(key, head, found)));
    return found && { head, version: found, isLatest };
  }
  const path = key.chain.names.directory;
  const message = `${path} was removed and created again during each of ${attemptsMax} attempts. Try again later.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

async function findById(key: OpenKey, head: KeyHead, versionId: string): Promise<KeyVersion | undefined | "replaced"> {
  const name = findVersionName(versionId);
  if (name === undefined && versionId !== nullVersionId) return undefined;
  if (name !== undefined && name.slot > head.number) return undefined;
  const content = await key.history.read(head);
  if (content === undefined) return "replaced";
  const { versions } = content;
  const damaged = findDamagedSlotOf(content, versionId);
  if (damaged !== undefined) throw damaged.entry.error;
  if (name === undefined) return versions.findLast(({ entry }) => entry.isNull);
  return versions.find((each) => versionIdOf(each) === versionId);
}

/** Returns the damaged slot that may hold the version with this id. */
export function findDamagedSlotOf(content: KeyContent, versionId: string): DamagedSlot | undefined {
  const name = findVersionName(versionId);
  if (name !== undefined) return content.damaged.find(({ slot }) => slot === name.slot);
  return versionId === nullVersionId ? findDamagedNull(content) : undefined;
}

/**
 * True if this is the current version. False if the newest entry cannot be read: then it is unknown
 * which one is.
 */
export async function isCurrent(key: OpenKey, head: KeyHead | undefined, { slot }: KeyVersion): Promise<boolean> {
  if (head === undefined || head.number === slot) return true;
  const content = await key.history.read(head);
  return content !== undefined && currentIn(content)?.slot === slot;
}

/** Describes a version to callers. */
export function describe(version: KeyVersion, isLatest: boolean): ObjectVersion {
  const { entry, retention, legalHold, acl } = version;
  const tagCount = Object.keys(version.tags).length;
  const shared = {
    key: entry.key,
    versionId: versionIdOf(version),
    lastModified: new Date(entry.atMs),
    isLatest,
  };
  if (entry.kind === "marker") return { ...shared, etag: "", size: 0, deleteMarker: true, headers: {}, metadata: {} };
  return {
    ...shared,
    etag: entry.etag,
    size: entry.size,
    deleteMarker: false,
    ...contentTypeOf(entry),
    headers: entry.headers,
    metadata: entry.metadata,
    ...checksumOf(entry.checksum),
    ...(retention === undefined ? {} : { retention: { mode: retention.mode, until: new Date(retention.untilMs) } }),
    ...(legalHold === undefined ? {} : { legalHold }),
    ...(tagCount === 0 ? {} : { tagCount }),
    ...(acl === undefined ? {} : { acl }),
    ...partSizesOf(entry),
  };
}

function partSizesOf({ partRuns }: PutEntry): Pick<ObjectVersion, "partSizes"> {
  if (partRuns === undefined) return {};
  return { partSizes: partRuns.flatMap(({ size, count }) => Array.from({ length: count }, () => size)) };
}

function contentTypeOf({ headers }: PutEntry): { readonly contentType?: string } {
  return headers.contentType === undefined ? {} : { contentType: headers.contentType };
}

function checksumOf(checksum: Checksum | undefined): { readonly checksum?: Checksum } {
  return checksum === undefined ? {} : { checksum };
}

export function noSuchKey(key: string, marker?: string): Error {
  const message =
    marker === undefined
      ? `There is no object ${JSON.stringify(key)}.`
      : `The object ${JSON.stringify(key)} was deleted: its current version ${marker} is a delete marker. Get an older version by its id, or delete the marker.`;
  return holdfastError("NO_SUCH_KEY", message, { key, ...(marker === undefined ? {} : { deleteMarker: marker }) });
}

export function noSuchVersion(key: string, versionId: string): Error {
  const message = `The object ${JSON.stringify(key)} has no version ${JSON.stringify(versionId)}. List its versions.`;
  return holdfastError("NO_SUCH_VERSION", message, { key, versionId });
}
