#!/bin/sh
# SPDX-License-Identifier: MIT
# Switch files on a file system where the kernel tells nothing of changes, as network file systems
# are: lbd and lbrun each look every second, and both obey. (On a local one they hear at once:
# switches.t.)
. "$(dirname "$0")/lib.sh"

shim=$B/tests/nolocks.so
[ -e "$shim" ] || bail_out "$shim is missing: run make $shim"
S=$LB_HOME/switches
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
cp "$B"/lb* "$T"/
mv "$T/lbrun" "$T/bin-lbrun"
deaf="env LD_PRELOAD=$shim NOLOCKS_ASKED=$T/asked ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0"
cat >"$T/lbrun" <<END
#!/bin/sh
exec $deaf "$T/bin-lbrun" "\$@"
END
chmod +x "$T/lbrun"
LB_DEBUGGER=$deaf
B=$T PATH=$T:$PATH
lbd_start

trainer() { lbctl status "$1" --json | json attempts.0.launches.0.pid; }
for run in a b c; do
	lbctl submit --name $run --set watch.kill_grace=1s -- sleep 6543 >/dev/null
	run_reaches $run running 30
	wait_for "[ \"\$(trainer $run)\" -gt 0 ]" 20
done
for program in lbd bin-lbrun; do ok "$program is told nothing" [ -e "$T/asked.$program" ]; done

touch "$S/a.save"
begin=$(now_ms)
wait_for '[ ! -e "$S/a.save" ]' 20
passed "lbd sees a switch"
diag "after $(($(now_ms) - begin)) ms"
pid=$(trainer a)
begin=$(now_ms)
touch "$S/a.kill"
wait_for '! lives $pid' 20
passed "a run is ended"
diag "its trainer was dead after $(($(now_ms) - begin)) ms"
run_reaches a killed 20

# shellcheck disable=SC2034 # wait_for reads it
pid=$(trainer b)
lbd_kill9
begin=$(now_ms)
touch "$S/b.kill"
wait_for '! lives $pid' 20
passed "with lbd dead, too"
diag "its trainer was dead after $(($(now_ms) - begin)) ms"
lbd_start
run_reaches b killed 20
touch "$S/c.hold"
run_reaches c held 20
rm "$S/c.hold"
run_reaches c running 30
passed "a hold ends with its file"
lbctl kill --now c >/dev/null
run_reaches c killed 20
done_testing
