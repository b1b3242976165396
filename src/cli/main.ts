#!/usr/bin/env node
// The command `holdfast`: tells its version at once, and loads the command line for all else.
import { version } from "../index.ts";

const [word, ...more] = process.argv.slice(2);
// Scripts ask for it often, and parsing options costs half as much again as starting Node.
if (more.length === 0 && (word === "--version" || word === "-V")) process.stdout.write(`${version}\n`);
else await import("./process.ts");
