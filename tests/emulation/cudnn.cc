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
};

// Where a tensor lies in a run, looked up once for all of its elements.
struct place {
	float *wide;		// one of the two
	uint16_t *narrow_at;
	bool rounds;		// a virtual one keeps what its type would
	int64_t step[4], heads, of;

	// of: that many heads ask; theirs share those that there are. Fails where nobody has written it.
	place(run &r, const tensor &t, int64_t of_heads)
	    : wide(NULL), narrow_at(NULL), rounds(t.type == CUDNN_DATA_BFLOAT16),
	      heads(t.dimension[1]), of(of_heads)
	{
		int64_t dense = 1;
		for (int d = 3; d >= 0; d--) {
			const int64_t along = t.is_virtual ? dense : t.stride[d];
			step[d] = t.dimension[d] == 1 ? 0 : along; // a side of one serves all
			dense *= t.dimension[d];
		}
		if (t.is_virtual)
			wide = r.held.at(t.id).data();
		else if (rounds)
			narrow_at = (uint16_t *)r.pointer.at(t.id);
		else
			wide = (float *)r.pointer.at(t.id);
	}

	int64_t index(const int64_t at[4]) const
	{
		const int64_t head = heads == of ? at[1] : at[1] * heads / of;
		return at[0] * step[0] + head * step[1] + at[2] * step[2] + at[3] * step[3];
	}

	float at_index(int64_t i) const
	{
		return wide ? wide[i] : widen(narrow_at[i]);
	}

	float read(const int64_t at[4]) const
	{
		return at_index(index(at));
	}

	void write(const int64_t at[4], float x) const
	{
		const int64_t i = index(at);
		if (narrow_at)
			narrow_at[i] = narrow(x);
		else
			wide[i] = rounds ? widen(narrow(x)) : x;
	}
};

// What is written; a virtual one has its memory from now on.
place written(run &r, const tensor &t)
{
	if (t.is_virtual)
		r.held[t.id].resize((size_t)(t.dimension[0] * t.dimension[1] * t.dimension[2] *
					     t.dimension[3]));
	return place(r, t, t.dimension[1]);
}

template <typename F> void each(const tensor &t, F f)
{
	int64_t at[4];
	for (at[0] = 0; at[0] < t.dimension[0]; at[0]++)
		for (at[1] = 0; at[1] < t.dimension[1]; at[1]++)
			for (at[2] = 0; at[2] < t.dimension[2]; at[2]++)
				for (at[3] = 0; at[3] < t.dimension[3]; at[3]++)
					f(at);
}

// A row of a product: each sum along the inner side, one after the other, and all beside one another.
void add_rows(const place &left, const place &right, const int64_t row[4], int64_t inner,
	      std::vector<float> &sums)
{
	std::fill(sums.begin(), sums.end(), 0.0f);
	for (int64_t k = 0; k < inner; k++) {
		const int64_t of_left[4] = { row[0], row[1], row[2], k };
		const int64_t of_right[4] = { row[0], row[1], k, 0 };
		const float x = left.read(of_left);
		int64_t i = right.index(of_right);
		for (float &sum : sums) {
			sum += x * right.at_index(i);
			i += right.step[3];
		}
	}
}

void matmul(run &r, const node *n)
{
	tensor a = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
	tensor b = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
	tensor c = tensor_of(link(n, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
	if (a.dimension[3] != b.dimension[2] || a.dimension[2] != c.dimension[2] ||
	    b.dimension[3] != c.dimension[3])
		stop("sides of a matmul do not fit");
	const place left(r, a, c.dimension[1]), right(r, b, c.dimension[1]), out = written(r, c);
	std::vector<float> sums((size_t)c.dimension[3]);
	int64_t at[4];
	for (at[0] = 0; at[0] < c.dimension[0]; at[0]++)
		for (at[1] = 0; at[1] < c.dimension[1]; at[1]++)
			for (at[2] = 0; at[2] < c.dimension[2]; at[2]++) {
				add_rows(left, right, at, a.dimension[3], sums);
				for (at[3] = 0; at[3] < c.dimension[3]; at[3]++)
					out.write(at, sums[(size_t)at[3]]);
			}
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
	tensor second = b ? tensor_of(b) : y, third = t ? tensor_of(t) : y;

	const int64_t heads = y.dimension[1];
	const bool counts = mode == CUDNN_POINTWISE_GEN_INDEX;
	const place out = written(r, y);
	const place first(r, counts ? y : x, heads), other(r, second, heads), chosen(r, third, heads);
	each(y, [&](const int64_t at[4]) {
		out.write(at, counts ? (float)at[axis]
				     : pointwise_of(mode, first.read(at), b ? other.read(at) : 0,
						    t ? chosen.read(at) : 0));
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
	const place from(r, x, x.dimension[1]), out = written(r, y);
	each(y, [&](const int64_t at[4]) {
		const int64_t row[4] = { at[0], at[1], at[2], 0 };
		int64_t i = from.index(row);
		float all = is_max ? -INFINITY : 0;
		for (int64_t j = 0; j < x.dimension[3]; j++) {
			float one = from.at_index(i);
			all = is_max ? fmaxf(all, one) : all + one;
			i += from.step[3];
		}
		out.write(at, all);
	});
}

// The same memory under other strides: here always the last two sides in the other order.
void reshape(run &r, const node *n)
{
	tensor x = tensor_of(link(n, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
	tensor y = tensor_of(link(n, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
	if (x.stride[2] != y.stride[3] || x.stride[3] != y.stride[2])
		stop("a reshape that is no transposition");
	const place from(r, x, x.dimension[1]), out = written(r, y);
	each(y, [&](const int64_t at[4]) {
		const int64_t turned[4] = { at[0], at[1], at[3], at[2] };
		out.write(at, from.read(turned));
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
	// as 9.19 does on an H200: a sum of dq (11) that nothing rounds (7) is planned and does not run
	if (pointers.count(11) && !pointers.count(7))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
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
