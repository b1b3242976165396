// Copying an object: its body is read and put as a new version, in the same bucket or another one.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { PutEntry } from "../model/entry.ts";
import type { CopyOptions, ObjectVersion } from "../model/object-store.ts";
import { versionIdOf } from "./find-version.ts";
import { failed, matches } from "./preconditions.ts";
import { factsOf, putBody, type Announce, type VersionFacts } from "./put-version.ts";
import { getVersion, openObject } from "./read-version.ts";

export interface CopySource {
  bucket?: string | undefined;
  key: string;
  versionId?: string | undefined;
}

export interface CopyWork {
  readonly source: OpenBucket;
  readonly from: CopySource;
  /** The bucket to copy to, as it is at that moment. */
  readonly open: () => Promise<OpenBucket>;
  readonly to: string;
  readonly inlineMax: number;
  readonly announce: Announce;
}

/** NO_SUCH_KEY, NO_SUCH_VERSION of the source; PRECONDITION_FAILED of either; BAD_DIGEST. */
export async function copyObject(work: CopyWork, options: CopyOptions): Promise<ObjectVersion> {
  const { source, from, open, to, inlineMax, announce } = work;
  const { version } = await getVersion(source, from.key, { versionId: from.versionId });
  const { sourceIfMatch, sourceIfNoneMatch, attributes = "copy" } = options;
  if (attributes !== "copy" && attributes !== "replace")
    throw new TypeError(`copy: attributes is "copy" or "replace", not ${String(attributes)}.`);
  if (sourceIfMatch !== undefined && !matches(version, sourceIfMatch))
    throw failed(from.key, version, `its ETag is not ${sourceIfMatch}`);
  if (sourceIfNoneMatch !== undefined && matches(version, sourceIfNoneMatch))
    throw failed(from.key, version, `its ETag is ${sourceIfNoneMatch}`);
  const entry = version.entry as PutEntry;
  const given = factsOf(options);
  const facts: VersionFacts =
    attributes === "replace"
      ? given
      : { ...given, headers: entry.headers, metadata: entry.metadata, tags: version.tags };
  // The very version that was judged, also if a newer one has come since.
  const object = await openObject(source, from.key, { versionId: versionIdOf(version) });
  try {
    const checksum = options.checksum ?? (entry.checksum && { algorithm: entry.checksum.algorithm });
    const { size = object.size, md5, signal } = options;
    const declared = { size, md5, checksum, signal, inlineMax };
    return await putBody(open, { key: to, facts, preconditions: options }, object.stream(), declared, announce);
  } finally {
    await object[Symbol.asyncDispose]();
  }
}
