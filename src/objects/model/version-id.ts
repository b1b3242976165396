// Version ids combine the slot of a version with the random id of its entry, so that their text
// order is the commit order.
import { slotNumberMax } from "../../format/name.ts";

const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const slotDigits = 7;
const pattern = new RegExp(`^([${digits}]{${slotDigits}})([${digits}]{26})$`);

/** The id of the null version: the one version that was put while versioning was not enabled. */
export const nullVersionId = "null";

export interface VersionName {
  readonly slot: number;
  /** The id of the entry. */
  readonly id: string;
}

export function formatVersionId({ slot, id }: VersionName): string {
  let text = "";
  for (let rest = slot; text.length < slotDigits; rest = Math.floor(rest / 32)) text = digits.charAt(rest % 32) + text;
  return text + id;
}

/** Returns undefined for a text that is not a version id. */
export function findVersionName(versionId: string): VersionName | undefined {
  const match = pattern.exec(versionId);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  let slot = 0;
  for (const digit of match[1]) slot = slot * 32 + digits.indexOf(digit);
  return slot >= 1 && slot <= slotNumberMax ? { slot, id: match[2] } : undefined;
}
