#!/bin/sh
# SPDX-License-Identifier: MIT
# The spec of a live run is gone, or is no spec any more: lbd serves all others, watches this one's
# job, and obeys orders on it. It only cannot submit it again, and says why.
. "$(dirname "$0")/lib.sh"

cat >"$T/trainer" <<'END'
#!/bin/sh
await "$1/end.$LB_RUN"
exit 1
END
chmod +x "$T/trainer"

lbd_start
for run in gone bent sound; do
	lbctl submit --name $run --set restart.in_place=0 --set restart.backoff_first=1s \
		-- "$T/trainer" "$T" >/dev/null
	run_reaches $run running 20
done
touch "$T/end.bent"
run_reaches bent backoff 20
lbd_kill9
rm "$LB_HOME/runs/gone/spec.toml"
cp "$LB_HOME/runs/bent/spec.toml" "$T/bent.toml"
echo '[run' >"$LB_HOME/runs/bent/spec.toml"
ok "lbd starts without a run's spec" lbd_start
like "$(cat "$T/lbd.log")" 'run gone: .*gone/spec.toml: no such file; .*cannot be submitted' \
	"its log says which, and what follows"
is "$(run_state gone) $(run_state sound)" "running running" "those that run are watched"
ok "the run without a spec can be killed" lbctl kill --now gone
run_reaches gone killed 30
passed "and is gone then"
wait_for 'lbctl status bent | grep -q "why .*bent/spec.toml:1: "' 30
passed "one that is due is not started, and why is told"
touch "$T/end.sound"
wait_for '[ -d "$LB_HOME/runs/sound/attempts/2" ]' 30
passed "others are relaunched as ever"
lbctl kill --now bent >/dev/null
exits 2 "restart says so, too" lbctl restart bent
like "$err" 'spec.toml:1: ' "by line"
exits 0 "the hours of other runs are counted" lbctl goodput ALL
like "$out" '^sound ' "each in its row"
like "$err" '1 of 3 runs are not counted, bent first: .*bent/spec.toml:1: ' "and those of which they are not are named"
exits 2 "where all are such that is all" lbctl goodput --csv bent
rm "$T/end.bent"
cp "$T/bent.toml" "$LB_HOME/runs/bent/spec.toml"
ok "mended, it can be restarted" lbctl restart bent
run_reaches bent running 30
passed "and runs"

# What an lbd that died in the middle of a submission left; another's run, or one of a lost ledger.
mkdir "$LB_HOME/runs/rest" "$LB_HOME/runs/other"
touch "$LB_HOME/runs/rest/spec.toml" "$LB_HOME/runs/other/record.json"
exits 4 "a name that only a folder has is refused" lbctl submit --name rest -- true
like "$err" "no run has its folder: .*rm -r $LB_HOME/runs/rest\)" "with what may be done"
exits 4 "so is one whose run another ledger has" lbctl submit --name other -- true
like "$err" "$LB_HOME/runs/other" "which is named"
unlike "$err" "rm -r" "and not to be removed"
ln -s "$T/away/linked" "$LB_HOME/runs/linked"
exits 4 "and one that leads to a file system that is away" lbctl submit --name linked -- true
like "$err" "a run that this lbd does not know has the folder" "which may hold a run"
is "$(readlink "$LB_HOME/runs/linked")" "$T/away/linked" "and stays"
exits 4 "and that of a run" lbctl submit --name bent -- true
like "$err" 'lbctl restart bent' "which can be restarted"
done_testing
