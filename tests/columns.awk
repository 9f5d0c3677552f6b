# SPDX-License-Identifier: MIT
# columns.awk - lines beyond 100 columns; a tab is 8, and a letter is one whatever its bytes. Longer
# may be rows of tables: what clang-format leaves alone, and lines with a text in them. Of scripts
# and makefiles, comments are looked at.
/clang-format off/ { off = 1 }
/clang-format on/ || FNR == 1 { off = 0 }
length($0) > 50 && !off && !/"/ && (FILENAME ~ /\.(c|h|cu|cuh|cpp|cc)$/ || /^[ \t]*# /) {
	line = $0
	gsub(/[\200-\277]/, "", line)
	columns = length(line)
	if (line ~ /\t/) {
		columns = 0
		for (i = 1; i <= length(line); i++)
			columns += substr(line, i, 1) == "\t" ? 8 - columns % 8 : 1
	}
	if (columns > 100) {
		print FILENAME ":" FNR ": " columns " columns, at most 100"
		bad = 1
	}
}
END { exit bad }
