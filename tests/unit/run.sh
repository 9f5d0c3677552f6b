#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM - run one cmocka program in a temporary folder of its own, speaking TAP.
set -eu
program=$(realpath "$1")
LB_SRC=$(cd "$(dirname "$0")/../.." && pwd -P)
export LB_SRC
folder=$(mktemp -d "${TMPDIR:-/tmp}/lb-unit.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cd "$folder"
CMOCKA_MESSAGE_OUTPUT=TAP "$program"
