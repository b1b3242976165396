// Checks a producer's arguments before anything is written. A mistake throws a TypeError,
// RangeError or INVALID_NAME that names it.
import type { Body, Cancel } from "../../common.ts";
import { holdfastError, messageOf } from "../../errors.ts";
import { findJsonLoss, isDeeperThan } from "../../format/json-loss.ts";
import { checkOptions } from "../../format/known-options.ts";
import { findPortableFault } from "../../format/name.ts";
import { priorityDefault, priorityMax } from "./manifest.ts";
import type { Publication } from "./publication.ts";

/** The files of a ticket: a body for each file name. */
export type Files = Readonly<Record<string, Body>>;

/** Options of `publish`. */
export interface PublishOptions extends Cancel {
  /** Idempotency key. A second publish with the same key adds no second delivery. Default: the id. */
  key?: string | undefined;
  /** Tickets of one group are delivered in order, one at a time across all machines. Default: none. */
  group?: string | undefined;
  /** 0 is delivered first, 9 last. Default 5. */
  priority?: number | undefined;
  /** Delays the delivery. Default 0. */
  delayMs?: number | undefined;
  /**
   * A ticket that was not delivered within this time becomes a dead letter with the outcome
   * `expired`. Default: never.
   */
  expiresMs?: number | undefined;
  /** Record count by file name, for the manifest. Default: none. */
  records?: Readonly<Record<string, number>> | undefined;
  /** Content type by file name, for the manifest. Default: none. */
  contentTypes?: Readonly<Record<string, string>> | undefined;
  /** JSON that the consumer receives with the ticket. Default: none. */
  meta?: unknown;
}

const nameBytesMax = 200;
const filesMax = 10_000;
const textMax = 1024;
/** The same limit as for events. */
const depthMax = 200;
/** About 3,000 years. A `Date` cannot hold much later times. */
const durationMsMax = 1e14;

export function checkPublication(files: Files, options: PublishOptions = {}): Publication {
  checkOptions("publish", options, {
    key: true,
    group: true,
    priority: true,
    delayMs: true,
    expiresMs: true,
    records: true,
    contentTypes: true,
    meta: true,
    signal: true,
  });
  const { key, group, priority = priorityDefault, delayMs, expiresMs, records = {}, contentTypes = {}, meta } = options;
  const bodies = checkFiles(files);
  for (const [what, text] of [["key", key] as const, ["group", group] as const])
    if (text !== undefined) checkText(what, text);
  if (!(Number.isInteger(priority) && priority >= 0 && priority <= priorityMax))
    throw new RangeError(`priority must be a whole number from 0 to ${priorityMax}, not ${priority}.`);
  for (const [what, ms] of [["delayMs", delayMs] as const, ["expiresMs", expiresMs] as const])
    if (ms !== undefined && !(Number.isFinite(ms) && ms >= 0 && ms <= durationMsMax))
      throw new RangeError(`${what} must be a number of milliseconds from 0 to ${durationMsMax}, not ${ms}.`);
  for (const [what, byName] of [["records", records] as const, ["contentTypes", contentTypes] as const])
    if (typeof byName !== "object" || byName === null)
      throw new TypeError(`${what} must be an object: a value for each file name.`);
  for (const name of [...Object.keys(records), ...Object.keys(contentTypes)])
    if (!Object.hasOwn(files, name))
      throw new TypeError(`records and contentTypes name ${JSON.stringify(name)}, which is not a file of this ticket.`);
  for (const [name, count] of Object.entries(records))
    if (!(Number.isSafeInteger(count) && count >= 0))
      throw new RangeError(`records of ${JSON.stringify(name)} must be a whole number from 0, not ${count}.`);
  for (const [name, type] of Object.entries(contentTypes)) checkText(`contentTypes of ${JSON.stringify(name)}`, type);
  return {
    bodies,
    facts: {
      priority,
      ...(group === undefined ? {} : { group }),
      ...(meta === undefined ? {} : { meta: asJson("publish: meta", meta) }),
    },
    key,
    records,
    contentTypes,
    delayMs,
    expiresMs,
    signal: options.signal,
  };
}

/** Throws a TypeError. A lone surrogate is refused: encoding it as UTF-8 would change the text. */
export function checkText(what: string, text: unknown): void {
  if (!isText(text)) throw new TypeError(`${what} must be a text of 1 to ${textMax} characters.`);
}

export function isText(text: unknown): text is string {
  return typeof text === "string" && text !== "" && text.length <= textMax && !/\p{Surrogate}/u.test(text);
}

/**
 * Checks the file names. Files keep their names, so each name must be valid on every file system,
 * and unique even where case is ignored.
 */
function checkFiles(files: Files): (readonly [string, Body])[] {
  if (typeof files !== "object" || files === null || Array.isArray(files) || files instanceof Uint8Array)
    throw new TypeError("files must be an object: a body for each file name.");
  const bodies = Object.entries(files);
  if (bodies.length === 0) throw new TypeError("A ticket hands over at least one file.");
  if (bodies.length > filesMax)
    throw holdfastError("TOO_LARGE", `A ticket has at most ${filesMax} files, not ${bodies.length}.`, {
      limit: filesMax,
      actual: bodies.length,
    });
  const folded = new Set<string>();
  for (const [name, body] of bodies) {
    checkFileName(name);
    const key = name.toLowerCase();
    if (folded.has(key)) throw invalidName(name, "another file has the same name but for upper and lower case");
    folded.add(key);
    if (!isBody(body))
      throw new TypeError(`The body of ${JSON.stringify(name)} must be a text, bytes, or an async iterable of bytes.`);
  }
  return bodies;
}

/** Throws INVALID_NAME. */
export function checkFileName(name: string): void {
  if (name === "" || name === "." || name === "..") throw invalidName(name, "it is not a file name");
  if (Buffer.byteLength(name) > nameBytesMax) throw invalidName(name, `it is longer than ${nameBytesMax} bytes`);
  const fault = findPortableFault(name);
  if (fault !== undefined) throw invalidName(name, fault);
  if (name !== name.normalize("NFC")) throw invalidName(name, "it is not in the Unicode form NFC");
}

function isBody(body: unknown): body is Body {
  if (typeof body === "string" || body instanceof Uint8Array) return true;
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

/**
 * Returns the value as readers will get it: a copy, so later changes to the caller's object have no
 * effect. `what` names the call and the argument. Throws a TypeError for values that JSON cannot
 * represent.
 */
export function asJson(what: string, value: unknown): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const why = messageOf(cause);
    throw new TypeError(`${what} is not JSON: ${why}.`, { cause });
  }
  if (text === undefined) throw new TypeError(`${what} is a ${typeof value}, which JSON does not have.`);
  if (isDeeperThan(text, depthMax)) throw new TypeError(`${what} is nested over ${depthMax} levels deep.`);
  const loss = findJsonLoss(value, what);
  if (loss !== undefined) throw new TypeError(`${loss}, which JSON does not have.`);
  return JSON.parse(text) as unknown;
}

function invalidName(name: string, fault: string): Error {
  const shown = name.length <= nameBytesMax ? name : `${name.slice(0, nameBytesMax)}…`;
  return holdfastError("INVALID_NAME", `The file name ${JSON.stringify(shown)} cannot be used: ${fault}.`, {
    invalidName: name,
  });
}
