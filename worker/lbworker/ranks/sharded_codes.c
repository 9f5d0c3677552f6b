/* SPDX-License-Identifier: MIT */
/* sharded_codes.c - weights that products read as codes of 8 bits go to other ranks as such codes:
 * a quarter of the bytes of fp32, half of those of bf16, and the same products.
 *
 * A matrix has one scale, from the largest of all its elements: behind an update each rank finds
 * that of its part, all tell each other theirs, and each makes codes of its part, once a step. They
 * come into the end of the place that what they mean will have. */
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/ranks/sharded_state.h"

struct coded_unit {
	struct linear_matrix matrix[MODULE_COUNT];
	size_t matrices; /* 0: it goes as it is */
	size_t at;       /* of its part in codes */
};

struct sharded_codes {
	const struct operand_cast *cast;
	struct coded_unit *unit;
	size_t units;   /* of which this many go as codes */
	uint8_t *codes; /* device: of our part of all of them */
	uint8_t *came;  /* device: of a whole unit */
	float *amax;    /* device, [units][MODULE_COUNT]; behind it the same of each other rank */
	bool are_made;  /* of the weights as they are now */
};

/* All matrices of a unit, or none. */
static void look_at(const struct sharded *s, struct sharded_codes *c, size_t u)
{
	const struct model *m = s->model;
	struct coded_unit *unit = &c->unit[u];

	if (u == 0 || u > m->shape.layers || sharded_unit(s, u).count == 0)
		return;
	size_t matrices = linear_matrices(m, u - 1, unit->matrix);
	bool are_sent = matrices > 0;
	for (size_t i = 0; i < matrices; i++) {
		const struct operand_cast *cast = precision_sent(m->precision, u - 1,
								 unit->matrix[i].module);
		are_sent = are_sent && cast;
		c->cast = cast ? cast : c->cast;
	}
	unit->matrices = are_sent ? matrices : 0;
	c->units += are_sent;
}

static size_t amax_floats(const struct sharded *s)
{
	return s->model->units * MODULE_COUNT;
}

size_t sharded_codes_make(struct sharded *s)
{
	const struct backend *be = s->model->backend;
	struct device *dev = s->model->device;
	struct sharded_codes *c = xcalloc(1, sizeof(*c));
	size_t part = 0, most = 0, ranks = (size_t)s->ranks->size;

	s->codes = c;
	c->unit = xcalloc(s->model->units, sizeof(*c->unit));
	if (s->options.mesh.shard == 1 || !be->weights_encode)
		return 0;
	for (size_t u = 0; u < s->model->units; u++) {
		look_at(s, c, u);
		if (c->unit[u].matrices == 0)
			continue;
		c->unit[u].at = part;
		part += sharded_own(s, u).count;
		most = sharded_unit(s, u).count > most ? sharded_unit(s, u).count : most;
	}
	if (c->units == 0)
		return 0;
	c->codes = be->alloc(dev, part + 1, "parts of the model");
	c->came = be->alloc(dev, most, "parts of the model");
	c->amax = be->alloc(dev, (1 + ranks) * amax_floats(s) * sizeof(float),
			    "parts of the model");
	if (!c->codes || !c->came || !c->amax)
		return SIZE_MAX;
	return c->units;
}

void sharded_codes_free(struct sharded *s)
{
	const struct backend *be = s->model->backend;

	if (!s->codes)
		return;
	be->free(s->model->device, s->codes->codes);
	be->free(s->model->device, s->codes->came);
	be->free(s->model->device, s->codes->amax);
	free(s->codes->unit);
	free(s->codes);
	s->codes = NULL;
}

bool sharded_goes_as_codes(const struct sharded *s, size_t unit)
{
	return s->codes && s->codes->unit[unit].matrices > 0;
}

/* Of a matrix what lies in a range. */
static struct model_unit within(const struct linear_matrix *matrix, struct model_unit range)
{
	size_t first = matrix->range.first, end = first + matrix->range.count;
	size_t range_end = range.first + range.count;

	first = first > range.first ? first : range.first;
	end = end < range_end ? end : range_end;
	return (struct model_unit){ first, end > first ? end - first : 0 };
}

