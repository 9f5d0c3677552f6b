#!/bin/sh
# SPDX-License-Identifier: MIT
# embed.sh FILE.sql... - print the C header that carries the .sql files into lbd.
#
# queries/run_find.sql becomes Q_RUN_FIND and query_text[Q_RUN_FIND]; schema/001-initial.sql becomes
# migrations[1]. The text is written as numbers: no quoting to get wrong, and no limit on the length
# of a string literal. Who wants the texts and not only the names defines QUERY_TEXTS.
set -eu

text() {	# NAME FILE
	echo "static const char $1[] = {"
	od -An -v -td1 "$2" | sed 's/-\{0,1\}[0-9]\{1,\}/&,/g'
	echo "0};"
}
name() { basename "$1" .sql; }
upper() { name "$1" | tr '[:lower:]' '[:upper:]'; }
number() { name "$1" | sed 's/^0*\([0-9]*\).*/\1/'; }

echo "enum query {"
for f; do case $f in *queries/*) echo "	Q_$(upper "$f"),";; esac; done
echo "	Q_COUNT };"
echo "#ifdef QUERY_TEXTS"
for f; do
	case $f in
	*queries/*) text "text_$(name "$f")" "$f";;
	*schema/*) text "migration_$(number "$f")" "$f";;
	esac
done
echo "static const char *const query_text[Q_COUNT] = {"
for f; do case $f in *queries/*) echo "	[Q_$(upper "$f")] = text_$(name "$f"),";; esac; done
echo "};"
echo "static const char *const migrations[] = {"
for f; do case $f in *schema/*) echo "	[$(number "$f")] = migration_$(number "$f"),";; esac; done
echo "};"
echo "#endif"
