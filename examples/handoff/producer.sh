#!/bin/sh
# Publishes files as one ticket: producer.sh BOX FILE...   (KEY=… in the environment: its idempotency key)
set -eu
. "$(dirname "$0")/box.sh"
[ $# -ge 2 ] || { echo "usage: producer.sh BOX FILE..." >&2; exit 2; }
must_be_box "$1"
box=$1 && shift
id=$(new_id) now=$(now_s) total=0 files='' inline=''
for path in "$@"; do total=$((total + $(wc -c <"$path"))); done

if [ "$total" -gt 65536 ]; then
  payload=$box/data/$(printf '%s' "$id" | tail -c 2)/$id
  make "$payload"
fi
for path in "$@"; do
  name=$(basename "$path")
  source=$path
  if [ "$total" -gt 65536 ]; then
    source=$payload/$name # What is hashed is what stays.
    cp "$path" "$source" && sync "$source"
  else
    inline=$inline,\"$name\":\"$(base64 <"$path" | tr -d '\n')\"
  fi
  files=$files,{\"name\":\"$name\",\"size\":$(($(wc -c <"$source"))),\"sha256\":\"$(sha256sum <"$source" | cut -c1-64)\"}
done
[ "$total" -le 65536 ] || sync "$payload"

body="{\"id\":\"$id\",\"key\":\"${KEY:-$id}\",\"isKeyed\":false,\"files\":[${files#,}]"
body="$body,\"createdAt\":\"$(date -u +%Y-%m-%dT%H:%M:%S.000Z)\",\"producer\":{\"host\":\"$(uname -n)\",\"pid\":$$}"
[ -z "$inline" ] || inline=",\"inline\":{${inline#,}}"
make "$box/foreign" && make "$box/incoming/5"
record ticket "$body,\"priority\":5$inline}" >"$box/foreign/$id.json"
sync "$box/foreign/$id.json"
minute=$(printf '%010d' $((now / 60)))
move "$box/foreign/$id.json" "$box/incoming/5/$minute" "$id-0.json"
sync "$box/incoming/5/$minute" "$box/incoming/5"
echo "$id"
