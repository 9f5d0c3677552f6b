#!/bin/sh
# SPDX-License-Identifier: MIT
# words.sh FILE - print the word lists as a C header. FILE has two sections, "[adjectives]" and
# "[nouns]", words separated by blanks; only a-z, no word twice in its section.
set -eu
awk '
function flush_section() {
	if (!section)
		return
	printf "enum { WORD_%sS = %d, WORD_%s_MAX = %d };\n", section, n, section, longest
	printf "static const char *const word_%ss[WORD_%sS] = {\n", tolower(section), section
	for (i = 1; i <= n; i++)
		printf "\t\"%s\",\n", list[i]
	print "};"
}
BEGIN { print "/* Made by common/base/words.sh; do not edit. */" }
/^#/ || NF == 0 { next }
/^\[/ {
	flush_section()
	section = ($1 == "[adjectives]") ? "ADJECTIVE" : "NOUN"
	n = longest = 0
	split("", seen)
	next
}
{
	for (f = 1; f <= NF; f++) {
		if ($f !~ /^[a-z]+$/ || ($f in seen)) {
			print FILENAME ":" FNR ": bad or repeated word: " $f >"/dev/stderr"
			failed = 1
			exit 1
		}
		seen[$f] = 1
		list[++n] = $f
		if (length($f) > longest)
			longest = length($f)
	}
}
END { if (!failed) flush_section() }
' "$1"
