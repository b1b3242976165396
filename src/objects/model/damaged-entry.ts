// A damaged entry stands for a slot whose record cannot be read: the error of the read, and the
// fields that are still legible. It exists only in memory.
import type { HoldfastError } from "../../errors.ts";
import type { KeyEntry } from "./entry.ts";

export interface DamagedEntry {
  readonly kind: "damaged";
  readonly error: HoldfastError;
  readonly legible: LegibleFields;
}

/** An entry as a reader finds it. */
export type SlotEntry = KeyEntry | DamagedEntry;

/** A slot of a key whose record cannot be read. */
export interface DamagedSlot {
  readonly slot: number;
  readonly path: string;
  readonly entry: DamagedEntry;
}

/**
 * The fields of a damaged record that are still legible. Readers never get them: they only tell
 * which other versions the damage cannot affect. A field with a flipped bit no longer matches its
 * pattern.
 */
export interface LegibleFields {
  readonly kind?: KeyEntry["kind"];
  readonly id?: string;
  readonly key?: string;
  readonly isNull?: boolean;
}

const kindPattern = /"body":\{"kind":"(put|marker|remove|change|closed|stub)"/;
const idPattern = /"id":"([0-9a-z]{26})","key":/;
const keyPattern = /"key":("(?:[^"\\]|\\.)*"),"config":/;
// No value of metadata or tags can match, because those are texts, in which quotes are escaped.
const nullPattern = /"isNull":(true|false)/;

export function readLegible(bytes: Uint8Array): LegibleFields {
  const text = Buffer.from(bytes).toString("utf8");
  const kind = kindPattern.exec(text)?.[1] as KeyEntry["kind"] | undefined;
  const id = idPattern.exec(text)?.[1];
  const key = findText(keyPattern.exec(text)?.[1]);
  const isNull = nullPattern.exec(text)?.[1];
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(id === undefined ? {} : { id }),
    ...(key === undefined ? {} : { key }),
    ...(isNull === undefined ? {} : { isNull: isNull === "true" }),
  };
}

/**
 * True unless the record is legibly a version or a delete marker: it may have changed or removed
 * earlier versions.
 */
export function mayChangeOthers({ legible: { kind } }: DamagedEntry): boolean {
  return kind !== "put" && kind !== "marker";
}

/** True unless the record is legibly not a null version. */
export function mayBeNull({ legible: { kind, isNull } }: DamagedEntry): boolean {
  return isNull !== false && kind !== "remove" && kind !== "change";
}

function findText(json: string | undefined): string | undefined {
  try {
    return json === undefined ? undefined : (JSON.parse(json) as string);
  } catch {
    // The text itself is damaged.
    return undefined;
  }
}
