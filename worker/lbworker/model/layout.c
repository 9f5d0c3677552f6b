/* SPDX-License-Identifier: MIT */
/* layout.c - where each parameter lies: the matrices of all tables in order, then the vectors; and
 * what tensors of them are called. */
#include "worker/lbworker/model/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/slice.h"

bool model_has_row(const struct model *m, const struct family_tensor *row)
{
	return row->name && !(row->param == PARAM_HEAD && m->shape.tied);
}

static bool is_of_each_expert(enum param param)
{
	return param == PARAM_EXPERT_UP || param == PARAM_EXPERT_DOWN;
}

size_t model_copies(const struct model *m, const struct family_tensor *row)
{
	return is_of_each_expert(row->param) ? m->shape.experts.count : 1;
}

const struct family_tensor *model_layer_table(const struct model *m, size_t l)
{
	return model_is_sparse(&m->shape, l) ? m->family->sparse : m->family->layer;
}

/* Gives the table's matrices (or its vectors) the next places behind m->parameters. */
static void place_table(struct model *m, const struct family_tensor *table, size_t l, bool matrices)
{
	size_t *at = m->layer[l].at;

	for (const struct family_tensor *row = table; model_has_row(m, row); row++) {
		if ((row->columns != EXTENT_NONE) != matrices)
			continue;
		if (at[row->param] == ABSENT)
			at[row->param] = m->parameters;
		m->parameters += model_copies(m, row) * slice_extent(&m->shape, row->rows) *
				 slice_extent(&m->shape, row->columns);
	}
}

/* Of matrices: what was placed since the unit before ended. */
static void end_unit(struct model *m, size_t unit, bool matrices)
{
	size_t first = unit > 0 ? m->unit[unit - 1].first + m->unit[unit - 1].count : 0;

	if (matrices)
		m->unit[unit] = (struct model_unit){ first, m->parameters - first };
}

static void place_all(struct model *m)
{
	const struct family *f = m->family;
	size_t layers = m->shape.layers;

	for (size_t l = 0; l <= layers; l++)
		for (size_t i = 0; i < PARAM_COUNT; i++)
			m->layer[l].at[i] = ABSENT;
	for (int matrices = 1; matrices >= 0; matrices--) {
		place_table(m, f->first, layers, matrices);
		end_unit(m, 0, matrices);
		size_t first = m->parameters;
		for (size_t l = 0; l < layers; l++) {
			m->vectors[l] = m->parameters;
			place_table(m, model_layer_table(m, l), l, matrices);
			end_unit(m, 1 + l, matrices);
		}
		m->vectors[layers] = m->parameters;
		if (matrices && m->options.narrow_gradients) {
			m->narrow = first;
			m->narrow_end = m->parameters;
		}
		place_table(m, f->last, layers, matrices);
		end_unit(m, 1 + layers, matrices);
		if (matrices)
			m->decayed = m->parameters;
	}
	m->unit[m->units - 1] = (struct model_unit){ m->decayed, m->parameters - m->decayed };
}

/* What it takes to make a piece of a parameter that of a model without u-muP. `first`: the queries
 * among query, key and value; the gates among gates and ups. */
static double folded(const struct model *m, enum param param, bool first)
{
	const struct umup_scales *s = &m->scales;
	double root = sqrt((double)model_head_dim(&m->shape));

	switch (param) {
	case PARAM_QKV:
		return (double)s->qkv * (first && s->scores > 0 ? (double)s->scores * root : 1);
	case PARAM_OUT:
		return (double)s->out;
	case PARAM_UP:
		return (double)(first ? s->gate : s->up);
	case PARAM_DOWN:
		return (double)s->down;
	case PARAM_HEAD:
		return (double)s->head;
	default:
		return 1;
	}
}

/* "a.%zu.b" with a number in place of %zu, or as it is; the format stays a literal that a compiler
 * can check. */
static void put_number(const char *name, size_t number, char *out, size_t bytes)
{
	static const char sign[] = "%zu";
	const char *mark = strstr(name, sign);

	if (mark)
		snprintf(out, bytes, "%.*s%zu%s", (int)(mark - name), name, number,
			 mark + sizeof(sign) - 1);
	else
		snprintf(out, bytes, "%s", name);
}

/* `behind`: elements of the same parameter before this tensor. */
static void name_tensor(struct model *m, const struct family_tensor *row, size_t l,
			const char *prefix, size_t expert, size_t *behind)
{
	struct model_tensor *t = &m->tensor[m->tensors++];
	char name[64];

	t->offset = m->layer[l].at[row->param] + *behind;
	t->rows = slice_extent(&m->shape, row->rows);
	t->columns = row->columns == EXTENT_NONE ? 0 : slice_extent(&m->shape, row->columns);
	t->row_extent = row->rows;
	t->column_extent = row->columns;
	t->rate = umup_rate(&model_whole(m)->shape, row->param);
	t->unit_gradient = umup_unit_gradient(&model_whole(m)->shape, row->param);
	t->folded = folded(m, row->param, *behind == 0);
	t->is_balance = row->param == PARAM_BALANCE;
	*behind += t->rows * (t->columns ? t->columns : 1);
	put_number(row->name, expert, name, sizeof(name));
	snprintf(t->name, sizeof(t->name), "%s%s", prefix, name);
}

/* Rows of a parameter follow one another; those of experts do so for each of them. */
static void name_table(struct model *m, const struct family_tensor *table, size_t l,
		       const char *prefix)
{
	const struct family_tensor *row = table, *first;

	while (model_has_row(m, row)) {
		size_t behind = 0;
		first = row;
		for (size_t e = 0; e < model_copies(m, first); e++)
			for (row = first; model_has_row(m, row) && row->param == first->param;
			     row++)
				name_tensor(m, row, l, prefix, e, &behind);
	}
}

static size_t count_tensors(const struct model *m, const struct family_tensor *row)
{
	size_t count = 0;

	for (; model_has_row(m, row); row++)
		count += model_copies(m, row);
	return count;
}

static void name_tensors(struct model *m)
{
	size_t count = count_tensors(m, m->family->first) + count_tensors(m, m->family->last);
	char prefix[64];

	for (size_t l = 0; l < m->shape.layers; l++)
		count += count_tensors(m, model_layer_table(m, l));
	m->tensor = xcalloc(count, sizeof(*m->tensor));
	name_table(m, m->family->first, m->shape.layers, "");
	for (size_t l = 0; l < m->shape.layers; l++) {
		put_number(m->family->prefix, l, prefix, sizeof(prefix));
		name_table(m, model_layer_table(m, l), l, prefix);
	}
	name_table(m, m->family->last, m->shape.layers, "");
}

void layout_make(struct model *m)
{
	size_t layers = m->shape.layers;

	m->layer = xcalloc(layers + 1, sizeof(*m->layer));
	m->vectors = xcalloc(layers + 1, sizeof(*m->vectors));
	m->units = layers + 3;
	m->unit = xcalloc(m->units, sizeof(*m->unit));
	place_all(m);
	name_tensors(m);
}
