/* SPDX-License-Identifier: MIT */
/* plain_slurm.c - the other half of plain_submit.c: an lbd-slurm (controls/lbd-slurm) whose jobs
 * are not held until they are recorded, but start at once. */
#include <slurm/slurm.h>

int __real_slurm_submit_batch_job(job_desc_msg_t *desc, submit_response_msg_t **response);
int __wrap_slurm_submit_batch_job(job_desc_msg_t *desc, submit_response_msg_t **response);

int __wrap_slurm_submit_batch_job(job_desc_msg_t *desc, submit_response_msg_t **response)
{
	desc->priority = NO_VAL;
	return __real_slurm_submit_batch_job(desc, response);
}
