// The bounds of answers: a model pays for each character that it reads.

/** Larger files are neither shown nor edited. */
export const fileBytesMax: number = 4 * 1024 * 1024;
/** The text of one answer. */
export const answerCharsMax: number = 48 * 1024;
/** The text that one call may write. */
export const writtenCharsMax: number = 4 * 1024 * 1024;
/** Entries of one page of a list. */
export const pageMax = 200;
/** Changes in one answer. */
export const changesMax = 50;
/** Locks in one answer. */
export const locksMax = 100;
/** Lines of a diff. */
export const diffLinesMax = 120;
/** Locks and tasks that one connection may hold at a time. */
export const heldMax = 100;
/** How long a call may wait for a lock or a task: clients give up after a minute. */
export const waitSecondsMax = 45;

/** Cuts a text for an answer, and says so. */
export function bounded(text: string, max: number = answerCharsMax): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max)}\n[cut here: ${text.length - max} of ${text.length} characters are not shown]`;
}
