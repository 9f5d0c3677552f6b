/* SPDX-License-Identifier: MIT */
/* pickle_stack.c - what a pickle machine holds. */
#include "worker/lbworker/torch/pickle_stack.h"

#include <stdlib.h>

#include "common/base/mem.h"

/* Far above any file of weights; what keeps a hostile one from taking all memory. */
enum { MAX_VALUES = 1 << 25 };

int pickle_bad(struct pickle *p, const char *why)
{
	return err_set(p->err, ERR_USAGE, "its pickle, byte %zu: %s", (size_t)(p->in - p->start),
		       why);
}

void values_push(struct values *v, struct pickle_value *value)
{
	if (v->count == v->room) {
		v->room = v->room ? 2 * v->room : 16;
		v->at = xrealloc(v->at, v->room * sizeof(struct pickle_value *));
	}
	v->at[v->count++] = value;
}

struct pickle_value *pickle_make(struct pickle *p, enum pickle_kind kind)
{
	if (p->all.count == MAX_VALUES) {
		pickle_bad(p, "more values than can be meant");
		return NULL;
	}
	struct pickle_value *v = xcalloc(1, sizeof(*v));
	v->kind = kind;
	values_push(&p->all, v);
	return v;
}

int pickle_push(struct pickle *p, struct pickle_value *value)
{
	if (!value)
		return -1;
	values_push(&p->stack, value);
	return 0;
}

struct pickle_value *pickle_pop(struct pickle *p)
{
	if (p->stack.count == 0 || !p->stack.at[p->stack.count - 1]) {
		pickle_bad(p, "takes from an empty stack");
		return NULL;
	}
	return p->stack.at[--p->stack.count];
}

struct pickle_value *pickle_top(struct pickle *p)
{
	struct pickle_value *v = pickle_pop(p);

	p->stack.count += v != NULL;
	return v;
}

/* The place behind the last mark; SIZE_MAX with err. */
static size_t above_mark(struct pickle *p)
{
	for (size_t i = p->stack.count; i > 0; i--)
		if (!p->stack.at[i - 1])
			return i;
	pickle_bad(p, "has no mark");
	return SIZE_MAX;
}

void pickle_add_item(struct pickle_value *v, struct pickle_value *item)
{
	if ((v->count & (v->count - 1)) == 0) /* room doubles */
		v->item = xrealloc(v->item,
				   (v->count ? 2 * v->count : 1) * sizeof(struct pickle_value *));
	v->item[v->count++] = item;
}

/* Where items go that are put into a value: itself, or beside what was made. */
static struct pickle_value *holder(struct pickle *p, struct pickle_value *v, enum pickle_kind kind)
{
	if (v->kind == kind)
		return v;
	if (v->kind != PICKLE_MADE) {
		pickle_bad(p, "puts items into what holds none");
		return NULL;
	}
	while (v->count < 3) {
		struct pickle_value *none = pickle_make(p, PICKLE_NONE);
		if (!none)
			return NULL;
		pickle_add_item(v, none);
	}
	if (v->count == 3) {
		struct pickle_value *items = pickle_make(p, kind);
		if (!items)
			return NULL;
		pickle_add_item(v, items);
	}
	if (v->item[3]->kind == kind)
		return v->item[3];
	pickle_bad(p, "puts items into what holds none");
	return NULL;
}

/* All above the mark into the value below it (APPENDS, SETITEMS), or the one or two on top. */
static int fill(struct pickle *p, enum pickle_kind kind, size_t from)
{
	size_t step = kind == PICKLE_DICT ? 2 : 1;
	size_t below = from - (p->stack.count >= from && from > 0 && !p->stack.at[from - 1]);

	if (from > p->stack.count || (p->stack.count - from) % step != 0 || below == 0 ||
	    !p->stack.at[below - 1])
		return pickle_bad(p, "puts items into nothing");
	struct pickle_value *to = holder(p, p->stack.at[below - 1], kind);
	if (!to)
		return -1;
	for (size_t i = from; i < p->stack.count; i++) {
		if (!p->stack.at[i])
			return pickle_bad(p, "has a mark among items");
		pickle_add_item(to, p->stack.at[i]);
	}
	p->stack.count = below;
	return 0;
}

int pickle_gather(struct pickle *p, enum pickle_kind kind, size_t from, size_t cut)
{
	if (from > p->stack.count || (kind == PICKLE_DICT && (p->stack.count - from) % 2 != 0))
		return pickle_bad(p, "takes from an empty stack");
	struct pickle_value *v = pickle_make(p, kind);
	for (size_t i = from; v && i < p->stack.count; i++) {
		if (!p->stack.at[i])
			return pickle_bad(p, "takes from an empty stack");
		pickle_add_item(v, p->stack.at[i]);
	}
	p->stack.count = cut;
	return pickle_push(p, v);
}

int pickle_gather_marked(struct pickle *p, enum pickle_kind kind)
{
	size_t from = above_mark(p);

	return from == SIZE_MAX ? -1 : pickle_gather(p, kind, from, from - 1);
}

int pickle_gather_top(struct pickle *p, size_t count)
{
	if (p->stack.count < count)
		return pickle_bad(p, "takes from an empty stack");
	return pickle_gather(p, PICKLE_LIST, p->stack.count - count, p->stack.count - count);
}

int pickle_fill_marked(struct pickle *p, enum pickle_kind kind)
{
	size_t from = above_mark(p);

	return from == SIZE_MAX ? -1 : fill(p, kind, from);
}

int pickle_fill_top(struct pickle *p, enum pickle_kind kind, size_t count)
{
	return p->stack.count <= count ? pickle_bad(p, "takes from an empty stack")
				       : fill(p, kind, p->stack.count - count);
}

int pickle_pop_to_mark(struct pickle *p)
{
	size_t from = above_mark(p);

	if (from == SIZE_MAX)
		return -1;
	p->stack.count = from - 1;
	return 0;
}
