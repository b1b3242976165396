// Schemas of event types: a validator for new events, and the upcast of events that older versions
// wrote.
import { types } from "node:util";
import { messageOf } from "../../errors.ts";
import type { NewEvent } from "../../common.ts";
import { invalidEvent } from "./new-event.ts";
import type { OfType } from "./query.ts";

/** A Standard Schema validator and the version of each event type. A type without an entry is not validated. */
export type EventSchemas<E extends NewEvent> = {
  readonly [T in E["type"]]?: {
    /** Validates the data of an event when it is appended, never when it is read. Its result is stored. */
    readonly schema?: StandardSchema | undefined;
    /** The version that is stored with the event. Raise it when the shape of `data` changes. Default 1. */
    readonly version?: number | undefined;
    /**
     * Converts the data of an older version to the current one, at each read. It receives a copy
     * and may change it.
     */
    readonly upcast?: ((data: unknown, fromVersion: number) => OfType<E, T>["data"]) | undefined;
    /**
     * Stores events as an older version during a rolling upgrade, while programs that know only
     * that version still run. `downcast` returns the data to store after `schema` has checked it,
     * and must not change its argument. Default: stores `version`.
     */
    readonly writes?:
      { readonly version: number; readonly downcast: (data: OfType<E, T>["data"]) => unknown } | undefined;
  };
};
/** The part of Standard Schema v1 that Holdfast uses. */
export interface StandardSchema {
  /** The validator, as Standard Schema v1 defines it. */
  readonly "~standard": { readonly version: 1; readonly vendor: string; validate(value: unknown): unknown };
}

/**
 * Returns the value to store; a promise only if the validator returns one. Throws EVENT_INVALID
 * with the issues, each with its path.
 */
export function validate(type: string, schema: StandardSchema, data: unknown): unknown {
  let result: unknown;
  try {
    result = schema["~standard"].validate(data);
  } catch (error) {
    throw broken(type, error);
  }
  if (!types.isPromise(result)) return valueOf(type, result);
  return result.then(
    (late) => valueOf(type, late),
    (error: unknown) => {
      throw broken(type, error);
    },
  );
}

function valueOf(type: string, result: unknown): unknown {
  if (typeof result !== "object" || result === null) throw broken(type, new TypeError("it returned no result"));
  if ("issues" in result && result.issues !== undefined) throw invalidEvent(type, describeIssues(result.issues));
  if (!("value" in result)) throw broken(type, new TypeError("its result has neither a value nor issues"));
  return result.value;
}

function describeIssues(issues: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(issues) ? issues : [];
  const described = list.map(describeIssue);
  // An empty list of issues is a refusal too.
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
 * Returns the error for a schema that threw. The event is not stored, and the message blames the schema, not the
 * data.
 */
function broken(type: string, cause: unknown): Error {
  return invalidEvent(type, [`its schema failed: ${messageOf(cause)}`], cause);
}
