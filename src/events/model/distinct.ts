// Lists of texts in which each text is once.

/** Up to so many, looking through the list is quicker than a set. */
const shortLength = 8;

/** A copy, in order of first appearance. */
export function distinct(texts: readonly string[]): readonly string[] {
  const isShort = texts.length <= shortLength;
  return isShort && texts.every((text, index) => texts.indexOf(text) === index) ? texts.slice() : [...new Set(texts)];
}
