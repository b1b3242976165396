// The context of a trace on its way through the store: stored as `trace` in the metadata of an event or the meta of a
// ticket, and read again where it is delivered.

/** The key in metadata. An event that is appended again may have another trace. */
export const traceKey = "trace";

/** Adds a carrier to metadata. Metadata that has a `trace` already, or is not a plain object, stays as it is. */
export function withCarrier<M>(metadata: M, carrier: Readonly<Record<string, string>>): M {
  const known: unknown = metadata ?? {};
  if (typeof known !== "object" || known === null || Array.isArray(known) || Object.hasOwn(known, traceKey))
    return metadata;
  const { constructor } = known;
  if (constructor !== Object && constructor !== undefined) return metadata;
  return { ...known, [traceKey]: { ...carrier } } as M;
}

/** Returns the carrier in metadata; undefined if there is none. */
export function findCarrier(metadata: unknown): Readonly<Record<string, string>> | undefined {
  if (typeof metadata !== "object" || metadata === null) return undefined;
  const { [traceKey]: found } = metadata as { readonly [traceKey]?: unknown };
  if (typeof found !== "object" || found === null || Array.isArray(found)) return undefined;
  const texts = Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

/** Returns the carriers of several messages. */
export function carriersOf(metadatas: readonly unknown[]): Readonly<Record<string, string>>[] {
  return metadatas.map(findCarrier).filter((found) => found !== undefined);
}
