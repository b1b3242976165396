// Locates the compiled form of a module: child processes run JavaScript, because the oldest Node that
// we support does not read TypeScript.
import { fileURLToPath } from "node:url";

/** The tree that this file was loaded from: the repository, or its compiled form in `dist-harness/`. */
const here = new URL("../../", import.meta.url).href;

/**
 * Returns the path of the JavaScript of a module of `harness/` or `src/`, given as
 * `new URL("./worker.ts", import.meta.url)`. A test runner loads TypeScript, and gets the path in
 * `dist-harness/`, which must have been built before.
 */
export function compiledModule(url: URL): string {
  const isSource = import.meta.url.endsWith(".ts");
  const base = isSource ? new URL("dist-harness/", here).href : here;
  if (!url.href.startsWith(here)) throw new RangeError(`${url.href} is not a module of this repository.`);
  return fileURLToPath(base + url.href.slice(here.length).replace(/\.ts$/, ".js"));
}
