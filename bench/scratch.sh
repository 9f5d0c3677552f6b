# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# scratch.sh - for benchmarks that need no lbd: in the top folder, with the programs in $B, and a
# folder $T that goes at the end.
set -eu
cd "$(dirname "$0")/.."
B=$(cd "${B:-build}" && pwd -P)
T=$(mktemp -d "${TMPDIR:-/tmp}/lb-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
trap 'exit 130' HUP INT TERM
unset LB_SOCKET LB_RESUME_FROM LB_CHECKPOINT_DIR LB_RUN_DIR LB_CPU_ISA
