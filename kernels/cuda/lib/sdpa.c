/* SPDX-License-Identifier: MIT */
/* sdpa.c - from a graph of attention (sdpa_graph.c) to an engine of cuDNN that runs it. */
#include "kernels/cuda/lib/sdpa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/heads.h"
#include "kernels/cuda/lib/sdpa_graph.h"

enum { CONFIGS_MAX = 8 };

typedef cudnnBackendDescriptor_t descriptor;

struct sdpa_plan {
	struct sdpa_graph g;
	descriptor graph, plan;
	int64_t workspace;
	float scale, masked, one;
};

/* --- from graph to plan ------------------------------------------------------------------- */

static descriptor make_graph(struct sdpa_plan *p, cudnnHandle_t handle)
{
	descriptor d = sdpa_make(&p->g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

	if (handle)
		sdpa_set(&p->g, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	sdpa_set(&p->g, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
		 (int64_t)p->g.operations, p->g.operation);
	sdpa_finalize(&p->g, d, "graph");
	return d;
}

static descriptor make_properties(struct sdpa_plan *p, const char *json)
{
	descriptor d = sdpa_make(&p->g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);

	sdpa_set(&p->g, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
		 (int64_t)strlen(json), json);
	sdpa_finalize(&p->g, d, "device properties");
	return d;
}

/* Engine configurations, best guess first; how many. */
static int64_t propose(struct sdpa_plan *p, descriptor properties, cudnnBackendHeurMode_t mode,
		       descriptor config[CONFIGS_MAX])
{
	descriptor d = sdpa_make(&p->g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t found = 0;

	sdpa_link(&p->g, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p->graph);
	sdpa_set(&p->g, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	sdpa_link(&p->g, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
	sdpa_finalize(&p->g, d, "no engine for this graph");
	for (int i = 0; i < CONFIGS_MAX; i++)
		config[i] = sdpa_make(&p->g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (p->g.error[0] != '\0' ||
	    !sdpa_good(&p->g,
		       p->g.api->get(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
				     CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &found, config),
		       "engines"))
		return 0;
	return found < CONFIGS_MAX ? found : CONFIGS_MAX;
}

static bool plan_with(struct sdpa_plan *p, cudnnHandle_t handle, descriptor properties,
		      descriptor config)
{
	descriptor d = sdpa_make(&p->g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t count;

	if (handle)
		sdpa_set(&p->g, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	sdpa_link(&p->g, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	sdpa_link(&p->g, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
	sdpa_finalize(&p->g, d, "plan");
	if (p->g.error[0] != '\0' ||
	    !sdpa_good(&p->g,
		       p->g.api->get(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
				     1, &count, &p->workspace),
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
	if (p->g.error[0] != '\0')
		return false;
	for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
		p->g.error[0] = '\0';
		int64_t found = propose(p, properties, modes[mode], config);
		for (int64_t i = 0; i < found; i++) {
			p->g.error[0] = '\0';
			if (plan_with(p, handle, properties, config[i]))
				return true;
		}
	}
	if (p->g.error[0] == '\0')
		snprintf(p->g.error, sizeof(p->g.error), "no engine for this graph");
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
	*p = (struct sdpa_plan){
		.g = { .api = api, .a = *a, .pass = pass, .next_virtual = SDPA_TENSORS },
		.scale = attention_scale(a),
		.masked = -1e30f,
		.one = 1.0f,
	};
	sdpa_graph_build(&p->g);
	if (p->g.error[0] == '\0' && find_plan(p, handle, properties))
		return p;
	snprintf(why, bytes, "cuDNN %zu, attention %s %zux%zux%zu/%zux%zu: %.160s", api->version(),
		 pass == SDPA_FORWARD ? "forward" : "backward", a->batch, a->seq, a->heads,
		 a->kv_heads, a->head_dim, p->g.error);
	sdpa_plan_destroy(p);
	return NULL;
}

void sdpa_plan_destroy(struct sdpa_plan *p)
{
	if (!p)
		return;
	sdpa_graph_clear(&p->g);
	free(p);
}

size_t sdpa_plan_workspace(const struct sdpa_plan *p)
{
	return (size_t)p->workspace;
}

size_t sdpa_plan_operations(const struct sdpa_plan *p)
{
	return p->g.operations;
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
	[SDPA_BACKWARD] = { { SDPA_Q, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_DOUT, SDPA_DQ,
			      SDPA_DK, SDPA_DV, SDPA_ALONG, SDPA_ACCUMULATED, SDPA_SCALE,
			      SDPA_MASKED, SDPA_ONE },
			    14 },
	[SDPA_BACKWARD_FIXED] = { { SDPA_Q, SDPA_K, SDPA_V, SDPA_OUT, SDPA_STATS, SDPA_DOUT,
				    SDPA_DQ, SDPA_DK, SDPA_DV, SDPA_ALONG, SDPA_SCALE, SDPA_MASKED,
				    SDPA_ONE },
				  13 },
};

int sdpa_plan_run(const struct sdpa_plan *p, cudnnHandle_t handle,
		  void *const pointers[SDPA_TENSORS], void *workspace, char *why, size_t bytes)
{
	const int64_t *ids = given[p->g.pass].id, count = given[p->g.pass].count;
	struct sdpa_plan numbers = *p; /* by-value tensors are read from host memory */
	void *values[SDPA_TENSORS];
	descriptor d = NULL;

	for (int64_t i = 0; i < count; i++)
		values[i] = ids[i] == SDPA_SCALE    ? (void *)&numbers.scale
			    : ids[i] == SDPA_MASKED ? (void *)&numbers.masked
			    : ids[i] == SDPA_ONE    ? (void *)&numbers.one
						    : pointers[ids[i]];
	cudnnStatus_t status = p->g.api->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &d);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->g.api->set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
				       count, ids);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->g.api->set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
				       CUDNN_TYPE_VOID_PTR, count, values);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->g.api->set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
				       &workspace);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->g.api->finalize(d);
	if (status == CUDNN_STATUS_SUCCESS)
		status = p->g.api->execute(handle, p->plan, d);
	if (d)
		p->g.api->destroy(d);
	if (status == CUDNN_STATUS_SUCCESS)
		return 0;
	snprintf(why, bytes, "cuDNN: %s", p->g.api->error_string(status));
	return -1;
}
