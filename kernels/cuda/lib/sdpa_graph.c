/* SPDX-License-Identifier: MIT */
/* sdpa_graph.c - the graphs are lists of operations on tensors, most of them virtual: cuDNN fuses
 * them into one or two kernels. Tensors are [B, heads, T, C] by name and lie in memory as strides
 * say. */
#include "kernels/cuda/lib/sdpa_graph.h"

#include <stdio.h>

#include "kernels/cuda/heads.h"

typedef cudnnBackendDescriptor_t descriptor;

/* --- descriptors, with one error kept ----------------------------------------------------- */

bool sdpa_good(struct sdpa_graph *g, cudnnStatus_t status, const char *what)
{
	char detail[SDPA_TEXT_BYTES / 2] = "";

	if (status == CUDNN_STATUS_SUCCESS)
		return true;
	if (g->error[0] == '\0') {
		g->api->last_error(detail, sizeof(detail));
		snprintf(g->error, sizeof(g->error), "%s: %s %.200s", what,
			 g->api->error_string(status), detail);
	}
	return false;
}

descriptor sdpa_make(struct sdpa_graph *g, cudnnBackendDescriptorType_t type)
{
	descriptor d = NULL;

	if (g->count == SDPA_DESCRIPTORS_MAX || g->error[0] != '\0' ||
	    !sdpa_good(g, g->api->create(type, &d), "create"))
		return NULL;
	g->all[g->count++] = d;
	return d;
}

void sdpa_set(struct sdpa_graph *g, descriptor d, cudnnBackendAttributeName_t name,
	      cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	if (g->error[0] == '\0')
		sdpa_good(g, g->api->set(d, name, type, count, values), "attribute");
}

void sdpa_link(struct sdpa_graph *g, descriptor d, cudnnBackendAttributeName_t name,
	       descriptor other)
{
	if (other)
		sdpa_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void sdpa_finalize(struct sdpa_graph *g, descriptor d, const char *what)
{
	if (g->error[0] == '\0')
		sdpa_good(g, g->api->finalize(d), what);
}

/* --- tensors ------------------------------------------------------------------------------ */

struct form {
	int64_t dimension[4], stride[4];
	cudnnDataType_t type;
};

static descriptor tensor(struct sdpa_graph *g, const struct form *form, int64_t id, bool by_value)
{
	descriptor d = sdpa_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const bool is_virtual = id == 0;
	const int64_t align = 16;

	if (is_virtual)
		id = g->next_virtual++;
	sdpa_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &form->type);
	sdpa_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, form->dimension);
	sdpa_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, form->stride);
	sdpa_set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	sdpa_set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	if (is_virtual)
		sdpa_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	if (by_value)
		sdpa_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
	sdpa_finalize(g, d, "tensor");
	return d;
}

/* [B, heads, T, C] in rows of `row` elements, a head every `step`. */
static struct form heads_form(const struct sdpa_graph *g, size_t heads, size_t row, size_t step)
{
	const struct attention *a = &g->a;

	return (struct form){ { (int64_t)a->batch, (int64_t)heads, (int64_t)a->seq,
				(int64_t)a->head_dim },
			      { (int64_t)(a->seq * row), (int64_t)step, (int64_t)row, 1 },
			      CUDNN_DATA_BFLOAT16 };
}

static struct form turned(struct form f)
{
	const int64_t dimension = f.dimension[2], stride = f.stride[2];

	f.dimension[2] = f.dimension[3];
	f.stride[2] = f.stride[3];
	f.dimension[3] = dimension;
	f.stride[3] = stride;
	return f;
}

static struct form scores_form(const struct sdpa_graph *g, cudnnDataType_t type)
{
	const int64_t b = (int64_t)g->a.batch, h = (int64_t)g->a.heads, t = (int64_t)g->a.seq;

	return (struct form){ { b, h, t, t }, { h * t * t, t * t, t, 1 }, type };
}

static struct form rows_form(const struct sdpa_graph *g)
{
	const int64_t b = (int64_t)g->a.batch, h = (int64_t)g->a.heads, t = (int64_t)g->a.seq;

	return (struct form){ { b, h, t, 1 }, { h * t, t, 1, 1 }, CUDNN_DATA_FLOAT };
}

static descriptor scores(struct sdpa_graph *g, cudnnDataType_t type)
{
	const struct form f = scores_form(g, type);
	return tensor(g, &f, 0, false);
}

static descriptor turned_scores(struct sdpa_graph *g)
{
	struct form f = scores_form(g, CUDNN_DATA_BFLOAT16);

	f.stride[2] = 1;
	f.stride[3] = (int64_t)g->a.seq;
	return tensor(g, &f, 0, false);
}

static descriptor rows(struct sdpa_graph *g, int64_t id)
{
	const struct form f = rows_form(g);
	return tensor(g, &f, id, false);
}

