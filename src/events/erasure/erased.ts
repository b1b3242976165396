// What a reader gets in place of a personal value whose key is gone.

/** JSON as it stands, so that a read model can keep it. */
export interface Erased {
  readonly $erased: true;
  /** Whose it was. */
  readonly subject: string;
}

export function erased(subject: string): Erased {
  return { $erased: true, subject };
}

/** True for a value that nobody can read any more, because the key of its subject was forgotten or lost. */
export function isErased(value: unknown): value is Erased {
  if (typeof value !== "object" || value === null) return false;
  return "$erased" in value && value.$erased === true && "subject" in value && typeof value.subject === "string";
}
