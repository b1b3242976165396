// Personal data in events: how a caller marks it, and what a reader gets once it was forgotten.
import { createHmac } from "node:crypto";
import { holdfastError } from "../../errors.ts";

declare const marked: unique symbol;

/**
 * The type of a personal value in an event: `type Registered = NewEvent<"Registered", { customer:
 * string; name: Personal<string> }>`. A reader gets the value, or `Erased`. A writer that forgets
 * `personal` does not compile.
 */
export type Personal<T> = Erased | (T extends null | undefined ? T : T & Marked);
/** Exists for the compiler only. */
interface Marked {
  readonly [marked]: true;
}

/**
 * What a reader gets in place of a personal value whose key is gone. Plain JSON, so that a read
 * model can keep it.
 */
export interface Erased {
  readonly $erased: true;
  /** The subject of the value. */
  readonly subject: string;
}

const subjectMax = 1_000;
const secretBytesMin = 16;

/**
 * Marks `value` (any JSON) as personal data of `subject`, anywhere inside `data` or `metadata` of
 * an event that is appended to a store with `keys`. The subject itself is stored in clear: take an
 * id that says nothing ("customer:4711"), never a name or an address.
 */
export function personal<T extends string | number | boolean | object | null>(subject: string, value: T): Personal<T> {
  checkSubject(subject);
  return new PersonalValue(subject, value) as unknown as Personal<T>;
}

export function erased(subject: string): Erased {
  return { $erased: true, subject };
}

/**
 * True for a value that cannot be read any more, because the key of its subject was forgotten or
 * lost.
 */
export function isErased(value: unknown): value is Erased {
  if (typeof value !== "object" || value === null) return false;
  return "$erased" in value && value.$erased === true && "subject" in value && typeof value.subject === "string";
}

/**
 * `hashedTag(secret, "email", "ada@example.org")` returns "email:…", the same tag for the same
 * value, so that a condition can ask for it. `secret` has at least 16 bytes and is kept outside the
 * log: a person who has it can try values. The tag is a pseudonym, and `forget` does not erase it.
 */
export function hashedTag(secret: string | Uint8Array, name: string, value: string): string {
  if (Buffer.byteLength(secret) < secretBytesMin)
    throw new RangeError(`The secret of hashed tags has at least ${secretBytesMin} bytes.`);
  const hash = createHmac("sha256", secret)
    .update(JSON.stringify([name, value]))
    .digest();
  return `${name}:${hash.subarray(0, 16).toString("base64url")}`;
}

/** TypeError, RangeError. */
export function checkSubject(subject: string): void {
  if (typeof subject !== "string" || subject === "") throw new TypeError("A subject is a text that is not empty.");
  if (subject.length > subjectMax)
    throw new RangeError(`A subject has at most ${subjectMax} characters, not ${subject.length}.`);
}

/**
 * EVENT_INVALID. Forgetting is final: a new key would quietly begin to collect again what a person
 * has had forgotten.
 */
export function forgotten(subject: string): Error {
  const issue = `the subject ${JSON.stringify(subject)} was forgotten, so no personal data can be stored for it; if that person comes back, use a new subject`;
  return holdfastError("EVENT_INVALID", `There is no key: ${issue}.`, { type: "(subject key)", issues: [issue] });
}

/** Its fields are private, so that neither a log of the program nor a printed error shows them. */
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

  /**
   * The codec replaces marked values before it serialises. Any other caller would write the value
   * in clear.
   */
  toJSON(): never {
    throw new TypeError(
      "personal() values are stored only by an event store that was opened with `keys`, in plain objects and lists, and not inside each other",
    );
  }
}
