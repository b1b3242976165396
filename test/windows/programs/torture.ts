// Tortures one part as Windows processes. Arguments: the file for the result, and the orders as JSON.
import { writeFileSync } from "node:fs";
import { torture } from "../../../harness/torture/torture.ts";
import type { TortureOrders } from "./orders.ts";

const [, , resultPath = "", ordersText = ""] = process.argv;
const orders = JSON.parse(ordersText) as TortureOrders;

const result = await torture({
  ...orders,
  onProgress: (figures) => console.log(JSON.stringify(figures)),
});
writeFileSync(resultPath, JSON.stringify(result));
process.exit();
