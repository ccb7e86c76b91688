#!/usr/bin/env bash
# What programs cost each of five nodes: processes that keep a lock alive, that wait for one lock, and that
# wait for a lock each. Prints processor time and memory of a node for each process; what the processes before
# cost is taken off. `src/guide/scale.md` has figures.
#
#     cargo build --release -p redlatch-cli && benches/scale.sh target/release/redlatch
#
# Needs redis-server and redis-cli. COUNT processes of each kind (300; a thousand of the
# last kind are more than two cores can do), watched for SECONDS_EACH (30).
set -euo pipefail
redlatch=${1:-target/release/redlatch}
count=${COUNT:-300}
seconds=${SECONDS_EACH:-30}
# shellcheck source=benches/five_servers.sh
source "${BASH_SOURCE%/*}/five_servers.sh" 27321 --maxclients 19000

# Microseconds of processor time, and resident bytes, of all nodes.
used() {
  for port in "${ports[@]}"; do redis-cli -p "$port" info everything; done | tr -d '\r' |
    awk -F: '/^used_cpu_(sys|user):/ { cpu += $2 } /^used_memory_rss:/ { rss += $2 }
      END { printf "%d %d\n", cpu * 1e6, rss }'
}
connected() {
  redis-cli -p "${ports[0]}" info clients | tr -d '\r' | awk -F: '/^connected_clients:/ { print $2 }'
}

# What all nodes take together, in microseconds of processor time each second.
rate() {
  local before after
  read -r before _ < <(used)
  sleep "$seconds"
  read -r after _ < <(used)
  echo $(((after - before) / seconds))
}

# What a node takes at rest for each of the processes that `start` adds.
measure() {
  local what=$1 start=$2 before after joined rate
  read -r _ before < <(used)
  joined=$(connected)
  for ((index = 0; index < count; index++)); do
    "$start" "$index" >/dev/null 2>&1 &
    pids+=($!)
  done
  until (($(connected) >= joined + count)); do sleep 1; done
  sleep 10
  read -r _ after < <(used)
  rate=$(rate)
  awk -v what="$what" -v rate=$((rate - so_far)) -v memory=$((after - before)) \
    -v each=$((count * ${#ports[@]})) 'BEGIN {
      printf "%-24s %6.1f µs/s of a node, %5.1f KB\n", what, rate / each, memory / each / 1000 }'
  so_far=$rate
}

# Each takes the place of its shell, so that the trap ends it.
run() { exec "$redlatch" --no-restart-guard --node-timeout 5s run --ttl 30s "$@"; }
keep() { run "kept:$1" -- sleep 1h; }
wait_for_one() { run kept:0 --wait 1h -- true; }
wait_for_own() { run "kept:$1" --wait 1h -- true; }

so_far=$(rate)
measure "keeps a lock" keep
measure "waits for one lock" wait_for_one
measure "waits for its own lock" wait_for_own
