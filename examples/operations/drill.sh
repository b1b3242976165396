#!/bin/sh
# A disaster drill: copies a restored backup into an empty folder, checks it, and works with it. It does not touch
# the copy, only prints statistics of the store in use, and ends with 0 only if everything worked.
#
#   sh drill.sh COPY [STORE]
#
# COPY   a copy of a store: what `holdfast restore` has made of a backup, or a snapshot
# STORE  the store in use; its statistics are printed beside those of the copy: the difference would be lost
#
# HOLDFAST names the command line (default: holdfast), TMPDIR the place for the restored store.
set -eu

copy=${1:?usage: sh drill.sh COPY [STORE]}
store=${2-}
holdfast() { command ${HOLDFAST:-holdfast} "$@"; }
began=$(date +%s)
place=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-drill.XXXXXX")
restored=$place/store

end() {
  status=$?
  if [ -s "$place/holder" ]; then kill -9 $(cat "$place/holder") 2>/dev/null || true; fi
  rm -rf "$place"
  if [ $status -eq 0 ]; then echo "== the drill has passed, in $(($(date +%s) - began)) s"; else echo "== the drill has FAILED with $status" >&2; fi
}
trap end EXIT
trap 'exit 130' INT TERM

echo "== restore the copy into an empty folder"
cp -Rp "$copy" "$restored"

echo "== verify every part of it"
holdfast verify "$restored"

echo "== what it holds"
holdfast stats "$restored"
if [ -n "$store" ]; then
  echo "== what the store in use holds"
  holdfast stats "$store"
fi

echo "== append an event, and read it back"
holdfast events append "$restored" --log drill --type DrillHeld --quiet
holdfast events read "$restored" --log drill | grep -q DrillHeld

echo "== pass a file on, and acknowledge it"
echo probe > "$place/probe"
holdfast handoff put "$restored" --box drill --quiet "$place/probe" > "$place/id"
claim=$(holdfast handoff take "$restored" --box drill --for 10m --quiet | head -1)
holdfast handoff ack "$restored" "$claim" --box drill --quiet
holdfast handoff show "$restored" "$(cat "$place/id")" --box drill --json | grep -q '"state":"archive"'

echo "== kill a process that holds a lock: the next one must get it"
holdfast run --store "$restored" --lock drill -- sh -c 'echo $PPID $$ > "$0.new"; mv "$0.new" "$0"; exec sleep 600' "$place/holder" &
while [ ! -s "$place/holder" ]; do
  kill -0 $! || exit 1 # it ended without the lock
  sleep 1
done
kill -9 $(cat "$place/holder")
wait $! || true
rm "$place/holder"
holdfast run --store "$restored" --lock drill --timeout 10m -- true

echo "== verify it again"
holdfast verify "$restored" --quiet > /dev/null
