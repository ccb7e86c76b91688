#!/usr/bin/env bash
# Five servers for a script that sources this with the first of five ports, and settings. They end with the
# script, as all that is in `pids` does. REDLATCH_NODES names them.
set -euo pipefail
folder=$(mktemp -d)
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT

ports=("$1" $(($1 + 1)) $(($1 + 2)) $(($1 + 3)) $(($1 + 4)))
for port in "${ports[@]}"; do
  redis-server --port "$port" --bind 127.0.0.1 --save "" --dir "$folder" "${@:2}" >/dev/null &
  pids+=($!)
done
for port in "${ports[@]}"; do
  until redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.05; done
done
REDLATCH_NODES=$(printf 'redis://127.0.0.1:%s,' "${ports[@]}")
export REDLATCH_NODES=${REDLATCH_NODES%,}
