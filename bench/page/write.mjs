// Writes docs/benchmarks.md and its curves from bench/result.json. By itself: node bench/page/write.mjs [FILE]
import { existsSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { writeBlocks } from "../../tools/generated-block.mjs";
import { readResult } from "../result.mjs";
import { drawCurve } from "./curve.mjs";
import { blocksFor, curveName } from "./page.mjs";

const inRepository = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
export const resultFile = inRepository("bench/result.json");

export async function writePage(file = resultFile) {
  const result = existsSync(file) ? readResult(file) : undefined;
  for (const curve of result?.curves ?? [])
    writeFileSync(inRepository(`docs/images/${curveName(curve.part)}`), drawCurve(curve));
  await writeBlocks(inRepository("docs/benchmarks.md"), blocksFor(result));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writePage(process.argv[2]);
