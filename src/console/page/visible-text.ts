// Makes invisible characters of foreign texts visible: a name must not reverse, hide or imitate
// another.

/** A piece of text: unchanged, or the code of an invisible character. */
export interface TextPiece {
  readonly text: string;
  readonly isCode: boolean;
}

/**
 * Controls, format characters (direction, zero width), unusual spaces, private and unpaired ones.
 * The joiners of emoji and of some scripts are among them: a visible code is the lesser evil.
 */
const invisible = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|[^\S ]/u;

export function piecesOf(text: string): TextPiece[] {
  const pieces: { text: string; isCode: boolean }[] = [];
  for (const character of text) {
    const isCode = invisible.test(character);
    const shown = isCode
      ? `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`
      : character;
    const last = pieces.at(-1);
    if (last !== undefined && !isCode && !last.isCode) last.text += shown;
    else pieces.push({ text: shown, isCode });
  }
  return pieces;
}

/** Returns plain text, for titles and labels. */
export function plainOf(text: string): string {
  return piecesOf(text)
    .map((piece) => (piece.isCode ? `⟨${piece.text}⟩` : piece.text))
    .join("");
}
