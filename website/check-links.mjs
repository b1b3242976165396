// Fails if a link, an anchor or an image of the built site leads nowhere. Follows links within the site only.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

const site = join(import.meta.dirname, ".vitepress/dist");
const base = process.env.SITE_BASE ?? "/";
const pages = readdirSync(site, { recursive: true, encoding: "utf8" })
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => path.endsWith(".html"));

const unescaped = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"); // prettier-ignore
const valuesOf = (html, attributes) =>
  [...html.matchAll(new RegExp(`\\s(?:${attributes})="([^"]*)"`, "g"))].map(([, value]) => unescaped(value));

const htmlOf = new Map(pages.map((page) => [page, readFileSync(join(site, page), "utf8")]));
const anchorsOf = new Map([...htmlOf].map(([page, html]) => [page, new Set(valuesOf(html, "id"))]));

/** What is wrong with a link of a page, if anything is. */
function faultOf(page, link) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(link)) return undefined;
  const [target = "", anchor = ""] = link.split("#").map(decodeURIComponent);
  if (target.startsWith("/") && !target.startsWith(base)) return `is outside of ${base}`;
  const path = target.startsWith("/")
    ? target.slice(base.length)
    : posix.join(posix.dirname(page), target === "" ? posix.basename(page) : target);
  const file = path === "" || path.endsWith("/") ? `${path}index.html` : path;
  if (!existsSync(join(site, file))) return "does not exist";
  return anchor === "" || !anchorsOf.has(file) || anchorsOf.get(file).has(anchor) ? undefined : "has no such anchor";
}

const faults = new Set();
let count = 0;
for (const [page, html] of htmlOf) {
  for (const link of valuesOf(html, "href|src")) {
    count++;
    const fault = faultOf(page, link);
    if (fault !== undefined) faults.add(`${page}: ${link} ${fault}`);
  }
}
for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages, ${count} links, ${faults.size} broken`);
if (pages.length === 0 || faults.size > 0) process.exitCode = 1;
