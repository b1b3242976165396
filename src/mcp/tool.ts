// A tool: its description for models, the schema of its arguments, and what it does.
import type { ToolAnnotations } from "@modelcontextprotocol/server";
import type { z } from "zod";
import type { Answer } from "./answer.ts";
import type { Desk } from "./desk.ts";

export interface Tool {
  readonly name: ToolName;
  readonly description: string;
  readonly input: z.ZodObject;
  readonly hints: ToolAnnotations;
  /** True if it changes neither files nor locks nor tasks. */
  readonly isReading: boolean;
  readonly call: (desk: Desk, args: unknown, signal: AbortSignal) => Promise<Answer>;
}

/** The names of all tools. */
export const toolNames = [
  "read",
  "list",
  "search",
  "changes",
  "who",
  "write",
  "edit",
  "move",
  "remove",
  "lock",
  "unlock",
  "session_append",
  "session_commit",
  "task_publish",
  "task_take",
  "task_done",
  "task_fail",
] as const;
/** The name of a tool. */
export type ToolName = (typeof toolNames)[number];

interface ToolOf<Input extends z.ZodObject> {
  readonly description: string;
  readonly input: Input;
  readonly does: "reads" | "adds" | "replaces";
  readonly call: (desk: Desk, args: z.output<Input>, signal: AbortSignal) => Promise<Answer>;
}

/** The arguments were checked against the schema before `call` is called. */
export function tool<Input extends z.ZodObject>(
  name: ToolName,
  { description, input, does, call }: ToolOf<Input>,
): Tool {
  const hints = { readOnlyHint: does === "reads", destructiveHint: does === "replaces", openWorldHint: false };
  return {
    name,
    description,
    // A misspelt argument must not be ignored: the model would believe that it counted.
    input: input.strict(),
    hints,
    isReading: does === "reads",
    call: (desk, args, signal) => call(desk, args as z.output<Input>, signal),
  };
}
