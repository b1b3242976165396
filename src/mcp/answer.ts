// The answer of a tool: text for the model, the same facts as JSON for programs, and refusals that
// say what to do next.
import type { CallToolResult } from "@modelcontextprotocol/server";
import { isHoldfastError, type ErrorAction, type ErrorCode } from "../index.ts";

export interface Answer {
  /** For the model. */
  readonly text: string;
  /** The same facts for programs. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A call that cannot be done as it was asked. */
export class Refusal extends Error {
  readonly code: string;
  /** What the model can do now. */
  readonly next: string;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, next: string, facts: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.next = next;
    this.facts = facts;
  }
}

export function resultOf({ text, facts }: Answer): CallToolResult {
  return { content: [{ type: "text", text }], structuredContent: plain(facts) };
}

/** What a failed call answers. An error that Holdfast does not know is reported as it is. */
export function failureOf(error: unknown): CallToolResult {
  const { code, message, next, facts } = refusalOf(error);
  return {
    isError: true,
    content: [{ type: "text", text: `${code}: ${message}\nNext: ${next}` }],
    structuredContent: plain({ error: code, message, next, ...facts }),
  };
}

const nextOf: Partial<Record<ErrorCode, string>> = {
  NO_SUCH_FILE: "Find it with `list` or `search`; `changes` shows who moved or removed it.",
  FILE_EXISTS: "Choose another path, or read the existing file first.",
  INVALID_PATH: "Give a path relative to the root of the tree, with forward slashes, such as `src/main.ts`.",
  RESOURCE_BUSY: "Another agent works there. See `who`, do something else, and try again.",
  LOCK_TIMEOUT: "Another agent holds it. See `who`, do something else, and try again.",
  DEADLOCK: "Release one of your locks with `unlock`, and try again.",
  LOCK_LOST: "Take the lock again, and read again what you are about to change.",
  OUTCOME_UNKNOWN: "Read again: it may or may not have happened.",
  CLAIM_LOST: "Somebody else may work on that task now. Take another one.",
  TOO_LARGE: "Do it in smaller pieces.",
  INDEX_FAILED: "Use `list` and `read`; a person can run `holdfast files verify`.",
  NO_PERMISSION: "Ask a person: this server may not write there.",
};

const nextOfAction: Partial<Record<ErrorAction, string>> = {
  "fix-caller": "Correct the arguments, and call again.",
  retry: "Try again in a moment.",
};

function refusalOf(error: unknown): Pick<Refusal, "code" | "message" | "next" | "facts"> {
  if (error instanceof Refusal) return error;
  const { message } = error as Error;
  if (!isHoldfastError(error))
    return { code: "FAILED", message, next: "Check the arguments, and try again.", facts: {} };
  const next = nextOf[error.code] ?? nextOfAction[error.action] ?? "Tell a person: this needs a look at the store.";
  return { code: error.code, message, next, facts: {} };
}

/** JSON of it: dates become strings, and absent values stay away. */
function plain(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(facts)) as Record<string, unknown>;
}
