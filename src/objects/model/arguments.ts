// Checks the names, options and bodies that callers pass, before anything is done.
import { holdfastError } from "../../errors.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { findPortableFault } from "../../format/name.ts";
import type { Disk } from "../../ports/disk.ts";
import { checksumAlgorithms } from "./entry.ts";
import type {
  BodyOption,
  BucketConfig,
  ContentHeaders,
  DeleteItem,
  DeleteOptions,
  Preconditions,
  PutOptions,
  ReadOptions,
  Retention,
  UploadOptions,
} from "./object.ts";
import type { ObjectStoreOptions } from "./object-store.ts";

const keyBytesMax = 1024;
const tagsMax = 10;
const tagNameMax = 128;
const tagValueMax = 256;
/** As in S3, which counts names and values. */
const metadataBytesMax = 2 * 1024;
const headerLengthMax = 1024;
/** Upper bound of `inlineMax`: how much of a body may be kept in memory. */
const inlineMaxMax = 16 * 1024 * 1024;
const aclLengthMax = 16 * 1024;
const retentionDaysMax = 36_500;
/** Default and maximum page size of every listing. */
export const pageLimit = 1000;
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

const headerNames: OptionNames<ContentHeaders> = {
  contentType: true,
  contentEncoding: true,
  contentDisposition: true,
  contentLanguage: true,
  cacheControl: true,
  expires: true,
};
export const preconditionNames: OptionNames<Preconditions> = { ifMatch: true, ifNoneMatch: true, ifVersion: true };
export const putOptionNames: OptionNames<PutOptions> = {
  ...headerNames,
  ...preconditionNames,
  signal: true,
  metadata: true,
  tags: true,
  size: true,
  md5: true,
  checksum: true,
  check: true,
  retention: true,
  legalHold: true,
  acl: true,
};
/** An update sets its own preconditions, so it accepts none. */
const updateOptionNames: OptionNames<UpdateOptions> = { ...withoutPreconditions(putOptionNames), retries: true };
const uploadOptionNames: OptionNames<UploadOptions> = {
  ...withoutBodyFacts(withoutPreconditions(putOptionNames)),
  initiator: true,
};
const sourceNames = { bucket: true, key: true, versionId: true } as const;
const readOptionNames: OptionNames<ReadOptions> = { signal: true, versionId: true, range: true };
const deleteOptionNames: OptionNames<DeleteOptions> = {
  signal: true,
  versionId: true,
  ifMatch: true,
  ifSize: true,
  ifLastModified: true,
  bypassGovernance: true,
};

const storeOptionNames: OptionNames<ObjectStoreOptions> = {
  create: true,
  id: true,
  durability: true,
  inlineMax: true,
};
const deleteItemNames: OptionNames<DeleteItem> = {
  key: true,
  versionId: true,
  ifMatch: true,
  ifSize: true,
  ifLastModified: true,
  bypassGovernance: true,
};

type UpdateOptions = Omit<PutOptions, keyof Preconditions> & { retries?: number | undefined };

function withoutPreconditions(names: OptionNames<PutOptions>): OptionNames<Omit<PutOptions, keyof Preconditions>> {
  const { ifMatch: _match, ifNoneMatch: _noneMatch, ifVersion: _version, ...rest } = names;
  return rest;
}

/** The options of an upload lack those of a body: each part of an upload has its own. */
function withoutBodyFacts(
  names: ReturnType<typeof withoutPreconditions>,
): OptionNames<Omit<UploadOptions, "initiator">> {
  const { size: _size, md5: _md5, check: _check, ...rest } = names;
  return rest;
}

/** Throws TypeError or RangeError. */
export function checkStoreOptions(call: string, options: ObjectStoreOptions): void {
  checkOptions(call, options, storeOptionNames);
  const { durability, inlineMax } = options;
  if (durability !== undefined && !["fsync", "none"].includes(durability))
    throw new TypeError(`${call}: durability is "fsync" or "none", not ${durability as string}.`);
  if (inlineMax !== undefined && !(Number.isInteger(inlineMax) && inlineMax >= 0 && inlineMax <= inlineMaxMax))
    throw new RangeError(`${call}: inlineMax must be a whole number of bytes from 0 to ${inlineMaxMax}.`);
}

