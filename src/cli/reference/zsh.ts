// The completion script for zsh: to be sourced after compinit, or kept as _holdfast in $fpath. No variable is named
// `options`, which zsh has already.
import { quoted } from "./bash.ts";
import type { Candidate, TableRow } from "./completion-table.ts";

export function zshScript(table: readonly TableRow[]): string {
  const rows = table.map(({ at, verbs, options, files, values, runsCommand }) => {
    const set = [
      `names=${quoted(verbs.map(({ word }) => word).join(" "))}`,
      `verbs=(${listed(verbs)})`,
      `flags=(${listed(options)})`,
      `files=${quoted(files.join(" "))}`,
      `values=${quoted(values.join(" "))}`,
      `runs=${runsCommand ? "yes" : "''"}`,
    ];
    return `    ${quoted(at)})\n      ${set.join("\n      ")} ;;`;
  });
  const choices = table.flatMap(({ at, choices: all }) =>
    all.map((each) => `    ${quoted(`${at} ${each.option}`)}) choices=(${each.values.map(quoted).join(" ")}) ;;`),
  );
  return `#compdef holdfast
# Completion of holdfast for zsh.
# To use it now, after compinit: source <(holdfast completion zsh)
# To keep it, in a folder of $fpath: holdfast completion zsh > ~/.zfunc/_holdfast

_holdfast_row() {
  case $1 in
${rows.join("\n")}
    *) names='' verbs=() ;;
  esac
}

_holdfast_choices() {
  choices=()
  case $1 in
${choices.join("\n")}
  esac
}

_holdfast() {
  local at='' taking='' names files values runs each word
  local -a verbs flags choices
  local -i i
  _holdfast_row ''
  for ((i = 2; i < CURRENT; i++)); do
    each=\${words[i]}
    if [[ -n $taking ]]; then taking=''; continue; fi
    if [[ $each == -- ]]; then
      if [[ -n $runs ]] && ((i + 1 == CURRENT)); then _command_names -e; else _files; fi
      return
    elif [[ $each == -* ]]; then
      if [[ " $files $values " == *" $each "* ]]; then taking=$each; fi
    elif [[ " $names " == *" $each "* ]]; then
      at=\${at:+$at }$each
      _holdfast_row "$at"
    elif [[ -n $runs ]]; then
      _files
      return
    fi
  done
  word=\${words[CURRENT]}
  if [[ -z $taking && $word == --*=* ]]; then
    taking=\${word%%=*}
    compset -P '*='
  fi
  if [[ -n $taking ]]; then
    if [[ " $files " == *" $taking "* ]]; then
      _files
    else
      _holdfast_choices "$at $taking"
      if ((\${#choices})); then _describe -t values 'value' choices; else _message 'value'; fi
    fi
  elif [[ $word == -* ]]; then
    _describe -t options 'option' flags
  elif ((\${#verbs})); then
    _describe -t commands 'command' verbs
  else
    _files
  fi
}

# zsh calls a file of $fpath as the function itself; a sourced file registers it.
if [[ \${funcstack[1]} == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

/** `_describe` ends the word at the first colon. */
function listed(candidates: readonly Candidate[]): string {
  return candidates.map(({ word, description }) => quoted(`${word}:${description}`)).join(" ");
}
