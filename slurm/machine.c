/* SPDX-License-Identifier: MIT */
/* machine.c - see machine.h. */
#include "slurm/machine.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
