// SPDX-License-Identifier: MIT
// cudnn.cc - runs graphs of cuDNN's backend interface one operation after the other, in fp32, as its
// manual defines them: matmul, pointwise, reductions over the last axis, and reshape. It takes the
// place of cudnn_api.c in the emulated library, and shows that our attention graphs compute attention;
// that cuDNN itself accepts them is what tests/gpu/sdpa_plans.c shows.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <vector>

extern "C" {
#include "kernels/cuda/lib/cudnn_api.h"
}
#include "tests/emulation/queue.h"

namespace {

struct node {
	cudnnBackendDescriptorType_t type;
	std::map<int, std::vector<char>> attribute;
	node *graph;		// of an engine configuration
};

size_t size_of(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
	case CUDNN_TYPE_CHAR:
		return 1;
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	default:
		return 4;
	}
}

template <typename T> T value(const node *n, int name, T other)
{
	auto at = n->attribute.find(name);
	T out = other;
	if (at != n->attribute.end())
		memcpy(&out, at->second.data(), sizeof(out));
	return out;
}

node *link(const node *n, int name)
{
	return value<node *>(n, name, NULL);
}

[[noreturn]] void stop(const char *why)
{
	fprintf(stderr, "emulation of cuDNN: %s\n", why);
	abort();
}

struct tensor {
	int64_t id, dimension[4], stride[4];
	cudnnDataType_t type;
	bool is_virtual;
};

