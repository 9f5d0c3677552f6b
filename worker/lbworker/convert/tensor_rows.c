/* SPDX-License-Identifier: MIT */
/* tensor_rows.c - one tensor, row by row: so models larger than memory are fine. */
#include <math.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/convert/conversion.h"

static int put_row(const struct sink *out, const struct convert_type *type, const float *wide,
		   uint16_t *narrow, size_t count, struct err *err)
{
	const void *data = wide;

	if (type->type != ST_F32)
		data = narrow;
	if (type->type == ST_BF16)
		narrow_to_bf16(narrow, wide, count);
	if (type->type == ST_F16)
		narrow_to_f16(narrow, wide, count);
	return out->st ? st_append(out->st, data, count * type->bytes, err)
		       : foreign_append(out->foreign, data, count * type->bytes, err);
}

/* What of a tensor goes into a file. */
static struct foreign_piece piece_of(const struct conversion *c, const struct model_tensor *t)
{
	if (c->layout)
		return foreign_piece(c->layout, c->model, t, &c->want);
	return (struct foreign_piece){ 0, tensor_rows(t), 0, tensor_width(t) };
}

/* Of finite numbers those that have become Inf. */
static size_t overflows(const struct convert_type *type, const float *wide, const uint16_t *narrow,
			size_t count)
{
	enum { SIGN = 0x8000, INF = 0x7c00 };
	size_t lost = 0;

	for (size_t i = 0; type->type == ST_F16 && i < count; i++)
		lost += (narrow[i] & ~SIGN) == INF && isfinite(wide[i]);
	return lost;
}

int put_tensor(const struct conversion *c, const struct sink *out, const struct model_tensor *t,
	       struct err *err)
{
	const struct foreign_piece piece = piece_of(c, t);
	size_t width = tensor_width(t), lost = 0;
	double times = c->fold ? t->folded : 1;
	float *wide = xmalloc(width * sizeof(*wide));
	uint16_t *narrow = xmalloc(width * sizeof(*narrow));
	int rc = 0;

	for (size_t row = piece.row; row < piece.row + piece.rows && rc == 0; row++) {
		size_t ours = c->layout ? foreign_order(c->layout, c->model, t, row) : row;
		weights_row(c->weights, ours, wide);
		if (c->merge)
			lora_merge_row(c->merge, c->model, t, ours, wide);
		for (size_t i = 0; i < width && times != 1; i++)
			wide[i] = (float)((double)wide[i] * times);
		rc = put_row(out, c->type, wide + piece.column, narrow, piece.columns, err);
		lost += overflows(c->type, wide + piece.column, narrow, piece.columns);
	}
	if (lost > 0)
		log_warn("%s: %zu number%s beyond 65504 %s Inf in float16", t->name, lost,
			 lost == 1 ? "" : "s", lost == 1 ? "is" : "are");
	free(wide);
	free(narrow);
	return rc;
}
