/* SPDX-License-Identifier: MIT */
/* sdpa.c - the graphs are lists of operations on tensors, most of them virtual: cuDNN fuses them
 * into one or two kernels. Tensors are [B, heads, T, C] by name and lie in memory as strides
 * say. */
#include "kernels/cuda/lib/sdpa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/heads.h"

enum { DESCRIPTORS_MAX = 160, OPERATIONS_MAX = 32, CONFIGS_MAX = 8, TEXT_BYTES = 512 };

typedef cudnnBackendDescriptor_t descriptor;

struct sdpa_plan {
	const struct cudnn *api;
	struct attention a;
	enum sdpa_pass pass;
	descriptor all[DESCRIPTORS_MAX]; /* to be destroyed */
	size_t count;
	descriptor operation[OPERATIONS_MAX];
	size_t operations;
	descriptor graph, plan;
	int64_t next_virtual; /* unique ids of virtual tensors */
	int64_t workspace;
	float scale, masked, one;
	char error[TEXT_BYTES]; /* the first one */
};

/* --- descriptors, with one error kept ----------------------------------------------------- */

static bool good(struct sdpa_plan *p, cudnnStatus_t status, const char *what)
{
	char detail[TEXT_BYTES / 2] = "";

	if (status == CUDNN_STATUS_SUCCESS)
		return true;
	if (p->error[0] == '\0') {
		p->api->last_error(detail, sizeof(detail));
		snprintf(p->error, sizeof(p->error), "%s: %s %.200s", what,
			 p->api->error_string(status), detail);
	}
	return false;
}

static descriptor make(struct sdpa_plan *p, cudnnBackendDescriptorType_t type)
{
	descriptor d = NULL;

	if (p->count == DESCRIPTORS_MAX || p->error[0] != '\0' ||
	    !good(p, p->api->create(type, &d), "create"))
		return NULL;
	p->all[p->count++] = d;
	return d;
}

static void set(struct sdpa_plan *p, descriptor d, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	if (p->error[0] == '\0')
		good(p, p->api->set(d, name, type, count, values), "attribute");
}