tensor tensor_of(const node *n)
{
	tensor t = {};
	t.id = value<int64_t>(n, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
	t.type = value<cudnnDataType_t>(n, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
	t.is_virtual = value<bool>(n, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
	memcpy(t.dimension, n->attribute.at(CUDNN_ATTR_TENSOR_DIMENSIONS).data(), 32);
	memcpy(t.stride, n->attribute.at(CUDNN_ATTR_TENSOR_STRIDES).data(), 32);
	return t;
}

float widen(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float y;
	memcpy(&y, &bits, sizeof(y));
	return y;
}

uint16_t narrow(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return x != x ? 0x7fff : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// One run of a graph: pointers by id, and what virtual tensors hold, dense.
struct run {
	std::map<int64_t, void *> pointer;
	std::map<int64_t, std::vector<float>> held;

	static size_t dense(const tensor &t, const int64_t at[4])
	{
		return (size_t)(((at[0] * t.dimension[1] + at[1]) * t.dimension[2] + at[2]) *
				t.dimension[3] + at[3]);
	}

	// A side of one serves all; query heads share the heads there are.
	float read(const tensor &t, const int64_t where[4], int64_t heads)
	{
		int64_t at[4];
		for (int i = 0; i < 4; i++)
			at[i] = t.dimension[i] == 1 ? 0 : where[i];
		if (t.dimension[1] > 1)
			at[1] = where[1] * t.dimension[1] / heads;
		if (t.is_virtual)
			return held.at(t.id)[dense(t, at)];
		size_t i = 0;
		for (int d = 0; d < 4; d++)
			i += (size_t)(at[d] * t.stride[d]);
		void *memory = pointer.at(t.id);
		return t.type == CUDNN_DATA_BFLOAT16 ? widen(((uint16_t *)memory)[i])
						     : ((float *)memory)[i];
	}

	void write(const tensor &t, const int64_t at[4], float x)
	{
		if (t.is_virtual) {
			std::vector<float> &to = held[t.id];
			if (to.empty())
				to.resize((size_t)(t.dimension[0] * t.dimension[1] *
						   t.dimension[2] * t.dimension[3]));
			to[dense(t, at)] = t.type == CUDNN_DATA_BFLOAT16 ? widen(narrow(x)) : x;
			return;
		}
		size_t i = 0;
		for (int d = 0; d < 4; d++)
			i += (size_t)(at[d] * t.stride[d]);
		void *memory = pointer.at(t.id);
		if (t.type == CUDNN_DATA_BFLOAT16)
			((uint16_t *)memory)[i] = narrow(x);
		else
			((float *)memory)[i] = x;
	}
};

template <typename F> void each(const tensor &t, F f)
{
	int64_t at[4];
	for (at[0] = 0; at[0] < t.dimension[0]; at[0]++)
		for (at[1] = 0; at[1] < t.dimension[1]; at[1]++)
			for (at[2] = 0; at[2] < t.dimension[2]; at[2]++)
				for (at[3] = 0; at[3] < t.dimension[3]; at[3]++)
					f(at);
}

void matmul(run &r, const node *n)
{
	tensor a = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
	tensor b = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
	tensor c = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
	if (a.dimension[3] != b.dimension[2] || a.dimension[2] != c.dimension[2] ||
	    b.dimension[3] != c.dimension[3])
		stop("sides of a matmul do not fit");
	each(c, [&](const int64_t at[4]) {
		float sum = 0;
		for (int64_t k = 0; k < a.dimension[3]; k++) {
			const int64_t left[4] = { at[0], at[1], at[2], k };
			const int64_t right[4] = { at[0], at[1], k, at[3] };
			sum += r.read(a, left, c.dimension[1]) * r.read(b, right, c.dimension[1]);
		}
		r.write(c, at, sum);
	});
}

float pointwise_of(cudnnPointwiseMode_t mode, float x, float b, float t)
{
	switch (mode) {
	case CUDNN_POINTWISE_ADD: return x + b;
	case CUDNN_POINTWISE_SUB: return x - b;
	case CUDNN_POINTWISE_MUL: return x * b;
	case CUDNN_POINTWISE_DIV: return x / b;
	case CUDNN_POINTWISE_EXP: return expf(x);
	case CUDNN_POINTWISE_LOG: return logf(x);
	case CUDNN_POINTWISE_CMP_GE: return x >= b;
	case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
	case CUDNN_POINTWISE_IDENTITY: return x;
	default: stop("a pointwise mode that is not emulated");
	}
}

void pointwise(run &r, const node *n)
{
	const node *kind = link(n, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	const node *b = link(n, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
	const node *t = link(n, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
	auto mode = value<cudnnPointwiseMode_t>(kind, CUDNN_ATTR_POINTWISE_MODE,
						CUDNN_POINTWISE_IDENTITY);
	auto axis = value<int64_t>(kind, CUDNN_ATTR_POINTWISE_AXIS, -1);
	tensor x = tensor_of(link(n, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
	tensor y = tensor_of(link(n, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
	tensor second = b ? tensor_of(b) : x, third = t ? tensor_of(t) : x;

	each(y, [&](const int64_t at[4]) {
		const int64_t heads = y.dimension[1];
		if (mode == CUDNN_POINTWISE_GEN_INDEX)
			r.write(y, at, (float)at[axis]);
		else
			r.write(y, at, pointwise_of(mode, r.read(x, at, heads),
						    b ? r.read(second, at, heads) : 0,
						    t ? r.read(third, at, heads) : 0));
	});
}

void reduction(run &r, const node *n)
{
	tensor x = tensor_of(link(n, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
	tensor y = tensor_of(link(n, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
	auto mode = value<cudnnReduceTensorOp_t>(link(n, CUDNN_ATTR_OPERATION_REDUCTION_DESC),
						 CUDNN_ATTR_REDUCTION_OPERATOR,
						 CUDNN_REDUCE_TENSOR_ADD);
	bool is_max = mode == CUDNN_REDUCE_TENSOR_MAX;
	each(y, [&](const int64_t at[4]) {
		float all = is_max ? -INFINITY : 0;
		for (int64_t j = 0; j < x.dimension[3]; j++) {
			const int64_t from[4] = { at[0], at[1], at[2], j };
			float one = r.read(x, from, x.dimension[1]);
			all = is_max ? fmaxf(all, one) : all + one;
		}
		r.write(y, at, all);
	});
}

// The same memory under other strides: here always the last two sides in the other order.
void reshape(run &r, const node *n)
{
	tensor x = tensor_of(link(n, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
	tensor y = tensor_of(link(n, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
	if (x.stride[2] != y.stride[3] || x.stride[3] != y.stride[2])
		stop("a reshape that is no transposition");
	each(y, [&](const int64_t at[4]) {
		const int64_t from[4] = { at[0], at[1], at[3], at[2] };
		r.write(y, at, r.read(x, from, x.dimension[1]));
	});
}

void execute(const node *graph, run &r)
{
	const std::vector<char> &all = graph->attribute.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
	for (size_t i = 0; i < all.size() / sizeof(node *); i++) {
		const node *n = ((node *const *)all.data())[i];
		if (n->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			matmul(r, n);
		else if (n->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
			pointwise(r, n);
		else if (n->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
			reduction(r, n);
		else if (n->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
			reshape(r, n);
		else
			stop("an operation that is not emulated");
	}
}

// --- the interface ---------------------------------------------------------------------------------

cudnnStatus_t create_handle(cudnnHandle_t *out)
{
	*out = (cudnnHandle_t)malloc(1);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy_handle(cudnnHandle_t handle)
{
	free((void *)handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t)
{
	return CUDNN_STATUS_SUCCESS;
}

size_t version(void)
{
	return 91900;
}

const char *error_string(cudnnStatus_t)
{
	return "refused by the emulation";
}

void last_error(char *text, size_t bytes)
{
	snprintf(text, bytes, "%s", "");
}

cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
	*out = (cudnnBackendDescriptor_t) new node{ type, {}, NULL };
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy(cudnnBackendDescriptor_t d)
{
	delete (node *)d;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
		  cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	const char *from = (const char *)values;
	((node *)d)->attribute[name].assign(from, from + (size_t)count * size_of(type));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
		  cudnnBackendAttributeType_t, int64_t, int64_t *count, void *values)
{
	*count = 1;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
		(*(node **)values)->graph = link((node *)d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
		memset(values, 0, sizeof(int64_t));
	else
		return CUDNN_STATUS_NOT_SUPPORTED;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t run_plan(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
	const node *p = (node *)pack;
	const std::vector<char> &ids = p->attribute.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	const std::vector<char> &all = p->attribute.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	const node *config = link((node *)plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	const node *graph = config->graph;
	std::map<int64_t, void *> pointers;
	std::map<int64_t, float> numbers;	// tensors by value are read now

	for (size_t i = 0; i < ids.size() / 8; i++)
		pointers[((const int64_t *)ids.data())[i]] = ((void *const *)all.data())[i];
	for (int64_t id = 12; id <= 14; id++)
		if (pointers.count(id))
			numbers[id] = *(float *)pointers[id];
	emulated_enqueue([=] {
		std::map<int64_t, float> own = numbers;
		run r;
		r.pointer = pointers;
		for (auto &n : own)
			r.pointer[n.first] = &n.second;
		execute(graph, r);
	});
	return CUDNN_STATUS_SUCCESS;
}

} // namespace

// LB_EMULATION_CUDNN=none: it is not installed
extern "C" bool cudnn_open(struct cudnn *out, char *why, size_t bytes)
{
	const char *how = getenv("LB_EMULATION_CUDNN");
	if (how && strcmp(how, "none") == 0) {
		snprintf(why, bytes, "no cuDNN");
		return false;
	}
	*out = cudnn{ NULL, create_handle, destroy_handle, set_stream, version, error_string,
		      last_error, create, destroy, finalize, set, get, run_plan };
	return true;
}

extern "C" void cudnn_close(struct cudnn *)
{
}
