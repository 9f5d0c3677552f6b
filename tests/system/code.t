#!/bin/sh
# SPDX-License-Identifier: MIT
# The code that a run is made of is kept with it, nothing of the person's repository changes, and
# `lbctl diff` tells two runs apart.
. "$(dirname "$0")/lib.sh"

command -v git >/dev/null || { echo "1..0 # skip git is not installed"; exit 0; }
GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
GIT_AUTHOR_NAME=ada GIT_AUTHOR_EMAIL=ada@example.com GIT_COMMITTER_NAME=ada GIT_COMMITTER_EMAIL=ada@example.com
export GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
unset VIRTUAL_ENV CONDA_PREFIX LOADEDMODULES
git_q() { git -C "$T/exp" "$@" >"$T/git.out" 2>&1; }
submit() { name=$1; shift; (cd "$T/exp/src" && lbctl submit --name "$name" "$@" -- true) >/dev/null; }
# Everything in the repository's own folder, with contents.
state_of_git() { (cd "$T/exp/.git" && find . -type f -exec cksum {} + | sort); }

lbd_start
mkdir -p "$T/exp/src" "$T/exp/data"
printf 'lr = 1\n' >"$T/exp/src/train.py"
printf 'data/\n' >"$T/exp/.gitignore"
ok "a repository" git init -q -b main "$T/exp"
git_q add -A && git_q commit -q -m first
commit=$(git -C "$T/exp" rev-parse HEAD)

submit clean
like "$(lbctl status clean)" "code +$(echo "$commit" | cut -c1-10) \(main\)$" "a run of what is committed: status names commit and branch"
code=$LB_HOME/runs/clean/code.json
is "$(json commit <"$code") $(json changed_files <"$code")" "$commit 0" "its folder has them"
ok "and no patch" test ! -e "$LB_HOME/runs/clean/code.patch"

(TMPDIR=$T/of-a-job-that-is-over; export TMPDIR; submit stale)
like "$(lbctl status stale)" "code +$(echo "$commit" | cut -c1-10) " "so does one from a shell whose TMPDIR is gone"

# --- changes, and files that git does not know --------------------------------------------------
printf 'lr = 2\n\tx\n' >"$T/exp/src/train.py"
printf 'def f(): pass\n' >"$T/exp/src/a new file.py"
printf 'secret' >"$T/exp/data/ignored"
head -c 70000 /dev/zero >"$T/exp/src/big.bin"
ln -s /etc/passwd "$T/exp/src/link"
before=$(state_of_git)
submit changed --set restart.max_without_progress=7
is "$(state_of_git)" "$before" "nothing of the repository has changed"
like "$(lbctl status changed)" 'code .*\(main\), 2 files changed since$' "changes are counted"
code=$LB_HOME/runs/changed/code.json patch=$LB_HOME/runs/changed/code.patch
is "$(json left_out <"$code")" 2 "what is large, or no plain file, is left out and counted"
is "$(stat -c %a "$patch" "$code" | tr '\n' ' ')" "600 640 " "the patch is for nobody else"
unlike "$(cat "$patch")" 'secret|passwd' "what git ignores is not in it, nor where a link leads"
ok "the patch is what git applies" git clone -q "$T/exp" "$T/again"
ok "to the commit" git -C "$T/again" apply "$patch"
is "$(cat "$T/again/src/train.py" "$T/again/src/a new file.py")" "lr = 2
$(printf '\tx')
def f(): pass" "and gives the code of the run"

# As within one second: the edit leaves size and times as the index has them, and the index is no
# younger.
(
	cd "$T/exp" || exit 1
	git config core.trustctime false
	touch -d '2020-01-01 00:00:00' src/train.py && git add src/train.py && touch -d '2020-01-01 00:00:00' .git/index
	printf 'lr = 3\n\tx\n' >src/train.py && touch -d '2020-01-01 00:00:00' src/train.py
)
submit quick
like "$(cat "$LB_HOME/runs/quick/code.patch")" '^\+lr = 3$' "an edit within the second of git add is seen"
git_q reset -q
printf 'lr = 2\n\tx\n' >"$T/exp/src/train.py"
before=$(state_of_git)

# --- two runs apart -----------------------------------------------------------------------------
out=$(lbctl diff clean changed)
like "$out" 'restart.max_without_progress: .* -> 7' "diff tells the settings"
like "$out" '^-lr = 1$' "what is gone of the code"
like "$out" '^\+lr = 2$' "and what came"
like "$out" "^\+$(printf '\t')x\$" "with its tabs"
like "$(lbctl diff clean clean)" '^code: the same$' "a run is as itself"
like "$(lbctl diff clean changed --json)" '"restart.max_without_progress":\[.*,7\].*"patch":"diff --git' \
	"JSON has both values of each setting, and the patch"
is "$(state_of_git)" "$before" "again nothing of the repository has changed"

