# What a producer and a consumer of a Holdfast box share: docs/format/handoff.md, the smallest safe way.
# Needs beside POSIX: base64, gzip, sha256sum, and a `sync` that takes paths (all of GNU coreutils, busybox).

# By the clock of this machine, which must be right to a few seconds; box.py asks the file server for the time.
now_s() { date +%s; }

# An id: ten digits of the time, 26 random ones.
new_id() {
  awk -v ms="$(now_s)000" 'BEGIN {
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    for (i = 0; i < 10; i++) { id = substr(digits, ms % 32 + 1, 1) id; ms = int(ms / 32) }
    printf "%s", id }'
  LC_ALL=C tr -dc '0-9a-hjkmnp-tv-z' </dev/urandom | head -c 26
}

# The CRC-32 of its input: the end of a gzip file has it, lowest byte first.
crc32() { gzip -c | tail -c 8 | od -An -tx1 -N4 | awk '{ print $4 $3 $2 $1 }'; }

# record KIND BODY
record() {
  head=$(printf '{"kind":"%s","format":1,"by":"box.sh","body":%s' "$1" "$2")
  printf '%s,"crc":"%s"}\n' "$head" "$(printf '%s' "$head" | crc32)"
}

# A record that is whole, of the formats that the pattern allows: is_whole KIND FILE [PATTERN]
is_whole() {
  case $(head -c 40 "$2") in "{\"kind\":\"$1\",\"format\":"${3:-1},*) ;; *) return 1 ;; esac
  [ "$(sed 's/,"crc":"[0-9a-f]*"}$//' "$2" | tr -d '\n' | crc32)" = "$(sed -n 's/.*,"crc":"\([0-9a-f]*\)"}$/\1/p' "$2")" ]
}

# A share that is not mounted is an empty folder: what is written there is found by no worker.
must_be_box() {
  # Format 2 differs in keys/ only, which neither of the two programs touches.
  is_whole box "$1/box.json" '[12]' 2>/dev/null && return
  echo "there is no box in $1: is the share mounted?" >&2
  exit 1
}

# A directory that stays, durable.
make() { [ -d "$1" ] || { make "$(dirname "$1")" && { mkdir "$1" 2>/dev/null || [ -d "$1" ]; } && sync "$(dirname "$1")"; }; }

# move SOURCE DIRECTORY NAME: the directory may be removed at any moment.
move() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    mkdir -p "$2" && mv "$1" "$2/$3" 2>/dev/null && return 0
    [ -e "$1" ] || { [ -e "$2/$3" ]; return; }
  done
  return 1
}

# put_once BOX PATH: publishes its input under a name that is won once.
put_once() {
  make "$1/foreign" && make "$(dirname "$2")" && temp=$1/foreign/$(new_id).json && cat >"$temp" && sync "$temp"
  link "$temp" "$2" 2>/dev/null || cmp -s "$temp" "$2" # Equal: the answer to our own first request was lost.
  won=$?
  rm -f "$temp"
  sync "$(dirname "$2")"
  return $won
}
