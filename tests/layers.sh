#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh [TREE] - an architecture that is not checked is a wish: who includes whom, which library
# is used where, functions that nobody may call, license lines. Speaks TAP; the last test proves
# that each of the others can fail.
set -u
export LC_ALL=C
self=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")
cd "${1:-$(dirname "$0")/..}" || exit 1

# folder, then the folders of ours that it may include besides itself. tests/ and bench/ look
# everywhere. A folder that is not here may hold no C.
layers() {
	cat <<'TABLE'
common
sql             common
slurm           common
slurm/lbd-slurm common slurm
kernels
daemon          common sql slurm
ctl             common
worker/lbrun    common
worker/lbworker common kernels
tests           *
bench           *
TABLE
}

# header as an ERE, then the folders that may include it; tests/ and bench/ may always.
libraries() {
	cat <<'TABLE'
pcre2\.h                 common
sqlite3\.h               sql
slurm/.*\.h              slurm/lbd-slurm
uv\.h                    daemon slurm
zstd\.h                  common
curl/.*\.h               daemon
n?curses\.h|menu\.h      -
toml\+\+/.*|toml\.hpp    common
(oneapi/)?dnnl.*\.h      kernels/cpu
cuda.*\.h|cublas.*\.h    kernels/cuda
TABLE
}

# generated header, and where it belongs
generated() {
	cat <<'TABLE'
queries.h sql
words.h   common
TABLE
}

# They overflow, keep hidden state, or hand text to a shell; each has a counterpart that does not.
banned='strcpy strcat sprintf vsprintf strtok gmtime localtime atoi system popen gets'

sources() {	# EXTENSION…
	for extension; do
		find . \( -name .git -o -name 'build*' \) -prune -o \
			-type f -name "*.$extension" -print
	done | sed 's,^\./,,' | sort
}

number=0
failures=0
report() {	# NAME FINDINGS
	number=$((number + 1))
	if [ -z "$2" ]; then
		echo "ok $number - $1"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $number - $1"
	printf '%s\n' "$2" | sed 's/^/# /'
}

# file:line:header of every #include "…" (kind q) or <…> (kind a)
includes() {
	# shellcheck disable=SC2046 # no spaces in our file names
	awk -v kind="$1" '
	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		quoted = index($0, "\"") && (!index($0, "<") || index($0, "\"") < index($0, "<"))
		if (quoted != (kind == "q"))
			next
		header = $0
		sub(/^[^"<]*["<]/, "", header)
		sub(/[">].*$/, "", header)
		print FILENAME ":" FNR ":" header
	}' $(sources c h cc cu cuh) /dev/null
}

check_includes() {
	{
		layers | sed 's/^/layer /'
		generated | sed 's/^/generated /'
		sources h cuh | sed 's/^/header /'
		includes q | sed 's/^/include /'
	} | awk '
	# The layer of a path: the longest row of the table that is its folder or above it.
	function layer_of(path, folder) {
		folder = path
		while (sub(/\/[^\/]*$/, "", folder))
			if (folder in known)
				return folder
		return ""
	}
	$1 == "layer" {
		known[$2] = 1
		may[$2, $2] = 1
		for (i = 3; i <= NF; i++)
			may[$2, $i] = 1
	}
	$1 == "generated" { belongs[$2] = $3 }
	$1 == "header" { exists[$2] = 1 }
	$1 == "include" {
		split($2, at, ":")
		from = layer_of(at[1])
		folder = at[1]
		sub(/[^\/]*$/, "", folder)
		target = at[3]
		sub(/^gen\//, "", target)
		where = at[1] ":" at[2] ": \"" at[3] "\": "
		if (from == "")
			print where "this folder is in no layer"
		else if (target in belongs) {
			if (belongs[target] != from && !((from, "*") in may))
				print where "belongs to " belongs[target] "/"
		} else if ((folder target) in exists)
			;	# a neighbour
		else if (!(target in exists))
			print where "no such header; includes start at the top folder"
		else {
			to = layer_of(target)
			if (!((from, "*") in may) && !((from, to) in may))
				print where from "/ may not include " to "/"
		}
	}'
}

check_homeless() {
	sources c cc cu | while read -r file; do
		home=
		for folder in $(layers | cut -d' ' -f1); do
			case $file in "$folder"/*) home=$folder ;; esac
		done
		[ -n "$home" ] || echo "$file: this folder is in no layer"
	done
}

check_libraries() {
	includes a | sed 's/^/include /' | {
		libraries | sed 's/^/library /'
		cat
	} | awk '
	$1 == "library" {
		count++
		pattern[count] = "^(" $2 ")$"
		places[count] = ""
		for (i = 3; i <= NF; i++)
			places[count] = places[count] " " $i
	}
	$1 == "include" {
		split($2, at, ":")
		if (at[1] ~ /^(tests|bench)\//)
			next
		for (k = 1; k <= count; k++) {
			if (at[3] !~ pattern[k])
				continue
			good = 0
			n = split(places[k], place, " ")
			for (i = 1; i <= n; i++)
				if (index(at[1], place[i] "/") == 1)
					good = 1
			if (!good)
				print at[1] ":" at[2] ": <" at[3] "> is for" places[k] " only"
		}
	}'
}

# Comments and texts may name them, so these are blanked first.
check_banned() {
	# shellcheck disable=SC2046
	awk -v words="$banned" '
	BEGIN {
		gsub(/ /, "|", words)
		call = "(^|[^A-Za-z0-9_.>])(" words ")[ \t]*\\("
	}
	FNR == 1 { in_comment = 0 }
	{
		line = $0
		code = ""
		while (line != "") {
			if (in_comment) {
				if (!(end = index(line, "*/")))
					break
				line = substr(line, end + 2)
				in_comment = 0
			} else if (match(line, /^"([^"\\]|\\.)*"/) ||
				   match(line, /^\047([^\047\\]|\\.)*\047/)) {
				code = code "\"\""
				line = substr(line, RLENGTH + 1)
			} else if (substr(line, 1, 2) == "//") {
				break
			} else if (substr(line, 1, 2) == "/*") {
				in_comment = 1
				line = substr(line, 3)
			} else {
				code = code substr(line, 1, 1)
				line = substr(line, 2)
			}
		}
		if (match(code, call)) {
			name = substr(code, RSTART, RLENGTH)
			gsub(/[^A-Za-z0-9_]/, "", name)
			print FILENAME ":" FNR ": " name "() is banned"
		}
	}' $(sources c h cc cu cuh) /dev/null
}

