// Replaces the generated blocks of a page: what stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
// All other lines are written by people and stay.
import { readFileSync, writeFileSync } from "node:fs";
import { format } from "prettier";

const blockPattern = /(<!-- begin ([a-z0-9: -]+) -->\n)([^]*?)(<!-- end \2 -->)/g;

/** The text of each block of a page, by name. */
export function blocksOf(page) {
  return Object.fromEntries([...page.matchAll(blockPattern)].map(([, , name, text]) => [name, text.trim()]));
}

/** `page` with the named blocks replaced, formatted as the house formats Markdown. */
export async function withBlocks(page, blocks) {
  const known = blocksOf(page);
  const unknown = Object.keys(blocks).filter((name) => !(name in known));
  if (unknown.length > 0) throw new Error(`The page has no block ${unknown.join(", ")}.`);
  const replaced = page.replace(blockPattern, (whole, begin, name, _text, end) =>
    name in blocks ? `${begin}\n${blocks[name]}\n\n${end}` : whole,
  );
  return await format(replaced, { parser: "markdown", printWidth: 120 });
}

export async function writeBlocks(path, blocks) {
  const page = readFileSync(path, "utf8");
  const written = await withBlocks(page, blocks);
  if (written !== page) writeFileSync(path, written);
}
