// The harness as a command: `explore` tries all orders of simulated processes, `torture` disturbs
// real ones.
import { Command } from "commander";
import { registerConsole } from "./endurance/command.ts";
import { registerExplore } from "./explore/command.ts";
import { registerTorture } from "./torture/command.ts";

const wrongUsage = 2;

const program = new Command("holdfast-testing")
  .description("Looks for broken promises. Exit codes: 0 none found, 1 found one, 2 wrong usage.")
  // Precedes the commands, which inherit it. Wrong usage must not exit with 1, which reports a
  // broken promise.
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : wrongUsage));

registerExplore(program);
registerTorture(program);
registerConsole(program);
await program.parseAsync();
