/* SPDX-License-Identifier: MIT */
/* decide.c - sums of losses, and what they and the gradient's norm decide. */
#include "kernels/step_control.h"

#include "kernels/cpu/cpu.h"

void cpu_sum_losses(struct device *dev, double *sum, const float *loss, size_t rows,
		    bool accumulate)
{
	double part = 0;

	(void)dev;
	for (size_t i = 0; i < rows; i++)
		part += (double)loss[i];
	*sum = accumulate ? *sum + part : part;
}

void cpu_decide(struct device *dev, struct step_control *d)
{
	(void)dev;
	*d = step_control_decide(*d);
}
