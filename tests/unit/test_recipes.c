/* SPDX-License-Identifier: MIT */
/* test_recipes.c - operands of few bits beside a definition an element at a time, for each slot of
 * each recipe and each set of instructions; slots and rules from their words; what recipes
 * remember. */
#include <math.h>

#include "kernels/formats/operand.h"
#include "kernels/machine/instructions.h"
#include "tests/unit/cpu_device.h"
#include "worker/lbworker/recipes/precision.h"
#include "worker/lbworker/recipes/recipe.h"
#include "worker/lbworker/recipes/rules.h"

extern const struct backend backend_cpu_base, backend_cpu_avx2, backend_cpu_avx512;

enum { ROWS = 83, COLUMNS = 150, GAP = 7, LD = COLUMNS + GAP };

static const struct random_stream stream = { 77, 3, 9 };

/* --- the definition --------------------------------------------------------------------------- */

/* Element (i, k): k is summed over. */
struct view {
	size_t outer, k, to_outer, to_k, ld_out_outer, ld_out_k;
};

static struct view view_of(bool k_along_memory)
{
	return k_along_memory ? (struct view){ ROWS, COLUMNS, LD, 1, COLUMNS, 1 }
			      : (struct view){ COLUMNS, ROWS, 1, LD, 1, COLUMNS };
}

static double hadamard(size_t i, size_t j)
{
	return __builtin_popcount((unsigned)(i & j)) % 2 ? -1 : 1;
}

/* H D on whole groups of 16, by the matrix. */
static void turn(float *x, const struct view *v)
{
	static const double sign[16] = { 1, -1, -1, 1, -1, 1, 1, 1, -1, -1, 1, -1, 1, -1, -1, 1 };
	double in[16];

	for (size_t o = 0; o < v->outer; o++)
		for (size_t k = 0; k + 16 <= v->k; k += 16) {
			for (size_t j = 0; j < 16; j++)
				in[j] = sign[j] * (double)x[o * v->to_outer + (k + j) * v->to_k];
			for (size_t i = 0; i < 16; i++) {
				double sum = 0;
				for (size_t j = 0; j < 16; j++)
					sum += hadamard(i, j) * in[j];
				x[o * v->to_outer + (k + i) * v->to_k] = (float)(sum / 4);
			}
		}
}

static float amax_of(const float *x, const struct view *v, size_t o, size_t outer, size_t k,
		     size_t along)
{
	float most = 0;

	for (size_t i = o; i < o + outer && i < v->outer; i++)
		for (size_t j = k; j < k + along && j < v->k; j++)
			most = fmaxf(most, fabsf(x[i * v->to_outer + j * v->to_k]));
	return most;
}

static float one(const struct operand_cast *c, float x, struct scale s, size_t element)
{
	const struct format_cast how = { c->rounding, true };

	return format_decode(&c->format, format_encode(&c->format, x * s.multiply, &how,
						       random_word(&stream, element))) *
	       s.scale;
}

static double block_error(const struct operand_cast *c, const float *x, const struct view *v,
			  size_t o, size_t k, struct scale s)
{
	struct operand_cast nearest = *c;
	double sum = 0;

	nearest.rounding = ROUND_NEAREST_EVEN;
	for (size_t i = o; i < o + c->across && i < v->outer; i++)
		for (size_t j = k; j < k + c->along && j < v->k; j++) {
			float at = x[i * v->to_outer + j * v->to_k];
			double e = (double)(at - one(&nearest, at, s, 0));
			sum += e * e;
		}
	return sum;
}

/* The scale of the block that begins at (o, k). */
static struct scale block_scale(const struct operand_cast *c, const float *x, const struct view *v,
				size_t o, size_t k, float tensor)
{
	float amax = amax_of(x, v, o, c->across, k, c->along);
	struct scale six = operand_scale(c, amax, tensor, format_max(&c->format));

	if (!c->four_over_six)
		return six;
	struct scale four = operand_scale(c, amax, tensor, 4);
	return block_error(c, x, v, o, k, four) < block_error(c, x, v, o, k, six) ? four : six;
}

