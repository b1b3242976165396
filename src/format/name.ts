// Names that Holdfast gives to files: valid on every file system, and equal on one only if equal on
// all. And names of users: whether they are valid on every file system.
import { holdfastError, isHoldfastError } from "../errors.ts";

/** eCryptfs allows 143 bytes, and suffixes are added. */
const fileNameLengthMax = 120;
const plain = /^[a-z0-9._-]$/;
const plainFirst = /^[a-z0-9]$/;
// Windows reserves these with any extension, in every directory.
const reserved = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$/;

/**
 * Returns the file name for a name that a program chose (of a consumer, a log, a box …). Lower-case
 * letters, digits, dot, dash and underscore stay. Every other byte of its UTF-8, and anything that
 * a file system would refuse, change or confuse with another name, becomes `=` and two hex digits.
 * Throws INVALID_NAME if it is empty or too long.
 */
export function fileNameOf(name: string): string {
  if (typeof name !== "string") throw new TypeError("A name must be a string.");
  if (name === "") throw invalidName(name, "it is empty");
  if (/\p{Surrogate}/u.test(name)) throw invalidName(name, "it is not valid Unicode");
  // Check the length before encoding: a name may be a million characters long.
  if (name.length <= fileNameLengthMax) {
    const [first = "", ...rest] = name;
    // Encode a final dot even after an encoded first letter: Windows drops it.
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

/** Returns the name that `fileNameOf` encoded; undefined for a foreign file. */
export function findNameOf(fileName: string): string | undefined {
  const bytes = fileName.replaceAll(/=([0-9a-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  const name = Buffer.from(bytes, "latin1").toString();
  try {
    return fileNameOf(name) === fileName ? name : undefined;
  } catch (error) {
    if (isHoldfastError(error, "INVALID_NAME")) return undefined;
    throw error;
  }
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

/** Returns the name of slot `number`: fixed width, so that `ls` shows a chain in order. */
export function slotName(number: number): string {
  if (!Number.isInteger(number) || number < 0 || number > slotNumberMax)
    throw new RangeError(`A slot number is a whole number from 0 to ${slotNumberMax}, not ${number}.`);
  return String(number).padStart(slotDigits, "0");
}

/** Returns the number in a name; undefined for a foreign file. */
export function findSlotNumber(name: string): number | undefined {
  return slotPattern.test(name) ? Number(name) : undefined;
}

/** Characters that some file system refuses or interprets in a name. */
const unportable = /[\p{Cc}\p{Surrogate}\\/:*?"<>|]/u;
// Windows reserves these with any extension, in every directory, also with spaces before it.
const device = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\..*)?$/i;

/** Returns why Windows refuses or changes this name, as the end of a sentence; undefined if it does neither. */
export function findPortableFault(name: string): string | undefined {
  if (unportable.test(name)) return "it has a character that some file systems refuse";
  if (/[. ]$/.test(name)) return "Windows drops a dot or a space at its end";
  return device.test(name) ? "Windows reserves it for a device" : undefined;
}

/** Returns the first name in a clean path that is not portable, and why. */
export function findUnportable(path: string): { readonly name: string; readonly why: string } | undefined {
  for (const name of path.split("/")) {
    const why = findPortableFault(name);
    if (why !== undefined) return { name, why };
  }
  return undefined;
}
