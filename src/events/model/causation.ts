// Causation: the two ids in metadata that link the events of one story.
import type { Sequencing } from "../../common.ts";

// A type, not an interface: metadata may have any key, and TypeScript accepts only a type alias for that.
/** Two ids in the metadata of an event that link it to the events that led to it. */
export type Causation = {
  /** The same in all events of one story: the id of its first event, unless the caller chose another. */
  readonly correlationId: string;
  /** The id of the event that caused this one. */
  readonly causationId: string;
};

/**
 * Returns metadata for an event that `event` caused. `extra` adds properties, but cannot change the
 * two ids.
 *
 * @example
 * ```ts
 * await events.append({ type: "Shipped", data, metadata: causedBy(event, { user: "ada" }) });
 * ```
 */
export function causedBy(event: Pick<Sequencing, "id" | "metadata">): Causation;
export function causedBy<M extends Readonly<Record<string, unknown>>>(
  event: Pick<Sequencing, "id" | "metadata">,
  extra: M,
): Omit<M, keyof Causation> & Causation;
export function causedBy(
  { id, metadata }: Pick<Sequencing, "id" | "metadata">,
  extra: Readonly<Record<string, unknown>> = {},
): Causation {
  const { correlationId } = metadata;
  const isCorrelated = typeof correlationId === "string" && correlationId !== "";
  return { ...extra, correlationId: isCorrelated ? correlationId : id, causationId: id };
}