static descriptor number(struct sdpa_graph *g, int64_t id)
{
	const struct form f = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 }, CUDNN_DATA_FLOAT };
	return tensor(g, &f, id, true);
}

/* One of query, key, value, or of their gradients, where rows of qkv have it. */
static struct form qkv_form(const struct sdpa_graph *g, bool query)
{
	const struct heads at = heads_of(&g->a);
	return heads_form(g, query ? g->a.heads : g->a.kv_heads, at.row, at.step);
}

/* out and dout, and full gradients of keys and values: [B,T,H,C] in memory. */
static struct form out_form(const struct sdpa_graph *g)
{
	return heads_form(g, g->a.heads, g->a.heads * g->a.head_dim, g->a.head_dim);
}

/* --- operations --------------------------------------------------------------------------- */

static void add_operation(struct sdpa_graph *g, descriptor d)
{
	sdpa_finalize(g, d, "operation");
	if (g->operations < SDPA_OPERATIONS_MAX)
		g->operation[g->operations++] = d;
}

/* y = mode(x, b, t); b and t may be NULL. axis: of a generated index, else -1. */
static descriptor pointwise(struct sdpa_graph *g, cudnnPointwiseMode_t mode, descriptor x,
			    descriptor b, descriptor t, descriptor y, int64_t axis)
{
	descriptor kind = sdpa_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	const cudnnDataType_t precision = mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN
									 : CUDNN_DATA_FLOAT;

	sdpa_set(g, kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	sdpa_set(g, kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	if (axis >= 0)
		sdpa_set(g, kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
	sdpa_finalize(g, kind, "pointwise");
	descriptor d = sdpa_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	add_operation(g, d);
	return y;
}

static void matmul(struct sdpa_graph *g, descriptor a, descriptor b, descriptor c)
{
	descriptor kind = sdpa_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;

	sdpa_set(g, kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	sdpa_finalize(g, kind, "matmul");
	descriptor d = sdpa_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
	add_operation(g, d);
}

/* y = max or sum over the last axis of x */
static descriptor reduce(struct sdpa_graph *g, cudnnReduceTensorOp_t mode, descriptor x,
			 descriptor y)
{
	descriptor kind = sdpa_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;

	sdpa_set(g, kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
		 &mode);
	sdpa_set(g, kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	sdpa_finalize(g, kind, "reduction");
	descriptor d = sdpa_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
	add_operation(g, d);
	return y;
}

/* The same elements under other strides. */
static descriptor reshape(struct sdpa_graph *g, descriptor x, descriptor y)
{
	descriptor d = sdpa_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	sdpa_link(g, d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	sdpa_link(g, d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_operation(g, d);
	return y;
}

/* --- the two graphs ----------------------------------------------------------------------- */

/* scale q k^T, and a very small number where the key lies behind the query. */
static descriptor masked_scores(struct sdpa_graph *g, descriptor q, descriptor k_turned,
				descriptor scale)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT, i = CUDNN_DATA_INT32, b = CUDNN_DATA_BOOLEAN;
	descriptor raw = scores(g, f), masked = number(g, SDPA_MASKED);

	matmul(g, q, k_turned, raw);
	descriptor s = pointwise(g, CUDNN_POINTWISE_MUL, raw, scale, NULL, scores(g, f), -1);
	descriptor row = pointwise(g, CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, scores(g, i), 2);
	descriptor column = pointwise(g, CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, scores(g, i), 3);
	descriptor seen = pointwise(g, CUDNN_POINTWISE_CMP_GE, row, column, NULL, scores(g, b), -1);
	return pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, s, masked, seen, scores(g, f), -1);
}

static void forward_graph(struct sdpa_graph *g)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT;
	const struct form q_form = qkv_form(g, true), v_form = qkv_form(g, false);
	const struct form k_form = turned(v_form), o_form = out_form(g);
	descriptor q = tensor(g, &q_form, SDPA_Q, false);
	descriptor k_turned = tensor(g, &k_form, SDPA_K, false);
	descriptor v = tensor(g, &v_form, SDPA_V, false);
	descriptor out = tensor(g, &o_form, SDPA_OUT, false);
	descriptor scale = number(g, SDPA_SCALE);

	descriptor s = masked_scores(g, q, k_turned, scale);
	descriptor max = reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, rows(g, 0));
	descriptor below = pointwise(g, CUDNN_POINTWISE_SUB, s, max, NULL, scores(g, f), -1);
	descriptor e = pointwise(g, CUDNN_POINTWISE_EXP, below, NULL, NULL, scores(g, f), -1);
	descriptor sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, rows(g, 0));
	descriptor log = pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, NULL, rows(g, 0), -1);
	pointwise(g, CUDNN_POINTWISE_ADD, max, log, NULL, rows(g, SDPA_STATS), -1);
	descriptor share = pointwise(g, CUDNN_POINTWISE_DIV, e, sum, NULL,
				     scores(g, CUDNN_DATA_BFLOAT16), -1);
	matmul(g, share, v, out);
}

/* Where the gradient of keys and values goes. */
static struct form shared_form(const struct sdpa_graph *g)
{
	return g->a.heads == g->a.kv_heads ? qkv_form(g, false) : out_form(g);
}

/* rowsum(dout out), needed in memory between the kernels */
static descriptor along_rows(struct sdpa_graph *g, descriptor dout, descriptor out)
{
	const int64_t t = (int64_t)g->a.seq, c = (int64_t)g->a.head_dim;
	const struct form f = { { (int64_t)g->a.batch, (int64_t)g->a.heads, t, c },
				{ (int64_t)g->a.heads * t * c, t * c, c, 1 },
				CUDNN_DATA_FLOAT };
	descriptor both = tensor(g, &f, 0, false);

	pointwise(g, CUDNN_POINTWISE_MUL, dout, out, NULL, both, -1);
	descriptor sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, rows(g, 0));
	return pointwise(g, CUDNN_POINTWISE_MUL, sum, number(g, SDPA_ONE), NULL,
			 rows(g, SDPA_ALONG), -1);
}

