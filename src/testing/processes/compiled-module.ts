// Where the compiled form of a module lies: children run JavaScript, because the oldest Node that
// we support does not read TypeScript.
import { fileURLToPath } from "node:url";

/** `src/` or `dist/`, whichever this file was loaded from. */
const here = new URL("../../", import.meta.url).href;

/**
 * The path of the JavaScript of a module of this package, given as `new URL("./worker.ts",
 * import.meta.url)`. Loaded from `dist/` it lies beside the asker; a test runner that loads
 * TypeScript from `src/` gets the one in `dist/`, which must have been built before.
 */
export function compiledModule(url: URL): string {
  const isSource = import.meta.url.endsWith(".ts");
  const base = isSource ? new URL("../dist/", here).href : here;
  if (!url.href.startsWith(here)) throw new RangeError(`${url.href} is not a module of this package.`);
  return fileURLToPath(base + url.href.slice(here.length).replace(/\.ts$/, ".js"));
}
