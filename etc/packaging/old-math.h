/* SPDX-License-Identifier: MIT */
/* old-math.h - old-glibc.h for libraries that are linked in (SQLite): the linker sends their calls
 * here (--wrap). Compiled by itself. */
#define OLD(result, name, parameters, arguments) \
	extern result old_##name parameters; \
	extern result __wrap_##name parameters; \
	__asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5"); \
	result __wrap_##name parameters \
	{ \
		return old_##name arguments; \
	}

OLD(double, exp, (double x), (x))
OLD(double, log, (double x), (x))
OLD(double, log2, (double x), (x))
OLD(double, pow, (double x, double y), (x, y))