# Extensionless scripts count, too: they are found by their first line.
scripts() {
	find .ci bench etc tests -type f ! -name '*.*' 2>/dev/null | sort | while read -r file; do
		case $(head -c 2 "$file" | tr -d '\0') in '#!') echo "$file" ;; esac
	done
}

check_licenses() {
	for file in $(sources c h cc cu cuh sh sql t py) $(scripts); do
		case $file in
		slurm/lbd-slurm/*) license=GPL-2.0-or-later ;;
		*) license=MIT ;;
		esac
		head -n 3 "$file" | grep -q "SPDX-License-Identifier: $license" ||
			echo "$file: no line \"SPDX-License-Identifier: $license\" at its top"
	done
}

check_all() {
	report "each folder includes only what its layer may" "$(check_includes; check_homeless)"
	report "each library has one place" "$(check_libraries)"
	report "no banned function is called" "$(check_banned)"
	report "every source says its license" "$(check_licenses)"
}

# A tree with one mistake per line: each must be found, and nothing else.
bad_tree() {	# DIR
	mkdir -p "$1/common" "$1/ctl" "$1/daemon" "$1/sql" "$1/slurm/lbd-slurm" "$1/attic" \
		"$1/tests"
	for file in common/ok.h common/ok.c ctl/bad.c sql/ledger.h sql/ledger.c attic/old.c \
		daemon/fine.c tests/any.c; do
		echo '/* SPDX-License-Identifier: MIT */' >"$1/$file"
	done
	echo '/* SPDX-License-Identifier: MIT */' >"$1/slurm/lbd-slurm/main.c"
	cat >>"$1/ctl/bad.c" <<'END'
#include "sql/ledger.h"
#include "common/absent.h"
#include "queries.h"
#include <uv.h>
#include <curses.h>
	n = atoi (text); system("rm"); /* strcpy(a, b) */ puts("gets(x)"); my_system(1);
/* a comment that
   calls strcat(a, b) */ a.system(1); snprintf(x, 1, "y");
END
	cat >>"$1/daemon/fine.c" <<'END'
#include "common/ok.h"
#include "sql/ledger.h"
#include <uv.h>
END
	echo '#include "sql/ledger.h"' >>"$1/tests/any.c"
	echo '#include <sqlite3.h>' >>"$1/sql/ledger.c"
	echo '#include "ok.h"' >>"$1/common/ok.c"
	echo 'select 1' >"$1/sql/plain.sql"
}

expected_findings() {
	cat <<'END'
attic/old.c: this folder is in no layer
ctl/bad.c:2: "sql/ledger.h": ctl/ may not include sql/
ctl/bad.c:3: "common/absent.h": no such header; includes start at the top folder
ctl/bad.c:4: "queries.h": belongs to sql/
ctl/bad.c:5: <uv.h> is for daemon slurm only
ctl/bad.c:6: <curses.h> is for - only
ctl/bad.c:7: atoi() is banned
slurm/lbd-slurm/main.c: no line "SPDX-License-Identifier: GPL-2.0-or-later" at its top
sql/plain.sql: no line "SPDX-License-Identifier: MIT" at its top
END
}

prove_it_can_fail() {
	bad=$(mktemp -d) || exit 1
	bad_tree "$bad"
	if found=$(LB_LAYERS_NESTED=1 sh "$self" "$bad"); then
		echo "a bad tree passed"
	fi
	found=$(printf '%s\n' "$found" | sed -n 's/^# //p' | sort)
	rm -rf "$bad"
	[ "$found" = "$(expected_findings)" ] || {
		echo "found in a bad tree:"
		echo "$found"
	}
}

check_all
if [ -z "${LB_LAYERS_NESTED:-}" ]; then
	report "these checks can fail" "$(prove_it_can_fail)"
fi
echo "1..$number"
[ $failures = 0 ]