# --- what may be missing ------------------------------------------------------------------------
mkdir "$T/plain" "$T/bin"
(cd "$T/plain" && lbctl submit --name nowhere -- true) >/dev/null
unlike "$(lbctl status nowhere)" '^ *code ' "outside of a repository nothing is said of code"
like "$(lbctl diff clean nowhere)" 'cannot be compared: nowhere was submitted from no git repository' "diff says why"
for tool in env sh cat lbctl; do ln -s "$(command -v $tool)" "$T/bin/$tool"; done
(cd "$T/exp" && PATH=$T/bin lbctl submit --name nogit -- true) >/dev/null
like "$(cat "$LB_HOME/runs/nogit/code.json")" '"why":"[^"]*no git' "without git the run goes all the same"
head -c 300000 /dev/urandom | od -x >"$T/exp/src/train.py"
submit large
like "$(cat "$LB_HOME/runs/large/code.json")" '"why":"the changes are [0-9]* bytes, more than' "changes too large to be kept are said to be"
like "$(lbctl diff clean large)" 'cannot be compared: large: its changes were not kept' "diff, too"
mkdir -p "$T/venv/lib/python3.11/site-packages/torch-2.3.0.dist-info" "$T/venv/lib/python3.11/site-packages/numpy-1.26.0.dist-info"
git_q checkout -q -- src/train.py
VIRTUAL_ENV=$T/venv LOADEDMODULES=cuda/12.4 submit venv
like "$(cat "$LB_HOME/runs/venv/code.json")" '"modules":"cuda/12.4".*"packages":\["numpy-1.26.0","torch-2.3.0"\]' \
	"packages of the environment and loaded modules are kept"
mv "$T/venv/lib/python3.11/site-packages/torch-2.3.0.dist-info" "$T/venv/lib/python3.11/site-packages/torch-2.4.1.dist-info"
VIRTUAL_ENV=$T/venv submit newer
like "$(lbctl diff venv newer)" 'torch: 2.3.0 -> 2.4.1' "diff tells of them"
git init -q "$T/empty"
(cd "$T/empty" && echo 1 >new.py && lbctl submit --name before -- true) >/dev/null
like "$(lbctl status before)" 'code +no commit yet \(.*\), 1 file changed since' "before the first commit"

# --- a copy of it, and changes that a later launch meets ------------------------------------------
echo 'lr = 5' >"$T/exp/src/train.py"
before=$(state_of_git)
(cd "$T/exp/src" && lbctl submit --name copy --snapshot -- sh -c \
	'pwd; cat train.py ../data/ignored "$0"; echo "${1#*=}"; until [ -e edited ]; do sleep 0.1; done; cat train.py' \
	"$T/exp/src/a new file.py" --config="$T/exp/src/train.py") >"$T/submit.out" 2>&1 || diag "$(cat "$T/submit.out")"
copy=$LB_HOME/runs/copy/code
run_reaches copy running 20
echo 'lr = 6' >"$T/exp/src/train.py"
touch "$copy/src/edited"
run_reaches copy completed 20
out=$(lbctl logs copy)
like "$out" "$copy/src\$" "with --snapshot it works in a copy"
like "$out" 'secret' "what git ignores is there by a link"
like "$out" 'def f' "a word of the command that names a file of the repository"
like "$out" "$copy/src/train.py\$" "or an option's value, means the copy's"
unlike "$out" 'lr = 6' "a later edit does not reach it"
is "$(readlink "$copy/data") $(test -L "$copy/src/train.py" && echo link)" "$T/exp/data " "only what git does not keep is linked"
is "$(state_of_git)" "$before" "once more nothing of the repository has changed"
is "$(find "$LB_HOME/runs" -maxdepth 1 -name '.snap*' | wc -l)" 0 "nothing is left beside the runs"
like "$(lbctl status copy)" 'code .*, a copy of it$' "status says so"
like "$(cd "$T/plain" && lbctl submit --snapshot -- true 2>&1)" 'snapshot: .*in no git repository' "there must be a repository"
ok "a copy goes with its run" lbctl rm --yes copy
is "$(cat "$T/exp/data/ignored")" secret "not what its links lead to"

(cd "$T/exp/src" && lbctl submit --name edited --set restart.in_place=2 -- sh -c \
	'[ "$LB_LAUNCH" = 3 ] && exit 0; [ "$LB_LAUNCH" = 1 ] && echo "lr = 7" >train.py && exit 1
	until [ -e "$LB_RUN_DIR/code.changed" ]; do sleep 0.1; done; exit 1') >/dev/null
run_reaches edited completed 30
out=$(lbctl events edited)
is "$(echo "$out" | grep -c code_changed)" 1 "a later launch under changed code says so, once"
like "$out" 'code_changed +1 file of the code changed since the submission: src/train.py; this launch' "and which file it is"
like "$(lbctl status edited)" 'code .*; 1 file of the code changed' "status, too"
done_testing
