#!/usr/bin/env bash
# What a pair, a free lock that is acquired and released, takes of the client in instructions in user space: of
# redlatch, of the probe (`benches/versus/src/peers/probe.rs`) and of rslock, each with one thread and five
# servers. valgrind counts them, so it needs no counter of the processor; the kernel's are not counted. Two runs of
# different numbers of pairs are subtracted: what connects and warms up is in both.
#
#     cargo build --release --features valgrind --manifest-path benches/versus/Cargo.toml
#     benches/instructions.sh benches/versus/target/release/redlatch-versus
#
# Needs redis-server, redis-cli and valgrind. PAIRS is how many more the second run makes (2000).
set -euo pipefail
versus=${1:-benches/versus/target/release/redlatch-versus}
pairs=${PAIRS:-2000}
# shellcheck source=benches/five_servers.sh
source "${BASH_SOURCE%/*}/five_servers.sh" 27331

# Instructions of a peer that makes so many pairs.
count() {
  valgrind --tool=callgrind --callgrind-out-file="$folder/counted" \
    "$versus" acquire "$1" "$2" "${urls[@]}" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
  awk '/^(totals|summary):/ { print $2; exit }' "$folder/counted"
}

IFS=, read -ra urls <<<"$REDLATCH_NODES"
for peer in redlatch redlatch-drop probe probe-drop rslock-single rslock-threads; do
  few=$(count "$peer" 500)
  many=$(count "$peer" $((500 + pairs)))
  printf '%-16s %7d\n' "$peer" $(((many - few) / pairs))
done
