/* SPDX-License-Identifier: MIT */
/* narrow.c - products of operands of few bits: by the matrix units where cuBLASLt has such a
 * product on this GPU (kernels/formats/modes.h), else emulated: codes times their scales, in the
 * type that the device computes in.
 *
 * Of codes what is summed over lies along memory in both operands. Bias, GELU and sums of an
 * operand are kernels of ours behind it. */
#include <cublasLt.h>

#include "kernels/cuda/few_bits.h"
#include "kernels/cuda/lib/gemm.h"
#include "kernels/formats/modes.h"

enum { SIDES = 2, ALIGN = 16, LIBRARY_ALIGN = 256, REPEATS = 3, TENSOR_FLOATS = 3 };
/* With scales in boxes; 12.8 mixes up its proposals for these and for one scale a tensor. */
enum { LIBRARY_OF_BOXES = 120900 };

/* An operand as it is given. */
struct side {
	const void *in;
	struct stored shape;
	const struct operand_use *use;
};

static void sides_of(struct device *dev, const struct place *at, const struct gemm *g,
		     struct side side[SIDES])
{
	side[0] = (struct side){ g->a,
				 { g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda,
				   !g->trans_a },
				 g->use_a };
	side[1] = (struct side){ g->b_is_weight ? cuda_table(dev, at, g->b) : g->b,
				 { g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb,
				   g->trans_b },
				 g->use_b };
}

/* Where it must grow it moves: what was to be made there is made by a pass of its own. */
static void *grown(struct device *dev, const struct place *at, struct work_area *area, size_t bytes)
{
	struct few_bits *made = &dev->expected->made;
	const void *before = area->memory;

	if (before && bytes > area->bytes && (made->values == before || made->codes == before))
		made->use = NULL;
	area->what = "operands of few bits";
	return cuda_grown(dev, at, area, bytes);
}

static void *operand_area(struct device *dev, const struct place *at, int side, size_t bytes)
{
	return grown(dev, at, &dev->gemms->operand[side], bytes);
}

/* --- by the hardware -------------------------------------------------------------------------- */

static bool is_e5m2(const struct operand_use *use)
{
	return use->cast->format.exponent == 5;
}

static const struct operand_cast *cast_of(const struct operand_use *use)
{
	return use ? use->cast : NULL;
}

static uint32_t mode_of(enum scale_layout layout)
{
	switch (layout) {
	case LAYOUT_VECTOR:
		return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
	case LAYOUT_VEC128:
		return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
	case LAYOUT_BLOCKS:
		return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
	case LAYOUT_E8M0:
		return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
	case LAYOUT_E4M3:
		return CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
	default:
		return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
	}
}

static uint32_t flags_of(const struct gemm *g, const enum scale_layout layout[SIDES])
{
	return FLAG_CODES | (is_e5m2(g->use_a) ? FLAG_A_E5M2 : 0) |
	       (is_e5m2(g->use_b) ? FLAG_B_E5M2 : 0) | mode_of(layout[0]) << MODE_A_BIT |
	       mode_of(layout[1]) << MODE_B_BIT;
}

/* What the library is asked for, but for the places of A and B. */
static struct gemm of_codes(const struct gemm *g)
{
	return (struct gemm){ .m = g->m,
			      .n = g->n,
			      .k = g->k,
			      .c = g->then == GEMM_GELU ? g->kept : g->c,
			      .c_is_gradient = g->c_is_gradient,
			      .lda = g->k,
			      .ldb = g->k,
			      .ldc = g->ldc,
			      .trans_b = true,
			      .alpha = g->alpha,
			      .beta = g->beta };
}

/* It turned out to lack it before. Places of codes are as aligned as none. */
static bool library_lacks(const struct device *dev, const struct gemm *g,
			  const enum scale_layout layout[SIDES])
{
	const struct gemm f = of_codes(g);
	const struct kind kind = gemm_kind(dev, &f, NULL, flags_of(g, layout));
	const struct product *p = gemm_find(dev->gemms, &kind);

	return p && p->is_refused;
}

static bool hardware_has(const struct device *dev, const struct gemm *g,
			 enum scale_layout layout[SIDES])
{
	const size_t out = g->c_is_gradient ? sizeof(float) : compute_bytes(dev->compute);
	const struct product_sizes sizes = { g->m, g->n, g->k };

