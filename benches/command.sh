#!/usr/bin/env bash
# Start, lock, run `true`, release: `redlatch run` beside flock, a bare `redis-cli SET` and `DEL` to five
# servers one after another, the same to all five at once, and `etcdctl lock`, on this machine in one run.
# Prints the median of each in milliseconds.
#
#     cargo build --release -p redlatch-cli && benches/command.sh target/release/redlatch
#
# Needs redis-server, redis-cli and flock; etcd and etcdctl if they are there.
set -euo pipefail
redlatch=${1:-target/release/redlatch}
runs=${RUNS:-101}
# shellcheck source=benches/five_servers.sh
source "${BASH_SOURCE%/*}/five_servers.sh" 27311

with_redlatch() { "$redlatch" --no-restart-guard run name -- true; }
with_flock() { flock "$folder/lock" true; }
with_redis_cli() {
  for port in "${ports[@]}"; do redis-cli -p "$port" SET name token NX PX 30000 >/dev/null; done
  true
  for port in "${ports[@]}"; do redis-cli -p "$port" DEL name >/dev/null; done
}
with_five_at_once() {
  local clients=()
  for port in "${ports[@]}"; do
    redis-cli -p "$port" >/dev/null <<<$'SET name token NX PX 30000\nDEL name' &
    clients+=($!)
  done
  true
  wait "${clients[@]}"
}
with_etcdctl() { etcdctl --endpoints "http://127.0.0.1:27411" lock name true >/dev/null 2>&1; }

ways=(redlatch flock redis_cli five_at_once)
if command -v etcd >/dev/null && command -v etcdctl >/dev/null; then
  etcd --data-dir "$folder/etcd" --listen-client-urls http://127.0.0.1:27411 \
    --advertise-client-urls http://127.0.0.1:27411 --listen-peer-urls http://127.0.0.1:27412 \
    >/dev/null 2>&1 &
  pids+=($!)
  export ETCDCTL_API=3
  until etcdctl --endpoints http://127.0.0.1:27411 endpoint health >/dev/null 2>&1; do sleep 0.1; done
  ways+=(etcdctl)
fi

# In turns, so that what else the machine does hits all of them.
for way in "${ways[@]}"; do "with_$way"; done
for ((run = 0; run < runs; run++)); do
  for way in "${ways[@]}"; do
    start=${EPOCHREALTIME/./}
    "with_$way"
    echo $((${EPOCHREALTIME/./} - start)) >>"$folder/$way"
  done
done
for way in "${ways[@]}"; do
  sort -n "$folder/$way" | awk -v way="$way" \
    '{ times[NR] = $1 } END { printf "%-12s median %6.2f ms  90%% within %6.2f ms\n", way,
      times[int((NR + 1) / 2)] / 1000, times[int(NR * 0.9)] / 1000 }'
done
