// Which names Holdfast gives to files: valid on every file system, equal only if they are equal on every one of them.
import { holdfastError } from "../errors.ts";

const nameLengthMax = 120;
const namePattern = /^[a-z0-9][a-z0-9._-]*$/;
// Windows reserves these with any extension, in every directory.
const reservedPattern = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$/;

/**
 * Refuses a name (of a log, a box, a holder's directory …) that some file system would refuse, change or confuse with another: only lower-case letters,
 * digits, dot, dash and underscore, starting with a letter or digit, not ending in a dot. INVALID_NAME.
 */
export function checkName(name: string): string {
  const fault = faultOf(name);
  if (fault === undefined) return name;
  throw holdfastError("INVALID_NAME", `The name ${JSON.stringify(shorten(name))} cannot be used: ${fault}.`, { name });
}

function faultOf(name: string): string | undefined {
  if (name.length === 0) return "it is empty";
  if (name.length > nameLengthMax) return `it is longer than ${nameLengthMax} characters`;
  if (!namePattern.test(name))
    return "only a-z, 0-9, dot, dash and underscore are allowed, and the first must be a letter or digit";
  if (name.endsWith(".")) return "Windows drops a dot at the end";
  if (reservedPattern.test(name)) return "Windows reserves it";
  return undefined;
}

function shorten(name: string): string {
  return name.length <= nameLengthMax ? name : `${name.slice(0, nameLengthMax)}…`;
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

/** The number that a name stands for; undefined for a foreign file, which is none of our business. */
export function findSlotNumber(name: string): number | undefined {
  return slotPattern.test(name) ? Number(name) : undefined;
}
