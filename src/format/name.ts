// Which names Holdfast gives to files: valid on every file system, equal only if they are equal on
// every one of them.
import { holdfastError } from "../errors.ts";

/** eCryptfs allows 143 bytes, and suffixes are added. */
const fileNameLengthMax = 120;
const plain = /^[a-z0-9._-]$/;
const plainFirst = /^[a-z0-9]$/;
// Windows reserves these with any extension, in every directory.
const reserved = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$/;

/**
 * The file name for a name that a program has chosen (of a consumer, a log, a box …). Lower-case
 * letters, digits, dot, dash and underscore stay as they are; every other byte of its UTF-8, and
 * whatever a file system would refuse, change or confuse with another name, is written as `=` and
 * two hex digits. INVALID_NAME when it is empty or too long.
 */
export function fileNameOf(name: string): string {
  if (typeof name !== "string") throw new TypeError("A name is a text.");
  if (name === "") throw invalidName(name, "it is empty");
  if (/\p{Surrogate}/u.test(name)) throw invalidName(name, "it is not valid Unicode");
  // Before it is written out: a name may be a million characters long.
  if (name.length <= fileNameLengthMax) {
    const [first = "", ...rest] = name;
    // Also behind a first letter that is written out: Windows drops a dot at the end.
    const last = rest.at(-1) === "." ? [hex(rest.pop() ?? "")] : [];
    const isPlain = plainFirst.test(first) && !reserved.test(name);
    const fileName = [
      isPlain ? first : hex(first),
      ...rest.map((each) => (plain.test(each) ? each : hex(each))),
      ...last,
    ];
    if (fileName.join("").length <= fileNameLengthMax) return fileName.join("");
  }
  throw invalidName(name, `as the name of a file it is longer than ${fileNameLengthMax} characters`);
}

function hex(character: string): string {
  return Buffer.from(character).toString("hex").replaceAll(/../g, "=$&");
}

function invalidName(name: string, fault: string): Error {
  const shown = name.length <= fileNameLengthMax ? name : `${name.slice(0, fileNameLengthMax)}…`;
  return holdfastError("INVALID_NAME", `The name ${JSON.stringify(shown)} cannot be used: ${fault}.`, {
    invalidName: name,
  });
}

const slotDigits = 10;
const slotPattern = /^[0-9]{10}$/;
/** The largest number that a chain can reach: ten digits keep names in number order. */
export const slotNumberMax = 9_999_999_999;

/** The name of slot `number`: fixed width, so that `ls` shows a chain in its order. */
export function slotName(number: number): string {
  if (!Number.isInteger(number) || number < 0 || number > slotNumberMax)
    throw new RangeError(`A slot number is a whole number from 0 to ${slotNumberMax}, not ${number}.`);
  return String(number).padStart(slotDigits, "0");
}

/** The number that a name stands for; undefined for a foreign file. */
export function findSlotNumber(name: string): number | undefined {
  return slotPattern.test(name) ? Number(name) : undefined;
}
