// Tests without a folder: each has a store of its own in memory, with the same code, locks and errors.
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStock } from "./stock.ts";

let stock: Awaited<ReturnType<typeof openStock>>;
beforeEach(async () => {
  stock = await openStock("memory:");
});
afterEach(async () => {
  await stock.close();
});

test("sales at the same moment are all counted", async () => {
  await stock.move("lamp", 10);
  await Promise.all(Array.from({ length: 10 }, () => stock.move("lamp", -1)));
  expect(await stock.count("lamp")).toBe(0);
});

test("what is not there cannot be sold", async () => {
  await stock.move("lamp", 1);
  await expect(stock.move("lamp", -2)).rejects.toThrow("only 1 of lamp left");
  expect(await stock.count("lamp")).toBe(1);
});

test("an error is known by its code", async () => {
  await expect(stock.count("chair")).rejects.toMatchObject({ code: "NO_SUCH_FILE" });
});
