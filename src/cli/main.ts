#!/usr/bin/env node
// The command `holdfast`: prints its version at once, and loads the command line for everything
// else.
import module from "node:module";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isDatabase, redacted } from "../format/database-location.ts";
import { version } from "../index.ts";

const [word, ...more] = process.argv.slice(2);
// Prints the version without parsing the options: scripts ask for it often, and the parser would
// add half of Node's start-up time.
if (more.length === 0 && (word === "--version" || word === "-V")) process.stdout.write(`${version}\n`);
else {
  hidePasswords();
  keepCompiled();
  void import("./process.ts");
}

/** Removes passwords from the process list, which other users of the machine can read. */
function hidePasswords(): void {
  const words = process.argv.slice(2);
  const shown = words.map((each) =>
    each.replace(
      /^(-[^=]*=)?(.*)$/s,
      (_, flag: string | undefined, location: string) =>
        `${flag ?? ""}${isDatabase(location) ? redacted(location) : location}`,
    ),
  );
  if (shown.some((each, index) => each !== words[index])) process.title = ["holdfast", ...shown].join(" ");
}

/**
 * From Node 22.8 on, the compiled program is cached for the next call. Node runs what it finds in
 * the cache, so the folder must be writable only by this user. Node's default folder is not.
 */
function keepCompiled(): void {
  const { enableCompileCache } = module as { enableCompileCache?: (directory: string) => unknown };
  const caches = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  if (isAbsolute(caches)) enableCompileCache?.(join(caches, "holdfast"));
}
