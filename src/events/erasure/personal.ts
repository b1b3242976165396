// Marking what is personal: such a value gets into a log encrypted with the key of its subject, or not at all.
import type { Erased } from "./erased.ts";

declare const marked: unique symbol;

/**
 * The type of a personal value in an event: `type Registered = NewEvent<"Registered", { customer: string; name: Personal<string> }>`. A reader gets the value, or
 * learns that it was erased; a writer who forgets `personal` is told by the compiler.
 */
export type Personal<T> = Erased | (T extends null | undefined ? T : T & Marked);
/** Exists for the compiler only. */
interface Marked {
  readonly [marked]: true;
}

const subjectMax = 1_000;

/**
 * Marks `value` (any JSON) as personal data of `subject`, anywhere inside `data` or `metadata` of an event that is appended to a store with `keys`. The subject itself is
 * stored in clear: take an id that says nothing ("customer:4711"), never a name or an address.
 */
export function personal<T extends string | number | boolean | object | null>(subject: string, value: T): Personal<T> {
  checkSubject(subject);
  return new PersonalValue(subject, value) as unknown as Personal<T>;
}

/** TypeError, RangeError. */
export function checkSubject(subject: string): void {
  if (typeof subject !== "string" || subject === "") throw new TypeError("A subject is a text that is not empty.");
  if (subject.length > subjectMax)
    throw new RangeError(`A subject has at most ${subjectMax} characters, not ${subject.length}.`);
}

/** Private all through: it shows neither in a log of the program nor in an error that prints it. */
export class PersonalValue {
  readonly #subject: string;
  readonly #value: unknown;

  constructor(subject: string, value: unknown) {
    this.#subject = subject;
    this.#value = value;
  }

  get subject(): string {
    return this.#subject;
  }

  get value(): unknown {
    return this.#value;
  }

  /** What takes the place of a marked value before it is stored is the codec. Whoever comes here would have stored it in clear. */
  toJSON(): never {
    throw new TypeError(
      "personal() values are stored only by an event store that was opened with `keys`, in plain objects and lists, and not inside each other",
    );
  }
}
