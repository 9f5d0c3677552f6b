#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of users hold no blanks
# What lies in $LB_HOME acts as its owner, so lbd refuses what others could change: at start its
# home, lbd.toml, network profiles and the hook; while it runs each file when it is used.
. "$(dirname "$0")/lib.sh"
. "$suite/users.sh"

chmod 755 "$T"
cp "$B"/lb* "$T"/ 2>/dev/null		# the build folder may be closed to others
B=$T PATH=$T:/usr/bin:/bin:/usr/sbin:/sbin
LB_DEBUGGER="setpriv --reuid $owner --regid $owner --init-groups"
as_owner() { as $owner "$@"; }
chown $owner:$owner "$LB_HOME"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
mkdir "$LB_HOME/network" "$LB_HOME/cron" "$LB_HOME/cron/cron.daily"
printf '[env]\nNCCL_DEBUG = "INFO"\n' >"$LB_HOME/network/ours.toml"
printf '#!/bin/sh\ncat >>%s/told\n' "$T/hook" >"$LB_HOME/hook.sh"
printf '#!/bin/sh\ntrue\n' >"$LB_HOME/cron/cron.daily/nightly.sh"
mkdir "$T/hook" && chmod 777 "$T/hook"
printf 'SECRET=x\n' >"$LB_HOME/env"
chown -R $owner:$owner "$LB_HOME"
chmod 600 "$LB_HOME/env" && chmod 700 "$LB_HOME/hook.sh"

check() { as_owner timeout 30 lbd --home "$LB_HOME" --check-config; }

# refuses PATH MODE WHAT: lbd does not start where the team may write to PATH; the line says how to
# mend it, and after that it does.
refuses() {
	old=$(stat -c %a "$1")
	chgrp $team "$1" && chmod $2 "$1"
	exits 6 "$3: lbd does not start" as_owner timeout 30 lbd --home "$LB_HOME" --foreground
	like "$err" "^lbd: .*$1: others can write to it.*mend it with: chmod g-w $1" "… and says how to mend it"
	is "$(echo "$err" | wc -l)" 1 "… in one line"
	sh -c "$(echo "$err" | sed 's/.*mend it with: //')"
	ok "… which mends it" check
	chgrp $owner "$1" && chmod $old "$1"
}
refuses "$LB_HOME" 775 "a home that the team may write to"
refuses "$LB_HOME/lbd.toml" 664 "such a configuration"
refuses "$LB_HOME/network/ours.toml" 664 "such a profile"
refuses "$LB_HOME/network" 2775 "such a folder of profiles"
printf '[poll]\ninterval = "200ms"\n[notify]\nhook = ["%s"]\non = ["created"]\n' "$LB_HOME/hook.sh" >"$LB_HOME/lbd.toml"
refuses "$LB_HOME/hook.sh" 770 "such a hook"

mkdir "$T/up" && chown $owner:$team "$T/up" && chmod 770 "$T/up"
exits 6 "below a folder that the team may write to" as_owner lbd --home "$T/up/home" --foreground
like "$err" "$T/up: others can write to it" "… it is that folder which is named"
chmod 1770 "$T/up"
LB_HOME=$T/up/home
umask 002
lbd_start && passed "below a sticky one it starts"
umask 022
is "$(stat -c %a "$LB_HOME")" 700 "whatever the umask, its own home is closed"
as_owner lbctl submit --name mode -- true >/dev/null
run_reaches mode completed 30
is "$(find "$LB_HOME" ! -type l -perm /022 | grep -v '/checkpoints')" "" "nothing in it can be written by others"
is "$(find "$LB_HOME/runs/mode/attempts" -type f -perm /007)" "" "files of an attempt are closed to others by themselves"
lbd_stop
LB_HOME=$T/home
chown $member "$T/up"
exits 6 "below a folder of somebody else's" as_owner lbd --home "$T/up/home" --foreground
like "$err" "$T/up: belongs to somebody else \($member" "… it is that folder which is named"
chmod 2775 "$LB_HOME" && chgrp -R $owner "$LB_HOME"
lbd_start && passed "a group of the owner's own may write: umask 002 is no trouble"

# --- while it runs --------------------------------------------------------------------------------
open_up() { chgrp $team "$1" && chmod g+w "$1"; }
submit() { as_owner lbctl submit --name "$@" -- true; }
exits 0 "a profile and a file of secrets that are the owner's alone" submit first --set slurm.network=ours --set "run.env_file=$LB_HOME/env"
wait_for '[ -s "$T/hook/told" ]' 20
open_up "$LB_HOME/network/ours.toml"
as_owner lbctl submit --name second --set slurm.network=ours -- true >"$T/out" 2>&1
wait_for '{ cat "$T/out"; lbctl events second; } 2>&1 | grep -q "ours.toml: others can write to it"' 20
passed "a profile that has become writable is not used"
open_up "$LB_HOME/cron/cron.daily/nightly.sh"
wait_for 'lbctl cron 2>&1 | grep -q "nightly.sh: others can write to it"' 20
passed "nor is a script of the cron folder"
mkdir "$T/shared" && chown $owner:$team "$T/shared" && chmod 770 "$T/shared"
cp -p "$LB_HOME/env" "$T/shared/env"
exits 2 "nor a file of secrets in a folder where others could replace it" \
	submit third --set "run.env_file=$T/shared/env"
like "$err" "$T/shared: others can write to it" "… and why is said"
open_up "$LB_HOME/hook.sh"
as_owner lbctl submit --name fourth -- true >/dev/null
wait_for "lbctl events | grep -q 'notify_failed.*hook.sh: others can write'" 60
ok "nor is the hook, and that is told" sh -c '! grep -q fourth "$1"' sh "$T/hook/told"
done_testing
