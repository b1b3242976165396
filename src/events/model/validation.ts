// Asking a Standard Schema: what it makes of a value, or what it has against it.
import { invalid } from "./new-event.ts";
import type { StandardSchema } from "./schema.ts";

/** The value to store. EVENT_INVALID with the issues, each with its path. At once unless the validator takes its time. */
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
  // Issues without one are a refusal, too.
  return described.length > 0 ? described : ["its schema refuses it and does not say why"];
}

function describeIssue(issue: unknown): string {
  const { message, path } = (issue ?? {}) as { readonly message?: unknown; readonly path?: unknown };
  const what = typeof message === "string" && message !== "" ? message : "it is refused";
  const steps: readonly unknown[] = Array.isArray(path) ? path : [];
  return `${["data", ...steps.map(stepOf)].join(".")}: ${what}`;
}

/** A step is a key, or an object that has it. */
function stepOf(step: unknown): string {
  return String(typeof step === "object" && step !== null && "key" in step ? step.key : step);
}

/** Neither yes nor no: then the event is not stored, and the caller learns that it is not his data that is wrong. */
function broken(type: string, cause: unknown): Error {
  return invalid(type, [`its schema failed: ${cause instanceof Error ? cause.message : String(cause)}`], cause);
}
