// What a user typed, as a query of the full text: never a syntax error, whatever it contains.

/** More words make no better query, and the engine has a limit. */
const termsMax = 64;
const quotedOrWord = /"([^"]*)"|([^\s"]+)/gu;
/** What the tokenizer keeps. A term without any of it would match nothing. */
const kept = /[\p{L}\p{N}\p{Co}]/u;

/**
 * The expression for all words of `text`, or for any of them; words between quotes are a phrase. Undefined when there
 * is no word in it.
 */
export function matchExpression(text: string, words: "all" | "any"): string | undefined {
  const terms = [...text.replaceAll("\0", " ").matchAll(quotedOrWord)]
    .map(([, quoted, word]) => quoted ?? word ?? "")
    .filter((term) => kept.test(term))
    .slice(0, termsMax);
  if (terms.length === 0) return undefined;
  // Each between quotes: the words and signs of the query language are plain text then.
  return terms.map((term) => `"${term}"`).join(words === "all" ? " AND " : " OR ");
}
