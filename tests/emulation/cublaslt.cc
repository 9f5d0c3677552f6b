// SPDX-License-Identifier: MIT
// cublaslt.cc - matrix products as cuBLASLt's manual defines them: column-major D = alpha op(A) op(B) +
// beta C + bias, fp32 sums, and nothing but the attributes and epilogues that the backend sets.
// LB_EMULATION_EPILOGUES=bias: of the epilogues only that one is offered, as on an older GPU; =none: not even
// that one; =slow: each takes its time. Sums of parts in the output's type are refused: backend.h promises fp32.
// FP8 and FP4: what the manual (13.1, 3.1.4, and cublasLtMatmul) asks of types, order, alignment and scales on the
// emulated compute capability. LB_EMULATION_FP8=none: the library has no such product; =slow: each takes its time.
// LB_EMULATION_MODES: the file that tells at the end how many products there were in each scale mode of B, from 0 on.
#include <cublasLt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vector>

#include "tests/emulation/queue.h"

namespace {

struct layout {
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t ld;
};

struct what {
	cublasOperation_t a, b;
	cublasLtEpilogue_t epilogue;
	const void *bias;	// or where the sums of an operand go
	void *aux;
	int64_t aux_ld;
	const void *scale_a, *scale_b;
	int32_t mode_a, mode_b, pointers;
};

struct modes {
	unsigned long count[CUBLASLT_MATMUL_MATRIX_SCALE_END];
	~modes()
	{
		const char *path = getenv("LB_EMULATION_MODES");
		FILE *to = path ? fopen(path, "w") : NULL;
		for (unsigned long n : count)
			if (to)
				fprintf(to, "%lu ", n);
		if (to)
			fclose(to);
	}
} of_mode;

bool is_fp4(const layout &l)
{
	return l.type == CUDA_R_4F_E2M1;
}

bool is_fp8(const layout &l)
{
	return l.type == CUDA_R_8F_E4M3 || l.type == CUDA_R_8F_E5M2;
}

bool is_narrow(const layout &l)
{
	return is_fp8(l) || is_fp4(l);
}

// OCP 8-bit floating point specification 1.0
float decoded(uint8_t code, bool e5m2)
{
	const int y = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
	const int exponent = (code & 0x7f) >> y, part = code & ((1 << y) - 1);
	const float sign = code & 0x80 ? -1.0f : 1.0f;
	if (e5m2 ? exponent == 31 : (code & 0x7f) == 0x7f)
		return e5m2 && part == 0 ? sign * INFINITY : NAN;
	return sign * (exponent ? ldexpf((float)(part + (1 << y)), exponent - bias - y)
				: ldexpf((float)part, 1 - bias - y));
}

// OCP microscaling formats specification 1.0; two in a byte, the first in its lower half
float decoded_fp4(const void *x, size_t i)
{
	static const float numbers[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
	const int code = ((const uint8_t *)x)[i / 2] >> i % 2 * 4;
	return code & 8 ? -numbers[code & 7] : numbers[code & 7];
}

// Section "1D Block Scaling Factors Layout": where the scale of a block lies, in bytes.
size_t tiled_at(size_t outer, size_t block, size_t blocks)
{
	const size_t sf_inner_dim = (blocks + 3) / 4 * 4;
	const size_t tile = (block / 4 * 4 + outer / 128 * sf_inner_dim) * 128;
	return tile + outer % 32 * 16 + outer % 128 / 32 * 4 + block % 4;
}

// The scale of element `inner` of the sum in row `outer` of an operand that has so many of each.
float scale_of(const void *at, int32_t mode, size_t outer, size_t inner, size_t outers, size_t inners)
{
	const float *scale = (const float *)at;
	const uint8_t *byte = (const uint8_t *)at;
	const size_t blocks = (inners + 127) / 128;
	switch (mode) {
	case CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3: // the sign is ignored
		return decoded(byte[tiled_at(outer, inner / 16, (inners + 15) / 16)] & 0x7f, false);
	case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0: {
		const int e = byte[tiled_at(outer, inner / 32, (inners + 31) / 32)];
		return e == 255 ? NAN : ldexpf(1, e - 127);
	}
	case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F: return scale[outer];
	case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F: return scale[inner / 128 * outers + outer];
	case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
		return scale[outer / 128 * ((blocks + 3) / 4 * 4) + inner / 128];
	default: return scale ? *scale : 1.0f;
	}
}

// GELU by its tanh form is the library's only one.
float gelu(float x)
{
	return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}

float gelu_slope(float x)
{
	float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
	return 0.5f * (1 + t) +
	       0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
}

float read(const void *x, cudaDataType_t type, size_t i)
{
	if (type == CUDA_R_32F)
		return ((const float *)x)[i];
	if (type == CUDA_R_4F_E2M1)
		return decoded_fp4(x, i);
	if (type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2)
		return decoded(((const uint8_t *)x)[i], type == CUDA_R_8F_E5M2);
	uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
	float y;
	memcpy(&y, &bits, sizeof(y));
	return y;
}

void write(void *x, cudaDataType_t type, size_t i, float y)
{
	uint32_t bits;
	if (type == CUDA_R_32F) {
		((float *)x)[i] = y;
		return;
	}
	memcpy(&bits, &y, sizeof(bits));
	bits = y != y ? 0x7fff0000u : bits + 0x7fffu + (bits >> 16 & 1u);
	((uint16_t *)x)[i] = (uint16_t)(bits >> 16);
}

// op(X) as rows of fp32
std::vector<float> opened(const void *x, const layout &l, bool turned)
{
	size_t rows = turned ? l.columns : l.rows, columns = turned ? l.rows : l.columns;
	std::vector<float> out(rows * columns);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			out[i * columns + j] =
				read(x, l.type, turned ? i * (size_t)l.ld + j : j * (size_t)l.ld + i);
	return out;
}

// Row j of op(B), turned, times all rows of op(A): each sum along the inner index, one after the other, and many beside
// one another. Both operands are copies: what reads those of the caller is opened(), and that under sanitizers.
__attribute__((no_sanitize("address", "undefined"))) void
row_of_products(const float *left, const float *right, size_t rows, size_t inner, float *__restrict sums)
{
	for (size_t i = 0; i < rows; i++)
		sums[i] = 0;
	for (size_t k = 0; k < inner; k++)
		for (size_t i = 0; i < rows; i++)
			sums[i] += left[k * rows + i] * right[k];
}

void product(const what &w, float alpha, const void *a, const layout &la, const void *b,
	     const layout &lb, float beta, void *c, const layout &lc)
{
	std::vector<float> left = opened(a, la, w.a == CUBLAS_OP_T);
	// op(B) turned, so that both are read along the inner index
	std::vector<float> right = opened(b, lb, w.b != CUBLAS_OP_T);
	size_t inner = left.size() / lc.rows;

	for (size_t i = 0; is_narrow(la) && i < left.size(); i++)
		left[i] *= scale_of(w.scale_a, w.mode_a, i / inner, i % inner, lc.rows, inner);
	for (size_t i = 0; is_narrow(lb) && i < right.size(); i++)
		right[i] *= scale_of(w.scale_b, w.mode_b, i / inner, i % inner, lc.columns, inner);
	std::vector<float> across(left.size()), sums(lc.rows);
	for (size_t i = 0; i < lc.rows; i++)
		for (size_t k = 0; k < inner; k++)
			across[k * lc.rows + i] = left[i * inner + k];
	for (size_t j = 0; j < lc.columns; j++) {
		row_of_products(across.data(), &right[j * inner], lc.rows, inner, sums.data());
		for (size_t i = 0; i < lc.rows; i++) {
			float sum = sums[i];
			size_t at = j * (size_t)lc.ld + i;
			sum *= alpha;
			if (beta != 0)
				sum += beta * read(c, lc.type, at);
			if (w.epilogue == CUBLASLT_EPILOGUE_BIAS ||
			    w.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
				sum += read(w.bias, lc.type, i);
			size_t aux = j * (size_t)w.aux_ld + i;
			if (w.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
			    w.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
				write(w.aux, lc.type, aux, sum);
				sum = gelu(sum);
			}
			if (w.epilogue == CUBLASLT_EPILOGUE_DGELU)
				sum *= gelu_slope(read(w.aux, lc.type, aux));
			write(c, lc.type, at, sum);
		}
	}
	// BGRADA: a sum for each row of D, BGRADB: for each column; over the inner index
	bool rows = w.epilogue == CUBLASLT_EPILOGUE_BGRADA;
	if (!rows && w.epilogue != CUBLASLT_EPILOGUE_BGRADB)
		return;
	const std::vector<float> &x = rows ? left : right;
	for (size_t i = 0; i < (rows ? lc.rows : lc.columns); i++) {
		float sum = 0;
		for (size_t k = 0; k < inner; k++)
			sum += x[i * inner + k];
		write((void *)w.bias, lc.type, i, sum);
	}
}

// What the manual asks of an epilogue.
bool offered(const what &w, const layout &c)
{
	const char *only = getenv("LB_EMULATION_EPILOGUES");
	bool is_gelu = w.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
		       w.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
		       w.epilogue == CUBLASLT_EPILOGUE_DGELU;
	bool is_sum = w.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
		      w.epilogue == CUBLASLT_EPILOGUE_BGRADB;
	if (only && strcmp(only, "bias") == 0 && (is_gelu || is_sum))
		return false;
	if (only && strcmp(only, "none") == 0 && w.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
		return false;
	if (is_gelu && (!w.aux || (uintptr_t)w.aux % 16 || w.aux_ld % 8 ||
			w.aux_ld < (int64_t)c.rows))
		return false;
	if ((is_sum || w.epilogue == CUBLASLT_EPILOGUE_BIAS) && (!w.bias || (uintptr_t)w.bias % 16))
		return false;
	return is_gelu || is_sum || w.epilogue == CUBLASLT_EPILOGUE_BIAS ||
	       w.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
}

// A pair of scale modes of FP8 that goes together on this GPU.
bool go_together(int32_t a, int32_t b)
{
	const int32_t scalar = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
	const int32_t vector = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
	const int32_t blocks = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
	const int32_t vec128 = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
	const int32_t vec32 = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
	if (a == scalar && b == scalar)
		return emulated_capability() >= 89;
	if (a == vec32 && b == vec32)
		return emulated_capability() >= 100;
	return emulated_capability() == 90 &&
	       ((a == vector && b == vector) || (a == vec128 && b == vec128) ||
		(a == vec128 && b == blocks) || (a == blocks && b == vec128));
}

bool is_pair(const what &w, const layout &a, const layout &b)
{
	const int32_t vec16 = CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
	if (is_fp4(a) && is_fp4(b))
		return w.mode_a == vec16 && w.mode_b == vec16 && emulated_capability() >= 100;
	return is_fp8(a) && is_fp8(b) && !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) &&
	       go_together(w.mode_a, w.mode_b);
}

// What the manual asks: A turned and B not, all sides multiples of 16 bytes, scales that lie on 16 bytes, and a D
// of more bits. Blocks of scales are taken to be whole.
bool is_narrow_product(const what &w, const layout &a, const layout &b, const layout &c)
{
	const size_t out = c.type == CUDA_R_32F ? 4 : 2, per_16_bytes = is_fp4(a) ? 32 : 16;
	const char *how = getenv("LB_EMULATION_FP8");
	const bool in_blocks = w.mode_a == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
	return is_pair(w, a, b) && w.a == CUBLAS_OP_T && w.b == CUBLAS_OP_N &&
	       !(how && strcmp(how, "none") == 0) && a.columns % 16 == 0 && b.columns % 16 == 0 &&
	       (a.rows | (uint64_t)a.ld | (uint64_t)b.ld) % per_16_bytes == 0 &&
	       !(in_blocks && a.rows % 32) && (uint64_t)c.ld * out % 16 == 0 && w.scale_a &&
	       w.scale_b && (uintptr_t)w.scale_a % 16 == 0 && (uintptr_t)w.scale_b % 16 == 0 &&
	       w.epilogue == CUBLASLT_EPILOGUE_DEFAULT &&
	       (c.type == CUDA_R_32F || c.type == CUDA_R_16BF);
}

bool fits(const what &w, const layout &a, const layout &b, const layout &c)
{
	uint64_t m = w.a == CUBLAS_OP_T ? a.columns : a.rows;
	uint64_t k = w.a == CUBLAS_OP_T ? a.rows : a.columns;
	uint64_t n = w.b == CUBLAS_OP_T ? b.rows : b.columns;
	uint64_t k2 = w.b == CUBLAS_OP_T ? b.columns : b.rows;
	return m == c.rows && n == c.columns && k == k2 && a.ld >= (int64_t)a.rows &&
	       b.ld >= (int64_t)b.rows && c.ld >= (int64_t)c.rows;
}

} // namespace

extern "C" {

size_t cublasLtGetVersion(void)
{
	return 130100;
}

const char *cublasLtGetStatusString(cublasStatus_t)
{
	return "refused by the emulation";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
	*out = (cublasLtHandle_t)malloc(1);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	free((void *)handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*out = (cublasLtMatmulDesc_t) new what{ CUBLAS_OP_N, CUBLAS_OP_N,
						CUBLASLT_EPILOGUE_DEFAULT, NULL, NULL, 0,
						NULL, NULL, 0, 0, CUBLASLT_POINTER_MODE_HOST };
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
					      cublasLtMatmulDescAttributes_t name,
					      const void *value, size_t bytes)
{
	what *w = (what *)d;
	void *to = name == CUBLASLT_MATMUL_DESC_TRANSA ? (void *)&w->a
		 : name == CUBLASLT_MATMUL_DESC_TRANSB ? (void *)&w->b
		 : name == CUBLASLT_MATMUL_DESC_EPILOGUE ? (void *)&w->epilogue
		 : name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&w->bias
		 : name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ? (void *)&w->aux
		 : name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? (void *)&w->aux_ld
		 : name == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ? (void *)&w->scale_a
		 : name == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER ? (void *)&w->scale_b
		 : name == CUBLASLT_MATMUL_DESC_POINTER_MODE ? (void *)&w->pointers
		 : name == CUBLASLT_MATMUL_DESC_A_SCALE_MODE ? (void *)&w->mode_a
		 : name == CUBLASLT_MATMUL_DESC_B_SCALE_MODE ? (void *)&w->mode_b : NULL;
	if (!to)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	memcpy(to, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	delete (what *)d;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
					  uint64_t rows, uint64_t columns, int64_t ld)
{
	*out = (cublasLtMatrixLayout_t) new layout{ type, rows, columns, ld };
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	delete (layout *)l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
	*out = (cublasLtMatmulPreference_t)malloc(1);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
						    cublasLtMatmulPreferenceAttributes_t name,
						    const void *value, size_t)
{
	const uint32_t sums_in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

	if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
	    (*(const uint32_t *)value & ~sums_in_fp32))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	free((void *)p);
	return CUBLAS_STATUS_SUCCESS;
}

// A proposal that does not hold, and two algorithms that only differ in name.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
	cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
	cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int room,
	cublasLtMatmulHeuristicResult_t out[], int *count)
{
	*count = 0;
	if (!fits(*(what *)d, *(layout *)a, *(layout *)b, *(layout *)c))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!offered(*(what *)d, *(layout *)c) ||
	    (is_narrow(*(layout *)a) &&
	     !is_narrow_product(*(what *)d, *(layout *)a, *(layout *)b, *(layout *)c)))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (int i = 0; i < room && i < 3; i++, ++*count) {
		memset(&out[i], 0, sizeof(out[i]));
		out[i].state = i == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
		out[i].algo.data[0] = i == 0 ? 0 : 0xdf + (uint64_t)i;
	}
	return CUBLAS_STATUS_SUCCESS;
}

// The library keeps what was set within the algorithm; a product that is summed in parts needs a place for
// them, and has one for two and four.
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t name,
						    const void *value, size_t bytes)
{
	if (bytes != sizeof(uint32_t) || (name != CUBLASLT_ALGO_CONFIG_SPLITK_NUM &&
					  name != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME))
		return CUBLAS_STATUS_INVALID_VALUE;
	algo->data[name == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1 : 2] = *(const uint32_t *)value;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
				       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
				       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
				       const cublasLtMatmulAlgo_t *algo,
				       cublasLtMatmulHeuristicResult_t *out)
{
	const uint64_t parts = algo->data[1], scheme = algo->data[2];
	out->workspaceSize = parts > 1 ? (size_t)16 << 20 : 0;
	bool good = algo->data[0] / 2 == 0xe0 / 2 && parts <= 4 &&
		    (parts <= 1 || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
	return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha,
			      const void *a, cublasLtMatrixLayout_t la, const void *b,
			      cublasLtMatrixLayout_t lb, const void *beta, const void *c,
			      cublasLtMatrixLayout_t, void *out, cublasLtMatrixLayout_t lc,
			      const cublasLtMatmulAlgo_t *algo, void *, size_t, cudaStream_t stream)
{
	const what w = *(what *)d;
	const layout first = *(layout *)la, second = *(layout *)lb, third = *(layout *)lc;
	const bool on_device = w.pointers == CUBLASLT_POINTER_MODE_DEVICE;
	const float *by = (const float *)alpha, *kept = (const float *)beta;
	// of the host they are read now, of the device when it is the product's turn
	const float host[2] = { on_device ? 0 : *by, on_device ? 0 : *kept };

	if (c != out || !algo || algo->data[0] / 2 != 0xe0 / 2 || !fits(w, first, second, third) ||
	    !offered(w, third))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (is_narrow(first) && (!is_narrow_product(w, first, second, third) || (uintptr_t)a % 16 ||
				 (uintptr_t)b % 16 || (uintptr_t)out % 16))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (is_narrow(first))
		of_mode.count[w.mode_b]++;
	const char *fp8 = getenv("LB_EMULATION_FP8");
	if (is_narrow(first) && fp8 && strcmp(fp8, "slow") == 0)
		usleep(20 * 1000);
	const char *how = getenv("LB_EMULATION_EPILOGUES");
	if (how && strcmp(how, "slow") == 0 && w.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
		usleep(20 * 1000);
	emulated_enqueue_on(stream, [=] {
		product(w, on_device ? *by : host[0], a, first, b, second, on_device ? *kept : host[1],
			out, third);
	});
	return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
