// Checks that a line is well-formed. Its checksum only proves that it is what a writer wrote.
import { messageOf } from "../../errors.ts";
import { isUtf8 } from "node:buffer";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { lineBytesMax, type Line, type Retag, type StoredCondition } from "../log/format/line.ts";
import type { EventBody, EventHead } from "../model/stored-event.ts";

const payloadMark = ',"payload":[';

/** Throws a TypeError or SyntaxError that names the fault. `line` is whole and ends in a newline. */
export function decodeStrictly(line: Uint8Array): Line {
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.length);
  if (bytes.length > lineBytesMax) throw new TypeError(`it has ${bytes.length} bytes; the limit is ${lineBytesMax}`);
  if (!isUtf8(bytes)) throw new TypeError("it is not UTF-8");
  // Cut where an index cuts the line. If both parts are JSON, the whole is, and a reader of the first part alone gets
  // the same values.
  const cut = bytes.indexOf(payloadMark);
  if (cut < 0) throw new TypeError("it has no payload");
  const head = objectOf(parse(`${bytes.toString("utf8", 0, cut)}}`));
  const rest = objectOf(parse(`{${bytes.toString("utf8", cut + 1)}`));
  if (Object.keys(rest).join() !== "payload,crc") throw new TypeError("it has more than a checksum after its payload");
  const events = said("events", () => listOf(head.events, eventHeadOf));
  const payload = said("payload", () => listOf(rest.payload, eventBodyOf));
  if (events.length !== payload.length)
    throw new TypeError(`it has ${events.length} event(s) and ${payload.length} payload(s)`);
  const retag = head.retag === undefined ? undefined : said("retag", () => retagOf(head.retag));
  if (events.length === 0 && retag === undefined) throw new TypeError("it has neither events nor tags");
  const condition = head.condition === undefined ? undefined : said("condition", () => conditionOf(head.condition));
  return {
    first: said("first", () => positionOf(head.first)),
    time: said("time", () => timeOf(head.time)),
    ...(condition === undefined ? {} : { condition }),
    ...(retag === undefined ? {} : { retag }),
    events,
    payload,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("it is not JSON");
  }
}

function said<T>(field: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    throw new TypeError(`its "${field}" is ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function eventHeadOf(value: unknown): EventHead {
  const { type, tags, id, given } = objectOf(value);
  const head = { type: nameOf(type), tags: listOf(tags, nameOf), id: nameOf(id) };
  if (given === undefined) return head;
  if (given !== true) throw new TypeError("malformed: given must be true, or absent");
  return { ...head, given };
}

function eventBodyOf(value: unknown): EventBody {
  const body = objectOf(value);
  if (!Object.hasOwn(body, "data")) throw new TypeError("without data");
  if (body.metadata !== undefined) objectOf(body.metadata);
  if (body.version !== undefined) countOf(body.version);
  return body as unknown as EventBody;
}

function conditionOf(value: unknown): StoredCondition {
  const { if: items, after } = objectOf(value);
  const decoded = listOf(items, (item) => {
    const { types, tags } = objectOf(item);
    return { types: listOf(types, textOf), tags: listOf(tags, textOf) };
  });
  if (decoded.length === 0) throw new TypeError("empty");
  return after === undefined ? { if: decoded } : { if: decoded, after: countOf(after) };
}

function retagOf(value: unknown): Retag {
  const { positions, tags } = objectOf(value);
  const retag = { positions: listOf(positions, positionOf), tags: listOf(tags, nameOf) };
  if (retag.positions.length === 0 || retag.tags.length === 0) throw new TypeError("empty");
  return retag;
}

function nameOf(value: unknown): string {
  if (textOf(value) === "") throw new TypeError("an empty string");
  return value as string;
}

function positionOf(value: unknown): number {
  if (countOf(value) === 0) throw new TypeError("0, which is before all events");
  return value as number;
}

function timeOf(value: unknown): string {
  if (Number.isNaN(Date.parse(textOf(value)))) throw new TypeError("not a time");
  return value as string;
}
