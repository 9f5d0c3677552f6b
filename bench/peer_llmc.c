/* SPDX-License-Identifier: MIT */
/* peer_llmc.c - seconds a training step of llm.c's GPT-2 124M takes, one line a step.
 *
 * Compiled together with its train_gpt2.c, which is not part of this project:
 *   cc -O3 -ffast-math -march=native -fopenmp -I LLM.C -DPEER='"train_gpt2.c"'
 *      -o peer_llmc bench/peer_llmc.c -lm
 *   peer_llmc BATCH SEQUENCE STEPS */
#define TESTING /* llm.c leaves its main out */
#include PEER

static void fill(float *to, size_t count, float spread, uint64_t *state)
{
	for (size_t i = 0; i < count; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		to[i] = spread * ((float)(*state >> 40) / 8388608.0f - 1.0f);
	}
}

int main(int argc, char **argv)
{
	GPT2 model = { .config = { .max_seq_len = 1024,
				   .vocab_size = 50257,
				   .num_layers = 12,
				   .num_heads = 12,
				   .channels = 768,
				   .padded_vocab_size = 50304 },
		       .mean_loss = -1.0f };
	int batch = argc > 3 ? (int)strtol(argv[1], NULL, 10) : 4;
	int seq = argc > 3 ? (int)strtol(argv[2], NULL, 10) : 64;
	int steps = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 4;
	int *inputs = malloc(sizeof(int) * (size_t)(batch * seq + 1));
	uint64_t state = 1;

	fill_in_parameter_sizes(model.param_sizes, model.config);
	for (size_t i = 0; i < NUM_PARAMETER_TENSORS; i++)
		model.num_parameters += model.param_sizes[i];
	model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
	fill(model.params_memory, model.num_parameters, 0.035f, &state);
	for (int i = 0; i <= batch * seq; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		inputs[i] = (int)((state >> 33) % 256);
	}
	for (int step = 1; step <= steps; step++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		gpt2_forward(&model, inputs, inputs + 1, (size_t)batch, (size_t)seq);
		gpt2_zero_grad(&model);
		gpt2_backward(&model);
		gpt2_update(&model, 1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, step);
		clock_gettime(CLOCK_MONOTONIC, &to);
		printf("%.4f\n", (double)(to.tv_sec - from.tv_sec) +
					 1e-9 * (double)(to.tv_nsec - from.tv_nsec));
		fflush(stdout);
	}
	gpt2_free(&model);
	free(inputs);
	return 0;
}
