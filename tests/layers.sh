#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh [TREE] - an architecture that is not checked is a wish: who includes whom, which library
# is used where, functions that nobody may call, license lines; and, from the symbols of what was
# built in $B (build/ of the tree), files and rooms that call each other in a circle. Speaks TAP;
# the last test proves that each of the others can fail.
set -u
export LC_ALL=C
self=$(cd "$(dirname "$0")" && pwd -P)/$(basename "$0")
cd "${1:-$(dirname "$0")/..}" || exit 1
B=${B:-build}
scratch=$(mktemp) || exit 1
trap 'rm -f "$scratch"' EXIT

# The self-test's own, so that it does not change with the table.
layers_of_bad_tree() {
	cat <<'TABLE'
common
sql
slurm/helper
daemon          common common/* sql
ctl             common
tests           *
TABLE
}

# folder, then the folders of ours that it includes besides itself; ./x is the room x beside it, x/*
# any room of x. What a row allows is used, so that the table is the drawing of what there is.
# tests/ and bench/ look everywhere. A folder that is not here may hold no C.
layers() {
	if [ -n "${LB_LAYERS_NESTED:-}" ]; then
		layers_of_bad_tree
		return
	fi
	awk '{
		parent = $1
		sub(/\/[^\/]*$/, "", parent)
		for (i = 2; i <= NF; i++)
			sub(/^\./, parent, $i)
		print
	}' <<'TABLE'
common/base
common/run        ./base
common/team       ./base ./run
common/manifest   ./base
common/checkpoint ./base ./run ./manifest
common/check      ./base
common/gpu        ./base
common/host       ./base
common/config     ./base ./run ./checkpoint
sql             common/*
slurm           common/* ./batch
slurm/batch     common/*
slurm/local     common/* slurm ./batch
slurm/pipe      common/* slurm ./batch
slurm/helper    common/* slurm ./batch ./pipe
slurm/commands  common/* slurm ./pipe
kernels/machine
kernels         kernels/machine
kernels/formats kernels
kernels/cpu     kernels kernels/machine ./formats
kernels/cpu/narrow   kernels/cpu kernels/formats
kernels/cpu/products kernels/cpu
kernels/cpu/device   kernels/machine kernels/cpu
kernels/comm    kernels kernels/machine
kernels/cuda    kernels ./formats
kernels/cuda/ops kernels kernels/cuda kernels/formats
kernels/cuda/operands kernels/cuda/ops
kernels/cuda/lib kernels kernels/cuda kernels/formats
kernels/cuda/device kernels/cuda
daemon/engine/decide common/* slurm
daemon/engine   common/* sql slurm daemon/engine/decide
daemon/calendar common/* slurm/batch
daemon/base     common/* slurm slurm/batch ./engine daemon/engine/decide ./calendar
daemon/process  common/* slurm/pipe ./base
daemon/notify   common/* ./base ./control ./runs
daemon/control  common/* sql ./base ./process
daemon/job      common/* slurm slurm/batch ./base ./engine
daemon/runs     common/* sql slurm slurm/batch ./base ./control ./engine ./job
daemon/recover  common/* sql slurm/pipe ./base ./engine ./job ./process ./runs
daemon/cron     common/* ./calendar ./control ./runs
daemon          common/* sql slurm slurm/pipe daemon/base daemon/control daemon/job daemon/runs daemon/cron daemon/notify daemon/process daemon/recover
ctl/base        common/* slurm/batch
ctl/team        common/* ./base
ctl/code        common/* ./base ./team
ctl/look        common/* ./base ./team ./code
ctl/act         common/* slurm/batch ./base ./team ./look ./code
ctl/daemon      common/* ./base
ctl/top         common/* ./base
ctl/metrics     common/* ./base
ctl/sync        common/* ./base ./team ./code
ctl/report      common/* ./base ./team ./code
ctl/doctor      common/* ./base
ctl             common/* ctl/base ctl/team
worker/lbrun/complaints common/*
worker/lbrun/steps      common/*
worker/lbrun/trainer    common/* ./steps
worker/lbrun/end        common/* ./complaints ./trainer
worker/lbrun/watch      common/* ./trainer ./end
worker/lbrun/meter      common/* ./end
worker/lbrun/heartbeat  common/* ./end
worker/lbrun/checkpoint common/* ./trainer
worker/lbrun/rank       common/* ./trainer ./end ./watch ./meter ./heartbeat ./checkpoint
worker/lbrun/decide     common/* ./end
worker/lbrun/shepherd   common/* ./complaints ./trainer ./end ./watch ./meter ./heartbeat ./rank ./checkpoint ./decide
worker/lbrun            common/* worker/lbrun/trainer worker/lbrun/end worker/lbrun/watch worker/lbrun/rank worker/lbrun/checkpoint worker/lbrun/shepherd
worker/lbworker            common/* worker/lbworker/base worker/lbworker/commands worker/lbworker/families worker/lbworker/check
worker/lbworker/base       common/* kernels kernels/machine kernels/formats
worker/lbworker/recipes    common/* kernels kernels/formats
worker/lbworker/families   common/* kernels
worker/lbworker/model      common/* kernels ./base ./recipes ./families
worker/lbworker/ranks      common/* kernels kernels/machine ./families ./model
worker/lbworker/check      common/* ./base ./ranks
worker/lbworker/optim      common/* ./model
worker/lbworker/lora       common/* ./base ./families ./model ./optim
worker/lbworker/torch      common/* ./base ./families ./model
worker/lbworker/unicode    common/*
worker/lbworker/text       common/* ./unicode
worker/lbworker/data       common/* ./base ./text
worker/lbworker/config     common/* ./base ./recipes ./families ./model ./optim ./lora ./torch
worker/lbworker/telemetry  common/* kernels kernels/machine ./base ./recipes ./model ./config
worker/lbworker/checkpoint common/* kernels/machine ./base ./ranks ./families ./model ./torch ./optim ./lora ./config ./telemetry
worker/lbworker/convert    common/* ./base ./families ./model ./torch ./lora ./checkpoint
worker/lbworker/train      common/* kernels ./base ./ranks ./model ./lora ./data ./config ./telemetry ./checkpoint
worker/lbworker/commands   common/* ./base ./recipes ./ranks ./model ./unicode ./text ./data ./config ./telemetry ./checkpoint ./convert ./train
tests           *
bench           *
TABLE
}

# header as an ERE, then the folders that may include it; tests/ and bench/ may always.
libraries() {
	cat <<'TABLE'
pcre2\.h                 common worker/lbworker/unicode
sqlite3\.h               sql
slurm/.*\.h              slurm/helper
uv\.h                    daemon slurm
zstd\.h                  common
zlib\.h                  common ctl/report worker/lbworker/text worker/lbworker/torch
curl/.*\.h               daemon
n?curses\.h|menu\.h      ctl/top
toml\+\+/.*|toml\.hpp    common
mpi\.h                   kernels/comm
cuda.*\.h|cublas.*\.h    kernels/cuda
TABLE
}

# generated header, and where it belongs
generated() {
	cat <<'TABLE'
queries.h sql
words.h   common/base
top_demo.h ctl/top
trackers.h ctl/sync
hang.h ctl/act
TABLE
}

# They overflow, keep hidden state, or hand text to a shell; each has a counterpart that does not.
banned='strcpy strcat sprintf vsprintf strtok gmtime localtime asctime ctime atoi system popen gets'
banned="$banned getpwnam getpwuid getgrnam getgrgid getpwent getgrent inet_ntoa ttyname ptsname getlogin"
banned="$banned tmpnam gethostbyname strsignal"

# A folder with more units than a person keeps in mind is split into rooms. These are still to be
# split.
units_max=20
crowded=

# Folders whose files still call each other in a circle: none, and none is to come back.
circular=

# In the bad tree nothing depends on what is still excused here.
if [ -n "${LB_LAYERS_NESTED:-}" ]; then
	crowded='common ctl daemon' circular=sql
fi

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
	function grants(from, what) {
		if (!((from, what) in may))
			return 0
		used[from, what] = 1
		return 1
	}
	# x/* in a row of the table: any room of x.
	function may_include(from, to, folder) {
		if (from == to || grants(from, "*") || grants(from, to))
			return 1
		folder = to
		while (sub(/\/[^\/]*$/, "", folder))
			if (grants(from, folder "/*"))
				return 1
		return 0
	}
	$1 == "layer" {
		known[$2] = 1
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
			if (!may_include(from, to))
				print where from "/ may not include " to "/"
		}
	}
	END {
		for (key in may) {
			split(key, row, SUBSEP)
			if (row[2] != "*" && !(key in used))
				print row[1] "/ may include " row[2] "/, and does not"
		}
	}'
}

check_homeless() {
	folders=$(layers | cut -d' ' -f1)
	sources c cc cu | while read -r file; do
		home=
		for folder in $folders; do
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
				match(line, /^([^"\047\/]+|.)/)
				code = code substr(line, 1, RLENGTH)
				line = substr(line, RLENGTH + 1)
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
	# shellcheck disable=SC2046 # no spaces in our file names
	awk '
	function line_of(file) {
		return "SPDX-License-Identifier: " (file ~ /^slurm\/helper\// ? "GPL-2.0-or-later" : "MIT")
	}
	index($0, line_of(FILENAME)) { said[FILENAME] = 1 }
	FNR == 3 { nextfile }
	END {
		for (i = 1; i < ARGC; i++)
			if (!(ARGV[i] in said))
				print ARGV[i] ": no line \"" line_of(ARGV[i]) "\" at its top"
	}' $(sources c h cc cu cuh sh sql t py) $(scripts)
}

# What is excused must need it, or the lists would never shrink.
among() {	# WORD LIST
	case " $2 " in *" $1 "*) return 0 ;; esac
	return 1
}

check_units() {
	sources c cc cu | grep -v '^tests/\|^bench/' | sed 's,/[^/]*$,,' | sort | uniq -c |
		while read -r units folder; do
			if [ "$units" -gt $units_max ]; then
				among "$folder" "$crowded" ||
					echo "$folder: $units units, more than $units_max: split it into rooms"
			elif among "$folder" "$crowded"; then
				echo "$folder: is excused for its size, but has only $units units"
			fi
		done
}

# "OBJECT SOURCE FOLDER" of each source of the product. What this machine cannot build has none.
objects() {
	sources c cc cu | grep -v '^tests/\|^bench/' | while read -r file; do
		unit=${file%.*}
		object=$B/obj/$unit.o
		case $file in
		*.cu)
			object=$B/cuda/${unit#kernels/cuda/}.o
			[ -e "$object" ] || object=$B/emulated/${unit#kernels/cuda/}.o ;;
		esac
		[ -e "$object" ] || object=-
		echo "$object $file ${file%/*}"
	done
}

check_objects() {
	missing=$(objects | grep '^- ' | grep -cv ' kernels/cuda\| kernels/comm/mpi\| slurm/helper')
	[ "$missing" = 0 ] || echo "$B: $missing sources have no object there: run make first"
}

# Two files are in a circle when each needs the other, itself or by way of more: nobody can
# understand one of them alone. So are two rooms. Told by the names that objects define and those
# that they want: in each room file by file, then between all rooms, each room as one. Programs that
# are not linked together may define the same name: who wants it means the nearest.
check_circles() {	# [rooms]
	objects | grep -v '^- ' | {
		cat >"$scratch"
		sed 's/^/object /' "$scratch"
		cut -d' ' -f1 "$scratch" | xargs -r nm -A -P 2>/dev/null
	} | awk -v excused="$circular" -v rooms="${1:-}" '
	$1 == "object" {
		node[$2] = rooms ? $4 : $3
		group[node[$2]] = rooms ? "rooms" : $4
		built[$4] = 1
		next
	}
	{
		sub(/:$/, "", $1)
		from = node[$1]
		if ($3 ~ /^[TDRBC]$/) {
			if (!((from, $2) in defines))
				homes[$2] = homes[$2] " " from
			defines[from, $2] = 1
		} else if ($3 == "U")
			wants[from, $2] = 1
	}
	# How many folders two paths share.
	function nearness(a, b,	x, y, i) {
		split(a, x, "/")
		split(b, y, "/")
		for (i = 1; i in x && i in y && x[i] == y[i]; i++)
			;
		return i
	}
	function home(from, name,	list, i, near, best) {
		if (((from, name) in defines) || !(name in homes))
			return ""
		split(homes[name], list, " ")
		for (i in list)
			if ((rooms || group[list[i]] == group[from]) && nearness(from, list[i]) > near) {
				near = nearness(from, list[i])
				best = list[i]
			}
		return best
	}
	function trim(	key, pair, outs, ins, gone) {
		for (key in call) {
			split(key, pair, SUBSEP)
			outs[pair[1]] = ins[pair[2]] = 1
		}
		for (key in call) {
			split(key, pair, SUBSEP)
			if (!(pair[2] in outs) || !(pair[1] in ins)) {
				delete call[key]
				gone = 1
			}
		}
		return gone
	}
	# The first callee by name, so that the same circle is told each time.
	function callee(from,	key, pair, first) {
		for (key in call) {
			split(key, pair, SUBSEP)
			if (pair[1] == from && (first == "" || pair[2] < first))
				first = pair[2]
		}
		return first
	}
	function short(from) {
		if (!rooms)
			sub(/.*\//, "", from)
		return from
	}
	function tell(from,	seen, next_one, text) {
		while (!(from in seen)) {
			seen[from] = 1
			from = callee(from)
		}
		text = group[from] ": " short(from)
		for (next_one in seen)
			delete seen[next_one]
		while (!(from in seen)) {
			seen[from] = 1
			next_one = callee(from)
			text = text " wants " call[from, next_one] " of " short(next_one)
			from = next_one
		}
		print text ": a circle"
	}
	END {
		for (key in wants) {
			split(key, pair, SUBSEP)
			to = home(pair[1], pair[2])
			if (to != "" && (call[pair[1], to] == "" || pair[2] < call[pair[1], to]))
				call[pair[1], to] = pair[2]
		}
		while (trim())
			;
		for (key in call) {
			split(key, pair, SUBSEP)
			where = group[pair[1]]
			if (first[where] == "" || pair[1] < first[where])
				first[where] = pair[1]
		}
		count = rooms ? 0 : split(excused, list, " ")
		for (i = 1; i <= count; i++) {
			if (first[list[i]] == "" && list[i] in built)
				print list[i] ": is excused for a circle that it does not have"
			delete first[list[i]]
		}
		for (where in first)
			if (first[where] != "")
				tell(first[where])
	}' | sort
}

# The rooms of the product that have files, by the table.
rooms() {
	layers | while read -r room _; do
		case $room in tests | bench) continue ;; esac
		[ -z "$(find "$room" -maxdepth 1 -name '*.[ch]*' 2>/dev/null)" ] || echo "$room"
	done
}

# What a room is for stands at the top of one of its files: "/* engine/ - decides what …". cuda.h
# says it of the three rooms of the CUDA backend.
check_purposes() {
	rooms | grep -v '^kernels/cuda' | while read -r room; do
		# shellcheck disable=SC2046
		found=$(head -qn 2 $(ls "$room"/*.c "$room"/*.h "$room"/*.cuh 2>/dev/null) |
			grep -c "^/\* ${room##*/}/ - ")
		[ "$found" = 1 ] ||
			echo "$room: $found files say on top what the room is for (\"/* ${room##*/}/ - …\")"
	done
}

