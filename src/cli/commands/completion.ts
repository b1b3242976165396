// The command `holdfast completion`: prints the script that completes commands in a shell.
import { Argument, type Command } from "commander";
import { endHelp } from "../help.ts";
import { bashScript } from "../reference/bash.ts";
import { pagesOf } from "../reference/command-page.ts";
import { tableOf, type TableRow } from "../reference/completion-table.ts";
import { fishScript } from "../reference/fish.ts";
import { zshScript } from "../reference/zsh.ts";
import type { Run } from "../run.ts";

const scripts: Readonly<Record<string, (table: readonly TableRow[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function registerCompletion(command: Command, run: Run): void {
  command
    .description(
      "Prints the script that completes commands and options in a shell. Its first lines say how to keep it.",
    )
    .addArgument(new Argument("<SHELL>", "the shell").choices(Object.keys(scripts)))
    .action(async (shell: string) => {
      const script = scripts[shell]?.(tableOf(pagesOf(await run.loadProgram()))) ?? "";
      run.output.result({ shell, script }, () => script.trimEnd());
    });
  endHelp(command, {
    examples: [
      "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
      "source <(holdfast completion bash)",
    ],
    exits: { done: "printed", wrongUsage: "wrong usage" },
  });
}
