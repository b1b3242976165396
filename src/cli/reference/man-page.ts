// The man page: one page for all commands, in the macros of man(7).
import type { CommandPage } from "./command-page.ts";

export function manPage(pages: readonly CommandPage[], version: string): string {
  const [program, ...commands] = pages;
  if (program === undefined) return "";
  const common = program.options.filter(({ names }) => isCommon(names));
  const lines = [
    `.TH HOLDFAST 1 "" "holdfast ${version}" "User Commands"`,
    ".SH NAME",
    `holdfast \\- ${escaped(firstLower(program.description.split(".")[0] ?? ""))}`,
    ".SH SYNOPSIS",
    ".B holdfast",
    ".I COMMAND",
    "[options]",
    ".SH DESCRIPTION",
    escaped(program.description),
    ".PP",
    "Each command has its own help page: holdfast COMMAND \\-\\-help.",
    ".SH OPTIONS",
    "Every command accepts these, wherever they stand:",
    ...common.flatMap(({ term, description }) => item(term, description)),
    ...program.options
      .filter(({ names }) => !isCommon(names))
      .flatMap(({ term, description }) => item(term, description)),
    ".SH COMMANDS",
    ...commands.flatMap(commandLines),
    ".SH EXIT STATUS",
    "Each command uses those that its help page lists.",
    ...program.exits.flatMap(([code, meaning]) => item(code, meaning)),
    ".SH ENVIRONMENT",
    ...item("HOLDFAST_STORE", "the store of holdfast run, if --store is not given"),
    ...item(
      "HOLDFAST_LOCAL",
      "folders, separated as in PATH, that no other machine can reach, where the operating system does not tell",
    ),
    ...item("NO_COLOR", "if set, no colors"),
    ".SH EXAMPLES",
    ...[program, ...commands].flatMap(({ examples }) => examples.flatMap(example)),
    ".SH SEE ALSO",
    "The guides in the folder docs of the package, and README.md.",
  ];
  return `${lines.join("\n")}\n`;
}

/** The options that every command has; the page lists them once. */
function isCommon(names: readonly string[]): boolean {
  return names.some((name) => ["--help", "--json", "--quiet"].includes(name));
}

function commandLines({ words, description, usage, arguments: all, options }: CommandPage): string[] {
  return [
    `.SS "${escaped(`holdfast ${words.join(" ")} ${usage}`)}"`,
    escaped(description),
    ...all.flatMap(({ term, description: what }) => item(term, what)),
    ...options.filter(({ names }) => !isCommon(names)).flatMap(({ term, description: what }) => item(term, what)),
  ];
}

function item(term: string, description: string): string[] {
  return [".TP", `.B ${escaped(term)}`, escaped(description)];
}

function example(line: string): string[] {
  return [".PP", ".nf", escaped(line), ".fi"];
}

/** In roff, a backslash begins a command, a hyphen may become a dash, a leading dot is a macro, and only ASCII is safe. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll('"', "\\(dq")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("\n", " ")
    .replaceAll(/[^\p{ASCII}]/gu, (character) => `\\[u${hex(character)}]`)
    .replace(/^\./, "\\&.");
}

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

function firstLower(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
