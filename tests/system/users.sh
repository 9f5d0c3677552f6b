# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086,SC2034 # names of users hold no blanks; lib.sh reads tests_planned
# users.sh - an owner, a member of the team and an outsider: three ordinary users for one test,
# removed when it ends. Sourced behind lib.sh; `as USER COMMAND…` plays one of them.
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP three users take root to play"
	tests_planned=0
	exit 0
fi
need setpriv util-linux
need useradd passwd

# --- three users, for this test alone -------------------------------------------------------------
owner=lbo$$ member=lbm$$ outsider=lbx$$ team=lbt$$
drop_users() {
	for user in $owner $member $outsider; do userdel $user; done >/dev/null 2>&1
	groupdel $team >/dev/null 2>&1
}
end() { result=$?; end_own_processes; drop_users; (exit $result); cleanup; }
trap end EXIT
make_users() {
	groupadd $team && useradd -M -G $team $owner && useradd -M -G $team $member &&
		useradd -M $outsider
}
make_users || bail_out "cannot make users"
as() { user=$1; shift; setpriv --reuid $user --regid $user --init-groups "$@"; }
# The owner's lbd, and programs where other users reach them: the build folder may be closed to
# them.
play_owner() {
	chmod 755 "$T"
	cp "$B"/lb* "$T"/ 2>/dev/null
	B=$T PATH=$T:$PATH
	LB_DEBUGGER="setpriv --reuid $owner --regid $owner --init-groups"
}
# [team] of lbd.toml, in the homes given, with a common folder $F
make_team() {
	mkdir "$F" && chgrp $team "$F" && chmod 3770 "$F"
	for home; do
		printf '[team]\ngroup = "%s"\nfolder = "%s"\n[poll]\ninterval = "200ms"\n' $team "$F" >"$home/lbd.toml"
	done
	chown -R $owner "$LB_HOME"
}
