/* SPDX-License-Identifier: MIT */
/* old-glibc.h - put in front of every file of a build that is to run on glibc 2.28 (EL8): these had
 * a new version in 2.29, which differs in how errors are told, not in results. */
#ifndef PACKAGING_OLD_GLIBC_H
#define PACKAGING_OLD_GLIBC_H

__asm__(".symver exp, exp@GLIBC_2.2.5");
__asm__(".symver exp2, exp2@GLIBC_2.2.5");
__asm__(".symver log, log@GLIBC_2.2.5");
__asm__(".symver log2, log2@GLIBC_2.2.5");
__asm__(".symver pow, pow@GLIBC_2.2.5");

#endif