# What a .c file does stands on its top, behind its own name (so that a name that is no longer true
# is found): "/* ledger.c - opens, …", or in the paragraph behind what the room is for.
check_first_lines() {
	# shellcheck disable=SC2046
	awk '
	function tell() {
		if (file != "" && !is_said)
			print file ": does not say on top what it does (\"/* " name " - …\")"
	}
	FNR == 1 {
		tell()
		file = name = FILENAME
		sub(/.*\//, "", name)
		is_said = 0
	}
	FNR <= 8 && substr($0, 3, length(name) + 4) == " " name " - " {
		is_said = !index($0, "- see ")
	}
	END { tell() }' $(sources c cc cu) /dev/null
}

# Files that documents name in backquotes exist: as they stand there, beside the document, or in the
# room whose paragraph it is.
check_documents() {
	for document in docs/ARCHITECTURE.md CONTRIBUTING.md tests/README.md; do
		[ -e "$document" ] || continue
		awk '
		/^## [0-9]+\. / { print FNR, "in", $3 }
		{
			count = split($0, part, "`")
			for (i = 2; i <= count; i += 2)
				if (part[i] ~ /^[A-Za-z0-9_.\/-]+$/ && part[i] !~ /^build/ &&
				    part[i] ~ /[a-z]\/|[a-z0-9]\.(c|h|cc|cu|cuh|sh|t|py)$/)
					print FNR, (part[i - 1] ~ /\*\*$/ ? "in" : "file"), part[i]
		}' "$document" | {
			room=
			while read -r line what name; do
				[ "$what" = file ] || room=$name
				[ -e "$name" ] || [ -e "${document%/*}/$name" ] || [ -e "$room/$name" ] ||
					echo "$document:$line: $name: there is no such file"
			done
		}
	done
	rooms | while read -r room; do
		grep -qF "**\`$room/\`**" docs/ARCHITECTURE.md ||
			echo "docs/ARCHITECTURE.md: has no paragraph **\`$room/\`**"
	done
}