	return !dev->gemms->emulates &&
	       !codes_refused(cast_of(g->use_a), cast_of(g->use_b), &sizes, dev->capability,
			      layout) &&
	       g->ldc * out % ALIGN == 0 && (uintptr_t)g->c % ALIGN == 0 &&
	       (layout_block(layout[0]) == 0 || cublasLtGetVersion() >= LIBRARY_OF_BOXES) &&
	       !library_lacks(dev, g, layout);
}

static size_t up_to_library(size_t bytes)
{
	return (bytes + LIBRARY_ALIGN - 1) / LIBRARY_ALIGN * LIBRARY_ALIGN;
}

/* One scale of this tensor for all, to nearest: the same codes in both products. */
static bool is_same_in_both(const struct operand_cast *c)
{
	return c->along == OPERAND_ALL && c->across == OPERAND_ALL && c->history == 0 &&
	       c->scale == SCALE_FP32 && c->rounding == ROUND_NEAREST_EVEN && !c->hadamard;
}

/* Those that the product before has left; NULL: it has not. */
static const uint8_t *kept_codes(struct device *dev, const struct gemm *g, int i,
				 const struct side *side)
{
	struct gemm_state *s = dev->gemms;
	const struct stored *a = &s->kept.shape, *b = &side->shape;
	bool is_there = s->kept.in && s->kept.in == side->in && g->shared == side->in &&
			!g->is_first && is_same_in_both(side->use->cast) && a->rows == b->rows &&
			a->columns == b->columns && a->ld == b->ld &&
			a->k_along_memory != b->k_along_memory &&
			s->kept.format.exponent == side->use->cast->format.exponent;

	if (!is_there)
		return NULL;
	s->scale[i] = s->kept.scale;
	return s->kept.area.memory;
}

/* Room for the other order, and for the scale of both. */
static bool keep_codes(struct device *dev, const struct place *at, int i, struct few_bits *f)
{
	struct gemm_state *s = dev->gemms;
	size_t codes = up_to_library(f->shape.rows * f->shape.columns);

	uint8_t *memory = grown(dev, at, &s->kept.area, codes + sizeof(float));
	if (!memory)
		return false;
	s->kept.in = f->in;
	s->kept.shape = f->shape;
	s->kept.format = f->use->cast->format;
	s->kept.scale = s->scale[i] = f->scales = (float *)(void *)(memory + codes);
	f->turned = memory;
	return true;
}

/* As it is asked for; with what is known of the operand. */
static struct operand_use use_of(const struct device *dev, const struct side *side)
{
	struct operand_use use = *side->use;

	use.amax_known = dev->is_fused &&
			 (use.amax_known || expected_amax(dev, side->in, &side->shape, &use));
	return use;
}

/* Room for codes, and behind them for their scales; where these have two levels, also for what
 * multiplies the product. */
static bool room_for_codes(struct device *dev, const struct place *at, struct work_area *area,
			   struct few_bits *f)
{
	size_t codes = up_to_library(cuda_code_bytes(f->layout, &f->shape));
	size_t scales = cuda_scale_bytes(f->layout, f->use->cast, &f->shape);

	f->codes = grown(dev, at, area, codes + scales + TENSOR_FLOATS * sizeof(float));
	f->scales = f->codes ? f->codes + codes : NULL;
	return f->codes != NULL;
}

bool narrow_operand(struct device *dev, const struct place *at, const struct gemm *g,
		    const void *in, struct work_area *own, struct few_bits *f)
{
	enum scale_layout layout[SIDES];
	struct side side[SIDES];

	sides_of(dev, at, g, side);
	int i = side[0].in == in ? 0 : 1;
	size_t count = side[i].shape.rows * side[i].shape.columns;
	if (side[i].in != in || !side[i].use || dev->error[0] != '\0')
		return false;
	*f = (struct few_bits){ .in = in, .shape = side[i].shape, .use = side[i].use };
	if (!hardware_has(dev, g, layout)) {
		f->values = own ? NULL
				: operand_area(dev, at, i, count * compute_bytes(dev->compute));
		return f->values != NULL;
	}
	f->layout = layout[i];
	return room_for_codes(dev, at, own ? own : &dev->gemms->operand[i], f);
}

/* In one pass with those that the next product wants of the same operand, with scales of its
 * own. */
static bool with_next(struct device *dev, const struct place *at, const struct gemm *g,
		      const struct few_bits *f)
{
	struct expected *e = dev->expected;
	bool is_there = e->is_made && e->out == f->in && e->made.use;
	struct few_bits both[2] = { *f };

	if (!dev->is_fused || is_there || !g->next || g->next->only_faster || g->shared != f->in ||
	    !narrow_operand(dev, at, g->next, f->in, &e->area, &both[1]) ||
	    !cuda_few_bits_at_once(dev, at, both, 2))
		return false;
	expected_put(dev, &both[1]);
	return true;
}

