// What is to be tested: a program takes the location of its store, and does not care what it is.
import { openStore } from "holdfast";

export async function openStock(location: string) {
  const store = await openStore(location);
  const files = await store.files({ index: false });
  return {
    move: (sku: string, pieces: number) =>
      files.updateText(`stock/${sku}.txt`, (text) => {
        const left = Number(text ?? 0) + pieces;
        if (left < 0) throw new RangeError(`only ${text ?? 0} of ${sku} left`);
        return String(left);
      }),
    count: async (sku: string) => Number(await files.readText(`stock/${sku}.txt`)),
    close: () => store.close(),
  };
}
