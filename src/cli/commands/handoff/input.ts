// What the verbs that hand over files have in common: a body from stdin, and what is written for options.
import { InvalidArgumentError } from "commander";
import type { Run } from "../../run.ts";
import { inputChunks } from "../events/lines.ts";

/** What comes in on stdin, as bytes. */
export async function* inputBody(run: Run): AsyncGenerator<Uint8Array> {
  for await (const chunk of inputChunks(run)) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

/** `a.csv=12`: a count for a file. */
export function collectCounts(text: string, before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const [, name = "", count = ""] = /^(.+)=(\d{1,15})$/.exec(text) ?? [];
  if (name === "") throw new InvalidArgumentError("Write NAME=COUNT, like a.csv=12.");
  return { ...before, [name]: Number(count) };
}

export function parsePriority(text: string): number {
  if (/^[0-9]$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Write a number from 0 (first) to 9 (last).");
}
