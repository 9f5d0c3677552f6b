/* SPDX-License-Identifier: MIT */
/* init_std.h - the standard deviation of first weights: a number, or a rule of the width. */
#ifndef LBWORKER_INIT_STD_H
#define LBWORKER_INIT_STD_H

#include <stddef.h>

#define INIT_STD_FORMS \
	"a number like \"0.02\", or sqrt(A/(Bh)) of the width h, like \"sqrt(2/(5h))\""

/* "0.02", "sqrt(2/(5h))" (Nguyen & Salazar 2019), "sqrt(1/(3h))", ...; blanks and "*" are free.
 * 0 with *std within 1e-9..10, or -1. */
int init_std_parse(const char *text, size_t width, double *std);

#endif