static void define(float *out, float *x, const struct operand_cast *cast, bool k_along_memory)
{
	const struct view v = view_of(k_along_memory);
	struct operand_cast c = *cast;

	c.across = c.across ? c.across : v.outer;
	c.along = c.along ? c.along : v.k;
	if (c.hadamard)
		turn(x, &v);
	float tensor = operand_tensor_scale(&c, amax_of(x, &v, 0, v.outer, 0, v.k));
	for (size_t o0 = 0; o0 < v.outer; o0 += c.across)
		for (size_t k0 = 0; k0 < v.k; k0 += c.along) {
			struct scale s = block_scale(&c, x, &v, o0, k0, tensor);
			for (size_t o = o0; o < o0 + c.across && o < v.outer; o++)
				for (size_t k = k0; k < k0 + c.along && k < v.k; k++) {
					size_t at = o * v.ld_out_outer + k * v.ld_out_k;
					out[at] = one(&c, x[o * v.to_outer + k * v.to_k], s, at);
				}
		}
}

/* --- beside it -------------------------------------------------------------------------------- */

/* Numbers of many sizes, with zeros and a row that dwarfs the others. */
static float *operand(void)
{
	float *x = noise(5, (size_t)ROWS * LD);

	for (size_t i = 0; i < (size_t)ROWS * LD; i++)
		x[i] = i % 11 == 0 ? 0
				   : ldexpf(x[i], (int)(i * 7 % 13) - 6 + (i / LD == 20 ? 9 : 0));
	return x;
}

static size_t differences(const struct operand_cast *c, bool k_along_memory,
			  const struct backend *be, int threads)
{
	const struct backend_options options = { .threads = threads };
	struct device *dev = be->open(&options, NULL);
	const struct stored shape = { ROWS, COLUMNS, LD, k_along_memory };
	struct operand_stats stats = { 0 };
	const struct operand_use use = { .cast = c, .random = stream, .stats = &stats };
	float *x = operand(), *got = xcalloc(ROWS * COLUMNS, sizeof(*got));
	float *want = xcalloc(ROWS * COLUMNS, sizeof(*want));
	size_t wrong = 0, zeroed = 0;

	be->quantize(dev, got, x, &shape, &use);
	define(want, x, c, k_along_memory); /* turns x, where the slot says so */
	for (size_t i = 0; i < ROWS * COLUMNS; i++) {
		/* sums of a turned block are rounded in another order */
		float room = c->hadamard ? fabsf(want[i]) * 0.6f + 1e-3f : 0;
		wrong += !(fabsf(got[i] - want[i]) <= room);
		zeroed += want[i] == 0 && x[i / COLUMNS * LD + i % COLUMNS] != 0;
	}
	assert_int_equal(stats.count, ROWS * COLUMNS);
	if (!c->hadamard)
		assert_int_equal(stats.zeroed, zeroed);
	free(x);
	free(got);
	free(want);
	be->close(dev);
	return wrong;
}

static void test_operands(void **state)
{
	static const struct backend *const sets[] = {
		&backend_cpu_base,
#if defined(__x86_64__)
		&backend_cpu_avx2,
		&backend_cpu_avx512,
#endif
	};
	enum { SETS = sizeof(sets) / sizeof(sets[0]) };
	struct operand_cast c;
	struct err err = { 0 };
	uint64_t compared = 0;

	(void)state;
	for (size_t r = 0; recipe_row(r); r++)
		for (int i = 0; i < SLOTS; i++) {
			assert_int_equal(slot_parse(&c, recipe_row(r)->slot[i], &err), 0);
			for (int s = 0; c.format.bits && s <= (int)instructions_used() && s < SETS;
			     s++)
				for (int along = 0; along < 2;
				     along++, compared += ROWS * COLUMNS) {
					size_t n = differences(&c, along, sets[s], 1 + s);
					if (n > (c.hadamard ? ROWS * COLUMNS / 500 : 0))
						fail_msg("%s, %s, k %s memory: %zu differ",
							 recipe_row(r)->name,
							 recipe_row(r)->slot[i],
							 along ? "along" : "across", n);
				}
		}
	printf("recipes: %llu operands compared, 0 differences\n", (unsigned long long)compared);
}

