#!/bin/sh
# Works tickets with a command: consumer.sh BOX COMMAND   (COMMAND FILE...; exit 0: done, 65: failed, else: later)
# HOLD_S (600): how long one ticket may take. UNTIL_EMPTY=1: end when there is nothing to do.
set -u
. "$(dirname "$0")/box.sh"
[ $# -ge 2 ] || { echo "usage: consumer.sh BOX COMMAND" >&2; exit 2; }
must_be_box "$1"
box=$1 command=$2 hold=${HOLD_S:-600} attempts=5 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make "$box/parked"

# The parts of a record before `meta`, in which a producer may have written anything.
facts() { sed 's/,"meta":.*//' "$1"; }
is_ticket_name() { printf '%s' "$1" | grep -qx "$2[0-9a-hjkmnp-tv-z]\{36\}-[0-9]*\(~[0-9]*\)\{0,1\}\(@[0-9]*\)\{0,1\}\.json"; }

# Delayed tickets whose time has come, and claims whose worker died or was too slow.
give_back_due() {
  for path in "$box"/parked/*.json "$box"/delayed/*/*.json; do
    name=$(basename "$path")
    is_ticket_name "$name" '[0-9]\{16\}-' && [ "$(printf '%s' "$name" | cut -c1-13)" -lt "$(now_s)" ] || continue
    is_whole ticket "$path" 2>/dev/null || continue # Moved on; or damaged, and a worker of Holdfast sees to it.
    facts "$path" | grep -q ',"group":"' && continue # Groups have an order: a worker of Holdfast moves them.
    priority=$(facts "$path" | sed -n 's/.*,"priority":\([0-9]\).*/\1/p')
    move "$path" "$box/incoming/$priority/$(printf '%010d' $(($(now_s) / 60)))" "${name#*-}"
  done
}

# Sets `claimed`. The rename is the one step that decides.
claim() {
  for path in "$box"/incoming/[0-9]/*/*.json; do
    name=$(basename "$path")
    is_ticket_name "$name" '' || continue
    # A key with an escape cannot be hashed here: such a ticket is left to other workers.
    facts "$path" 2>/dev/null | grep -q '"key":"[^"\\]*","isKeyed"' || continue
    rest=${name#*-} && claims=${rest%%[!0-9]*}
    claimed=$box/parked/$(printf '%016d' $((($(now_s) + hold) * 1000)))-${name%%-*}-$((claims + 1))${rest#"$claims"}
    mv "$path" "$claimed" 2>/dev/null && return 0
  done
  return 1
}

# settle STATE OUTCOME REASON [DUE]
settle() {
  reason=$(printf '%s' "$3" | LC_ALL=C tr -cd ' !#-[]-~' | head -c 4000)
  note="{\"attempt\":$attempt,\"at\":\"$at\",\"outcome\":\"$2\",\"reason\":\"$reason\",\"holder\":\"$me\"${4:+,\"dueMs\":${4}000}}"
  record note "$note" | put_once "$box" "$box/notes/$(printf '%s' "$id" | tail -c 3)/$id-$claims.json"
  if [ -n "${4:-}" ]; then move "$claimed" "$box/$1/$(printf '%010d' $(($4 / 60)))" "$(printf '%016d' "${4}000")-$plain"
  else day=$box/$1/$(date -u +%Y%m%d) && move "$claimed" "$day" "$plain" && sync "$day"; fi
}

# The key is committed. With outputs, or in a block of old entries, it is left to a worker of Holdfast, when it is due.
finish() {
  [ -f "$ledger" ] && is_whole ledger "$ledger" && grep -q '"sent":\[\]},"crc":' "$ledger" || return 0
  grep -q "\"id\":\"$id\"" "$ledger" || plain=${plain%.json}-duplicate.json
  move "$claimed" "$box/archive/$(date -u +%Y%m%d)" "$plain"
}

# file NAME: its content, from the ticket or from beside it.
file() {
  payload=$box/data/$(printf '%s' "$id" | tail -c 2)/$id
  if [ -d "$payload" ]; then cat "$payload/$1"; else
    sed -n 's/.*,"inline":{\(.*\)}},"crc":"[0-9a-f]*"}$/\1/p' "$claimed" | sed 's/","/"\
"/g' | awk -v n="$1" 'index($0, "\"" n "\":\"") == 1 { v = substr($0, length(n) + 5); sub(/"$/, "", v); print v }' | base64 -d
  fi
}

work() {
  plain=$(basename "$claimed") && plain=${plain#*-} && id=${plain%%-*} && rest=${plain#*-} && rest=${rest%.json}
  claims=${rest%%[!0-9]*} forgiven=0 replays=0 at=$(date -u +%Y-%m-%dT%H:%M:%S.000Z) me="consumer.sh $$"
  case $rest in *~*) forgiven=${rest#*~} && forgiven=${forgiven%%@*} ;; esac
  case $rest in *@*) replays=${rest#*@} ;; esac
  attempt=$((claims - forgiven))
  [ -e "$claimed" ] || return # Its time was over already.
  is_whole ticket "$claimed" || { settle error fail 'its checksum does not match its content'; return; }
  key=$(sed -n 's/^{"kind":"ticket","format":1,"by":"[^"]*","body":{"id":"[^"]*","key":"\([^"\\]*\)".*/\1/p' "$claimed")
  hash=$(if [ "$replays" = 0 ]; then printf '%s' "$key"; else printf '%s\n%s' "$key" "$replays"; fi | sha256sum | cut -c1-64)
  ledger=$box/ledger/$(printf '%s' "$hash" | cut -c1-3)/$hash
  [ -e "$ledger" ] && { finish; return; }
  [ "$attempt" -gt "$attempts" ] && { settle error lost "$((attempt - 1)) attempts ended without an answer."; return; }
  expires=$(facts "$claimed" | sed -n 's/.*,"expiresAt":"\([^"]*\)".*/\1/p')
  [ -n "$expires" ] && [ "$(printf '%s\n%s\n' "$expires" "${at%000Z}999Z" | sort | head -n 1)" = "$expires" ] &&
    { settle error expired "It was not delivered before $expires."; return; }
  rm -rf "$work/files" && mkdir "$work/files"
  facts "$claimed" | sed 's/.*,"isKeyed":[a-z]*,"files":\[//; s/\],"createdAt":.*//; s/{"name":"/\
/g' | sed -n 's/^\([^"]*\)","size":\([0-9]*\),"sha256":"\([0-9a-f]*\)".*/\2 \3 \1/p' >"$work/list"
  set --
  while read -r size sha256 name; do
    name=$(basename "$name") # A name with a path in it must not leave its directory.
    file "$name" >"$work/files/$name"
    [ "$(($(wc -c <"$work/files/$name")))" = "$size" ] && [ "$(sha256sum <"$work/files/$name" | cut -c1-64)" = "$sha256" ] ||
      { settle error mismatch "The file $name is not what its manifest says."; return; }
    set -- "$@" "$work/files/$name"
  done <"$work/list"
  "$command" "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  [ "$code" = 65 ] || { [ "$code" != 0 ] && [ "$attempt" -ge "$attempts" ]; } && { settle error fail "$(cat "$work/err")"; return; }
  [ "$code" != 0 ] && { settle delayed retry "$(cat "$work/err")" $(($(now_s) + (1 << attempt))); return; }
  kept=$box/parked/$(printf '%016d' $((($(now_s) + hold) * 1000)))-$plain
  # Given back: not ours any more, and nothing of it is committed.
  if [ "$kept" = "$claimed" ]; then [ -e "$kept" ] || return; else mv "$claimed" "$kept" 2>/dev/null || return; fi
  claimed=$kept
  result=$(LC_ALL=C tr -cd ' !#-[]-~' <"$work/out")
  body="{\"key\":\"$key\",\"id\":\"$id\",\"claims\":$claims,\"replays\":$replays,\"holder\":\"$me\",\"at\":\"$at\""
  record ledger "$body,\"result\":\"$result\",\"outputs\":[],\"sent\":[]}" | put_once "$box" "$ledger"
  finish
}

while :; do
  must_be_box "$box"
  give_back_due
  if [ ! -e "$box/pause.json" ] && claim; then work; elif [ -n "${UNTIL_EMPTY:-}" ]; then break; else sleep 1; fi
done
