// The completion script for fish 3 and newer.
import type { Candidate, TableRow } from "./completion-table.ts";

export function fishScript(table: readonly TableRow[]): string {
  const rows = table.map(({ at, verbs, options, files, values, runsCommand }) => {
    const set = [
      `set verbs ${listed(verbs)}`,
      `set options ${listed(options)}`,
      `set files ${files.join(" ")}`,
      `set values ${values.join(" ")}`,
      `set runs ${runsCommand ? "yes" : "''"}`,
    ];
    return `        case ${quoted(at)}\n            ${set.map((line) => line.trimEnd()).join("\n            ")}`;
  });
  const choices = table.flatMap(({ at, choices: all }) =>
    all.map(
      (each) =>
        `        case ${quoted(`${at} ${each.option}`)}\n            set choices ${each.values.map(quoted).join(" ")}`,
    ),
  );
  return `# Completion of holdfast for fish.
# To use it now: holdfast completion fish | source
# To keep it: holdfast completion fish > ~/.config/fish/completions/holdfast.fish

function __holdfast_row --no-scope-shadowing
    switch "$argv[1]"
${rows.join("\n")}
        case '*'
            set verbs
    end
end

function __holdfast_choices --no-scope-shadowing
    set choices
    switch "$argv[1]"
${choices.join("\n")}
    end
end

function __holdfast_complete
    set -l at ''
    set -l taking ''
    set -l verbs
    set -l options
    set -l files
    set -l values
    set -l runs ''
    set -l choices
    set -l given (commandline -opc)
    set -l word (commandline -ct)
    set -e given[1]
    __holdfast_row ''
    while set -q given[1]
        set -l each $given[1]
        set -e given[1]
        if test -n "$taking"
            set taking ''
        else if test "$each" = --
            if test -n "$runs"; and not set -q given[1]
                __fish_complete_command
            else
                __fish_complete_path "$word"
            end
            return
        else if string match -q -- '-*' "$each"
            if contains -- "$each" $files $values
                set taking "$each"
            end
        else if contains -- "$each" (string replace -r '\\t.*' '' -- $verbs)
            set at (string trim -- "$at $each")
            __holdfast_row "$at"
        else if test -n "$runs"
            __fish_complete_path "$word"
            return
        end
    end
    set -l prefix ''
    if test -z "$taking"; and string match -q -- '--*=*' "$word"
        set taking (string replace -r '=.*' '' -- "$word")
        set prefix "$taking="
    end
    if test -n "$taking"
        if contains -- "$taking" $files
            __fish_complete_path "$word"
        else
            __holdfast_choices "$at $taking"
            for each in $choices
                echo "$prefix$each"
            end
        end
    else if string match -q -- '-*' "$word"
        printf '%s\\n' $options
    else if set -q verbs[1]
        printf '%s\\n' $verbs
    else
        __fish_complete_path "$word"
    end
end

complete -c holdfast -e
complete -c holdfast -f -a '(__holdfast_complete)'
`;
}

/** A tab separates the word from its description. */
function listed(candidates: readonly Candidate[]): string {
  return candidates.map(({ word, description }) => `${quoted(word)}\\t${quoted(description)}`).join(" ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
