// The completion script for bash 3.2 and newer, without the package bash-completion.
import type { TableRow } from "./completion-table.ts";

export function bashScript(table: readonly TableRow[]): string {
  const rows = table.map(({ at, verbs, options, files, values, runsCommand }) => {
    const set = [
      `verbs=${quoted(verbs.map(({ word }) => word).join(" "))}`,
      `options=${quoted(options.map(({ word }) => word).join(" "))}`,
      `files=${quoted(files.join(" "))}`,
      `values=${quoted(values.join(" "))}`,
      `runs=${runsCommand ? "yes" : "''"}`,
    ];
    return `    ${quoted(at)}) ${set.join(" ")} ;;`;
  });
  const choices = table.flatMap(({ at, choices: all }) =>
    all.map((each) => `    ${quoted(`${at} ${each.option}`)}) choices=${quoted(each.values.join(" "))} ;;`),
  );
  return `# Completion of holdfast for bash.
# To use it now: source <(holdfast completion bash)
# To keep it: holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast

_holdfast_row() {
  case $1 in
${rows.join("\n")}
    *) verbs='' ;;
  esac
}

_holdfast_choices() {
  choices=''
  case $1 in
${choices.join("\n")}
  esac
}

_holdfast() {
  local at='' taking='' verbs options files values runs choices each i
  local word=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  _holdfast_row ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    each=\${COMP_WORDS[i]}
    if [[ $each == = ]]; then continue; fi # bash splits --name=value into three words
    if [[ -n $taking ]]; then taking=''; continue; fi
    if [[ $each == -- ]]; then
      if [[ -n $runs && $COMP_CWORD -eq $((i + 1)) ]]; then COMPREPLY=($(compgen -c -- "$word")); fi
      return
    elif [[ $each == -* ]]; then
      if [[ " $files $values " == *" $each "* ]]; then taking=$each; fi
    elif [[ " $verbs " == *" $each "* ]]; then
      at=\${at:+$at }$each
      _holdfast_row "$at"
    elif [[ -n $runs ]]; then
      return
    fi
  done
  if [[ $word == = ]]; then word=''; fi
  if [[ -n $taking ]]; then
    if [[ " $files " == *" $taking "* ]]; then return; fi
    _holdfast_choices "$at $taking"
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
    compopt +o default 2>/dev/null # not known to bash 3.2, which offers files then
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $verbs ]]; then
    COMPREPLY=($(compgen -W "$verbs" -- "$word"))
    compopt +o default 2>/dev/null
  fi
}

# Without an answer, bash offers files.
complete -o default -F _holdfast holdfast
`;
}

/** Quotes a text for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
