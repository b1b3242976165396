// Shared by the verbs that hand over files: a body from stdin, and the parsing of options.
import { InvalidArgumentError } from "commander";
import type { Run } from "../../run.ts";
import { inputChunks } from "../events/lines.ts";

/** Reads stdin as bytes. */
export async function* inputBody(run: Run): AsyncGenerator<Uint8Array> {
  for await (const chunk of inputChunks(run)) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

const textMax = 1024;

/** Parses `a.csv=12`, a record count for a file. */
export function collectCounts(text: string, before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const [, name = "", count = ""] = /^(.+)=(\d{1,15})$/.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("Write NAME=COUNT, like a.csv=12.");
  return { ...before, [name]: Number(count) };
}

/**
 * Parses a key, a group or a reason. Refuses an empty one, because it comes from an unset shell
 * variable.
 */
export function parseShortText(text: string): string {
  if (text !== "" && text.length <= textMax && !/\p{Surrogate}/u.test(text)) return text;
  throw new InvalidArgumentError(`Write a text of 1 to ${textMax} characters.`);
}

export function parsePriority(text: string): number {
  if (/^[0-9]$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Write a number from 0 (first) to 9 (last).");
}
