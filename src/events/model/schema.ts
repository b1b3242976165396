// Schemas of event types: a validator for what is appended now, and the upcast of what older
// versions wrote.
import type { NewEvent } from "../../common.ts";
import { invalid } from "./new-event.ts";

/**
 * For each type a Standard Schema validator, and how to lift older versions. A type without an
 * entry passes as it is.
 */
export type EventSchemas<E extends NewEvent> = {
  readonly [T in E["type"]]?: {
    /** Called at each append, never at a read. Its result is stored. */
    readonly schema?: StandardSchema | undefined;
    /** Stored with the event. Raise it when the shape of `data` changes. Default 1. */
    readonly version?: number | undefined;
    /**
     * Lifts the data of an older version to the current one, at each read. It gets a copy, and may
     * change it.
     */
    readonly upcast?: ((data: unknown, fromVersion: number) => Extract<E, { type: T }>["data"]) | undefined;
  };
};
/** The part of Standard Schema v1 that is used. */
export interface StandardSchema {
  readonly "~standard": { readonly version: 1; readonly vendor: string; validate(value: unknown): unknown };
}

/**
 * The value to store; a promise only if the validator returns one. EVENT_INVALID with the issues,
 * each with its path.
 */
export function validate(type: string, schema: StandardSchema, data: unknown): unknown {
  let result: unknown;
  try {
    result = schema["~standard"].validate(data);
  } catch (error) {
    throw broken(type, error);
  }
  if (!(result instanceof Promise)) return valueOf(type, result);
  return result.then(
    (late) => valueOf(type, late),
    (error: unknown) => {
      throw broken(type, error);
    },
  );
}

function valueOf(type: string, result: unknown): unknown {
  if (typeof result !== "object" || result === null) throw broken(type, new TypeError("it gave no result"));
  if ("issues" in result && result.issues !== undefined) throw invalid(type, describeIssues(result.issues));
  if (!("value" in result)) throw broken(type, new TypeError("its result has neither a value nor issues"));
  return result.value;
}

function describeIssues(issues: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(issues) ? issues : [];
  const described = list.map(describeIssue);
  // An empty list of issues is a refusal, too.
  return described.length > 0 ? described : ["its schema refuses it without a reason"];
}

function describeIssue(issue: unknown): string {
  const { message, path } = (issue ?? {}) as { readonly message?: unknown; readonly path?: unknown };
  const what = typeof message === "string" && message !== "" ? message : "it is refused";
  const steps: readonly unknown[] = Array.isArray(path) ? path : [];
  return `${["data", ...steps.map(stepOf)].join(".")}: ${what}`;
}

/** A step of a path is a key, or an object with a key. */
function stepOf(step: unknown): string {
  return String(typeof step === "object" && step !== null && "key" in step ? step.key : step);
}

/**
 * The schema failed. The event is not stored, and the message says that the schema is at fault, not
 * the data.
 */
function broken(type: string, cause: unknown): Error {
  return invalid(type, [`its schema failed: ${cause instanceof Error ? cause.message : String(cause)}`], cause);
}
