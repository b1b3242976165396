// Narrow readers for the bodies of records: each takes an unknown value and returns it typed, or
// throws.

/** The fields of a JSON object. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("not an object");
  return value as Record<string, unknown>;
}

export function textOf(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("not a text");
  return value;
}

/** Returns a non-negative whole number that JSON represents without loss. */
export function countOf(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new TypeError("not a whole number");
  return value as number;
}

export function flagOf(value: unknown): boolean {
  if (typeof value !== "boolean") throw new TypeError("neither true nor false");
  return value;
}

/** Returns one of a few words. */
export function wordOf<W extends string>(value: unknown, words: readonly W[]): W {
  const word = words.find((each) => each === value);
  if (word === undefined) throw new TypeError(`not one of ${words.join(", ")}`);
  return word;
}

export function listOf<T>(value: unknown, decode: (each: unknown) => T): T[] {
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value.map((each) => decode(each));
}
