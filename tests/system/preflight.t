#!/bin/sh
# SPDX-License-Identifier: MIT
# [preflight]: a node that computes wrong, is slow, has a full disk, another clock or does not
# answer is found before the trainer starts, avoided with proof, and the run goes elsewhere; it does
# not starve by that.
. "$(dirname "$0")/lib.sh"
if [ ! -e "$B/liblbmpi.so" ]; then
	echo "1..0 # SKIP built without MPI (libmpich-dev)"
	exit 0
fi
need strace strace

# lbrun takes the lbworker that lies beside it: this one has a fault where $T/fault-NODE says so.
mkdir "$T/bin"
cp "$B/lbrun" "$T/bin/"
cp "$B/controls/lbworker" "$T/bin/bad"
ln -s "$B/liblbmpi.so" "$T/bin/"
cat >"$T/bin/lbworker" <<-END
	#!/bin/sh
	read -r fault 2>/dev/null <"$T/fault-\$SLURMD_NODENAME" || exec "$B/lbworker" "\$@"
	case \$fault in
	silent) exec sleep 300 ;;
	full-disk) exec strace -qq -o /dev/null -e trace=fsync -e inject=fsync:error=ENOSPC "$B/lbworker" "\$@" ;;
	esac
	LB_CONTROL=\$fault LB_CONTROL_RANK=\$SLURM_PROCID exec "$T/bin/bad" "\$@"
END
chmod +x "$T/bin/lbworker"
printf '[runs]\nlbrun = "%s"\n[poll]\ninterval = "200ms"\nidle_interval = "500ms"\n[nodes]\npatience = "2s"\n' \
	"$T/bin/lbrun" >"$LB_HOME/lbd.toml"
cluster_start 3
lbd_start
cd "$T" || exit 1

# A run on two nodes whose trainer says where it trains.
try() { # try NAME [OPTION...]
	name=$1
	shift
	# a node that still clears the last one away would be left out
	wait_for '[ "$(sinfo -h -N -o %T | grep -Ecx "idle|planned")" = 3 ]' 60
	lbctl submit --name "$name" --set preflight.enabled=true --set slurm.nodes=2 --set slurm.mpi=pmi2 --set slurm.mem=500M \
		--set 'preflight.options=["--device", "cpu", "--memory-mib", "1", "--disk-mib", "1", "--slow", "'"${slow:-0}"'"]' \
		--set restart.backoff_first=100ms "$@" -- sh -c 'echo trained on $SLURMD_NODENAME' >"$T/submit.log" ||
		diag "$(cat "$T/submit.log")"
	run_reaches "$name" completed 120
	events=$(lbctl events "$name")
}
forgive() { for node in n1 n2 n3; do lbctl nodes forgive "$node" >/dev/null 2>&1; done; }
trained_on() { lbctl logs "$1" | sed -n 's/.* trained on //p' | sort | tr '\n' ' '; }

for row in "wrong-product:product: element" "slow-product:slow product" "full-disk:disk: .*: No space left on device" \
	"clock:clock: [+-]"; do
	fault=${row%%:*}
	echo "$fault" >"$T/fault-n2"
	slow=0 # but where it matters: all nodes of this cluster share one machine
	[ "$fault" != slow-product ] || slow=0.005
	try "$fault"
	is "$(trained_on "$fault")" "n1 n3 " "$fault: it trains where the nodes are well"
	like "$events" "preflight_node +n2: ${row#*:}" "the node is named, with what is wrong"
	like "$events" "node_suspect +n2 is avoided for .*: ${row#*:}" "and avoided for that"
	like "$events" "attempt_end +attempt 1: launch_fail: a node is broken: n2: " "the attempt did not start"
	unlike "$events" "n[13] is avoided" "no other node is"
	forgive
done
report=$LB_HOME/runs/clock/attempts/1/preflight
like "$(cat "$report/rank-1.json")" '"host":"n2".*"fault":"clock: ' "reports lie in the attempt's folder"
like "$events" 'preflight +the nodes are well, checked in [0-9.]* s' "and of well nodes it is said, too"

# Long enough for the other node to start and check on a busy machine; with MPI that one cannot go
# on alone, either.
slow=0
for mpi in none pmi2; do
	echo silent >"$T/fault-n2"
	try "silent-$mpi" --set "preflight.timeout=$((5 * ${LB_PATIENCE:-4}))s" --set "slurm.mpi=$mpi"
	is "$(trained_on "silent-$mpi")" "n1 n3 " "slurm.mpi = $mpi: a node that does not answer is avoided"
	like "$events" "preflight_node +n2: no answer to the check" "by its name"
	like "$events" "attempt_end +attempt 1: launch_fail: a node is broken: n2: no answer" "the attempt did not start"
	unlike "$events" "n[13] is avoided" "no other node is"
	forgive
done

# A spare takes the place of a broken node, in the same job; and is looked at, too.
echo wrong-product >"$T/fault-n2"
try spared --set restart.spare_nodes=1
is "$(trained_on spared)" "n1 n3 " "it trains on the spare"
like "$events" "preflight_node +n2: product: element" "instead of the broken node"
like "$events" "spare_node +a spare node takes the place of n2" "which is told"
like "$events" "preflight +the nodes are well, checked .*preflight-2" "the spare was checked"
is "$(lbctl status spared --json | json attempts.#)" 1 "all in one job"
forgive
echo wrong-product >"$T/fault-n3"
try unspared --set restart.spare_nodes=1 --set preflight.tries=1
like "$events" "preflight_node +n3: product: element" "a spare that is broken is found"
like "$events" "attempt_end +attempt 1: launch_fail: a node is broken: n3: " "and no other is left"
forgive

for node in n1 n2 n3; do echo wrong-product >"$T/fault-$node"; done
try bounded --set preflight.tries=2 --set slurm.nodes=1
is "$(echo "$events" | grep -c 'attempt_end .*launch_fail')" 2 "where all are broken a run does not starve"
like "$events" "preflight_skipped +broken nodes ended 2 attempts in a row" "and it is said"
rm -f "$T"/fault-*
forgive

try unclear --set 'preflight.options=["--no-such-option", "1"]'
like "$events" "preflight_unclear +the nodes could not be checked: lbworker check ended with status 2" \
	"what cannot be checked is said, and trains"

echo silent >"$T/fault-n1"
lbctl submit --name killed --set preflight.enabled=true -- true >/dev/null
ok "it is being checked" wait_for 'lbctl logs killed 2>/dev/null | grep -q "the nodes are checked"' 30
ok "a person ends it meanwhile" lbctl kill killed
run_reaches killed killed 30
refuses=$(printf '#!/bin/sh\ntrue\n' >"$T/script.sh" && lbctl submit --set preflight.enabled=true "$T/script.sh" 2>&1)
like "$refuses" "preflight.enabled: is not for batch scripts" "a batch script starts its ranks itself"
done_testing
