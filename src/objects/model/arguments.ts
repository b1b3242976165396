// What callers give: names, options and bodies, checked before anything is done.
import { holdfastError } from "../../errors.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { checksumAlgorithms } from "./entry.ts";
import type {
  BucketConfig,
  ContentHeaders,
  DeleteItem,
  DeleteOptions,
  ObjectStoreOptions,
  Preconditions,
  PutOptions,
  ReadOptions,
  Retention,
  UploadOptions,
} from "./object-store.ts";

const keyBytesMax = 1024;
const tagsMax = 10;
const tagNameMax = 128;
const tagValueMax = 256;
/** As in S3, which counts names and values. */
const metadataBytesMax = 2 * 1024;
const headerLengthMax = 1024;
/** So much of a body may be kept in memory. */
const inlineMaxMax = 16 * 1024 * 1024;
const aclLengthMax = 16 * 1024;
const retentionDaysMax = 36_500;
/** Of every listing. */
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
  retention: true,
  legalHold: true,
  acl: true,
};
/** What an update decides itself it cannot be told. */
const updateOptionNames: OptionNames<UpdateOptions> = { ...withoutPreconditions(putOptionNames), retries: true };
const uploadOptionNames: OptionNames<UploadOptions> = withoutBodyFacts(withoutPreconditions(putOptionNames));
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

/** Of a body that comes in parts: each part has its own. */
function withoutBodyFacts(names: ReturnType<typeof withoutPreconditions>): OptionNames<UploadOptions> {
  const { size: _size, md5: _md5, ...rest } = names;
  return rest;
}

/** TypeError, RangeError. */
export function checkStoreOptions(call: string, options: ObjectStoreOptions): void {
  checkOptions(call, options, storeOptionNames);
  const { durability, inlineMax } = options;
  if (durability !== undefined && !["fsync", "none"].includes(durability))
    throw new TypeError(`${call}: durability is "fsync" or "none", not ${durability as string}.`);
  if (inlineMax !== undefined && !(Number.isInteger(inlineMax) && inlineMax >= 0 && inlineMax <= inlineMaxMax))
    throw new RangeError(`${call}: inlineMax is a whole number of bytes from 0 to ${inlineMaxMax}.`);
}

/** INVALID_NAME. */
export function checkBucketName(name: string): void {
  if (typeof name !== "string") throw new TypeError("The name of a bucket is a text.");
  if (bucketPattern.test(name) && !name.includes("..") && !/^\d+\.\d+\.\d+\.\d+$/.test(name)) return;
  const message = `The name ${JSON.stringify(name)} cannot be used for a bucket: it must have 3 to 63 characters, lower-case letters, digits, dots and hyphens, begin and end with a letter or a digit, and be no IP address.`;
  throw holdfastError("INVALID_NAME", message, { invalidName: name });
}

