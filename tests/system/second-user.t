#!/bin/sh
# SPDX-License-Identifier: MIT
# Who may do what, as the kernel tells who asks: the owner everything, a member of the team's group
# look and stop, an outsider nothing.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP three users take root to play"
	tests_planned=0
	exit 0
fi
need setpriv util-linux

# Users need no accounts: numbers will do. The team is a group that every Debian has.
team=games
team_gid=$(getent group $team | cut -d: -f3)
as_owner() { setpriv --reuid 51001 --regid 51001 --clear-groups "$@"; }
as_member() { setpriv --reuid 51002 --regid 51002 --groups "$team_gid" "$@"; }
as_outsider() { setpriv --reuid 51003 --regid 51003 --clear-groups "$@"; }

chmod 755 "$T"
cp "$B"/lb* "$T"/ 2>/dev/null	# the build folder may be closed to other users
PATH=$T:$PATH
mkdir "$T/team" && chgrp $team "$T/team" && chmod 3770 "$T/team"
printf '[team]\ngroup = "%s"\nfolder = "%s"\n' $team "$T/team" >"$LB_HOME/lbd.toml"
chown -R 51001:51001 "$LB_HOME"
B=$T
LB_DEBUGGER="env HOME=$T/own setpriv --reuid 51001 --regid 51001 --groups $team_gid"
lbd_start

exits 0 "the owner submits" as_owner lbctl submit --name mine -- sleep 6543
run_reaches mine running 20
exits 0 "a member looks" as_member lbctl ls --json
is "$(printf '%s' "$out" | json 0.name)" mine "and sees the run"
exits 0 "a member reads its status" as_member lbctl status mine
# as winbind names people: no name for a file
cat >"$T/named.sh" <<'END'
sed '$a AD\\ada:x:51001:'"$2"':ada:/nonexistent:/bin/sh' /etc/passwd >"$1/passwd" &&
	mount --bind "$1/passwd" /etc/passwd && [ "$(id -un 51001)" = 'AD\ada' ] || exit 99
exec setpriv --reuid 51002 --regid 51002 --groups "$2" lbctl ls --team
END
if unshare -m true 2>/dev/null; then
	wait_for 'grep -q mine "$T/team/51001.json"' 20
	exits 0 "what one tells whose name has a backslash" unshare -m sh "$T/named.sh" "$T" "$team_gid"
	like "$out" '^51001 +mine' "is seen by the team, under the number"
	is "$err" "" "without a complaint"
fi
exits 6 "a member does not submit" as_member lbctl submit --name theirs -- true
like "$err" 'owner' "and is told why"
exits 6 "a member does not restart" as_member lbctl restart mine
exits 6 "an outsider cannot even reach the socket" as_outsider lbctl ls
chmod 755 "$LB_HOME"
chmod 666 "$LB_HOME/lbd.sock"
exits 6 "nor is heard when modes were opened by mistake" as_outsider lbctl ls
exits 6 "an outsider does not kill" as_outsider lbctl kill mine
is "$(run_state mine)" running "the run runs on"
exits 0 "a member kills" as_member lbctl kill --now --reason "it hangs" mine
run_reaches mine killed 20
like "$(lbctl events mine)" '51002 .*it hangs' "who and why is on record"
is "$(as_owner lbctl status mine --json | json attempts.0.cause)" killed \
	"the attempt's cause is killed"
# as in a container that gives people numbers without accounts
exits 0 "another is submitted" as_owner lbctl submit --name other -- sh -c 'echo "at home in $HOME"'
run_reaches other completed 20
like "$(as_owner lbctl logs other)" "at home in $T/own$" "whose home is lbd's where no account has one"
done_testing
