// Excerpts: the part of a text that contains the words of a query. The engine's own excerpts take
// time that grows with the square of a word's occurrences in one text.
import type { Term } from "./query.ts";
import { inWord, isSpaceless, partsOf } from "./words.ts";

const words = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
const lengthMax = 200;
/** Length of the excerpt before the first word found. */
const lengthBefore = 60;
/** How many occurrences of one word are checked: a short word is part of many others. */
const placesMax = 500;
/** How many words of a query are searched for. */
const wantedMax = 64;
/** How much of the text is compared word by word, to find letters with diacritics. */
const comparedLength = 8_192;

interface SearchedWord {
  readonly word: string;
  readonly isPrefix: boolean;
}

/**
 * Returns the excerpt of a text, which may be the beginning of a longer one. If it has none of the
 * terms, returns its beginning.
 */
export function excerptOf(
  text: string,
  terms: readonly Term[],
  { isCut = false }: { readonly isCut?: boolean } = {},
): string {
  if (text.length <= lengthMax && !isCut) return text.trim();
  const place = findPlace(text, terms) ?? 0;
  const from = place <= lengthBefore ? 0 : beginOfWord(text, place - lengthBefore, place);
  const to = Math.min(text.length, from + lengthMax);
  const end = to === text.length ? to : endOfWord(text, to, place);
  const [before, after] = [from > 0 ? "…" : "", end < text.length || isCut ? "…" : ""];
  return `${before}${text.slice(from, end).trim()}${after}`;
}

function findPlace(text: string, terms: readonly Term[]): number | undefined {
  const whole = terms.flatMap(({ text: term, isPrefix }) => wordsOf(term, isPrefix)).slice(0, wantedMax);
  // A run of characters without spaces can be found by its parts.
  const parts = whole.flatMap(({ word, isPrefix }) => partsOf(word).map((part) => ({ word: part, isPrefix })));
  return findFirst(text, whole) ?? findFirst(text, parts.slice(0, wantedMax));
}

function wordsOf(term: string, isPrefix: boolean): SearchedWord[] {
  const found = term.toLowerCase().match(words) ?? [];
  return found.map((word, index) => ({ word, isPrefix: isPrefix && index === found.length - 1 }));
}

function findFirst(text: string, wanted: readonly SearchedWord[]): number | undefined {
  const lower = text.toLowerCase();
  // Some letters are longer in lower case. Then offsets differ, and only words are compared.
  const places = lower.length === text.length ? wanted.map((each) => findWord(lower, each)) : [];
  const first = places.reduce<number>((least, place) => Math.min(least, place ?? Infinity), Infinity);
  return Number.isFinite(first) ? first : findFolded(text.slice(0, comparedLength), wanted);
}

/**
 * Returns the first occurrence of `word` that is not part of a longer word; for a prefix, the first
 * that begins one.
 */
function findWord(text: string, { word, isPrefix }: SearchedWord): number | undefined {
  let at = text.indexOf(word);
  for (let places = 0; at >= 0 && places < placesMax; places++) {
    if (isEdge(text, at) && (isPrefix || isEdge(text, at + word.length))) return at;
    at = text.indexOf(word, at + word.length);
  }
  return undefined;
}

/** True if a word can begin or end here. */
function isEdge(text: string, at: number): boolean {
  const [before, after] = [text[at - 1] ?? " ", text[at] ?? " "];
  return !inWord.test(before) || !inWord.test(after) || isSpaceless(before) || isSpaceless(after);
}

function findFolded(text: string, wanted: readonly SearchedWord[]): number | undefined {
  const folded = wanted.map(({ word, isPrefix }) => ({ word: fold(word), isPrefix }));
  for (const { 0: found, index } of text.matchAll(words)) {
    const here = fold(found);
    if (folded.some(({ word, isPrefix }) => here === word || (isPrefix && here.startsWith(word)))) return index;
  }
  return undefined;
}

/** Folds case and diacritics like the engine's tokenizer. */
function fold(word: string): string {
  return word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * Returns the start of the first word from `at` on and before `last`; if there is none, `at`, but
 * never the middle of a character.
 */
function beginOfWord(text: string, at: number, last: number): number {
  for (let place = at; place < last; place++) if (/\s/.test(text[place - 1] ?? " ")) return place;
  return isHalf(text, at) ? at + 1 : at;
}

function endOfWord(text: string, at: number, first: number): number {
  for (let place = at; place > first + lengthMax / 2; place--) if (/\s/.test(text[place] ?? " ")) return place;
  return isHalf(text, at) ? at - 1 : at;
}

/** True if the place splits a surrogate pair. */
function isHalf(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
