// What the processes of many puts to one key tell the bed, and where they put.

export const bucketName = "photos";
export const hotKey = "hot";

export interface PutOrders {
  readonly directory: string;
  readonly name: string;
  /** So many must be acknowledged. */
  readonly puts: number;
}

/** A version that was acknowledged; or one of which it is not known whether it is there. */
export type PutReport =
  | { readonly kind: "acknowledged"; readonly versionId: string; readonly text: string }
  | { readonly kind: "unknown"; readonly text: string };

/** A text whose end is a row of equal letters, with their number instead: all versions fit into one answer. */
export function shorten(text: string): string {
  return text.replace(/x+$/, (row) => `${row.length} letters`);
}