check_all() {
	report "each folder includes what its layer may, no less and no more" "$(check_includes; check_homeless)"
	report "no folder has more than $units_max units, but those excused" "$(check_units)"
	report "no files call each other in a circle, but in folders excused" \
		"$(check_objects; check_circles)"
	report "no rooms call each other in a circle" "$(check_circles rooms)"
	report "each room says on top of one file what it is for" "$(check_purposes)"
	report "each source says on top what it does" "$(check_first_lines)"
	report "documents name each room, and files that exist" "$(check_documents)"
	report "each library has one place" "$(check_libraries)"
	report "no banned function is called" "$(check_banned)"
	report "every source says its license" "$(check_licenses)"
}

# A source with its object; fails where there is no compiler.
unit() {	# DIR FOLDER NAME CODE
	printf '/* SPDX-License-Identifier: MIT */\n/* %s.c - a unit. */\n%s\n' "$3" "$4" >"$1/$2/$3.c"
	mkdir -p "$1/build/obj/$2"
	${CC:-cc} -c -o "$1/build/obj/$2/$3.o" "$1/$2/$3.c"
}

# A tree with one mistake per line: each must be found, and nothing else.
bad_tree() {	# DIR
	mkdir -p "$1/common" "$1/ctl" "$1/daemon" "$1/sql" "$1/slurm/helper" "$1/attic" \
		"$1/tests" "$1/docs"
	for file in common/ok.h common/ok.c ctl/bad.c sql/ledger.h sql/ledger.c attic/old.c \
		daemon/fine.c tests/any.c; do
		printf '/* SPDX-License-Identifier: MIT */\n/* %s - a file. */\n' "${file##*/}" >"$1/$file"
	done
	printf '/* SPDX-License-Identifier: MIT */\n/* main.c - a file. */\n' >"$1/slurm/helper/main.c"
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
	unit "$1" common a 'int b(void); int a(void); int a(void) { return b(); }'
	unit "$1" common b 'int c(void); int b(void); int b(void) { return c(); }'
	unit "$1" common c 'int a(void); int c(void); int c(void) { return a(); }'
	unit "$1" common caller 'int a(void); int caller(void); int caller(void) { return a(); }'
	unit "$1" sql callee 'int callee(void); int callee(void) { return 0; }'
	unit "$1" sql straight 'int callee(void); int s(void); int s(void) { return callee(); }'
	unit "$1" ctl there 'int back(void); int there(void); int there(void) { return back(); }'
	unit "$1" daemon back 'int there(void); int back(void); int back(void) { return there(); }'
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		printf '/* SPDX-License-Identifier: MIT */\n/* %s.c - a file. */\n' "$i" >"$1/sql/$i.c"
	done
	echo '/* SPDX-License-Identifier: MIT */' >"$1/sql/1.c"
	sed -i 's/3\.c/4.c/' "$1/sql/3.c"
	sed -i 's/a file/see 5.h/' "$1/sql/5.c"
	echo 'select 1' >"$1/sql/plain.sql"
	for file in common/ok ctl/say daemon/say daemon/more; do
		printf '/* SPDX-License-Identifier: MIT */\n/* %s/ - a room. */\n' "${file%/*}" >"$1/$file.h"
	done
	printf '/* SPDX-License-Identifier: GPL-2.0-or-later */\n/* helper/ - a room. */\n' \
		>"$1/slurm/helper/say.h"
	# shellcheck disable=SC2016
	printf '%s\n' '**`common/`**: `ok.h`, `gone.h`; `ctl/bad.c`' '**`ctl/`**: `ok.h`' \
		'**`daemon/`**: `void *`, `x/*`' '**`sql/`**' >"$1/docs/ARCHITECTURE.md"
}