/** Throws INVALID_NAME where Windows would take the directory of the bucket for a device. */
export function checkNewBucketName(name: string, { volume }: Disk): void {
  checkBucketName(name);
  const fault = volume.hasWindowsNames ? findPortableFault(name) : undefined;
  if (fault === undefined) return;
  const message = `The name ${JSON.stringify(name)} cannot be used for a bucket on this disk: ${fault}.`;
  throw holdfastError("INVALID_NAME", message, { invalidName: name });
}

/** Throws INVALID_NAME. */
export function checkBucketName(name: string): void {
  if (typeof name !== "string") throw new TypeError("A bucket name must be a string.");
  if (bucketPattern.test(name) && !name.includes("..") && !/^\d+\.\d+\.\d+\.\d+$/.test(name)) return;
  const message = `The name ${JSON.stringify(name)} cannot be used for a bucket: it must have 3 to 63 characters, lower-case letters, digits, dots and hyphens, begin and end with a letter or a digit, and must not be an IP address.`;
  throw holdfastError("INVALID_NAME", message, { invalidName: name });
}

/**
 * Throws INVALID_NAME. A key is any text of 1 to 1,024 bytes, because names on the disk come from
 * its hash.
 */
export function checkKey(key: string): void {
  if (typeof key !== "string") throw new TypeError("A key must be a string.");
  const size = Buffer.byteLength(key);
  const fault =
    size === 0
      ? "it is empty"
      : size > keyBytesMax
        ? `it has ${size} bytes, and ${keyBytesMax} is the limit`
        : /\p{Surrogate}/u.test(key)
          ? "it is not valid Unicode"
          : undefined;
  if (fault === undefined) return;
  const message = `The key ${JSON.stringify(key.slice(0, 100))} cannot be used: ${fault}.`;
  throw holdfastError("INVALID_NAME", message, { invalidName: key });
}

/** Throws TypeError, RangeError or TOO_LARGE. */
export function checkPutOptions(call: string, options: PutOptions): void {
  checkOptions(call, options, putOptionNames);
  checkPreconditions(call, options);
  const { metadata = {}, tags = {}, size, md5, checksum, check, retention, legalHold } = options;
  for (const name of Object.keys(headerNames) as (keyof ContentHeaders)[]) {
    const value = options[name];
    if (value === undefined) continue;
    if (typeof value !== "string") throw new TypeError(`${call}: ${name} must be a string.`);
    mustFit(`${call}: ${name}`, value.length, headerLengthMax);
  }
  checkTexts(`${call}: metadata`, metadata);
  const metadataBytes = Object.entries(metadata).reduce((sum, [k, v]) => sum + Buffer.byteLength(k + v), 0);
  mustFit(`${call}: metadata`, metadataBytes, metadataBytesMax);
  checkTags(call, tags);
  if (size !== undefined && !(Number.isSafeInteger(size) && size >= 0))
    throw new RangeError(`${call}: size must be a whole number from 0.`);
  if (md5 !== undefined && typeof md5 !== "string") throw new TypeError(`${call}: md5 must be a string.`);
  if (check !== undefined && typeof check !== "function") throw new TypeError(`${call}: check must be a function.`);
  if (checksum === null) throw new TypeError(`${call}: a checksum is { algorithm, value }.`);
  if (checksum !== undefined && !checksumAlgorithms.includes(checksum.algorithm))
    throw new TypeError(`${call}: a checksum is one of ${checksumAlgorithms.join(", ")}.`);
  if (retention !== undefined) checkRetention(call, retention);
  if (legalHold !== undefined && typeof legalHold !== "boolean")
    throw new TypeError(`${call}: legalHold must be true or false.`);
  if (options.acl !== undefined) checkAcl(call, options.acl);
}

/** Throws TypeError, RangeError or TOO_LARGE. */
export function checkUpdateOptions(call: string, options: UpdateOptions): void {
  checkOptions(call, options, updateOptionNames);
  const { retries, ...put } = options;
  checkPutOptions(call, put);
  if (retries !== undefined && retries !== Infinity && !(Number.isSafeInteger(retries) && retries >= 0))
    throw new RangeError(`${call}: retries must be a whole number from 0.`);
}

