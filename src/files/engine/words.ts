// Splits a text into words for the full-text index, in the same way for indexed texts and for
// queries.
//
// The engine's tokenizer takes a run of letters for one word. Chinese, Japanese, Korean, Thai and
// related scripts write no spaces, or attach particles, so each of their characters becomes a
// separate word. A word of a query then is a phrase of characters, and is found anywhere.
// Dictionaries would differ from one build of Node to the next.

const spacelessScripts =
  "\\p{scx=Hani}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Bopo}\\p{scx=Hang}\\p{scx=Yiii}" +
  "\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tale}\\p{scx=Talu}\\p{scx=Lana}\\p{scx=Java}\\p{scx=Bali}";
const character = `(?=[\\p{L}\\p{N}])[${spacelessScripts}]\\p{M}*`;
const spacelessCharacters = new RegExp(character, "gu");
const spacelessRuns = new RegExp(`(?:${character})+`, "gu");
const spaceless = new RegExp(`^${character}`, "u");
/** Vowel signs of Hebrew and Arabic, the Arabic line that stretches words, and zero-width signs. */
const unwritten =
  /[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u00ad\u200c-\u200f\u2060\ufeff]/gu;
const ascii = /^[\0-\x7f]*$/;

/** One letter may become eighteen: only a malicious text grows to more than twice the longest text. */
const lengthMax = 4 * 1024 * 1024;

/** Characters that the tokenizer treats as part of a word. */
export const inWord: RegExp = /[\p{L}\p{N}\p{M}\p{Co}]/u;
const letter = /[\p{L}\p{N}\p{Co}]/u;

/** Returns `text` with one form for each letter, and with spaces around each character that is a separate word. */
export function toWords(text: string): string {
  if (ascii.test(text)) return text;
  return unify(text).replace(spacelessCharacters, " $& ");
}

/** Returns one form for each letter: composed, of normal width, without signs that many writers omit. */
export function unify(text: string): string {
  return text.normalize("NFKC").slice(0, lengthMax).replace(unwritten, "");
}

/** True if the tokenizer finds a word in it. Signs, and marks without a letter, are not words. */
export function hasWord(text: string): boolean {
  return letter.test(text);
}

/** True if a character is a separate word. */
export function isSpaceless(text: string): boolean {
  return spaceless.test(text);
}

/** Returns the parts of a word: each two consecutive characters in a run without spaces, and the text between runs. */
export function partsOf(word: string): string[] {
  const parts: string[] = [];
  let end = 0;
  const add = (between: string): void => {
    if (hasWord(between)) parts.push(between);
  };
  for (const { 0: run, index } of word.matchAll(spacelessRuns)) {
    add(word.slice(end, index));
    end = index + run.length;
    const characters = run.match(spacelessCharacters) ?? [];
    if (characters.length === 1) parts.push(run);
    for (let at = 0; at + 1 < characters.length; at++) parts.push(`${characters[at]}${characters[at + 1]}`);
  }
  add(word.slice(end));
  return parts;
}
