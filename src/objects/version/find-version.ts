// Finding a version of a key: the current one, or the one with an id; and what callers are told of
// it.
import { holdfastError } from "../../errors.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { attributesOf, type KeyVersion } from "../key/key-history.ts";
import type { Checksum, PutEntry } from "../model/entry.ts";
import type { ObjectVersion } from "../model/object-store.ts";
import { findVersionName, formatVersionId, nullVersionId } from "../model/version-id.ts";

/** A key that goes and comes at each of so many looks is another process's loop. */
const attemptsMax = 100;

export interface FoundVersion {
  readonly head: KeyHead;
  readonly version: KeyVersion;
  readonly isLatest: boolean;
}

export function versionIdOf({ slot, entry }: Pick<KeyVersion, "slot" | "entry">): string {
  return entry.isNull ? nullVersionId : formatVersionId({ slot, id: entry.id });
}

/** The current version at `head`; a delete marker is one. "again": the key is another one by now. */
export async function findCurrent(
  { history }: OpenKey,
  head: KeyHead | undefined,
): Promise<KeyVersion | undefined | "again"> {
  if (head === undefined) return undefined;
  const { entry, bodyAt, number: slot } = head;
  // The usual case: the newest entry is the current version, and nothing else has to be read.
  if (entry.kind === "put" || entry.kind === "marker") return { slot, entry, bodyAt, ...attributesOf(entry) };
  // The next: it says itself which one is.
  if (entry.kind === "remove" || entry.kind === "change")
    return entry.current === 0 ? undefined : ((await history.readOne(head, entry.current)) ?? "again");
  const versions = await history.read(head);
  return versions === undefined ? "again" : versions.at(-1);
}

/**
 * The version that a caller means: with an id that one, or else the current one, also if it is a
 * delete marker. Undefined when there is none.
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
    if (found === "again") continue;
    const isLatest = versionId === undefined || (found !== undefined && (await isCurrent(key, head, found)));
    return found && { head, version: found, isLatest };
  }
  const path = key.chain.names.directory;
  const message = `${path} was removed and made again at each of ${attemptsMax} looks. Try again later.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

async function findById(key: OpenKey, head: KeyHead, versionId: string): Promise<KeyVersion | undefined | "again"> {
  const name = findVersionName(versionId);
  if (name === undefined && versionId !== nullVersionId) return undefined;
  if (name !== undefined && name.slot > head.number) return undefined;
  const versions = await key.history.read(head);
  if (versions === undefined) return "again";
  if (name === undefined) return versions.findLast(({ entry }) => entry.isNull);
  const found = key.history.find(name.slot);
  return found !== undefined && versionIdOf(found) === versionId ? found : undefined;
}

async function isCurrent(key: OpenKey, head: KeyHead, { slot }: KeyVersion): Promise<boolean> {
  const current = await findCurrent(key, head);
  return current !== "again" && current?.slot === slot;
}

/** CORRUPT when the directory has the entries of another key: it was copied or renamed. */
export function mustBeOf(name: string, { entry }: KeyHead, { chain }: OpenKey): void {
  if (entry.key === name) return;
  const path = chain.names.directory;
  const message = `${path} has entries of the key ${JSON.stringify(entry.key)}, not of ${JSON.stringify(name)}: it was copied or renamed. Move it away.`;
  throw holdfastError("CORRUPT", message, { path });
}

/** What a caller is told of a version. */
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
