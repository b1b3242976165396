// Checks a caller's events before they are queued: a mistake of one caller must not affect another.
import type { NewEvent } from "../../common.ts";
import { holdfastError, messageOf } from "../../errors.ts";
import { distinct, isList } from "./query.ts";
import { findJsonLoss, isDeeperThan } from "../../format/json-loss.ts";
import type { EventBody } from "./stored-event.ts";

const eventsMax = 10_000;
const tagsMax = 1_000;
const textMax = 1_000;
/** `jq` reads 256 levels; the stack overflows far above that. */
const depthMax = 200;
// Characters that break a line for `grep`, or hide text from a person.
// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/**
 * Throws a TypeError for a value that is not an event or a list of events, TOO_LARGE, or EVENT_INVALID with the
 * issues.
 */
export function checkEvents(events: NewEvent | readonly NewEvent[]): readonly NewEvent[] {
  const list: readonly NewEvent[] = isList(events) ? events : [events];
  if (list.length === 0) throw new TypeError("There is nothing to append: the list of events is empty.");
  if (list.length > eventsMax) throw tooMany("events in one append", eventsMax, list.length);
  for (const event of list) checkEvent(event);
  if (list.length > 1) checkIds(list);
  return list;
}

function checkIds(list: readonly NewEvent[]): void {
  const seen = new Set<string>();
  for (const { id } of list) {
    if (id === undefined) continue;
    if (seen.has(id)) throw invalidEvent(list[0]?.type ?? "", [`the id ${JSON.stringify(id)} is given twice`]);
    seen.add(id);
  }
}

function checkEvent(event: NewEvent): void {
  if (typeof event !== "object" || event === null) throw new TypeError("An event is { type, data, tags?, … }.");
  const { type, tags, metadata, id } = event;
  if (typeof type !== "string") throw new TypeError("The type of an event must be a string.");
  const issues: string[] = [];
  checkText(type, "the type", issues);
  checkTagTexts(type, tags, issues);
  if (id !== undefined) checkText(id, "the id", issues);
  if (metadata !== undefined && (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)))
    issues.push("metadata must be an object");
  if (issues.length > 0) throw invalidEvent(type, issues);
}

/** Returns the tags without duplicates. Throws EVENT_INVALID, TOO_LARGE. */
export function checkTags(type: string, tags: readonly string[]): readonly string[] {
  const issues: string[] = [];
  checkTagTexts(type, tags, issues);
  if (issues.length > 0) throw invalidEvent(type, issues);
  return distinct(tags);
}

function checkTagTexts(type: string, tags: unknown, issues: string[]): void {
  if (tags === undefined) return;
  if (!Array.isArray(tags)) return void issues.push("tags must be a list of strings");
  if (tags.length > tagsMax) throw tooMany(`tags on one ${shorten(type)}`, tagsMax, tags.length);
  for (const tag of tags) checkText(tag, "a tag", issues);
}

/** Adds a message to `issues` for each fault of the text. */
function checkText(text: unknown, what: string, issues: string[]): void {
  if (typeof text !== "string") issues.push(`${what} must be a string`);
  else if (text === "") issues.push(`${what} is empty`);
  else if (text.length > textMax) issues.push(`${what} has ${text.length} characters; the limit is ${textMax}`);
  else if (control.test(text)) issues.push(`${what} ${JSON.stringify(shorten(text))} contains a control character`);
}

/** Returns the JSON of a body. Throws EVENT_INVALID for data that JSON cannot represent. */
export function jsonOf(type: string, body: EventBody): string {
  let text: string;
  let isThere: boolean;
  try {
    text = JSON.stringify(body);
    // A fast check for JSON that begins with `data`, as it usually does.
    isThere = text.startsWith('{"data":') || JSON.stringify(body.data) !== undefined;
  } catch (cause) {
    throw invalidEvent(type, [`its data is not JSON: ${messageOf(cause)}`], cause);
  }
  // Check this before anything recursive, which uses stack for each level.
  if (isDeeperThan(text, depthMax)) throw invalidEvent(type, [`it is nested over ${depthMax} levels deep`]);
  if (!isThere) throw invalidEvent(type, [`its data is ${typeof body.data}, which JSON does not have; use null`]);
  const loss = findJsonLoss(body.data, "data") ?? findJsonLoss(body.metadata, "metadata");
  if (loss !== undefined) throw invalidEvent(type, [`${loss}, which JSON does not have`]);
  return text;
}

export function invalidEvent(type: string, issues: readonly string[], cause?: unknown): Error {
  const message = `An event of type ${JSON.stringify(shorten(type))} cannot be appended: ${issues.slice(0, 10).join("; ")}.`;
  return holdfastError("EVENT_INVALID", message, { type, issues }, cause);
}

function tooMany(what: string, limit: number, actual: number): Error {
  return holdfastError("TOO_LARGE", `There are ${actual} ${what}; the limit is ${limit}.`, { limit, actual });
}

function shorten(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}
