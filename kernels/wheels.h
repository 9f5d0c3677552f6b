/* SPDX-License-Identifier: MIT */
/* wheels.h - NVIDIA's libraries where PyPI's wheels put them: nvidia/<name>/lib in the packages of
 * a Python environment. Who has PyTorch there has cuBLASLt and cuDNN, and the loader does not know
 * it. */
#ifndef KERNELS_WHEELS_H
#define KERNELS_WHEELS_H

#include <stdbool.h>

/* Opens that library (its soname, like "libcudnn.so.9") from the first environment that has it, for
 * whoever asks for it by that name later: $VIRTUAL_ENV, $CONDA_PREFIX, that of the first python3 on
 * PATH, ~/.local, the system's own. It stays open. False: none has it. */
bool wheels_open(const char *soname);

#endif