expected_findings() {
	cat <<'END'
attic/old.c: this folder is in no layer
build: 25 sources have no object there: run make first
common: a.c wants b of b.c wants c of c.c wants a of a.c: a circle
common: is excused for its size, but has only 5 units
ctl/ may include common/, and does not
ctl/bad.c:3: "sql/ledger.h": ctl/ may not include sql/
ctl/bad.c:4: "common/absent.h": no such header; includes start at the top folder
ctl/bad.c:5: "queries.h": belongs to sql/
ctl/bad.c:6: <uv.h> is for daemon slurm only
ctl/bad.c:7: <curses.h> is for ctl/top only
ctl/bad.c:8: atoi() is banned
ctl: is excused for its size, but has only 2 units
daemon/ may include common/*/, and does not
daemon: 2 files say on top what the room is for ("/* daemon/ - …")
daemon: is excused for its size, but has only 2 units
docs/ARCHITECTURE.md: has no paragraph **`slurm/helper/`**
docs/ARCHITECTURE.md:1: gone.h: there is no such file
docs/ARCHITECTURE.md:2: ok.h: there is no such file
rooms: ctl wants back of daemon wants there of ctl: a circle
slurm/helper/main.c: no line "SPDX-License-Identifier: GPL-2.0-or-later" at its top
sql/1.c: does not say on top what it does ("/* 1.c - …")
sql/3.c: does not say on top what it does ("/* 3.c - …")
sql/5.c: does not say on top what it does ("/* 5.c - …")
sql/plain.sql: no line "SPDX-License-Identifier: MIT" at its top
sql: 0 files say on top what the room is for ("/* sql/ - …")
sql: 23 units, more than 20: split it into rooms
sql: is excused for a circle that it does not have
END
}

prove_it_can_fail() {
	bad=$(mktemp -d) || exit 1
	bad_tree "$bad"
	if found=$(LB_LAYERS_NESTED=1 B=build sh "$self" "$bad"); then
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
