/* SPDX-License-Identifier: MIT */
/* fuzz_torch.c - a file of torch.save that somebody else wrote: the whole archive, or its pickle
 * alone in a sound one. */
#include "tests/fuzz/fuzz.h"

#include "common/base/log.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/pickle.h"
#include "worker/lbworker/torch/torch_file.h"

static void look_into(const struct torch_file *f)
{
	for (size_t i = 0; i < torch_file_count(f); i++) {
		const struct st_tensor *t = torch_file_at(f, i);
		float first, last;
		size_t size = t->type == ST_F32 ? 4 : 2;
		fuzz_check(t->bytes >= size && t->bytes % size == 0);
		st_widen(&first, t, 0, 1);
		st_widen(&last, t, t->bytes / size - 1, 1);
		fuzz_check(torch_file_named(f, t->name) != NULL);
	}
}

/* The same bytes as what a checkpoint says of its pieces. */
static void as_checkpoint(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	char *folder, *slash;

	fuzz_file(".metadata", data, size);
	fuzz_file("__0_0.distcp", data, size);
	folder = strdup(fuzz_path(".metadata"));
	slash = folder ? strrchr(folder, '/') : NULL;
	if (slash)
		*slash = '\0';
	struct dcp *d = slash ? dcp_open(folder, &err) : NULL;
	if (d && dcp_rows(d, "x") > 0 && dcp_select(d, "x", 2, 2, &err) == 0) {
		float row[2];
		dcp_row(d, 1, row);
	} else {
		fuzz_check(d || err.text[0] != '\0');
	}
	dcp_close(d);
	free(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 }, none = { 0 };
	struct torch_file *f;
	struct pickle *p;

	log_init("fuzz", LOG_LEVEL_ERROR);
	fuzz_file("torch.pth", data, size);
	f = torch_file_open(fuzz_path("torch.pth"), &err);
	if (f)
		look_into(f);
	else
		fuzz_check(err.text[0] != '\0');
	torch_file_close(f);
	as_checkpoint(data, size);
	p = pickle_read(data, size, &none);
	fuzz_check(p ? pickle_root(p) != NULL : none.text[0] != '\0');
	pickle_free(p);
	return 0;
}