/* Turned operands give the product of those that are not. */
static void test_turned_product(void **state)
{
	enum { M = 9, N = 11, K = 70 };
	struct operand_cast c = { 0 };
	struct operand_use use = { .cast = &c };
	struct device *dev = open_device(1);
	float *a = noise(1, M * K), *b = noise(2, N * K), plain[M * N], turned[M * N];
	struct gemm g = { .m = M,
			  .n = N,
			  .k = K,
			  .a = a,
			  .b = b,
			  .c = plain,
			  .lda = K,
			  .ldb = K,
			  .ldc = N,
			  .trans_b = true,
			  .alpha = 1 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(slot_parse(&c, "fp16 hadamard", &err), 0);
	backend_cpu()->gemm(dev, &g);
	g.c = turned;
	g.use_a = g.use_b = &use;
	backend_cpu()->gemm(dev, &g);
	for (int i = 0; i < M * N; i++)
		assert_true(fabsf(plain[i] - turned[i]) < 0.05f);
	assert_memory_not_equal(plain, turned, sizeof(plain));
	free(a);
	free(b);
	backend_cpu()->close(dev);
}

/* Not finite: all that shares the scale shows it. */
static void test_not_finite(void **state)
{
	struct device *dev = open_device(1);
	const struct stored shape = { 2, 64, 64, true };
	float x[128], out[128];
	struct operand_cast c;
	struct err err = { 0 };
	const struct operand_use use = { .cast = &c };

	(void)state;
	assert_int_equal(slot_parse(&c, "e2m1 1x32 up", &err), 0);
	for (int i = 0; i < 128; i++)
		x[i] = 1;
	x[40] = INFINITY;
	x[100] = NAN;
	backend_cpu()->quantize(dev, out, x, &shape, &use);
	for (int i = 0; i < 128; i++)
		assert_true(isnan(out[i]) == ((i >= 32 && i < 64) || i >= 96));
	backend_cpu()->close(dev);
}

/* --- scales beside numbers worked out by hand ------------------------------------------------- */

static void test_scales(void **state)
{
	static const struct {
		const char *slot;
		float amax, scale;
	} cases[] = {
		{ "e4m3fn tensor", 448, 1 },        { "e4m3fn row pow2", 500, 2 },
		{ "e4m3fn 1x32 floor", 500, 1 },    { "e4m3fn 1x32 up", 500, 2 },
		{ "e4m3fn 1x32 up", 448, 1 },       { "e4m3fn 1x32 up", 449, 2 },
		{ "e4m3fn 1x32 floor", 256, 1 },    { "e4m3fn 1x32 even", 495, 1 },
		{ "e4m3fn 1x32 even", 496, 2 },     { "e2m1 1x32 even", 6, 1 },
		{ "e2m1 1x32 even", 7, 2 },         { "e2m1 1x32 floor", 7.9f, 1 },
		{ "e4m3fn 1x32 up", 0, 0x1p-127f }, { "int8 tensor", 127, 1 },
		{ "e5m2 tensor", 57344 * 2.0f, 2 }, { "e2m1 1x32 even", 1e-39f, 0x1p-127f },
	};
	struct err err = { 0 };
	struct operand_cast c;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(slot_parse(&c, cases[i].slot, &err), 0);
		struct scale s = operand_scale(&c, cases[i].amax, 1, format_max(&c.format));
		if (s.scale != cases[i].scale)
			fail_msg("%s of %g: %g", cases[i].slot, (double)cases[i].amax,
				 (double)s.scale);
	}
	/* NVFP4: A = 6 448 has S = 1, and a block of 6 the scale 1 */
	assert_int_equal(slot_parse(&c, "e2m1 1x16 e4m3", &err), 0);
	assert_true(operand_tensor_scale(&c, 6 * 448) == 1);
	assert_true(operand_scale(&c, 6.1f, 1, 6).scale == 1);
	/* what is divided by the least scales is still a number: 0 stays 0 */
	assert_true(
		isfinite(operand_scale(&c, 1e-39f, operand_tensor_scale(&c, 1e-39f), 6).multiply));
}

/* --- words ------------------------------------------------------------------------------------ */

static void test_slots(void **state)
{
	static const char *const wrong[][2] = {
		{ "e9m9 tensor", "there is no format \"e9m9\"" },
		{ "e4m3fn", "needs a scale" },
		{ "e4m3fn tensr", "\"tensr\" is not known" },
		{ "e8m0 tensor", "is a format of scales" },
		{ "bf16 tensor", "bf16 needs no scale" },
		{ "e4m3fn 1x32 delayed:4", "delayed goes with tensor" },
		{ "e4m3fn tensor delayed:0", "\"delayed:0\" is not known" },
		{ "e2m3 1x16 e4m3 four-over-six", "four-over-six is for e2m1" },
		{ "e2m1 tensor e4m3", "e4m3 scales are for blocks" },
		{ "", "there is no format" },
	};
	char text[SLOT_BYTES];
	struct operand_cast c;

	(void)state;
	for (size_t r = 0; recipe_row(r); r++)
		for (int i = 0; i < SLOTS; i++) {
			struct err err = { 0 };
			assert_int_equal(slot_parse(&c, recipe_row(r)->slot[i], &err), 0);
			assert_string_equal(slot_print(&c, text), recipe_row(r)->slot[i]);
		}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err err = { 0 };
		assert_int_equal(slot_parse(&c, wrong[i][0], &err), -1);
		assert_contains(err.text, wrong[i][1]);
	}
}