/** INVALID_NAME. Any text of 1 to 1,024 bytes: names on the disk are made from its hash. */
export function checkKey(key: string): void {
  if (typeof key !== "string") throw new TypeError("A key is a text.");
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

/** TypeError, RangeError, TOO_LARGE. */
export function checkPutOptions(call: string, options: PutOptions): void {
  checkOptions(call, options, putOptionNames);
  checkPreconditions(call, options);
  const { metadata = {}, tags = {}, size, md5, checksum, retention, legalHold } = options;
  for (const name of Object.keys(headerNames) as (keyof ContentHeaders)[]) {
    const value = options[name];
    if (value === undefined) continue;
    if (typeof value !== "string") throw new TypeError(`${call}: ${name} must be a text.`);
    mustFit(`${call}: ${name}`, value.length, headerLengthMax);
  }
  checkTexts(`${call}: metadata`, metadata);
  const metadataBytes = Object.entries(metadata).reduce((sum, [k, v]) => sum + Buffer.byteLength(k + v), 0);
  mustFit(`${call}: metadata`, metadataBytes, metadataBytesMax);
  checkTags(call, tags);
  if (size !== undefined && !(Number.isSafeInteger(size) && size >= 0))
    throw new RangeError(`${call}: size must be a whole number from 0.`);
  if (md5 !== undefined && typeof md5 !== "string") throw new TypeError(`${call}: md5 must be a text.`);
  if (checksum === null) throw new TypeError(`${call}: a checksum is { algorithm, value }.`);
  if (checksum !== undefined && !checksumAlgorithms.includes(checksum.algorithm))
    throw new TypeError(`${call}: a checksum is one of ${checksumAlgorithms.join(", ")}.`);
  if (retention !== undefined) checkRetention(call, retention);
  if (legalHold !== undefined && typeof legalHold !== "boolean")
    throw new TypeError(`${call}: legalHold must be true or false.`);
  if (options.acl !== undefined) checkAcl(call, options.acl);
}

/** TypeError, RangeError, TOO_LARGE. */
export function checkUpdateOptions(call: string, options: UpdateOptions): void {
  checkOptions(call, options, updateOptionNames);
  const { retries, ...put } = options;
  checkPutOptions(call, put);
  if (retries !== undefined && retries !== Infinity && !(Number.isSafeInteger(retries) && retries >= 0))
    throw new RangeError(`${call}: retries is a whole number from 0.`);
}

/** TypeError, RangeError, TOO_LARGE. */
export function checkUploadOptions(call: string, options: UploadOptions): void {
  checkOptions(call, options, uploadOptionNames);
  checkPutOptions(call, options);
}

/** What is to be copied. TypeError, INVALID_NAME. */
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

/** Of one page: these options are texts, and the limit is one. TypeError, RangeError. */
export function checkPage<O extends { limit?: number | undefined }>(
  call: string,
  options: O,
  names: readonly (keyof O & string)[],
): void {
  checkTextOptions(call, options, names);
  const { limit } = options;
  if (limit === undefined || (Number.isInteger(limit) && limit >= 0 && limit <= pageLimit)) return;
  throw new RangeError(`${call}: limit is a whole number from 0 to ${pageLimit}.`);
}

/** TypeError for an option that is no text, or no valid Unicode. */
export function checkTextOptions<O extends object>(
  call: string,
  options: O,
  names: readonly (keyof O & string)[],
): void {
  for (const name of names) {
    const value: unknown = options[name];
    if (value === undefined || (typeof value === "string" && !/\p{Surrogate}/u.test(value))) continue;
    throw new TypeError(`${call}: ${name} is a text of valid Unicode.`);
  }
}

/** What a bucket is to have. TypeError, RangeError. */
export function checkSettings(call: string, settings: Partial<BucketConfig>): void {
  const { objectLock, tags, documents, defaultRetention } = settings;
  if (objectLock !== undefined && typeof objectLock !== "boolean")
    throw new TypeError(`${call}: objectLock is true or false.`);
  if (tags !== undefined) checkTexts(`${call}: tags`, tags);
  if (documents !== undefined) checkTexts(`${call}: documents`, documents);
  if (defaultRetention === undefined) return;
  if (defaultRetention === null) throw new TypeError(`${call}: defaultRetention is { mode, days }, or undefined.`);
  checkOptions(`${call}: defaultRetention`, defaultRetention, { mode: true, days: true });
  const { mode, days } = defaultRetention;
  checkMode(call, mode);
  if (!Number.isInteger(days) || days < 1 || days > retentionDaysMax)
    throw new RangeError(`${call}: the days of a retention are a whole number from 1 to ${retentionDaysMax}.`);
}

export function checkAcl(call: string, acl: string): void {
  if (typeof acl !== "string") throw new TypeError(`${call}: acl must be a text.`);
  mustFit(`${call}: acl`, acl.length, aclLengthMax);
}

/** Of a part of an upload. TypeError, RangeError. */
export function checkPartOptions(
  call: string,
  options: Pick<PutOptions, "size" | "md5" | "checksum" | "signal">,
): void {
  checkOptions(call, options, { size: true, md5: true, checksum: true, signal: true });
  checkPutOptions(call, options);
}

export function checkReadOptions(call: string, options: ReadOptions): void {
  checkOptions(call, options, readOptionNames);
  const { versionId, range } = options;
  if (versionId !== undefined && typeof versionId !== "string") throw new TypeError(`${call}: versionId is a text.`);
  if (range === undefined) return;
  checkOptions(`${call}: range`, range, { start: true, end: true });
  const { start, end } = range;
  if (!Number.isSafeInteger(start) || (end !== undefined && !(Number.isSafeInteger(end) && end >= 0)))
    throw new RangeError(`${call}: start and end of a range are whole numbers.`);
}

/** One of many, which may say how it is to be deleted. */
export function checkDeleteItem(call: string, item: DeleteItem): void {
  checkOptions(call, item, deleteItemNames);
  if (item === undefined) throw new TypeError(`${call} takes a list of { key, versionId, ifMatch }.`);
}

export function checkDeleteOptions(call: string, options: DeleteOptions): void {
  checkOptions(call, options, deleteOptionNames);
  const { versionId, ifMatch, ifSize, ifLastModified } = options;
  if (versionId !== undefined && typeof versionId !== "string") throw new TypeError(`${call}: versionId is a text.`);
  if (ifMatch !== undefined && typeof ifMatch !== "string") throw new TypeError(`${call}: ifMatch is a text.`);
  if (ifSize !== undefined && !(Number.isSafeInteger(ifSize) && ifSize >= 0))
    throw new RangeError(`${call}: ifSize is a whole number of bytes.`);
  if (ifLastModified !== undefined && !(ifLastModified instanceof Date && !Number.isNaN(ifLastModified.getTime())))
    throw new TypeError(`${call}: ifLastModified is a Date.`);
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
    throw new TypeError(`${call}: a retention lasts until a Date.`);
  if (until.getTime() < 0) throw new RangeError(`${call}: a retention lasts until a Date from 1970 on.`);
}

function checkMode(call: string, mode: Retention["mode"]): void {
  if (mode !== "governance" && mode !== "compliance")
    throw new TypeError(`${call}: the mode of a retention is "governance" or "compliance".`);
}

export function checkPreconditions(call: string, { ifMatch, ifNoneMatch, ifVersion }: Preconditions): void {
  if (ifMatch !== undefined && typeof ifMatch !== "string") throw new TypeError(`${call}: ifMatch is a text.`);
  if (ifVersion !== undefined && typeof ifVersion !== "string") throw new TypeError(`${call}: ifVersion is a text.`);
  if (ifNoneMatch !== undefined && ifNoneMatch !== "*") throw new TypeError(`${call}: ifNoneMatch can only be "*".`);
  if (ifNoneMatch !== undefined && (ifMatch !== undefined || ifVersion !== undefined))
    throw new TypeError(`${call}: ifNoneMatch cannot be true together with ifMatch or ifVersion.`);
}

function checkTexts(what: string, texts: Readonly<Record<string, string>>): void {
  if (typeof texts !== "object" || texts === null) throw new TypeError(`${what} must be an object.`);
  for (const [name, text] of Object.entries(texts))
    if (typeof text !== "string") throw new TypeError(`${what}: ${JSON.stringify(name)} must be a text.`);
}

function mustFit(what: string, actual: number, limit: number): void {
  if (actual <= limit) return;
  throw holdfastError("TOO_LARGE", `${what}: ${actual} is over the limit of ${limit}.`, { limit, actual });
}