/** Throws TypeError, RangeError or TOO_LARGE. */
export function checkUploadOptions(call: string, options: UploadOptions): void {
  checkOptions(call, options, uploadOptionNames);
  const { initiator, ...rest } = options;
  checkPutOptions(call, rest);
  if (initiator === undefined) return;
  if (typeof initiator !== "string") throw new TypeError(`${call}: initiator must be a string.`);
  mustFit(`${call}: initiator`, initiator.length, headerLengthMax);
}

/** Checks the source of a copy. Throws TypeError or INVALID_NAME. */
export function checkSource(call: string, from: CopySource, hasRange = false): void {
  if (typeof from !== "object" || from === null) throw new TypeError(`${call} takes { bucket, key, versionId } first.`);
  const names: OptionNames<CopySource & { range?: unknown }> = { ...sourceNames, range: true };
  if (hasRange) checkOptions(`${call}: from`, from, names);
  else checkOptions(`${call}: from`, from, sourceNames);
  checkTextOptions(`${call}: from`, from, ["versionId"]);
  checkKey(from.key);
  if (from.bucket !== undefined) checkBucketName(from.bucket);
}

interface CopySource {
  bucket?: string | undefined;
  key: string;
  versionId?: string | undefined;
}

/**
 * Checks the options of one page: `names` must be texts, and the limit must be valid. Throws
 * TypeError or RangeError.
 */
export function checkPage<O extends { limit?: number | undefined }>(
  call: string,
  options: O,
  names: readonly (keyof O & string)[],
): void {
  checkTextOptions(call, options, names);
  const { limit } = options;
  if (limit === undefined || (Number.isInteger(limit) && limit >= 0 && limit <= pageLimit)) return;
  throw new RangeError(`${call}: limit must be a whole number from 0 to ${pageLimit}.`);
}

/** Throws TypeError for an option that is not a text or not valid Unicode. */
export function checkTextOptions<O extends object>(
  call: string,
  options: O,
  names: readonly (keyof O & string)[],
): void {
  for (const name of names) {
    const value: unknown = options[name];
    if (value === undefined || (typeof value === "string" && !/\p{Surrogate}/u.test(value))) continue;
    throw new TypeError(`${call}: ${name} must be a string of valid Unicode.`);
  }
}

/** Checks the settings of a bucket. Throws TypeError or RangeError. */
export function checkSettings(call: string, settings: Partial<BucketConfig>): void {
  const { objectLock, tags, documents, defaultRetention } = settings;
  if (objectLock !== undefined && typeof objectLock !== "boolean")
    throw new TypeError(`${call}: objectLock must be true or false.`);
  if (tags !== undefined) checkTexts(`${call}: tags`, tags);
  if (documents !== undefined) checkTexts(`${call}: documents`, documents);
  if (defaultRetention === undefined) return;
  if (defaultRetention === null) throw new TypeError(`${call}: defaultRetention is { mode, days }, or undefined.`);
  checkOptions(`${call}: defaultRetention`, defaultRetention, { mode: true, days: true });
  const { mode, days } = defaultRetention;
  checkMode(call, mode);
  if (!Number.isInteger(days) || days < 1 || days > retentionDaysMax)
    throw new RangeError(`${call}: days of a retention must be a whole number from 1 to ${retentionDaysMax}.`);
}

export function checkAcl(call: string, acl: string): void {
  if (typeof acl !== "string") throw new TypeError(`${call}: acl must be a string.`);
  mustFit(`${call}: acl`, acl.length, aclLengthMax);
}

/** Checks the options of a part of an upload. Throws TypeError or RangeError. */
export function checkPartOptions(call: string, options: Pick<PutOptions, BodyOption | "signal">): void {
  checkOptions(call, options, { size: true, md5: true, checksum: true, check: true, signal: true });
  checkPutOptions(call, options);
}

