// Causation: the two ids in metadata by which a person follows a story through a log.
import type { Sequencing } from "../../common.ts";

// Not an interface: only a type alias may be used as metadata, which has any key.
export type Causation = {
  /**
   * The same in all events of one story: the id of its first event, unless the caller chose
   * another.
   */
  readonly correlationId: string;
  /** The id of the event that caused this one. */
  readonly causationId: string;
};

/**
 * Metadata for an event that `event` has caused: `append({ type, data, metadata: causedBy(event, {
 * user }) })`. `extra` cannot change the two ids.
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
