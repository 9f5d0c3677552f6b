#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086 # names of functions
# What compiler and linker do against a mistake that is still in our programs, read from their ELF
# files.
. "$(dirname "$0")/lib.sh"
need readelf binutils
need cc gcc

elf() { readelf -W "$@" 2>/dev/null; }
is_pie() { elf -h "$1" | grep -q 'Type: *DYN' && elf -d "$1" | grep -q 'FLAGS_1.*PIE'; }
is_bound_now() { elf -d "$1" | grep -Eq 'FLAGS.*NOW|BIND_NOW'; }
has_relro() { elf -l "$1" | grep -q GNU_RELRO; }
has_no_executable_stack() { elf -l "$1" | grep -q 'GNU_STACK.* RW '; }
has_no_writable_code() { ! elf -l "$1" | grep -q 'LOAD.* RWE '; }
has_canaries() { elf --dyn-syms "$1" | grep -q __stack_chk_fail; }
is_fortified() { elf --dyn-syms "$1" | grep -Eq '__(v?snprintf|v?fprintf|v?asprintf|memcpy|read|printf)_chk'; }
has_no_rpath() { ! elf -d "$1" | grep -Eq 'RPATH|RUNPATH'; }
# Branches land where they may: an instruction at each place where they do, on processors that know
# it.
has_landing_pads() {
	[ "$(uname -m)" != x86_64 ] || objdump -d --no-show-raw-insn "$1" | grep -A1 '<main>:' | grep -q endbr64
}
properties="is_pie is_bound_now has_relro has_no_executable_stack has_no_writable_code has_canaries
is_fortified has_no_rpath has_landing_pads"

for program in lbd lbctl lbrun lbworker lbd-slurm lbd-slurm-commands; do
	[ -x "$B/$program" ] || continue
	for property in $properties; do
		ok "$program $property" $property "$B/$program"
	done
done

# Each of the checks can fail.
printf 'int main(void) { return 0; }\n' >"$T/soft.c"
cc -no-pie -fno-stack-protector -Wl,-z,lazy -Wl,-z,norelro -Wl,-z,execstack -Wl,-rpath,/nowhere \
	-o "$T/soft" "$T/soft.c" || bail_out "no program without protection"
cc -nostdlib -static -Wl,--omagic,-e,main,--no-warn-rwx-segments -o "$T/writable" "$T/soft.c" || bail_out "no program with writable code"
for property in $properties; do
	[ $property != has_landing_pads ] || [ "$(uname -m)" = x86_64 ] || continue
	soft=$T/soft
	[ $property != has_no_writable_code ] || soft=$T/writable
	if $property "$soft"; then
		failed "a program without protection passes: $property"
	else
		passed "a program without protection is found: $property"
	fi
done
done_testing