/* What came with the operation that wrote it. */
static void settle(struct device *dev, const struct place *at, const struct few_bits *made)
{
	if (made->use->cast->history > 0)
		cuda_few_bits_settle(dev, at, made);
}

/* Codes, and behind them their scales. */
static const uint8_t *coded(struct device *dev, const struct place *at, const struct gemm *g, int i,
			    const struct side *side, enum scale_layout layout)
{
	const uint8_t *kept = layout == LAYOUT_SCALAR ? kept_codes(dev, g, i, side) : NULL;
	const struct operand_use use = use_of(dev, side);
	struct few_bits f = { .in = side->in, .shape = side->shape, .use = &use, .layout = layout };
	const struct few_bits *made = expected_numbers(dev, &f);

	if (kept)
		return kept;
	if (made) {
		settle(dev, at, made);
		dev->gemms->scale[i] = made->scales;
		return made->codes;
	}
	if (!room_for_codes(dev, at, &dev->gemms->operand[i], &f))
		return NULL;
	uint8_t *memory = f.codes;
	dev->gemms->scale[i] = f.scales;
	if (layout == LAYOUT_SCALAR && g->shared == side->in && g->is_first &&
	    is_same_in_both(side->use->cast) && !keep_codes(dev, at, i, &f))
		return NULL;
	if (!with_next(dev, at, g, &f))
		cuda_few_bits(dev, at, &f);
	return memory;
}

/* The scales of both tensors, alpha and beta, to where the library reads them: behind A's. */
static void set_factors(struct device *dev, const struct place *at, const struct gemm *g,
			const struct side side[SIDES])
{
	struct gemm_state *s = dev->gemms;
	float *tensor[SIDES];

	for (int i = 0; i < SIDES; i++)
		tensor[i] = cuda_tensor_scale(s->scale[i], &side[i].shape);
	s->factors = tensor[0] + 1;
	cuda_factors(dev, at, tensor[0] + 1, tensor[0], tensor[1], g->alpha, g->beta);
}

/* False: the library turned out to have no such product, or there is a failure. */
static bool by_codes(struct device *dev, const struct place *at, const struct gemm *g,
		     const struct side side[SIDES], const enum scale_layout layout[SIDES])
{
	const uint8_t *codes[SIDES];
	struct gemm f = of_codes(g);

	for (int i = 0; i < SIDES; i++) {
		codes[i] = coded(dev, at, g, i, &side[i], layout[i]);
		if (!codes[i])
			return false;
	}
	if (!g->is_first)
		dev->gemms->kept.in = NULL;
	if (layout[0] == LAYOUT_E4M3)
		set_factors(dev, at, g, side);
	f.a = codes[0];
	f.b = codes[1];
	struct product *p = gemm_ready(dev, at, &f, f.b, flags_of(g, layout));
	if (!p)
		return false;
	product_set_places(dev, at, p, &f);
	expected_overwritten(dev, f.c);
	cuda_range_push(dev, at->operation);
	gemm_lt_ok(dev, at, product_multiply(dev, p, &f, f.b, &p->algo, dev->gemms->workspace));
	cuda_range_pop(dev);
	cuda_ok(dev, at, cudaGetLastError());
	gemm_complete(dev, g, &f);
	return true;
}

/* As if they were of many bits. */
static void by_operands(struct device *dev, const struct gemm *g)
{
	struct gemm plain = *g;

	plain.use_a = plain.use_b = NULL;
	gemm_plain(dev, &plain);
}

/* Milliseconds of some of either, after one to warm up; a huge number where there is no such
 * product. What the product in front has left of a shared operand is there each time, and
 * afterwards. */
static float time_of(struct device *dev, const struct place *at, const struct gemm *g,
		     const struct side side[SIDES], const enum scale_layout layout[SIDES],
		     bool as_codes)
{
	struct gemm_state *s = dev->gemms;
	const void *left = s->kept.in;
	const float never = 1e30f;
	struct gemm alone = *g;
	float ms = 0;

	alone.aside = false;
	for (int i = 0; i <= REPEATS; i++) {
		if (i == 1)
			cudaEventRecord(s->start, dev->stream);
		if (!as_codes)
			by_operands(dev, &alone);
		else if (!by_codes(dev, at, g, side, layout))
			return never;
		s->kept.in = left;
	}
	cudaEventRecord(s->end, dev->stream);
	if (!cuda_ok(dev, at, cudaEventSynchronize(s->end)) ||
	    !cuda_ok(dev, at, cudaEventElapsedTime(&ms, s->start, s->end)))
		return 0;
	return ms;
}

