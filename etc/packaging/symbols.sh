#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh FILE… - do these programs run on glibc 2.28 (EL8, Debian 10)? Says of each what it
# needs, and ends with 1 where a newer glibc or a library of another project is needed. What is a
# file of its own for their sake may need libslurm and libmpich (the ABI of MPICH, which Intel's and
# Cray's MPI have, too).
set -eu
most=2.28
status=0
for file; do
	newest=$(objdump -T "$file" | grep -o 'GLIBC_2\.[0-9.]*' | sort -uV | tail -n 1)
	newest=${newest#GLIBC_}
	libraries=$(objdump -p "$file" | sed -n 's/^ *NEEDED *//p' | tr '\n' ' ')
	others=$(echo "$libraries" | tr ' ' '\n' |
		grep -Ev '^(lib(c|m|dl|pthread|rt)\.so\.[0-9]|ld-linux-x86-64\.so\.2|libslurm\.so\.[0-9]*|libmpich\.so\.12|)$' || :)
	echo "${file##*/}: glibc $newest; $libraries"
	if [ -n "$others" ]; then
		echo "$file: needs $others" >&2
		status=1
	fi
	if [ "$(printf '%s\n' "$newest" $most | sort -V | tail -n 1)" != $most ]; then
		echo "$file: needs glibc $newest:" "$(objdump -T "$file" | grep "GLIBC_$newest")" >&2
		status=1
	fi
done
exit $status
