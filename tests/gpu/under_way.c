/* SPDX-License-Identifier: MIT */
/* under_way.c - more exchanges at once than the watchdog has events for (kernels/cuda/arrays.c), on
 * an emulated GPU with the stand-in of NCCL, of which LB_NCCL_STANDIN=stall=0:N says which one
 * never ends. Prints what became of it; hangs where nobody looks at that one. */
#include <stdio.h>

#include "kernels/comm.h"
#include "kernels/load.h"
#include "kernels/nccl.h"

enum { EXCHANGES = 150 };

static int failed(const char *why)
{
	fprintf(stderr, "under_way: %s\n", why);
	return 1;
}

static void begin_all(const struct arrays_table *table, struct arrays *arrays, void *memory)
{
	const struct comm_part send[2] = { { NULL, 0 }, { memory, 4 } },
			       nothing[2] = { { NULL, 0 } };

	for (int i = 0; i < EXCHANGES; i++)
		(void)table->begin(arrays, send, nothing);
}

int main(void)
{
	static struct nccl_id id;
	struct nccl_config config = { .size = sizeof(config),
				      .magic = (unsigned)NCCL_CONFIG_MAGIC };
	char why[COMM_TEXT_BYTES] = "";
	const struct backend *be = backend_load_cuda(why);
	const struct nccl *nccl = be ? nccl_open(why) : NULL;
	struct device *dev = nccl ? be->open(&(struct backend_options){ .index = -1 }, why) : NULL;
	nccl_comm other;

	/* the other rank, which is there and does nothing */
	if (!dev || nccl->get_id(&id) != NCCL_SUCCESS ||
	    nccl->init(&other, 2, id, 1, &config) != NCCL_IN_PROGRESS)
		return failed(why);
	const struct arrays_options options = {
		.nccl = nccl, .id = &id, .size = 2, .begin_s = 10, .deadline_s = 1
	};
	struct arrays *arrays = be->arrays->open(dev, &options, why);
	void *memory = be->alloc(dev, 4, "under way");
	if (!arrays || !memory)
		return failed(why);
	begin_all(be->arrays, arrays, memory);
	(void)be->finish(dev, why); /* until what stands still is aborted */
	bool is_late = be->arrays->failed(arrays, why) == COMM_LATE;
	be->arrays->close(arrays);
	be->free(dev, memory);
	be->close(dev);
	printf("%s\n", is_late ? why : "nothing was late");
	return is_late ? 0 : 1;
}
