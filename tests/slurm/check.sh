#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh VERSION… - lbd against the Slurm of other releases, each in a root of its own: of the
# suite of Debian or Ubuntu that has it, 20.11 (bullseye), 21.08 (jammy), 22.05 (bookworm), 23.11
# (noble), 24.11 (trixie), 25.11 (resolute), 26.05 (sid), or all; any other one (23.02, or 24.05.3)
# built from Slurm's source in Debian 12. Programs are built in there, with that suite's compiler
# and libraries, and system tests are run with lbd-slurm and with lbd-slurm-commands. Ends with a
# table version x way x test; what did not pass is kept beside the roots.
#
#   ROOTS=build/roots    where the roots are, or are made (root, debootstrap, network; minutes each)
#   SLURM_SOURCE=DIR     a git repository of Slurm's source with its tags; all has 23.02, 24.05 and
#                        25.05, too
#   TESTS="kill.t …"     other tests      WAYS="library commands"      JOBS=2 tests at once
#   TARBALL=FILE         the programs of a tarball instead of building (made in ROOTS/bullseye)
#   AUTH=slurm           auth/slurm instead of munge (24.05 on; older ones are left out)
set -u
src=$(cd "$(dirname "$0")/../.." && pwd -P)
roots=${ROOTS:-$src/build/roots}
jobs=${JOBS:-2}
tests=${TESTS:-scheduler-slurm.t slurm.t batch.t kill.t requeue.t crash.t array.t purged.t accounting.t
	frozen.t why.t doctor.t demo.t lbrun_srun.t batch-run.t}
building=build	# packages that only a build needs
[ -z "${TARBALL:-}" ] || building=
table=
releases="20.11 21.08 22.05 23.11 24.11 25.11 26.05"
built_releases="23.02 24.05 25.05"	# no suite has them
suite_of() {
	case $1 in
	20.11) echo bullseye ;;
	21.08) echo jammy ;;
	22.05) echo bookworm ;;
	23.11) echo noble ;;
	24.11) echo trixie ;;
	25.11) echo resolute ;;
	26.05) echo sid ;;
	[0-9][0-9].[0-9][0-9] | [0-9][0-9].[0-9][0-9].*) echo "slurm-$1" ;;
	*)
		echo "check.sh: $1: must be a release of Slurm ($releases; others from SLURM_SOURCE), or all" >&2
		exit 2
		;;
	esac
}

make_root() {	# VERSION SUITE ROOT
	case $2 in
	slurm-*)
		[ -n "${SLURM_SOURCE:-}" ] || { echo "check.sh: no suite has it: SLURM_SOURCE=DIR" >&2; return 1; }
		"$src/etc/slurm-source" root "$SLURM_SOURCE" "$1" "$3"
		;;
	*)
		# shellcheck disable=SC2086 # words
		"$src/etc/debian-root" make "$2" "$3" $building slurm demo test
		;;
	esac
}

# The tarball's programs as an installation has them, with the tests' own from where it was made;
# tests want the helper that fits beside lbd.
unpack() {
	rm -rf "$root/build/installed"
	mkdir -p "$root/build/installed/bin/tests"
	tar -C "$root/build/installed" --strip-components=1 -xf "$TARBALL" || return 1
	"$src/etc/debian-root" run "$roots/bullseye" make -C /src -j2 B=/build/portable PORTABLE=1 CUDA=0 HAVE_SLURM= \
		/build/portable/tests/json /build/portable/tests/await /build/portable/tests/scheduler_client \
		/build/portable/tests/nolocks.so || return 1
	cp "$roots"/bullseye/build/portable/tests/* "$root/build/installed/bin/tests/"
	# shellcheck disable=SC2016 # inside
	inside sh -c 'cd /build/installed/bin && for helper in ../lib/lowbits/lbd-slurm-*; do
		! $helper --version >/dev/null 2>&1 || cp $helper lbd-slurm; done'
}

programs() {	# into the root
	echo "$version ($suite): ${TARBALL:-building}"
	if [ -n "${TARBALL:-}" ]; then
		unpack
	else
		inside make -C /src -j2 B=/build CUDA=0 all /build/tests/json /build/tests/await /build/tests/scheduler_client \
			/build/tests/nolocks.so
	fi >"$root/build/make.log" 2>&1
}

inside() { "$src/etc/debian-root" run "$root" "$@"; }

# One word for the table: passed, or the numbers of tests that did not.
verdict() {	# LOG STATUS
	failures=$(grep -c '^not ok' "$1")
	if [ "$2" = 0 ] && [ "$failures" = 0 ]; then
		grep -c "^ok" "$1"
	else
		echo "**$failures of $(grep -c '^\(not \)\?ok' "$1") fail**"
	fi
}

run_tests() {	# VERSION WAY
	for test in $tests; do
		echo "$test"
	done | xargs -P "$jobs" -I{} sh "$0" --one "$root" "$1" "$2" {}
}

# One test, one way.
if [ "${1:-}" = --one ]; then
	root=$2 version=$3 way=$4 test=$5
	log=$root/build/$way-${AUTH:+auth-$AUTH-}$test.log
	setting=library
	[ "$way" = library ] || setting=$way
	start=$(date +%s)
	inside env B=/build${TARBALL:+/installed/bin} LB_DEMO_BUILT="${TARBALL:+1}" LB_TEST_SLURM="$setting" MC_AUTH="${AUTH:-munge}" LB_PATIENCE="${LB_PATIENCE:-8}" \
		sh "/src/tests/system/$test" >"$log" 2>&1
	status=$?
	result=$(verdict "$log" $status)
	echo "$version $way${AUTH:+ auth/$AUTH} $test: $result ($(($(date +%s) - start)) s)"
	echo "| $version | $way${AUTH:+, auth/$AUTH} | ${test%.t} | $result |" >"$log.row"
	exit 0
fi

[ $# -ge 1 ] || { sed -n 's/^# \(check.sh .*\) - .*/usage: \1/p' "$0" >&2; exit 2; }
# shellcheck disable=SC2086 # words
[ "$*" != all ] || set -- $releases ${SLURM_SOURCE:+$built_releases}
for version; do
	suite_of "$version" >/dev/null || exit
done
mkdir -p "$roots"
roots=$(cd "$roots" && pwd -P)
status=0
for version; do
	suite=$(suite_of "$version")
	root=$roots/$suite
	case ${AUTH:-munge} in
	munge) ;;
	*) case $version in 2[012].* | 23.*)
		echo "left out: Slurm $version has no auth/$AUTH"
		continue
		;;
	esac ;;
	esac
	if ! make_root "$version" "$suite" "$root"; then
		echo "left out: Slurm $version"
		status=1
		continue
	fi
	programs || {
		tail -n 20 "$root/build/make.log" | cut -c1-300
		status=1
		continue
	}
	! grep -n 'warning:' "$root/build/make.log" || status=1
	rm -f "$root"/build/*.log.row
	for way in ${WAYS:-library commands}; do
		run_tests "$version" "$way"
	done
	table="$table $root/build/*.log.row"
done
[ -n "$table" ] || exit $status
echo
echo "| Slurm | through | test | passed |"
echo "|---|---|---|---|"
# shellcheck disable=SC2086 # names
cat $table
# shellcheck disable=SC2086
! grep -q fail $table || status=1
exit $status