export function checkReadOptions(call: string, options: ReadOptions): void {
  checkOptions(call, options, readOptionNames);
  const { versionId, range } = options;
  if (versionId !== undefined && typeof versionId !== "string")
    throw new TypeError(`${call}: versionId must be a string.`);
  if (range === undefined) return;
  checkOptions(`${call}: range`, range, { start: true, end: true });
  const { start, end } = range;
  if (!Number.isSafeInteger(start) || (end !== undefined && !(Number.isSafeInteger(end) && end >= 0)))
    throw new RangeError(`${call}: start and end of a range must be whole numbers.`);
}

/** Checks one item of `deleteMany`, which may have its own options. */
export function checkDeleteItem(call: string, item: DeleteItem): void {
  checkOptions(call, item, deleteItemNames);
  if (item === undefined) throw new TypeError(`${call} takes a list of { key, versionId, ifMatch }.`);
}

export function checkDeleteOptions(call: string, options: DeleteOptions): void {
  checkOptions(call, options, deleteOptionNames);
  const { versionId, ifMatch, ifSize, ifLastModified } = options;
  if (versionId !== undefined && typeof versionId !== "string")
    throw new TypeError(`${call}: versionId must be a string.`);
  if (ifMatch !== undefined && typeof ifMatch !== "string") throw new TypeError(`${call}: ifMatch must be a string.`);
  if (ifSize !== undefined && !(Number.isSafeInteger(ifSize) && ifSize >= 0))
    throw new RangeError(`${call}: ifSize must be a whole number of bytes.`);
  if (ifLastModified !== undefined && !(ifLastModified instanceof Date && !Number.isNaN(ifLastModified.getTime())))
    throw new TypeError(`${call}: ifLastModified must be a Date.`);
}

export function checkTags(call: string, tags: Readonly<Record<string, string>>): void {
  checkTexts(`${call}: tags`, tags);
  const names = Object.keys(tags);
  mustFit(`${call}: number of tags`, names.length, tagsMax);
  for (const name of names) {
    mustFit(`${call}: name of a tag`, name.length, tagNameMax);
    mustFit(`${call}: value of a tag`, tags[name]?.length ?? 0, tagValueMax);
  }
}

export function checkRetention(call: string, retention: Retention): void {
  if (typeof retention !== "object" || retention === null)
    throw new TypeError(`${call}: a retention is { mode, until }.`);
  checkOptions(`${call}: retention`, retention, { mode: true, until: true });
  const { mode, until } = retention;
  checkMode(call, mode);
  if (!(until instanceof Date) || Number.isNaN(until.getTime()))
    throw new TypeError(`${call}: until of a retention must be a Date.`);
  if (until.getTime() < 0) throw new RangeError(`${call}: until of a retention must not be before 1970.`);
}

function checkMode(call: string, mode: Retention["mode"]): void {
  if (mode !== "governance" && mode !== "compliance")
    throw new TypeError(`${call}: the mode of a retention is "governance" or "compliance".`);
}

export function checkPreconditions(call: string, { ifMatch, ifNoneMatch, ifVersion }: Preconditions): void {
  if (ifMatch !== undefined && typeof ifMatch !== "string") throw new TypeError(`${call}: ifMatch must be a string.`);
  if (ifVersion !== undefined && typeof ifVersion !== "string")
    throw new TypeError(`${call}: ifVersion must be a string.`);
  if (ifNoneMatch !== undefined && typeof ifNoneMatch !== "string")
    throw new TypeError(`${call}: ifNoneMatch must be a string.`);
  if (ifNoneMatch === "*" && (ifMatch !== undefined || ifVersion !== undefined))
    throw new TypeError(`${call}: ifNoneMatch: "*" cannot be combined with ifMatch or ifVersion.`);
}

function checkTexts(what: string, texts: Readonly<Record<string, string>>): void {
  if (typeof texts !== "object" || texts === null) throw new TypeError(`${what} must be an object.`);
  for (const [name, text] of Object.entries(texts))
    if (typeof text !== "string") throw new TypeError(`${what}: ${JSON.stringify(name)} must be a string.`);
}

function mustFit(what: string, actual: number, limit: number): void {
  if (actual <= limit) return;
  throw holdfastError("TOO_LARGE", `${what}: ${actual} is over the limit of ${limit}.`, { limit, actual });
}
