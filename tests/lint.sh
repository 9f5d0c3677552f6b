#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh - clang-tidy or shellcheck, called as a compiler is, so that ccache, where it is
# installed, remembers which files they had nothing to say about: those files, with all that they
# include or read, are not looked at again, in no folder. ccache knows nothing of what was found:
# that is said each time.
#
#   LB_LINT=tidy|shell LB_LINT_ID=WORDS tests/lint.sh [OPTION…] -c -o STAMP FILE
#
# The options are clang's. LB_LINT_ID: versions and settings, all that decides beside the files and
# options.
set -u
case ${LB_LINT_INSIDE:-} in
'')
	export LB_LINT_INSIDE=1
	if command -v ccache >/dev/null; then
		# Comments count: clang-tidy and shellcheck take orders from them. Of what a shell
		# script reads ccache knows nothing by itself: there it compares what -E prints.
		export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:$LB_LINT $LB_LINT_ID" \
			CCACHE_EXTRAFILES="tests/lint.sh:.clang-tidy:.shellcheckrc" CCACHE_COMMENTS=1 CCACHE_NOHASHDIR=1
		[ "$LB_LINT" = tidy ] || export CCACHE_NODIRECT=1
		exec ccache tests/lint.sh "$@"
	fi
	;;
esac

out=
file=
preprocess=
count=$#
while [ "$count" -gt 0 ]; do
	arg=$1
	shift
	count=$((count - 1))
	case $arg in
	-o)
		out=$1
		shift
		count=$((count - 1))
		;;
	-x)
		shift
		count=$((count - 1))
		;;
	-E) preprocess=1 ;;
	-c | -C) ;;
	*)
		# the folder of an -isystem is no file
		if [ -f "$arg" ]; then file=$arg; else set -- "$@" "$arg"; fi
		;;
	esac
done

# FILE and whatever it reads of other scripts: all files of the names that it, or one of those,
# reads.
all_that_is_read() {
	files=$file
	new=$file
	while [ -n "$new" ]; do
		# shellcheck disable=SC2086 # words
		names=$(sed -n 's/^[[:space:]]*\. .*\/\([a-z_-]*\.\(sh\|t\)\).*/\1/p' $new | sort -u)
		new=
		for name in $names; do
			for other in "etc/$name" "bench/$name" tests/*/"$name"; do
				case " $files " in *" $other "*) continue ;; esac
				[ ! -e "$other" ] || new="$new $other"
			done
		done
		files="$files$new"
	done
	# shellcheck disable=SC2086 # words
	cat $files
}

if [ -n "$preprocess" ]; then
	[ "$LB_LINT" = shell ] || exec clang -E -CC -dD "$@" ${out:+-o "$out"} "$file"
	all_that_is_read >"${out:-/dev/stdout}"
	exit
fi
case $LB_LINT in
tidy) clang-tidy --quiet "$file" -- -Xclang -analyzer-config -Xclang "max-nodes=$NODES" "$@" ;;
shell) shellcheck -x "$file" ;;
esac >"$out.log" 2>&1 || {
	cat "$out.log" >&2
	exit 1
}
rm -f "$out.log"
echo clean >"$out"
