// The harness as a command: `explore` tries all orders of simulated processes, `torture` disturbs
// real ones.
import { Command } from "commander";
import { registerExplore } from "./explorer/command.ts";
import { registerTorture } from "./torture/command.ts";

const wrongUsage = 2;

const program = new Command("holdfast-testing")
  .description("Looks for broken promises. Exit codes: 0 none found, 1 found one, 2 wrong usage.")
  // Before any command is added: commands inherit it. 1 would say that a promise is broken.
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : wrongUsage));

registerExplore(program);
registerTorture(program);
await program.parseAsync();