static float *amax_of(const struct sharded *s, size_t unit, size_t matrix)
{
	return s->codes->amax + unit * MODULE_COUNT + matrix;
}

/* The largest of each matrix, of all ranks of our row. */
static void find_amax(struct sharded *s)
{
	const struct model *m = s->model;
	const struct sharded_codes *c = s->codes;
	size_t floats = amax_floats(s), bytes = floats * sizeof(float);

	m->backend->zero(m->device, c->amax, bytes);
	for (size_t u = 0; u < m->units; u++)
		for (size_t i = 0; i < c->unit[u].matrices; i++) {
			const struct model_unit own = within(&c->unit[u].matrix[i],
							     sharded_own(s, u));
			if (own.count > 0)
				m->backend->weights_amax(m->device, amax_of(s, u, i),
							 m->weights + own.first, own.count);
		}
	for (int r = 0; r < s->ranks->size; r++) {
		const struct comm_part nothing = { NULL, 0 };
		bool is_peer = sharded_is_in_our_row(s, r) && r != s->ranks->rank;
		float *theirs = c->amax + (size_t)(1 + r) * floats;
		s->send[r] = is_peer ? (struct comm_part){ c->amax, bytes } : nothing;
		s->receive[r] = is_peer ? (struct comm_part){ theirs, bytes } : nothing;
	}
	sharded_wait(s, sharded_begin(s));
	for (int r = 0; r < s->ranks->size; r++)
		if (s->receive[r].bytes > 0)
			m->backend->largest(m->device, c->amax, s->receive[r].at, floats);
}

void sharded_codes_refresh(struct sharded *s)
{
	const struct model *m = s->model;
	struct sharded_codes *c = s->codes;

	if (!c || c->units == 0 || c->are_made)
		return;
	find_amax(s);
	for (size_t u = 0; u < m->units; u++) {
		const struct model_unit own = sharded_own(s, u);
		for (size_t i = 0; i < c->unit[u].matrices; i++) {
			const struct model_unit part = within(&c->unit[u].matrix[i], own);
			if (part.count > 0)
				m->backend->weights_encode(m->device,
							   c->codes + c->unit[u].at + part.first -
								   own.first,
							   m->weights + part.first, part.count,
							   c->cast, amax_of(s, u, i));
		}
	}
	c->are_made = true;
}

void sharded_codes_outdated(struct sharded *s)
{
	if (s->codes)
		s->codes->are_made = false;
}

struct comm_part sharded_codes_of(const struct sharded *s, size_t unit)
{
	return (struct comm_part){ s->codes->codes + s->codes->unit[unit].at,
				   sharded_own(s, unit).count };
}

struct comm_part sharded_codes_come(const struct sharded *s, struct model_unit range)
{
	const struct comm_part place = sharded_wanted(s, range);

	if (range.count == 0)
		return place;
	return (struct comm_part){ (char *)place.at + place.bytes - range.count, range.count };
}

/* One rank's part: first out of the way of what is written. */
static void decode(const struct sharded *s, size_t unit, struct model_unit theirs)
{
	const struct model *m = s->model;
	const struct sharded_codes *c = s->codes;

	if (theirs.count == 0)
		return;
	m->backend->copy(m->device, c->came, sharded_codes_come(s, theirs).at, theirs.count);
	for (size_t i = 0; i < c->unit[unit].matrices; i++) {
		const struct model_unit part = within(&c->unit[unit].matrix[i], theirs);
		if (part.count > 0)
			m->backend->weights_decode(m->device, m->weights + part.first,
						   c->came + part.first - theirs.first, part.count,
						   c->cast, amax_of(s, unit, i));
	}
}

void sharded_codes_came(const struct sharded *s, size_t unit)
{
	const struct mesh *mesh = &s->options.mesh;
	const struct model_unit u = sharded_unit(s, unit);

	for (int r = 0; r < mesh->size; r++)
		if (sharded_is_in_our_row(s, r) && r != s->ranks->rank)
			decode(s, unit, mesh_shard(mesh, &u, r));
}