/* dq = ds k: added up in fp32 memory by whoever comes, and rounded when all have come; or from ds
 * in the plan's workspace, in the same order every time. A graph that ends with the sum is planned,
 * but does not run: CUDNN_STATUS_BAD_PARAM_NULL_POINTER (9.19 on an H200). */
static void query_gradient(struct sdpa_graph *g, descriptor ds, descriptor k_turned)
{
	const int64_t t = (int64_t)g->a.seq, c = (int64_t)g->a.head_dim;
	const struct form k_form = qkv_form(g, false), q_form = qkv_form(g, true);
	const struct form sum_form = { { (int64_t)g->a.batch, (int64_t)g->a.heads, t, c },
				       { (int64_t)g->a.heads * t * c, t * c, c, 1 },
				       CUDNN_DATA_FLOAT };
	descriptor k = reshape(g, k_turned, tensor(g, &k_form, 0, false));
	descriptor dq = tensor(g, &q_form, SDPA_DQ, false);

	if (g->pass == SDPA_BACKWARD_FIXED) {
		matmul(g, ds, k, dq);
		return;
	}
	descriptor sum = tensor(g, &sum_form, SDPA_ACCUMULATED, false);
	matmul(g, ds, k, sum);
	pointwise(g, CUDNN_POINTWISE_IDENTITY, sum, NULL, NULL, dq, -1);
}

static void backward_graph(struct sdpa_graph *g)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT;
	const struct form q_form = qkv_form(g, true), kv_turned = turned(qkv_form(g, false));
	const struct form o_form = out_form(g), shared = shared_form(g);
	descriptor q = tensor(g, &q_form, SDPA_Q, false);
	descriptor k_turned = tensor(g, &kv_turned, SDPA_K, false);
	descriptor v_turned = tensor(g, &kv_turned, SDPA_V, false);
	descriptor out = tensor(g, &o_form, SDPA_OUT, false);
	descriptor dout = tensor(g, &o_form, SDPA_DOUT, false);
	descriptor scale = number(g, SDPA_SCALE), raw = scores(g, f);

	descriptor along = along_rows(g, dout, out);
	descriptor s = masked_scores(g, q, k_turned, scale);
	descriptor below = pointwise(g, CUDNN_POINTWISE_SUB, s, rows(g, SDPA_STATS), NULL,
				     scores(g, f), -1);
	descriptor share = pointwise(g, CUDNN_POINTWISE_EXP, below, NULL, NULL, scores(g, f), -1);
	descriptor share_turned = reshape(g, share, turned_scores(g));
	matmul(g, share_turned, dout, tensor(g, &shared, SDPA_DV, false));

	matmul(g, dout, v_turned, raw);
	descriptor dp = pointwise(g, CUDNN_POINTWISE_SUB, raw, along, NULL, scores(g, f), -1);
	descriptor dps = pointwise(g, CUDNN_POINTWISE_MUL, dp, share, NULL, scores(g, f), -1);
	descriptor ds = pointwise(g, CUDNN_POINTWISE_MUL, dps, scale, NULL, scores(g, f), -1);
	descriptor ds_turned = reshape(g, ds, turned_scores(g));
	matmul(g, ds_turned, q, tensor(g, &shared, SDPA_DK, false));
	query_gradient(g, ds, k_turned);
}

void sdpa_graph_build(struct sdpa_graph *g)
{
	if (g->pass == SDPA_FORWARD)
		forward_graph(g);
	else
		backward_graph(g);
}

void sdpa_graph_clear(struct sdpa_graph *g)
{
	while (g->count > 0)
		g->api->destroy(g->all[--g->count]);
}
