/* SPDX-License-Identifier: MIT */
/* ledger_taps.h - between the engine and the ledger: what is written becomes a fact once it is
 * committed, and lbd may die around each commit. The linker calls __wrap_X for X (--wrap). */
#ifndef TESTS_SIM_LEDGER_TAPS_H
#define TESTS_SIM_LEDGER_TAPS_H

struct sim;

void ledger_taps_open(struct sim *sim);
void ledger_taps_close(void);

#endif
