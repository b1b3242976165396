// Copies an object: reads the body and puts it as a new version, in the same bucket or another.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { KeyVersion } from "../key/key-versions.ts";
import type { PutEntry } from "../model/entry.ts";
import type { CopyOptions, ObjectVersion } from "../model/object.ts";
import { versionIdOf } from "./find-version.ts";
import { failed, matches } from "./preconditions.ts";
import { factsOf, putBody, type AnnounceKey, type VersionFacts } from "./put-version.ts";
import type { DeclaredBody } from "./stage-body.ts";
import { getVersion, openObject } from "./read-version.ts";

export interface CopySource {
  bucket?: string | undefined;
  key: string;
  versionId?: string | undefined;
}

export interface CopyWork {
  readonly source: OpenBucket;
  readonly from: CopySource;
  /** Opens the target bucket in its current state. */
  readonly open: () => Promise<OpenBucket>;
  readonly to: string;
  readonly inlineMax: number;
  readonly announce: AnnounceKey;
}

/**
 * Throws NO_SUCH_KEY or NO_SUCH_VERSION for the source, PRECONDITION_FAILED for either, and
 * BAD_DIGEST.
 */
export async function copyObject(work: CopyWork, options: CopyOptions): Promise<ObjectVersion> {
  const { source, from, open, to, inlineMax, announce } = work;
  const { version } = await getVersion(source, from.key, { versionId: from.versionId });
  const { facts, declared } = copyOf(from.key, version, options);
  // Opens exactly the version that was checked, even if a newer one exists by now.
  const object = await openObject(source, from.key, { versionId: versionIdOf(version) });
  try {
    return await putBody(
      open,
      { key: to, facts, preconditions: options },
      object.stream(),
      { ...declared, inlineMax },
      announce,
    );
  } finally {
    await object[Symbol.asyncDispose]();
  }
}

/**
 * Returns what a copy of this version has besides its body, and what the body must be. Throws
 * PRECONDITION_FAILED for the conditions on the source.
 */
export function copyOf(
  key: string,
  version: KeyVersion,
  options: CopyOptions,
): { readonly facts: VersionFacts; readonly declared: DeclaredBody } {
  const { sourceIfMatch, sourceIfNoneMatch, attributes = "copy" } = options;
  if (attributes !== "copy" && attributes !== "replace")
    throw new TypeError(`copy: attributes is "copy" or "replace", not ${String(attributes)}.`);
  if (sourceIfMatch !== undefined && !matches(version, sourceIfMatch))
    throw failed(key, version, `its ETag is not ${sourceIfMatch}`);
  if (sourceIfNoneMatch !== undefined && matches(version, sourceIfNoneMatch))
    throw failed(key, version, `its ETag is ${sourceIfNoneMatch}`);
  const entry = version.entry as PutEntry;
  const given = factsOf(options);
  const copied = { ...given, headers: entry.headers, metadata: entry.metadata, tags: version.tags };
  const { size = entry.size, md5, check, signal } = options;
  const checksum = options.checksum ?? (entry.checksum && { algorithm: entry.checksum.algorithm });
  return { facts: attributes === "replace" ? given : copied, declared: { size, md5, checksum, check, signal } };
}
