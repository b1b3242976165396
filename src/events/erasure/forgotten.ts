// Forgetting is final. A new key would quietly begin to collect again what somebody has asked to be forgotten; one who comes back is a new subject.
import { holdfastError } from "../../errors.ts";

/** EVENT_INVALID. */
export function forgotten(subject: string): Error {
  const issue = `the subject ${JSON.stringify(subject)} was forgotten, so nothing personal can be stored for it; give one who comes back a new subject`;
  return holdfastError("EVENT_INVALID", `There is no key: ${issue}.`, { type: "(subject key)", issues: [issue] });
}