/* Found out once for each kind, with all that it takes to make the codes, and kept with the
 * algorithms. A product that adds to C cannot be repeated: what was found of the one that does not
 * holds. */
static bool codes_lose(struct device *dev, const struct place *at, const struct gemm *g,
		       const struct side side[SIDES], const enum scale_layout layout[SIDES])
{
	struct gemm sizes = { .m = g->m,
			      .n = g->n,
			      .k = g->k,
			      .lda = g->lda,
			      .ldb = g->ldb,
			      .ldc = g->ldc,
			      .trans_a = g->trans_a,
			      .trans_b = g->trans_b,
			      .c_is_gradient = g->c_is_gradient };
	const uint32_t modes = mode_of(layout[0]) << MODE_A_BIT | mode_of(layout[1]) << MODE_B_BIT;
	const struct kind kind = gemm_kind(dev, &sizes, NULL, FLAG_MEASURED | modes);
	struct product *p = gemm_find(dev->gemms, &kind);

	if (p)
		return p->is_refused;
	if (g->beta != 0.0f || dev->deterministic || dev->is_recording)
		return false;
	float codes = time_of(dev, at, g, side, layout, true);
	float plain = time_of(dev, at, g, side, layout, false);
	p = gemm_add(dev->gemms, &kind);
	if (p)
		p->is_refused = plain < codes;
	dev->gemms->is_new = true;
	return plain < codes;
}

/* --- emulated --------------------------------------------------------------------------------- */

static const void *numbers(struct device *dev, const struct place *at, int i,
			   const struct side *side)
{
	size_t count = side->shape.rows * side->shape.columns;
	const struct operand_use use = use_of(dev, side);
	const struct few_bits f = { .in = side->in,
				    .shape = side->shape,
				    .use = &use,
				    .values = operand_area(dev, at, i,
							   count * compute_bytes(dev->compute)) };

	const struct few_bits *made = f.values ? expected_numbers(dev, &f) : NULL;
	if (made)
		settle(dev, at, made);
	else if (f.values)
		cuda_few_bits(dev, at, &f);
	return made ? made->values : f.values;
}

/* Sums are those of the operands as they were. */
static void by_numbers(struct device *dev, const struct place *at, const struct gemm *g,
		       const struct side side[SIDES])
{
	struct gemm f = *g, sums = *g;

	f.use_a = f.use_b = NULL;
	f.sum_a = f.sum_b = NULL;
	f.aside = false; /* the next product makes its operands in the same place */
	if (g->use_a)
		f.a = numbers(dev, at, 0, &side[0]), f.lda = side[0].shape.columns;
	if (g->use_b) {
		f.b = numbers(dev, at, 1, &side[1]), f.ldb = side[1].shape.columns;
		f.b_is_weight = false;
	}
	if (!f.a || !f.b)
		return;
	gemm_plain(dev, &f);
	sums.bias = NULL;
	sums.then = GEMM_PLAIN;
	gemm_complete(dev, &sums, &f);
}

static void of_few_bits(struct device *dev, const struct gemm *g)
{
	const struct place *at = AT("gemm of few bits", g->m, g->n, g->k, 0);
	enum scale_layout layout[SIDES];
	struct side side[SIDES];

	sides_of(dev, at, g, side);
	if (dev->error[0] != '\0')
		return;
	bool has = hardware_has(dev, g, layout);
	if (has && g->only_faster && codes_lose(dev, at, g, side, layout))
		has = false;
	if ((has && by_codes(dev, at, g, side, layout)) || dev->error[0] != '\0')
		return;
	/* emulated it takes the product of the operands as they are, and more: no stopwatch is
	 * needed */
	if (g->only_faster)
		by_operands(dev, g);
	else
		by_numbers(dev, at, g, side);
}

void cuda_gemm(struct device *dev, const struct gemm *g)
{
	bool is_reader = dev->expected->is_made;

	if (g->is_first || !g->shared)
		dev->gemms->kept.in = NULL;
	if (!g->use_a && !g->use_b)
		gemm_plain(dev, g);
	else if (g->m > 0 && g->n > 0 && g->k > 0)
		of_few_bits(dev, g);
	if (is_reader)
		expected_read(dev);
}
