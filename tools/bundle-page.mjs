// Bundles the page of the console into one module of texts, dist/console/page.js. The console serves them from memory: no
// path to files breaks when a program that uses it is bundled.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "rolldown";

const source = fileURLToPath(new URL("../src/console/page", import.meta.url));
const target = fileURLToPath(new URL("../dist/console", import.meta.url));
const bytesMax = 80_000;

const { output } = await build({
  input: `${source}/page.tsx`,
  platform: "browser",
  tsconfig: `${source}/tsconfig.json`,
  output: { format: "esm", minify: true },
  write: false,
});
const [{ code: js }] = output;
const [html, css] = ["page.html", "page.css"].map((name) => readFileSync(`${source}/${name}`, "utf8"));
const page = { html, css: css.replaceAll(/\/\*.*?\*\/|^\s+/gms, ""), js };
const bytes = Object.values(page).reduce((sum, text) => sum + gzipSync(text).length, 0);
if (bytes > bytesMax) throw new Error(`The page has ${bytes} bytes (gzip), more than ${bytesMax}.`);
mkdirSync(target, { recursive: true });
writeFileSync(`${target}/page.js`, `export const page = ${JSON.stringify(page)};\n`);
writeFileSync(`${target}/page.d.ts`, "export declare const page: { readonly html: string; readonly css: string; readonly js: string };\n"); // prettier-ignore
if (process.argv.includes("--size")) console.log(`${bytes} bytes (gzip)`);
