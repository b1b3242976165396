// Excerpts: the place of a text where the words of a query are. Made here and not by the engine, whose time grows with
// the square of how often a word is in one text.

/** What the tokenizer of the engine takes for a part of a word. */
const inWord = /[\p{L}\p{N}\p{M}\p{Co}]/u;
const words = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
const lengthMax = 200;
/** Of them before the first word that was found. */
const lengthBefore = 60;
/** Places of one word that are looked at; a short one is a part of many others. */
const placesMax = 500;
/** Of the text so much is compared word by word, where letters with signs on them are to be found. */
const comparedLength = 8_192;

/** `text` may be the beginning of a longer one. Without a word of `query` in it, its beginning. */
export function excerptOf(text: string, query: string, { isCut = false }: { readonly isCut?: boolean } = {}): string {
  if (text.length <= lengthMax && !isCut) return text.trim();
  const place = findPlace(text, query) ?? 0;
  const from = place <= lengthBefore ? 0 : beginOfWord(text, place - lengthBefore, place);
  const to = Math.min(text.length, from + lengthMax);
  const end = to === text.length ? to : endOfWord(text, to, place);
  const [before, after] = [from > 0 ? "…" : "", end < text.length || isCut ? "…" : ""];
  return `${before}${text.slice(from, end).trim()}${after}`;
}

function findPlace(text: string, query: string): number | undefined {
  const wanted = [...new Set(query.match(words)?.map((word) => word.toLowerCase()))];
  const lower = text.toLowerCase();
  // Some letters are longer in lower case: then places do not agree, and only words are compared.
  const places = lower.length === text.length ? wanted.map((word) => findWord(lower, word)) : [];
  const first = Math.min(...places.filter((place) => place !== undefined));
  return Number.isFinite(first) ? first : findFolded(text.slice(0, comparedLength), wanted.map(fold));
}

/** Where `word` is a whole word. */
function findWord(text: string, word: string): number | undefined {
  let at = text.indexOf(word);
  for (let places = 0; at >= 0 && places < placesMax; places++) {
    const isWhole = !inWord.test(text[at - 1] ?? " ") && !inWord.test(text[at + word.length] ?? " ");
    if (isWhole) return at;
    at = text.indexOf(word, at + word.length);
  }
  return undefined;
}

function findFolded(text: string, wanted: readonly string[]): number | undefined {
  for (const found of text.matchAll(words)) if (wanted.includes(fold(found[0]))) return found.index;
  return undefined;
}

/** As the tokenizer of the engine compares: without case, and without signs on letters. */
function fold(word: string): string {
  return word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/** The first place from `at` on where no word is cut, but not behind `last`. */
function beginOfWord(text: string, at: number, last: number): number {
  for (let place = at; place < last; place++) if (/\s/.test(text[place - 1] ?? " ")) return place;
  return isHalf(text, at) ? at + 1 : at;
}

function endOfWord(text: string, at: number, first: number): number {
  for (let place = at; place > first + lengthMax / 2; place--) if (/\s/.test(text[place] ?? " ")) return place;
  return isHalf(text, at) ? at - 1 : at;
}

/** Whether the place is in the middle of a character. */
function isHalf(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
