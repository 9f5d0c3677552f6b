/* SPDX-License-Identifier: MIT */
/* world.h - the real world for the engine: system clocks, random tokens, files below runs/. */
#ifndef DAEMON_RUNS_WORLD_H
#define DAEMON_RUNS_WORLD_H

#include "daemon/engine/engine.h"

struct lbd;

/* `lbd` is borrowed and must outlive the world. */
void world_init(struct world *world, struct lbd *lbd);

#endif
