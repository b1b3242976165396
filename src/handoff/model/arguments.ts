// What a producer asks for, checked before anything is written: a mistake is a TypeError, RangeError or
// INVALID_NAME that names it.
import type { Body, Cancel } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { findJsonLoss, isDeeperThan } from "../../format/json-loss.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { Publication } from "../publish/publisher.ts";
import { priorityDefault, priorityMax } from "./manifest.ts";

export type Files = Readonly<Record<string, Body>>;

export interface PublishOptions extends Cancel {
  /** Idempotency key. A second publish with it makes no second delivery. Default: the id. */
  key?: string | undefined;
  /** Tickets of one group are worked in order, one at a time, on all machines together. */
  group?: string | undefined;
  /** 0 first … 9 last. Default 5. */
  priority?: number | undefined;
  delayMs?: number | undefined;
  /** Not delivered after this; goes to `error` as expired. */
  expiresMs?: number | undefined;
  /** Record count per file name. */
  records?: Readonly<Record<string, number>> | undefined;
  contentTypes?: Readonly<Record<string, string>> | undefined;
  /** JSON. */
  meta?: unknown;
}

const nameBytesMax = 200;
const filesMax = 10_000;
const textMax = 1024;
/** As events have it. */
const depthMax = 200;
/** About 3,000 years: later times are no times that a Date can have. */
const durationMsMax = 1e14;
/** What some file system refuses in a name, or takes for something else. */
const forbidden = /[\p{Cc}\p{Surrogate}\\/:*?"<>|]/u;
const reserved = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;

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
      throw new TypeError(`records and contentTypes name ${JSON.stringify(name)}, which is no file of this ticket.`);
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

/** TypeError. Half of a pair of surrogates would be written as another text than it was. */
export function checkText(what: string, text: unknown): void {
  if (typeof text === "string" && text !== "" && text.length <= textMax && !/\p{Surrogate}/u.test(text)) return;
  throw new TypeError(`${what} must be a text of 1 to ${textMax} characters.`);
}

/** Names stay as they are, so they must be names on every file system, and different on those that ignore case. */
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

/** INVALID_NAME. */
export function checkFileName(name: string): void {
  if (name === "" || name === "." || name === "..") throw invalidName(name, "it is no name of a file");
  if (Buffer.byteLength(name) > nameBytesMax) throw invalidName(name, `it is longer than ${nameBytesMax} bytes`);
  if (forbidden.test(name)) throw invalidName(name, "it has a character that some file systems refuse");
  if (/[. ]$/.test(name)) throw invalidName(name, "Windows drops a dot or a space at its end");
  if (reserved.test(name)) throw invalidName(name, "Windows keeps it for a device");
  if (name !== name.normalize("NFC")) throw invalidName(name, "it is not in the Unicode form NFC");
}

function isBody(body: unknown): body is Body {
  if (typeof body === "string" || body instanceof Uint8Array) return true;
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

/**
 * What a reader will get, so that a change of the caller's object later changes nothing. `what` names the call and the
 * argument. TypeError for what JSON does not have.
 */
export function asJson(what: string, value: unknown): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
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