static void link_to(struct sdpa_plan *p, descriptor d, cudnnBackendAttributeName_t name,
		    descriptor other)
{
	if (other)
		set(p, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

static void finalize(struct sdpa_plan *p, descriptor d, const char *what)
{
	if (p->error[0] == '\0')
		good(p, p->api->finalize(d), what);
}

/* --- tensors ------------------------------------------------------------------------------ */

struct form {
	int64_t dimension[4], stride[4];
	cudnnDataType_t type;
};

static descriptor tensor(struct sdpa_plan *p, const struct form *form, int64_t id, bool by_value)
{
	descriptor d = make(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const bool is_virtual = id == 0;
	const int64_t align = 16;

	if (is_virtual)
		id = p->next_virtual++;
	set(p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &form->type);
	set(p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, form->dimension);
	set(p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, form->stride);
	set(p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	set(p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	if (is_virtual)
		set(p, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	if (by_value)
		set(p, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
	finalize(p, d, "tensor");
	return d;
}

/* [B, heads, T, C] in rows of `row` elements, a head every `step`. */
static struct form heads_form(const struct sdpa_plan *p, size_t heads, size_t row, size_t step)
{
	const struct attention *a = &p->a;

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

static struct form scores_form(const struct sdpa_plan *p, cudnnDataType_t type)
{
	const int64_t b = (int64_t)p->a.batch, h = (int64_t)p->a.heads, t = (int64_t)p->a.seq;

	return (struct form){ { b, h, t, t }, { h * t * t, t * t, t, 1 }, type };
}

static struct form rows_form(const struct sdpa_plan *p)
{
	const int64_t b = (int64_t)p->a.batch, h = (int64_t)p->a.heads, t = (int64_t)p->a.seq;

	return (struct form){ { b, h, t, 1 }, { h * t, t, 1, 1 }, CUDNN_DATA_FLOAT };
}

static descriptor scores(struct sdpa_plan *p, cudnnDataType_t type)
{
	const struct form f = scores_form(p, type);
	return tensor(p, &f, 0, false);
}

static descriptor turned_scores(struct sdpa_plan *p)
{
	struct form f = scores_form(p, CUDNN_DATA_BFLOAT16);

	f.stride[2] = 1;
	f.stride[3] = (int64_t)p->a.seq;
	return tensor(p, &f, 0, false);
}

static descriptor rows(struct sdpa_plan *p, int64_t id)
{
	const struct form f = rows_form(p);
	return tensor(p, &f, id, false);
}

static descriptor number(struct sdpa_plan *p, int64_t id)
{
	const struct form f = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 }, CUDNN_DATA_FLOAT };
	return tensor(p, &f, id, true);
}

/* One of query, key, value, or of their gradients, where rows of qkv have it. */
static struct form qkv_form(const struct sdpa_plan *p, bool query)
{
	const struct heads at = heads_of(&p->a);
	return heads_form(p, query ? p->a.heads : p->a.kv_heads, at.row, at.step);
}

/* out and dout, and full gradients of keys and values: [B,T,H,C] in memory. */
static struct form out_form(const struct sdpa_plan *p)
{
	return heads_form(p, p->a.heads, p->a.heads * p->a.head_dim, p->a.head_dim);
}

/* --- operations --------------------------------------------------------------------------- */

static void add_operation(struct sdpa_plan *p, descriptor d)
{
	finalize(p, d, "operation");
	if (p->operations < OPERATIONS_MAX)
		p->operation[p->operations++] = d;
}

/* y = mode(x, b, t); b and t may be NULL. axis: of a generated index, else -1. */
static descriptor pointwise(struct sdpa_plan *p, cudnnPointwiseMode_t mode, descriptor x,
			    descriptor b, descriptor t, descriptor y, int64_t axis)
{
	descriptor kind = make(p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	const cudnnDataType_t precision = mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN
									 : CUDNN_DATA_FLOAT;

	set(p, kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(p, kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	if (axis >= 0)
		set(p, kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
	finalize(p, kind, "pointwise");
	descriptor d = make(p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	link_to(p, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
	link_to(p, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	link_to(p, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	link_to(p, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
	link_to(p, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	add_operation(p, d);
	return y;
}

static void matmul(struct sdpa_plan *p, descriptor a, descriptor b, descriptor c)
{
	descriptor kind = make(p, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;

	set(p, kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	finalize(p, kind, "matmul");
	descriptor d = make(p, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	link_to(p, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	link_to(p, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	link_to(p, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	link_to(p, d, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
	add_operation(p, d);
}

/* y = max or sum over the last axis of x */
static descriptor reduce(struct sdpa_plan *p, cudnnReduceTensorOp_t mode, descriptor x,
			 descriptor y)
{
	descriptor kind = make(p, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	const cudnnDataType_t precision = CUDNN_DATA_FLOAT;

	set(p, kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
	set(p, kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
	finalize(p, kind, "reduction");
	descriptor d = make(p, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	link_to(p, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	link_to(p, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	link_to(p, d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
	add_operation(p, d);
	return y;
}

/* The same elements under other strides. */
static descriptor reshape(struct sdpa_plan *p, descriptor x, descriptor y)
{
	descriptor d = make(p, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	link_to(p, d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	link_to(p, d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_operation(p, d);
	return y;
}

/* --- the two graphs ----------------------------------------------------------------------- */

/* scale q k^T, and a very small number where the key lies behind the query. */
static descriptor masked_scores(struct sdpa_plan *p, descriptor q, descriptor k_turned,
				descriptor scale)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT, i = CUDNN_DATA_INT32, b = CUDNN_DATA_BOOLEAN;
	descriptor raw = scores(p, f), masked = number(p, SDPA_MASKED);

	matmul(p, q, k_turned, raw);
	descriptor s = pointwise(p, CUDNN_POINTWISE_MUL, raw, scale, NULL, scores(p, f), -1);
	descriptor row = pointwise(p, CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, scores(p, i), 2);
	descriptor column = pointwise(p, CUDNN_POINTWISE_GEN_INDEX, s, NULL, NULL, scores(p, i), 3);
	descriptor seen = pointwise(p, CUDNN_POINTWISE_CMP_GE, row, column, NULL, scores(p, b), -1);
	return pointwise(p, CUDNN_POINTWISE_BINARY_SELECT, s, masked, seen, scores(p, f), -1);
}

static void forward_graph(struct sdpa_plan *p)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT;
	const struct form q_form = qkv_form(p, true), v_form = qkv_form(p, false);
	const struct form k_form = turned(v_form), o_form = out_form(p);
	descriptor q = tensor(p, &q_form, SDPA_Q, false);
	descriptor k_turned = tensor(p, &k_form, SDPA_K, false);
	descriptor v = tensor(p, &v_form, SDPA_V, false);
	descriptor out = tensor(p, &o_form, SDPA_OUT, false);
	descriptor scale = number(p, SDPA_SCALE);

	descriptor s = masked_scores(p, q, k_turned, scale);
	descriptor max = reduce(p, CUDNN_REDUCE_TENSOR_MAX, s, rows(p, 0));
	descriptor below = pointwise(p, CUDNN_POINTWISE_SUB, s, max, NULL, scores(p, f), -1);
	descriptor e = pointwise(p, CUDNN_POINTWISE_EXP, below, NULL, NULL, scores(p, f), -1);
	descriptor sum = reduce(p, CUDNN_REDUCE_TENSOR_ADD, e, rows(p, 0));
	descriptor log = pointwise(p, CUDNN_POINTWISE_LOG, sum, NULL, NULL, rows(p, 0), -1);
	pointwise(p, CUDNN_POINTWISE_ADD, max, log, NULL, rows(p, SDPA_STATS), -1);
	descriptor share = pointwise(p, CUDNN_POINTWISE_DIV, e, sum, NULL,
				     scores(p, CUDNN_DATA_BFLOAT16), -1);
	matmul(p, share, v, out);
}

/* Where the gradient of keys and values goes. */
static struct form shared_form(const struct sdpa_plan *p)
{
	return p->a.heads == p->a.kv_heads ? qkv_form(p, false) : out_form(p);
}

/* rowsum(dout out), needed in memory between the kernels */
static descriptor along_rows(struct sdpa_plan *p, descriptor dout, descriptor out)
{
	const int64_t t = (int64_t)p->a.seq, c = (int64_t)p->a.head_dim;
	const struct form f = { { (int64_t)p->a.batch, (int64_t)p->a.heads, t, c },
				{ (int64_t)p->a.heads * t * c, t * c, c, 1 },
				CUDNN_DATA_FLOAT };
	descriptor both = tensor(p, &f, 0, false);

	pointwise(p, CUDNN_POINTWISE_MUL, dout, out, NULL, both, -1);
	descriptor sum = reduce(p, CUDNN_REDUCE_TENSOR_ADD, both, rows(p, 0));
	return pointwise(p, CUDNN_POINTWISE_MUL, sum, number(p, SDPA_ONE), NULL,
			 rows(p, SDPA_ALONG), -1);
}

/* dq = ds k: added up in fp32 memory by whoever comes, and left there; or from ds in the plan's workspace,
 * in the same order every time, and in bf16. */
static void query_gradient(struct sdpa_plan *p, descriptor ds, descriptor k_turned)
{
	const int64_t t = (int64_t)p->a.seq, c = (int64_t)p->a.head_dim;
	const struct form k_form = qkv_form(p, false), q_form = qkv_form(p, true);
	const struct form sum_form = { { (int64_t)p->a.batch, (int64_t)p->a.heads, t, c },
				       { (int64_t)p->a.heads * t * c, t * c, c, 1 },
				       CUDNN_DATA_FLOAT };
	descriptor k = reshape(p, k_turned, tensor(p, &k_form, 0, false));

	if (p->pass == SDPA_BACKWARD_FIXED)
		matmul(p, ds, k, tensor(p, &q_form, SDPA_DQ, false));
	else
		matmul(p, ds, k, tensor(p, &sum_form, SDPA_ACCUMULATED, false));
}

static void backward_graph(struct sdpa_plan *p)
{
	const cudnnDataType_t f = CUDNN_DATA_FLOAT;
	const struct form q_form = qkv_form(p, true), kv_turned = turned(qkv_form(p, false));
	const struct form o_form = out_form(p), shared = shared_form(p);
	descriptor q = tensor(p, &q_form, SDPA_Q, false);
	descriptor k_turned = tensor(p, &kv_turned, SDPA_K, false);
	descriptor v_turned = tensor(p, &kv_turned, SDPA_V, false);
	descriptor out = tensor(p, &o_form, SDPA_OUT, false);
	descriptor dout = tensor(p, &o_form, SDPA_DOUT, false);
	descriptor scale = number(p, SDPA_SCALE), raw = scores(p, f);

	descriptor along = along_rows(p, dout, out);
	descriptor s = masked_scores(p, q, k_turned, scale);
	descriptor below = pointwise(p, CUDNN_POINTWISE_SUB, s, rows(p, SDPA_STATS), NULL,
				     scores(p, f), -1);
	descriptor share = pointwise(p, CUDNN_POINTWISE_EXP, below, NULL, NULL, scores(p, f), -1);
	descriptor share_turned = reshape(p, share, turned_scores(p));
	matmul(p, share_turned, dout, tensor(p, &shared, SDPA_DV, false));

	matmul(p, dout, v_turned, raw);
	descriptor dp = pointwise(p, CUDNN_POINTWISE_SUB, raw, along, NULL, scores(p, f), -1);
	descriptor dps = pointwise(p, CUDNN_POINTWISE_MUL, dp, share, NULL, scores(p, f), -1);
	descriptor ds = pointwise(p, CUDNN_POINTWISE_MUL, dps, scale, NULL, scores(p, f), -1);
	descriptor ds_turned = reshape(p, ds, turned_scores(p));
	matmul(p, ds_turned, q, tensor(p, &shared, SDPA_DK, false));
	query_gradient(p, ds, k_turned);
}

/* --- from graph to plan ------------------------------------------------------------------- */

static descriptor make_graph(struct sdpa_plan *p, cudnnHandle_t handle)
{
	descriptor d = make(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

	if (handle)
		set(p, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	set(p, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
	    (int64_t)p->operations, p->operation);
	finalize(p, d, "graph");
	return d;
}

static descriptor make_properties(struct sdpa_plan *p, const char *json)
{
	descriptor d = make(p, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

	set(p, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json),
	    json);
	finalize(p, d, "device properties");
	return d;
}

/* Engine configurations, best guess first; how many. */
static int64_t propose(struct sdpa_plan *p, descriptor properties, cudnnBackendHeurMode_t mode,
		       descriptor config[CONFIGS_MAX])
{
	descriptor d = make(p, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t found = 0;

	link_to(p, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p->graph);
	set(p, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	link_to(p, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
	finalize(p, d, "no engine for this graph");
	for (int i = 0; i < CONFIGS_MAX; i++)
		config[i] = make(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (p->error[0] != '\0' ||
	    !good(p,
		  p->api->get(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
			      CONFIGS_MAX, &found, config),
		  "engines"))
		return 0;
	return found < CONFIGS_MAX ? found : CONFIGS_MAX;
}

static bool plan_with(struct sdpa_plan *p, cudnnHandle_t handle, descriptor properties,
		      descriptor config)
{
	descriptor d = make(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t count;

	if (handle)
		set(p, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	link_to(p, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	link_to(p, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
	finalize(p, d, "plan");
	if (p->error[0] != '\0' || !good(p,
					 p->api->get(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
						     CUDNN_TYPE_INT64, 1, &count, &p->workspace),
					 "workspace"))
		return false;
	p->plan = d;
	return true;
}

/* The first engine that can be planned; its error is the last one's when none can. */
static bool find_plan(struct sdpa_plan *p, cudnnHandle_t handle, const char *json)
{
	static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A,
							CUDNN_HEUR_MODE_FALLBACK };
	descriptor config[CONFIGS_MAX], properties = json ? make_properties(p, json) : NULL;

	p->graph = make_graph(p, handle);
	if (p->error[0] != '\0')
		return false;
	for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
		p->error[0] = '\0';
		int64_t found = propose(p, properties, modes[mode], config);
		for (int64_t i = 0; i < found; i++) {
			p->error[0] = '\0';
			if (plan_with(p, handle, properties, config[i]))
				return true;
		}
	}
	if (p->error[0] == '\0')
		snprintf(p->error, sizeof(p->error), "no engine for this graph");
	return false;
}

struct sdpa_plan *sdpa_plan_create(const struct cudnn *api, cudnnHandle_t handle,
				   const char *properties, const struct attention *a,
				   enum sdpa_pass pass, char *why, size_t bytes)
{
	struct sdpa_plan *p = calloc(1, sizeof(*p));

	if (!p) {
		snprintf(why, bytes, "out of memory");
		return NULL;
	}
	*p = (struct sdpa_plan){ .api = api,
				 .a = *a,
				 .pass = pass,
				 .next_virtual = SDPA_TENSORS,
				 .scale = attention_scale(a),
				 .masked = -1e30f,
				 .one = 1.0f };
	if (pass == SDPA_FORWARD)
		forward_graph(p);
	else
		backward_graph(p);
	if (p->error[0] == '\0' && find_plan(p, handle, properties))
		return p;
	snprintf(why, bytes, "cuDNN %zu, attention %s %zux%zux%zu/%zux%zu: %.160s", api->version(),
		 pass == SDPA_FORWARD ? "forward" : "backward", a->batch, a->seq, a->heads,
		 a->kv_heads, a->head_dim, p->error);
	sdpa_plan_destroy(p);
	return NULL;
}

void sdpa_plan_destroy(struct sdpa_plan *p)
{
	if (!p)
		return;
	while (p->count > 0)
		p->api->destroy(p->all[--p->count]);
	free(p);
}

size_t sdpa_plan_workspace(const struct sdpa_plan *p)
{
	return (size_t)p->workspace;
}

size_t sdpa_plan_operations(const struct sdpa_plan *p)
{
	return p->operations;
}

/* --- running ------------------------------------------------------------------------------ */

/* What each pass has to be given. */
static const struct {
	int64_t id[SDPA_TENSORS];
	int64_t count;
} given[SDPA_PASSES] = {
	[SDPA_FORWARD] = { { SDPA_Q, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_SCALE,
			     SDPA_MASKED },
			   7 },
	[SDPA_BACKWARD] = { { SDPA_Q, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_DOUT, SDPA_DK,
			      SDPA_DV, SDPA_ALONG, SDPA_ACCUMULATED, SDPA_SCALE, SDPA_MASKED,
			      SDPA_ONE },
			    13 },
	[SDPA_BACKWARD_FIXED] = { { SDPA_Q, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_DOUT,
				    SDPA_DQ, SDPA_DK, SDPA_DV, SDPA_ALONG, SDPA_SCALE, SDPA_MASKED,
				    SDPA_ONE },
				  13 },
};

int sdpa_plan_run(const struct sdpa_plan *p, cudnnHandle_t handle,
		  void *const pointers[SDPA_TENSORS], void *workspace, char *why, size_t bytes)
{
	const int64_t *ids = given[p->pass].id, count = given[p->pass].count;
	struct sdpa_plan numbers = *p; /* by-value tensors are read from host memory */
	void *values[SDPA_TENSORS];
	descriptor d = NULL;

	for (int64_t i = 0; i < count; i++)
		values[i] = ids[i] == SDPA_SCALE    ? (void *)&numbers.scale
			    : ids[i] == SDPA_MASKED ? (void *)&numbers.masked
			    : ids[i] == SDPA_ONE    ? (void *)&numbers.one
						    : pointers[ids[i]];
	cudnnStatus_t status = p->api->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &d);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->api->set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count,
				     ids);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->api->set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
				     count, values);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->api->set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
				     &workspace);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->api->finalize(d);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->api->execute(handle, p->plan, d);
	if (d)
		p->api->destroy(d);
	if (status == CUDNN_STATUS_SUCCESS)
		return 0;
	snprintf(why, bytes, "cuDNN: %s", p->api->error_string(status));
	return -1;
}