/* Names of torchao: what its MXLinearConfig rounds the scales of, and by FLOOR unless said. */
static void test_names_of_torchao(void **state)
{
	static const char *const cases[][2] = {
		{ "mxfp8_emulated", "e4m3fn 1x32 floor" },  { "mxfp8_cublas", "e4m3fn 1x32 floor" },
		{ "mxfp8_cublas_rceil", "e4m3fn 1x32 up" }, { "mxfp8_rceil", "e4m3fn 1x32 up" },
		{ "rowwise", "e4m3fn row pow2" },
	};
	char text[SLOT_BYTES];
	struct err err = { 0 };
	struct recipe r;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (recipe_find(&r, cases[i][0], &err))
			fail_msg("%s", err.text);
		for (int k = 0; k < SLOTS; k++)
			assert_string_equal(slot_print(&r.slot[k], text), cases[i][1]);
		recipe_clear(&r);
	}
	/* its FP4 is nearest everywhere, which none of ours is */
	assert_int_equal(recipe_find(&r, "mxfp4_emulated", &err), -1);
	assert_contains(err.text, "there is no recipe \"mxfp4_emulated\"; allowed: none, ");
}

static int find(const char *text, struct err *err)
{
	struct recipe r;

	*err = (struct err){ 0 };
	write_text("my.toml", text);
	int rc = recipe_find(&r, "./my.toml", err);
	recipe_clear(&r);
	return rc;
}

static void test_file(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(find("base = \"mxfp8\"\n[input]\ng = \"e5m2 1x32 up\"\n", &err), 0);
	assert_int_equal(find("base = \"mx\"\n", &err), -1);
	assert_contains(err.text,
			"my.toml:1: base: there is no recipe \"mx\"; allowed: none, bf16");
	assert_int_equal(find("[input]\nx = \"-\"\n", &err), -1);
	assert_contains(err.text, "my.toml:2: input.x: unknown key; there are base");
	assert_int_equal(find("[input]\ng = \"e5m2\"\n", &err), -1);
	assert_contains(err.text, "my.toml:2: input.g: \"e5m2\": needs a scale");
	assert_int_equal(find("[weight]\ng = \"fp16 hadamard\"\n", &err), -1);
	assert_contains(err.text, "hadamard must be in both");
}

/* --- where and when --------------------------------------------------------------------------- */

static bool uses(struct precision *p, size_t layer, enum module module, enum product product)
{
	struct operand_use use;

	return precision_use(p, layer, module, product, 0, &use);
}

static void test_rules(void **state)
{
	static char filter[] = "output", first[] = "steps=10- products=fprop recipe=none",
		    second[] = "layers=1,-1 modules=down recipe=none";
	char *const filters[] = { filter };
	char *const rules[] = { first, second };
	const struct precision_wish wish = { .recipe = "mxfp8",
					     .layers = 6,
					     .first_layers = 1,
					     .filter = filters,
					     .filters = 1,
					     .rules = rules,
					     .rule_count = 2 };
	struct precision *p;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(precision_create(&p, &wish, NULL, &err), 0);
	precision_step(p, 9, false);
	assert_false(uses(p, 0, MODULE_QKV, PRODUCT_FORWARD));
	assert_false(uses(p, 6, MODULE_OUTPUT, PRODUCT_FORWARD));
	assert_true(uses(p, 2, MODULE_DOWN, PRODUCT_FORWARD));
	assert_false(uses(p, 1, MODULE_DOWN, PRODUCT_FORWARD));
	assert_false(uses(p, 5, MODULE_DOWN, PRODUCT_WEIGHT));
	assert_true(uses(p, 5, MODULE_UP, PRODUCT_FORWARD));
	precision_step(p, 10, false);
	assert_false(uses(p, 5, MODULE_UP, PRODUCT_FORWARD));
	assert_true(uses(p, 5, MODULE_UP, PRODUCT_INPUT));
	precision_destroy(p);
}

