// The error for an event that is stored and that this program cannot make sense of.
import { holdfastError } from "../../errors.ts";
import type { EventHead } from "./stored-event.ts";

/** EVENT_INVALID, by the id of the event, which finds it. */
export function unreadable(
  { type, id }: Pick<EventHead, "type" | "id">,
  issues: readonly string[],
  cause?: unknown,
): Error {
  const message = `The event ${id} of type ${JSON.stringify(type)} cannot be read: ${issues.join("; ")}.`;
  return holdfastError("EVENT_INVALID", message, { type, issues }, cause);
}
