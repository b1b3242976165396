// The query language: words, "phrases" and prefixes*. Any input is a valid query, never a syntax
// error.
import { holdfastError } from "../../errors.ts";
import { hasWord, partsOf, toWords, unify } from "./words.ts";

/**
 * Words of all terms together; a character of a script without spaces counts as one. The time of a
 * search grows faster than their number.
 */
const wordsMax = 4096;
/** Each is merged from all words that begin with it. */
const prefixesMax = 256;
const word = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
const quotedOrWord = /"([^"]*)"(\*?)|([^\s"]+)/gu;
/** Quotation marks that keyboards and editors substitute. */
const otherQuotes = /[\u201c-\u201f]/gu;

/** A word or a phrase to search for. */
export interface Term {
  readonly text: string;
  readonly isPhrase: boolean;
  /** True if it also matches words that only begin with it; for a phrase, its last word. */
  readonly isPrefix: boolean;
}

/** Returns all terms of a query, each once: none is ever ignored. Throws TOO_LARGE. */
export function termsOf(query: string): Term[] {
  const plain = unify(query).replaceAll("\0", " ").replace(otherQuotes, '"');
  const terms = new Map<string, Term>();
  for (const [, quoted, star, plainWord = ""] of plain.matchAll(quotedOrWord)) {
    const isPhrase = quoted !== undefined;
    const text = quoted ?? plainWord.replace(/\*+$/, "");
    const isPrefix = isPhrase ? star === "*" : text !== plainWord;
    // The tokenizer would find no word in it, and nothing would match.
    if (hasWord(text)) terms.set(`${isPhrase}${isPrefix}${text}`, { text, isPhrase, isPrefix });
  }
  const all = [...terms.values()];
  mustBeFew(
    "words",
    all.reduce((sum, { text }) => sum + (toWords(text).match(word)?.length ?? 0), 0),
    wordsMax,
  );
  mustBeFew("words with a star", all.filter(({ isPrefix }) => isPrefix).length, prefixesMax);
  return all;
}

function mustBeFew(what: string, actual: number, limit: number): void {
  if (actual <= limit) return;
  const message = `A search has at most ${limit} different ${what}, and this one has ${actual}. Search for fewer.`;
  throw holdfastError("TOO_LARGE", message, { limit, actual });
}

/**
 * Returns the engine's expression for all terms, or for any of them; undefined if there is none.
 * For any of them, a word without spaces counts by its parts, because no program can tell where its
 * words end.
 */
export function matchExpression(terms: readonly Term[], wanted: "all" | "any"): string | undefined {
  if (terms.length === 0) return undefined;
  if (wanted === "all") return terms.map(phraseOf).join(" AND ");
  const parts = terms.flatMap((term) =>
    term.isPhrase ? [phraseOf(term)] : partsOf(term.text).map((text) => phraseOf({ ...term, text })),
  );
  return [...new Set(parts)].join(" OR ");
}

/** In quotes, the keywords and operators of the engine's language are plain text. */
function phraseOf({ text, isPrefix }: Pick<Term, "text" | "isPrefix">): string {
  return `"${toWords(text).replaceAll('"', " ")}"${isPrefix ? " *" : ""}`;
}