/* Modules are left out by parts of the names that their own family has in Hugging Face. */
static void test_module_names(void **state)
{
	static const struct {
		const char *part;
		enum module module;
	} cases[] = {
		{ "layers.3.attention.wq", MODULE_QKV },
		{ "o_proj", MODULE_OUT },
		{ "w3", MODULE_UP },
		{ "down_proj", MODULE_DOWN },
		{ "h.3.attn.c_attn", MODULE_QKV },
		{ "attn.c_proj", MODULE_OUT },
		{ "c_fc", MODULE_UP },
		{ "h.3.mlp.c_proj", MODULE_DOWN },
		{ "query_key_value", MODULE_QKV },
		{ "attention.dense", MODULE_OUT },
		{ "layers.3.mlp.dense_h_to_4h", MODULE_UP },
		{ "dense_4h_to_h", MODULE_DOWN },
		{ "embed_out", MODULE_OUTPUT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (enum module m = MODULE_QKV; m < MODULE_COUNT; m++)
			if (module_is_called(m, 3, cases[i].part) != (m == cases[i].module))
				fail_msg("%s and %s", cases[i].part, module_names[m]);
	assert_false(module_is_called(MODULE_QKV, 2, "h.3.attn.c_attn"));
}

static void test_wrong_rules(void **state)
{
	static const char *const wrong[] = { "steps=x recipe=none",
					     "layers=9-2 recipe=none",
					     "layers=6 recipe=none",
					     "layers=0,7- recipe=none",
					     "layers=-7 recipe=none",
					     "steps=0 recipe=none",
					     "products=y recipe=none",
					     "modules= recipe=none",
					     "recipe=",
					     "speed=1 recipe=none",
					     "steps=3" };
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err err = { 0 };
		assert_int_equal(rule_parse(&rule, wrong[i], 6, &err), -1);
		assert_contains(err.text, "a rule is [steps=A-B]");
	}
}

/* Delayed scaling: the scale of a step is that of the steps before; what it remembers can be taken
 * out and put back. */
static void test_history(void **state)
{
	const struct precision_wish wish = { .recipe = "delayed", .layers = 1 };
	struct precision *p, *again;
	struct err err = { 0 };
	struct operand_use use;

	(void)state;
	assert_int_equal(precision_create(&p, &wish, NULL, &err), 0);
	assert_int_equal(precision_create(&again, &wish, NULL, &err), 0);
	for (int64_t step = 1; step <= 3; step++) {
		precision_step(p, step, false);
		assert_true(precision_use(p, 0, MODULE_UP, PRODUCT_INPUT, 1, &use));
		assert_true(use.notes && use.history[AMAX_FILLED] == (float)(step - 1));
		use.history[AMAX_NOW] = (float)step;
	}
	assert_true(use.history[AMAX_PAST] == 2 && use.history[AMAX_PAST + 1] == 1);
	size_t count = precision_history_count(p);
	float *kept = xcalloc(count, sizeof(*kept));
	precision_history_get(p, kept);
	precision_history_set(again, kept);
	precision_step(again, 4, false);
	assert_true(precision_use(again, 0, MODULE_UP, PRODUCT_INPUT, 1, &use));
	assert_true(use.history[AMAX_PAST] == 3 && use.history[AMAX_FILLED] == 3);
	/* a step that is left out leaves nothing */
	use.history[AMAX_NOW] = INFINITY;
	precision_step(again, 5, false);
	assert_true(precision_use(again, 0, MODULE_UP, PRODUCT_INPUT, 1, &use));
	assert_true(use.history[AMAX_PAST] == 3 && use.history[AMAX_FILLED] == 3);
	assert_true(use.history[AMAX_NOW] == 0);
	/* nor in a checkpoint, whose JSON has finite numbers only */
	use.history[AMAX_NOW] = NAN;
	precision_history_get(again, kept);
	for (size_t i = 0; i < count; i++)
		assert_true(isfinite(kept[i]));
	precision_evaluating(again, true);
	assert_true(precision_use(again, 0, MODULE_UP, PRODUCT_INPUT, 1, &use));
	assert_false(use.notes);
	free(kept);
	precision_destroy(p);
	precision_destroy(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_turned_product),
		cmocka_unit_test(test_not_finite),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_wrong_rules),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_module_names),
		cmocka_unit_test(test_names_of_torchao),
	};
	return cmocka_run_group_tests_name("recipes", tests, NULL, NULL);
}
