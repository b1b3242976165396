// Makes sure that there is a Chromium for the tests in a browser: installs Debian's package if this user may, and says how
// otherwise.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const path = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
if (!existsSync(path)) {
  const isAllowed = process.env["CHROMIUM"] === undefined && process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
  const run = (...args) => spawnSync("apt-get", args, { stdio: ["ignore", "ignore", "inherit"] }).status === 0;
  if (isAllowed && run("update")) run("install", "-y", "--no-install-recommends", "chromium");
  if (!existsSync(path)) {
    console.error(`There is no Chromium at ${path}. Install it (Debian: apt-get install chromium), or name another one: CHROMIUM=/path npm run test:browser`); // prettier-ignore
    process.exit(1);
  }
}
