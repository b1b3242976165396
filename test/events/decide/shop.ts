// A small shop for the tests of decisions: articles that are stocked and sold.
import { modelsOf, type NewEvent } from "../../../src/events/index.ts";

export type Stocked = NewEvent<"Stocked", { sku: string; amount: number }>;
export type Sold = NewEvent<"Sold", { sku: string; amount: number }>;
export type Shop = Stocked | Sold;

export const stocked = (sku: string, amount: number): Stocked => ({
  type: "Stocked",
  data: { sku, amount },
  tags: [`sku:${sku}`],
});
export const sold = (sku: string, amount: number): Sold => ({
  type: "Sold",
  data: { sku, amount },
  tags: [`sku:${sku}`],
});

export const shopModel: ReturnType<typeof modelsOf<Shop>> = modelsOf<Shop>();

export const stockOf = (sku: string) =>
  shopModel({
    query: { types: ["Stocked", "Sold"], tags: [`sku:${sku}`] },
    initial: 0,
    apply: (stock, { type, data }) => (type === "Stocked" ? stock + data.amount : stock - data.amount),
  });

/** Callers wait until `count` of them have come; later ones do not wait. */
export function meeting(size: number): () => Promise<void> {
  let missing = size;
  const { promise, open } = door();
  return async () => {
    if (--missing <= 0) open();
    await promise;
  };
}

function door(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => (open = resolve));
  return { promise, open };
}
