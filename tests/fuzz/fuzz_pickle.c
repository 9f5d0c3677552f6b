/* SPDX-License-Identifier: MIT */
/* fuzz_pickle.c - a pickle alone: no archive round it, no file, so that millions take minutes. */
#include "tests/fuzz/fuzz.h"

#include "worker/lbworker/torch/pickle.h"

/* What readers do with a tree; a value may stand in it many times, or hold itself. */
static void look_at(const struct pickle_value *v)
{
	const struct pickle_value *dict = pickle_dict(v);

	fuzz_check(v->kind != PICKLE_TEXT || v->text[v->len] == '\0');
	fuzz_check(v->count == 0 || v->item != NULL);
	fuzz_check(!dict || dict->count % 2 == 0);
	(void)pickle_member(v, "state_dict_metadata");
	(void)pickle_is(v, "torch.Size");
	for (size_t i = 0; i < v->count; i++) {
		fuzz_check(v->item[i] != NULL);
		fuzz_check(v->item[i]->kind <= PICKLE_MADE);
		(void)pickle_member(v->item[i], "size");
		(void)pickle_is(v->item[i], "torch._utils._rebuild_tensor_v2");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct pickle *p = pickle_read(data, size, &err);

	fuzz_check(p ? pickle_root(p) != NULL : err.text[0] != '\0');
	if (p)
		look_at(pickle_root(p));
	pickle_free(p);
	return 0;
}
