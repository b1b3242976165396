// Personal data in events: how a caller marks it, and what a reader gets once it is forgotten.
import { createHmac } from "node:crypto";
import { holdfastError } from "../../errors.ts";

/** Exists only for the type checker. */
declare const marked: unique symbol;

/**
 * The type of a personal value in an event: `type Registered = NewEvent<"Registered", { customer:
 * string; name: Personal<string> }>`. A reader gets the value, or `Erased`. A writer that forgets
 * `personal` does not compile.
 */
export type Personal<T> = Erased | (T extends null | undefined ? T : T & { readonly [marked]: true });

/** Replaces a personal value whose key is gone. It is plain JSON, so a read model can store it. */
export interface Erased {
  /** Marks an erased value. */
  readonly $erased: true;
  /** The subject of the value. */
  readonly subject: string;
}

const subjectMax = 1_000;
const secretBytesMin = 16;

/**
 * Marks `value` (any JSON) as personal data of `subject`, anywhere in the `data` or `metadata` of
 * an event that is appended to a store with `keys`. The subject itself is stored in clear text: use
 * an opaque id ("customer:4711"), never a name or an address.
 */
export function personal<T extends string | number | boolean | object | null>(subject: string, value: T): Personal<T> {
  checkSubject(subject);
  return new PersonalValue(subject, value) as unknown as Personal<T>;
}

export function erased(subject: string): Erased {
  return { $erased: true, subject };
}

/** Returns true for a value that can no longer be read, because the key of its subject was deleted or lost. */
export function isErased(value: unknown): value is Erased {
  if (typeof value !== "object" || value === null) return false;
  return "$erased" in value && value.$erased === true && "subject" in value && typeof value.subject === "string";
}

/**
 * Returns a tag such as "email:…" that is the same for the same value, so that a condition can
 * query for it. Store `secret` outside the log: whoever knows it can guess values. The tag is a
 * pseudonym, and `forget` does not erase it. Throws a RangeError for a secret of less than 16 bytes.
 *
 * @example
 * ```ts
 * const tag = hashedTag(secret, "email", "ada@example.org");
 * ```
 */
export function hashedTag(secret: string | Uint8Array, name: string, value: string): string {
  if (Buffer.byteLength(secret) < secretBytesMin)
    throw new RangeError(`The secret of hashed tags must have at least ${secretBytesMin} bytes.`);
  const hash = createHmac("sha256", secret)
    .update(JSON.stringify([name, value]))
    .digest();
  return `${name}:${hash.subarray(0, 16).toString("base64url")}`;
}

/** Throws a TypeError or RangeError. */
export function checkSubject(subject: string): void {
  if (typeof subject !== "string" || subject === "")
    throw new TypeError("A subject must be a string that is not empty.");
  if (subject.length > subjectMax)
    throw new RangeError(`A subject must have at most ${subjectMax} characters, not ${subject.length}.`);
}

/**
 * Returns EVENT_INVALID for a forgotten subject. Forgetting is final: a new key would silently collect data again
 * about a person who asked to be forgotten.
 */
export function forgottenSubject(subject: string): Error {
  const issue = `the subject ${JSON.stringify(subject)} was forgotten, so no personal data can be stored for it; if that person comes back, use a new subject`;
  return holdfastError("EVENT_INVALID", `There is no key: ${issue}.`, { type: "(subject key)", issues: [issue] });
}

/** Its fields are private, so that neither a log of the program nor a printed error shows the value. */
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
   * The codec replaces marked values before it serializes. For any other caller this throws: it would write the value
   * in clear text.
   */
  toJSON(): never {
    throw new TypeError(
      "personal() values are stored only by an event store that was opened with `keys`, in plain objects and lists, and not inside each other",
    );
  }
}
