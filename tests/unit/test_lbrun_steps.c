/* SPDX-License-Identifier: MIT */
/* test_lbrun_steps.c - steps recognised in what trainers print: lines as these frameworks write
 * them. */
#include "tests/unit/unit.h"

#include <math.h>
#include <time.h>

#include "common/base/json.h"
#include "worker/lbrun/trainer/escapes.h"
#include "worker/lbrun/trainer/output_parser.h"
#include "worker/lbrun/steps/steps.h"

static char told[4096];

/* "12/100 loss=3.4 lr=0.001 " of a step, so that expectations can be read. */
static void add_step(void *arg, json_t *line, int64_t rank)
{
	static const char *const names[] = { "loss",      "val_loss",     "lr",
					     "grad_norm", "tokens_per_s", "mfu" };
	size_t at = strlen(told);

	(void)arg;
	(void)rank;
	at += (size_t)snprintf(told + at, sizeof(told) - at, "%s%lld", at ? "; " : "",
			       (long long)js_int(line, "step", -1));
	if (json_object_get(line, "target_step"))
		at += (size_t)snprintf(told + at, sizeof(told) - at, "/%lld",
				       (long long)js_int(line, "target_step", -1));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (json_object_get(line, names[i]))
			at += (size_t)snprintf(told + at, sizeof(told) - at, " %s=%.6g", names[i],
					       js_real(line, names[i], NAN));
	}
}

static struct output_parser parser;

static const char *read_text(const char *text)
{
	struct attempt_watch watch = { .progress_regex = TEXT(PROGRESS_AUTO) };

	memset(&parser, 0, sizeof(parser));
	told[0] = '\0';
	assert_int_equal(output_parser_init(&parser, &watch, false, 1000, NULL), 0);
	parser.on_step = add_step;
	output_parser_bytes(&parser, 0, text, strlen(text));
	output_parser_end(&parser);
	output_parser_fini(&parser);
	return told;
}

static void test_frameworks(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text, *told;
	} rows[] = {
		/* one's own */
		{"step 12/100 loss 3.4\n", "12/100 loss=3.4"},
		{"step 1/60 loss 0.5\nstep 2/60 loss nan\n", "1/60 loss=0.5; 2/60 loss=nan"},
		{"iter 12: loss 3.25\n", "12 loss=3.25"},
		{"it 13 | loss: 0.5\nit 14 | loss: 0.25\n9.5it/s 3 loss 2\n", "13 loss=0.5; 14 loss=0.25"},
		{"2026-01-01 12:00 | INFO | update 500/1000 | ppl 12.1 | loss 2.5\n", "500/1000 loss=2.5"},
		{"num_updates=7 loss=2.5\nupdate 8 of the index\n", "7 loss=2.5"},
		{"| epoch   1 |   200/ 2983 batches | lr 5.00 | ms/batch 31.0 | loss  8.25 | ppl  3400.0\n"
		 "| epoch   2 |   200/ 2983 batches | lr 5.00 | ms/batch 31.0 | loss  7.25 | ppl  3400.0\n",
		 "200 loss=8.25 lr=5; 3183 loss=7.25 lr=5"},
		{"Step: 1,200, Loss: 2.5, LR: 3e-4\n", "1200 loss=2.5 lr=0.0003"},
		{"[2026-01-02 10:00:00] INFO train.py:12 - step=5 train_loss=2.5 lr=1e-4\n",
		 "5 loss=2.5 lr=0.0001"},
		{"training step 3 of 10\n", "3/10"},
		{"[10/100] loss=2.5\n[10/12/2026] loss=2.5\n", "10/100 loss=2.5"},
		{"STEP 5/10 LOSS 2.5\n", "5/10 loss=2.5"},
		{"{\"step\":10,\"loss\":2.5,\"lr\":0.001}\n", "10 loss=2.5 lr=0.001"},
		{"{'train/global_step': 7, 'train/loss': 2.5}\n", "7 loss=2.5"},
		{"step 3 | lr 0.5 | nll 2.5\n", "3 loss=2.5 lr=0.5"},
		{"Training loss (for one batch) at step 200: 2.5\n", "200 loss=2.5"},
		{"Cost after iteration 100: 0.5\n", "100 loss=0.5"},
		{"after 100 steps: loss 2.5\naverage over 100 steps: loss 2.25\n", "100 loss=2.5"},
		/* batches: of one epoch, of those before lines of their own, of ones that only begin again */
		{"batch 40 of 100, loss 2.5\nbatch 80 of 100, loss 2.25\nbatch 40 of 100, loss 2\n",
		 "40/100 loss=2.5; 80/100 loss=2.25; 140 loss=2"},
		{"Epoch 2, batch 40 of 100, loss 2.5\n", "140 loss=2.5"},
		{"Epoch 1/3\nbatch: 40/100, loss: 2.5\nEpoch 2/3\nbatch: 40/100, loss: 2.25\n"
		 "Epoch 2/3 done, loss: 2\n", "40/300 loss=2.5; 140/300 loss=2.25"},
		{"=== Epoch 0 ===\nMiniBatch [3/10] loss=2.5\n=== Epoch 1 ===\nMiniBatch [3/10] loss=2\n",
		 "3 loss=2.5; 13 loss=2"},
		{"Epoch 2/3 [40/100] loss 2.5\n", "140/300 loss=2.5"},
		{"Epoch [1][50/1000]\tlr: 1e-03, time: 0.5, loss: 2.5\n", "50 loss=2.5 lr=0.001"},
		{"Epoch 1 Batch 50 Loss 2.5\nEpoch 1 Batch 90 Loss 2\nEpoch 2 Batch 10 Loss 1.5\n",
		 "50 loss=2.5; 90 loss=2; 100 loss=1.5"},
		{"batch 1: loss 3\nbatch 2: loss 2.5\nbatch 3: loss 2.5\nbatch 1: loss 2\n",
		 "1 loss=3; 2 loss=2.5; 3 loss=2.5; 4 loss=2"},
		{"validation batch 3/10 loss 2.5\nTest epoch 1 batch 3/10 loss 2\nTest: [3/10] loss 2\n", ""},
		{"saved batch 3 of 10\nmicro batch 3/8 loss 2\nmicro-batch 3/8 loss 2\n", ""},
		{"Iteration 7, loss = 1.5, grad norm = 2\n", "7 loss=1.5 grad_norm=2"},
		{"{\"step\": 10, \"loss\": 2.5, \"lr\": 0.001}\n", "10 loss=2.5 lr=0.001"},
		{"{'step': 10, 'train_loss': 2.5}\n", "10 loss=2.5"},
		{"Epoch 3/10, Loss: 0.5\n", "3/10 loss=0.5"},
		{"Epoch [3/10], Loss: 0.5\n", "3/10 loss=0.5"},
		{"Epoch [2/5], Step [100/600], Loss: 0.25\n", "700/3000 loss=0.25"},
		/* tqdm */
		{"\r  0%|          | 0/100 [00:00<?, ?it/s]\r  1%|1         | 1/100 [00:00<00:10,  9.5it/s]"
		 "\r  2%|2         | 2/100 [00:00<00:10,  9.5it/s]\n", "0/100; 1/100; 2/100"},
		{" 50%|\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88     | 50/100 [00:05<00:05, 10.0it/s, loss=2.5]\n",
		 "50/100 loss=2.5"},
		{"train:  50%|#####     | 5/10 [00:05<00:05,  1.02s/it, loss=2.5, lr=1e-4]\n",
		 "5/10 loss=2.5 lr=0.0001"},
		{"123it [00:05, 24.31it/s, loss=2.5]\n", "123 loss=2.5"},
		/* Lightning, whose dataset does not tell its length */
		{"Epoch 0: |          | 29/? [00:01<00:00, 24.31it/s, v_num=0, loss=2.500]\rEpoch 0: |          | 30/? [00:01<00:00, 24.31it/s, v_num=0, loss=2.500]\r"
		 "Epoch 1: |          | 0/? [00:00<?, ?it/s, v_num=0, loss=2.500]\rEpoch 1: |          | 1/? [00:00<00:00, 24.31it/s, v_num=0, loss=2.250]\n", "29 loss=2.5; 30 loss=2.5; 31 loss=2.25"},
		/* which draws its bar anew before it gives it the next number */
		{"Epoch 0: 100%|##| 20/20 [00:01<00:00, 9.0it/s, loss=2]\rEpoch 0:   0%|  | 0/20 [00:00<?, ?it/s, loss=2]\rEpoch 1:   0%|  | 0/20 [00:00<?, ?it/s, loss=2]\r"
		 "Epoch 1:   5%|  | 1/20 [00:00<00:19, 1.0it/s, loss=3]\r", "20 loss=2; 21 loss=3"},
		{"Epoch 0: |          | 9/? [00:01<00:00, 9it/s, loss=2]\rEpoch 0: |          | 0/? [00:00<?, ?it/s, loss=2]\rEpoch 1: |          | 1/? [00:00<00:00, 9it/s, loss=3]\r",
		 "9 loss=2; 10 loss=3"},
		{"Epoch 0/2 \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 30/-- 0:00:02 \xe2\x80\xa2 -:--:-- 14.33it/s loss: 0.500\n"
		 "Epoch 1/2 \xe2\x94\x81\xe2\x94\x81\xe2\x94\x81 30/-- 0:00:02 \xe2\x80\xa2 -:--:-- 14.33it/s loss: 0.250\n", "30 loss=0.5; 60 loss=0.25"},
		{"Epoch 0: 9it [00:01, 24.31it/s, loss=2.5]\nEpoch 1: 1it [00:00, 24.31it/s, loss=2.25]\nValidation DataLoader 0: |          | 2/? [00:00<00:00, 24.31it/s]\n",
		 "9 loss=2.5; 10 loss=2.25"},
		{"Epoch 1/3:  10%|#         | 10/100 [00:01<00:09, 10.0it/s]\n"
		 "Epoch 2/3:  10%|#         | 10/100 [00:01<00:09, 10.0it/s]\n", "10/300; 110/300"},
		/* bars of batches that are wiped out before they are full, inside one of epochs */
		{"Epochs:   0%|          | 0/2 [00:00<?, ?it/s]\r  0%|          | 0/9 [00:00<?, ?it/s]\r"
		 " 33%|###       | 3/9 [00:01<00:02,  3it/s]\r 66%|######    | 6/9 [00:02<00:01,  3it/s]\r"
		 "  0%|          | 0/9 [00:00<?, ?it/s]\r 33%|###       | 3/9 [00:01<00:02,  3it/s]\n",
		 "0/2; 3/9; 6/9; 9/18; 12/18"},
		/* which is drawn again as each of them is over */
		{"Epoch:   0%|  | 0/2 [00:00<?, ?it/s]\nIteration: 100%|##| 9/9 [00:02<00:01,  3it/s]\nEpoch:  50%|##| 1/2 [00:00<?, ?it/s]\n"
		 "Iteration:  33%|##| 3/9 [00:01<00:02,  3it/s]\nIteration: 100%|##| 9/9 [00:01<00:02,  3it/s]\nEpoch: 100%|##| 2/2 [00:00<?, ?it/s]\n", "0/2; 9/9; 12/18; 18/18"},
		/* behind a bar of what was prepared it goes on alone */
		{"100%|##| 500/500 [00:01<00:00, 9it/s]\nEpoch:  10%|  | 1/10 [00:00<?, ?it/s]\nEpoch:  20%|  | 2/10 [00:00<?, ?it/s]\nEpoch:  30%|  | 3/10 [00:00<?, ?it/s]\n",
		 "500/500; 2/10; 3/10"},
		{" 98%|# | 98/100 [00:01<00:09, 1it/s]\r 99%|# | 99/100 [00:01<00:09, 1it/s]\r"
		 " 98%|# | 98/100 [00:01<00:09, 1it/s]\n", "98/100; 99/100; 98/100"},
		/* a bar for each epoch, and one of an evaluation */
		{"100%|##| 3/3 [00:01<00:00, 3it/s]\n 33%|# | 1/3 [00:01<00:00, 3it/s]\n", "3/3; 4/6"},
		{"100%|##| 3/3 [00:01<00:00, 3it/s]\n 50%|# | 1/2 [00:01<00:00, 3it/s]\n", "3/3"},
		{"Loading checkpoint shards: 100%|####| 2/2 [00:01<00:00,  2.0it/s]\n"
		 "Map:  50%|#####     | 500/1000 [00:01<00:01, 500.0 examples/s]\n"
		 "Evaluating:  50%|#####     | 5/10 [00:01<00:01, 5.0it/s]\n"
		 "model.safetensors:  50%|##  | 1/2 [00:01<00:01, 1.0it/s]\n", ""},
		/* drawn anew at 0 for each loss (SpeechBrain), as tqdm counts now and then only */
		{"  0%|  | 0/20 [00:00<?, ?it/s]\r  0%|  | 0/20 [00:00<?, ?it/s, train_loss=3]\r100%|##| 20/20 [00:00<00:00, 9it/s, train_loss=3]\n"
		 "  0%|  | 0/20 [00:00<?, ?it/s]\r  0%|  | 0/20 [00:00<?, ?it/s, train_loss=2]\r  0%|  | 0/20 [00:00<?, ?it/s, train_loss=2]\r"
		 "100%|##| 20/20 [00:00<00:00, 9it/s, train_loss=2]\n",
		 "0/20; 0/20 loss=3; 20/20 loss=3; 40/40 loss=2"},
		/* what makes the data of the training ready (TRL, datasets) */
		{"Adding EOS to train dataset: 100%|##| 400/400 [00:00<00:00, 20000.00 examples/s]\nTokenizing train dataset (num_proc=4):  50%|# | 200/400 [00:01<?, ?it/s]\n"
		 "Generating train split: 100%|##| 9/9 [00:00<00:00, 9.0it/s]\n 50%|# | 200/400 [00:01<00:01, 200.00 examples/s]\n"
		 "  0%|  | 0/60 [00:00<?, ?it/s]\r  2%|1 | 1/60 [00:00<00:30,  2.00it/s]\n", "0/60; 1/60"},
		{"Train:  10%|1 | 10/100 [00:01<00:09, 3.1it/s, 12.5k tok/s, loss=2]\r 20%|2 | 20/100 [00:01<00:09, 3.1it/s, tok/s=900]\r"
		 " 30%|3 | 30/100 [00:01<00:09, 3.1 examples/s, loss=1]\n", "10/100 loss=2 tokens_per_s=12500; 20/100 tokens_per_s=900; 30/100 loss=1"},
		{"Train:  50%|5 | 50/100 [00:01<00:09, 3.1 docs/s]\n", "50/100"},
		{"Training dataset c4:  50%|# | 30/60 [00:00<00:30,  2.00it/s]\n", "30/60"},
		/* a bar that has a loss is the training's, whatever it is called; what is held out, or is made ready, is none */
		{"Batches:  10%|1 | 10/100 [00:01<00:09, 9.0it/s, loss=2.5]\rmy_run:  20%|2 | 20/100 [00:01<00:09, 9.0it/s, lr: 1.0e-04 loss: 2.25]\r"
		 "my_run:  30%|3 | 30/100 [00:01<00:09, 9.0it/s, train_loss=2]\n",
		 "10/100 loss=2.5; 20/100 loss=2.25 lr=0.0001; 30/100 loss=2"},
		{"Epoch 1/3 [Train]:  50%|5 | 50/100 [00:01<00:01, 9.0it/s, loss=2.5]\rEpoch 1/3 [Val]:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=2.75]\r"
		 "Epoch 2/3 [Train]:  50%|5 | 50/100 [00:01<00:01, 9.0it/s, loss=2]\n", "50/300 loss=2.5; 150/300 loss=2"},
		{"Epoch 1 train loss 2.5 val loss 3:  50%|5 | 50/100 [00:01<00:01, 9.0it/s]\rEpoch 1 train (best val 0.9):  60%|6 | 60/100 [00:01<00:01, 9.0it/s, loss=2]\r"
		 "Epoch 1, loss: 1.5, val loss: 3:  70%|7 | 70/100 [00:01<00:01, 9.0it/s]\r"
		 "Epoch 1 val loss: 3:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\r"
		 "Epoch 1 train (best val/loss inf):  80%|8 | 80/100 [00:01<00:01, 9.0it/s, loss=1]\n",
		 "150 loss=2.5 val_loss=3; 160 loss=2; 170 loss=1.5 val_loss=3; 180 loss=1 val_loss=nan"},
		{"Training epoch 1: 100%|# | 100/100 [00:01<00:00, 9.0it/s]\nValidating epoch 1: 100%|# | 10/10 [00:01<00:00, 9.0it/s]\n"
		 "Training epoch 2:  50%|5 | 50/100 [00:01<00:01, 9.0it/s]\n", "200; 250"},
		/* of a host's name no part is such a word */
		{"gpu-test-3: Epoch 1/3:  10%|1 | 10/100 [00:01<00:09, 9.0it/s]\rdev-1.site: Epoch 1/3:  20%|2 | 20/100 [00:01<00:09, 9.0it/s]\n",
		 "10/300; 20/300"},
		/* nor is a run of that name something held out */
		{"Epoch 1 (dev run):  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=2.5]\nEpoch 1 (dev):  60%|5 | 6/10 [00:01<00:01, 9.0it/s, loss=2]\n", "15 loss=2.5"},
		/* what is evaluated, and where a line comes from, is told in front of that */
		{"Train epoch 1:  50%|5 | 50/100 [00:01<00:01, 9.0it/s, loss=2.5]\nEpoch 1 dev-clean:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\n"
		 "INFO:train:Epoch 1 valid:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=3]\n[trainer.py:33] Epoch 1 validation:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=3]\n"
		 "Epoch 1 (train loss 2.5) val:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=3]\nLoss on test:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=3]\n"
		 "Train epoch 2:  50%|5 | 50/100 [00:01<00:01, 9.0it/s, loss=2]\n", "150 loss=2.5; 250 loss=2"},
		{"Calculating loss...: 100%|# | 25/25 [00:01<00:00, 9.0it/s]\rwriting train.bin:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\r"
		 "sampling loop time step:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\rdev set:  50%|5 | 5/10 [00:01<00:01, 9.0it/s, loss=3]\r"
		 "eval loss:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\rtrain loss:  50%|5 | 5/10 [00:01<00:01, 9.0it/s]\n", "5/10"},
		/* Hugging Face: the loss apart from its step */
		{"  8%|8         | 5/60 [00:01<00:10,  5.0it/s]\r                 \r"
		 "{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 4.5e-05, 'epoch': 0.25}\n"
		 "\r  8%|8         | 5/60 [00:01<00:10,  5.0it/s]\r 10%|#         | 6/60 [00:01<00:10,  5.0it/s]\n"
		 "{'eval_loss': 2.25, 'eval_runtime': 0.1, 'epoch': 1.0}\n"
		 "\r 12%|#         | 7/60 [00:01<00:10,  5.0it/s]\n",
		 "5/60; 5/60 loss=2.5 lr=4.5e-05 grad_norm=1.5; 6/60; 7/60 val_loss=2.25"},
		{"{'loss': '2.5', 'learning_rate': '4.5e-05', 'epoch': '0.25'}\n"
		 "\r 10%|#         | 6/60 [00:01<00:10,  5.0it/s]\n", "6/60 loss=2.5 lr=4.5e-05"},
		/* Lightning */
		{"Sanity Checking DataLoader 0:  50%|##   | 1/2 [00:00<00:00, 10.0it/s]\r"
		 "Epoch 0:  10%|#         | 10/100 [00:01<00:09,  9.9it/s, v_num=0, train_loss=2.500]\r"
		 "Epoch 1:  10%|#         | 10/100 [00:01<00:09,  9.9it/s, v_num=0, train_loss=1.500]\r"
		 "Validation DataLoader 0:  50%|##   | 1/2 [00:00<00:00, 10.0it/s]\n",
		 "10 loss=2.5; 110 loss=1.5"},
		{"\x1b[37mEpoch 1/4\x1b[0m  \x1b[38;2;98;6;224m\xe2\x94\x81\xe2\x94\x81\xe2\x94\x81\x1b[0m \x1b[37m3/10\x1b[0m "
		 "\x1b[38;5;245m0:00:01 \xe2\x80\xa2 0:00:02\x1b[0m 5.00it/s v_num: 0.000 train_loss: 2.500\n",
		 "13 loss=2.5"},
		/* torchtitan, with and without colours */
		{"[rank0]:[titan] 2025-01-02 10:00:00,123 - root - INFO - \x1b[31mstep: 10  "
		 "\x1b[32mloss:  8.1376  \x1b[38;2;180;60;0mgrad_norm:  1.5000  \x1b[38;2;54;234;195mmemory: 19.82GiB(20.86%)  "
		 "\x1b[34mtps: 3,322  \x1b[36mtflops: 20.33  \x1b[35mmfu: 2.06%\x1b[39m\n",
		 "10 loss=8.1376 grad_norm=1.5 tokens_per_s=3322 mfu=0.0206"},
		{"step: 1  loss: 12.2571  memory: 0.49GiB(1.0%)  tps: 210\n", "1 loss=12.2571 tokens_per_s=210"},
		/* nanoGPT */
		{"step 0: train loss 10.5, val loss 10.25\niter 0: loss 10.5, time 1234.56ms, mfu -100.00%\n"
		 "iter 10: loss 9.5, time 1.00ms, mfu 12.50%\n",
		 "0 loss=10.5 val_loss=10.25; 10 loss=9.5 mfu=0.125"},
		/* llm.c, its Python side, modded-nanogpt */
		{"step    1/20 | loss 10.500000 (+nanz)| norm 15.2500 (+nanz)| lr 8.57e-07 | 123.45 ms | 30.5% bf16 MFU | 123456 tok/s\n",
		 "1/20 loss=10.5 lr=8.57e-07 grad_norm=15.25 tokens_per_s=123456 mfu=0.305"},
		{"step 3: train loss 5.25 (took 12.5 ms)\nval loss 5.5\n", "3 loss=5.25"},
		{"step    2/10 | train loss 5.250000 | norm 30.0000 | lr 1.00e-04 | (139.18 ms | 1838 tok/s)\n",
		 "2/10 loss=5.25 lr=0.0001 grad_norm=30 tokens_per_s=1838"},
		{"step:125/1390 val_loss:4.5 train_time:30000ms step_avg:240ms\n", "125/1390 val_loss=4.5"},
		/* Megatron-LM, GPT-NeoX */
		{" [2025-01-02 10:00:00] iteration       10/     100 | consumed samples:          320 | "
		 "elapsed time per iteration (ms): 1234.5 | learning rate: 1.500000E-04 | global batch size:    32 | "
		 "lm loss: 1.200000E+01 | loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 |\n"
		 " validation loss at iteration 10 | lm loss value: 1.2E+01 | lm loss PPL: 1.6E+05 |\n",
		 "10/100 loss=12 lr=0.00015 grad_norm=1.25"},
		{" samples/sec: 12.3 | iteration       20/  320000 | lm_loss: 1.050000E+01 | loss scale: 4096.0 |\n",
		 "20/320000 loss=10.5"},
		/* DeepSpeed */
		{"[2025-01-02 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.999)]\n",
		 "10 lr=1e-05"},
		{"[2025-01-02 10:00:00,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=1.5\n",
		 "10"},
		{"steps: 10 loss: 0.5000 iter time (s): 0.312 samples/sec: 40.1\n", "10 loss=0.5"},
		/* others */
		{"Epoch 1 | iter 10 step 5 | loss train: 10.500, val: n/a | iter time: 123.45 ms (step)\n", "5 loss=10.5"},
		{"1|10|Loss: 2.5:  10%|#         | 10/100 [00:10<01:30,  1.00s/it]\n", "10 loss=2.5"},
		{"completed step: 10, seconds: 1.2, TFLOP/s/device: 100.1, Tokens/s/device: 2000.5, loss: 10.5\n",
		 "10 loss=10.5 tokens_per_s=2000.5"},
		{"2025-01-02 10:00:00 | INFO | train_inner | {\"epoch\": 1, \"loss\": \"12.5\", \"num_updates\": \"100\", \"lr\": \"1e-05\"}\n",
		 "100 loss=12.5 lr=1e-05"},
		{"Train Epoch: 2 [640/60000 (1%)]\tLoss: 2.500000\n", "60640 loss=2.5"},
		{"Epoch: [1][ 10/5005]\tTime  0.5 ( 0.6)\tLoss 6.5000e+00 (7.0e+00)\n", "5015 loss=6.5"},
		{"Epoch 2/5\n 1/100 [..............................] - ETA: 10s - loss: 2.5\n"
		 "100/100 [==============================] - 1s 10ms/step - loss: 1.5\n",
		 "101/500 loss=2.5"},
		{"Epoch 2/5\n\x1b[1m  1/100\x1b[0m \x1b[37m\xe2\x94\x81\xe2\x94\x81\x1b[0m \x1b[1m10s\x1b[0m 100ms/step - loss: 2.5\n",
		 "101/500 loss=2.5"},
		{"01/02 10:00:00 - mmengine - INFO - Epoch(train)  [1][  50/1000]  lr: 1e-03  loss: 2.5\n", "50 loss=2.5 lr=0.001"},
		{"[batch=5/100]:\n", "5/100"},
		/* TRL, ms-swift: keys with more than letters */
		{"{'loss': 0.6931, 'grad_norm': 12.5, 'learning_rate': 5e-07, 'rewards/chosen': 0.0, 'logps/rejected': -200.5, 'epoch': 0.01}\n"
		 " 10%|#         | 10/100 [00:01<00:09, 10.0it/s]\n", "10/100 loss=0.6931 lr=5e-07 grad_norm=12.5"},
		{"{'loss': 1.25, 'learning_rate': 1e-05, 'memory(GiB)': 10.5, 'train_speed(iter/s)': 0.5, 'global_step/max_steps': '10/100', 'percentage': '10.00%'}\n"
		 "Train:  10%|#         | 10/100 [00:01<00:09, 10.0it/s]\n", "10/100 loss=1.25 lr=1e-05"},
		/* Coqui, which tells the step of the epoch as well */
		{" > EPOCH: 0/9\n   --> TIME: 2026-11-28 10:00:01 -- STEP: 5/404 -- GLOBAL_STEP: 5\n   --> TIME: 2026-11-28 10:00:01 -- STEP: 25/404 -- GLOBAL_STEP: 10025\n     | > loss: 2.5  (2.5)\n   --> STEP: 3\n     | > loss: 3.5  (3.5)\n"
		 "   --> TIME: 2026-11-28 10:00:09 -- STEP: 50/404 -- GLOBAL_STEP: 10050\n", "5; 10025 loss=2.5; 10050"},
		{"epoch 2, step 5/100, global step = 105, loss 2.5\nepoch 2, batch 6, global_step: 106 loss 2\n", "105 loss=2.5; 106 loss=2"},
		/* NeMo, where Megatron's row would begin again with each epoch */
		{"Training epoch 0, iteration 148/149 | lr: 3e-05 | global_batch_size: 1 | global_step: 148 | reduced_train_loss: 1.5 | val_loss: 4.5\nValidation: iteration 1/50\n"
		 "Training epoch 1, iteration 0/149 | lr: 3e-05 | global_batch_size: 1 | global_step: 150 | reduced_train_loss: 1.25 | val_loss: 4.5\n",
		 "148/149 loss=1.5 val_loss=4.5 lr=3e-05; 150 loss=1.25 val_loss=4.5 lr=3e-05"},
		/* OpenRLHF: a bar around those of the batches of each step; supervised, one of epochs around those of steps */
		{"Episode [1/20]:   0%|  | 0/78 [00:00<?, ?it/s]\n(PolicyModelActor pid=1) Train epoch [1/1]: 100%|##| 16/16 [00:20<00:00, 1.2s/it, pg=0.5]\n"
		 "Episode [1/20]:   1%|1 | 1/78 [01:00<60:00, 60s/it]\n(PolicyModelActor pid=1) Train epoch [1/1]:  50%|##| 8/16 [00:10<00:10, 1.2s/it, pg=0.5]\n"
		 "Episode [1/20]:   3%|1 | 2/78 [02:00<60:00, 60s/it, policy_loss=0.5]\nEpisode [2/20]:   1%|1 | 1/78 [02:00<60:00, 60s/it]\n",
		 "0/1560; 1/1560; 2/1560; 79/1560"},
		{"Train epoch:   0%|  | 0/2 [00:00<?, ?it/s]\nTrain step of epoch 0: 100%|##| 9/9 [00:00<?, ?it/s, gpt_loss=2.5, loss_mean=2.75]\nTrain epoch:  50%|##| 1/2 [00:00<?, ?it/s]\n"
		 "Train step of epoch 1:  33%|##| 3/9 [00:00<?, ?it/s, gpt_loss=2, loss_mean=2.5]\n", "0/2; 9 loss=2.5; 12 loss=2"},
		/* candle */
		{"   1 train loss:  2.50000 test acc: 68.08%\n   2 train loss:  1.50000 test acc: 60.77%\n", "1 loss=2.5; 2 loss=1.5"},
		/* DCGAN, DINOv2, llama2.c, rl_games */
		{"[0/25][50/100]\tLoss_D: 0.5\tLoss_G: 5.1\tD(x): 0.7\n[1/25][50/100]\tLoss_D: 0.5\tLoss_G: 5.1\tD(x): 0.7\n", "50/2500; 150/2500"},
		{"I20261128 10:00:00 12 dinov2 helpers.py:103] Training  [   10/625000]  eta: 2 days, 1:00:00  lr: 0.0001 (0.0001)  total_loss: 16.5 (16.8)\n",
		 "10/625000 loss=16.5 lr=0.0001"},
		{"0 | loss 10.5 | lr 0.000000e+00 | 12345.67ms | mfu -100.00%\n10 | loss 9.5 | lr 5.000000e-06 | 120.67ms | mfu 12.34%\n",
		 "0 loss=10.5 lr=0; 10 loss=9.5 lr=5e-06 mfu=0.1234"},
		{"fps step: 12345 fps step and policy inference: 11234 fps total: 9876 epoch: 2/500 frames: 131072\n", "2/500"},
		/* stable-baselines3 */
		{"----\n| time/                   |              |\n|    iterations           | 1            |\n|    total_timesteps      | 2048         |\n----\n"
		 "----\n| time/                   |              |\n|    total_timesteps      | 4096         |\n| train/                  |              |\n"
		 "|    clip_range           | 0.2          |\n|    loss                 | 5.52         |\n|    n_updates            | 10           |\n----\n",
		 "2048; 4096 loss=5.52"},
		/* XGBoost, LightGBM, CatBoost */
		{"[0]\ttrain-rmse:0.52\teval-rmse:0.53\n[1]\ttrain-rmse:0.42\teval-rmse:0.43\n", "0; 1"},
		{"[10]\tvalid_0's l2: 0.5\n[20]\tvalid_0's l2: 0.4\n", "10; 20"},
		{"0:\tlearn: 0.52\ttotal: 5ms\tremaining: 5s\n100:\tlearn: 0.42\ttotal: 5ms\tremaining: 4s\n", "0; 100"},
		/* Keras, while it does not know how many batches there are */
		{"Epoch 1/2\n     10/Unknown \x1b[1m1s\x1b[0m 10ms/step - loss: 2.5\n     20/Unknown \x1b[1m1s\x1b[0m 10ms/step - loss: 2.25\n"
		 "Epoch 2/2\n 5/20 \x1b[1m1s\x1b[0m 10ms/step - loss: 2\n", "10 loss=2.5; 20 loss=2.25; 25/40 loss=2"},
		/* NeMo 2 */
		{"Training epoch 0, iteration 10/99 | lr: 0.0003 | global_batch_size: 8 | global_step: 10 | reduced_train_loss: 9.5 | train_step_timing in s: 1.2\n",
		 "10/99 loss=9.5 lr=0.0003"},
		/* Lightning with on_step and on_epoch, diffusers */
		{"Epoch 0:  10%|#         | 10/100 [00:01<00:09,  9.9it/s, v_num=0, train_loss_step=2.500, train_loss_epoch=3.5]\n", "10 loss=2.5"},
		{"Steps:  10%|#         | 10/100 [00:01<00:09,  1.0it/s, lr=1e-5, step_loss=0.125]\n", "10/100 loss=0.125 lr=1e-05"},
		/* Ignite */
		{"Epoch[1] Iteration[10/100] Loss: 2.5\nEpoch[2] Iteration[10/100] Loss: 2.25\n", "10 loss=2.5; 110 loss=2.25"},
		/* ESPnet */
		{"[h] 2024-01-01 10:00:00,1 (trainer:762) INFO: 1epoch:train:1-50batch: iter_time=0.1, loss_ctc=70.5, loss=65.5, optim0_lr0=1e-4\n"
		 "[h] 2024-01-01 10:00:00,1 (trainer:762) INFO: 1epoch:train:51-100batch: iter_time=0.1, loss=64.5\n", "50 loss=65.5; 100 loss=64.5"},
		/* icefall */
		{"2024-01-01 10:00:00,1 INFO [train.py:877] Epoch 1, batch 50, loss[loss=0.5, over 100.00 frames.], tot_loss[loss=0.75, over 200.00 frames.], batch size: 3\n", "50 loss=0.5"},
		/* CLU (Flax examples), verl, OLMo, Paddle, MindSpore, TensorFlow */
		{"I0101 10:00:00.123456 1234 train.py:100] [100] loss=2.5, learning_rate=0.001, steps_per_second=5.0\n", "100 loss=2.5 lr=0.001"},
		{"(main_task pid=123) step:12 - global_seqlen/min:100.000 - actor/pg_loss:0.010 - actor/lr:1e-06\n"
		 "(main_task pid=123) step:13 - global_seqlen/min:100.000 - actor/pg_loss:0.010 - actor/lr:1e-06\n", "13 lr=1e-06"},
		{"2024-01-01 10:00:00.123\thost:0\tolmo.train:100\tINFO\t[step=10/739328,epoch=0]\n", "10/739328"},
		{"[2024-01-01 10:00:00,123] [    INFO] - loss: 9.5, learning_rate: 3e-05, global_step: 10, interval_runtime: 1.2\n", "10 loss=9.5 lr=3e-05"},
		{"{ Epoch:[  1/  2], step:[   10/  100], loss: 9.5, per_step_time: 100ms, lr: 1e-05}\n", "10/200 loss=9.5 lr=1e-05"},
		{"INFO:tensorflow:global_step/sec: 83.3\nINFO:tensorflow:loss = 2.5, step = 100 (1.2 sec)\n", "100 loss=2.5"},
		/* Ultralytics */
		{"      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
		 "      1/100      2.34G      1.215      3.415      1.125         16        640:  50%|#####     | 4/8 [00:01<00:01,  4.0it/s]\n"
		 "      1/100      2.34G      1.215      3.415      1.125         16        640: 100%|##########| 8/8 [00:02<00:00,  4.0it/s]\n"
		 "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|##########| 2/2 [00:00<00:00,  5.0it/s]\n"
		 "      2/100      2.34G      1.215      3.415      1.125         16        640:  50%|#####     | 4/8 [00:01<00:01,  4.0it/s]\n",
		 "4/800; 8/800; 12/800"},
		/* nanotron, picotron, torchforge-like */
		{"01/01/2024 10:00:00 [INFO|DP=0|PP=0|TP=0]: iteration: 10 / 100 | consumed_tokens: 10.5K | elapsed_time_per_iteration_ms: 1.2K | tokens_per_sec: 3.5K | lm_loss: 10.5 | lr: 0.0003 | grad_norm: 1.25\n",
		 "10/100 loss=10.5 lr=0.0003 grad_norm=1.25 tokens_per_s=3500"},
		{"[rank 0] Step: 10    | Loss: 9.5000 | Global batch size: 1.0K | Tokens/s: 12.5K | Tokens/s/GPU: 1.5K | Tokens: 10.2M | MFU: 12.50%\n",
		 "10 loss=9.5 tokens_per_s=12500 mfu=0.125"},
		{"[05/12 10:00:00 d2.utils.events]:  eta: 0:05:00  iter: 19  total_loss: 2.5  loss_cls: 0.5  time: 0.3 lr: 0.0002 max_mem: 1234M\n", "19 loss=2.5 lr=0.0002"},
		{"Step 000100 | Loss=2.5\r\nStep 000101 | Loss=2.25\r\n", "100 loss=2.5; 101 loss=2.25"},
		/* values below the step: Composer, OLMo-core; Levanter */
		{"[batch=1/100]:\n\t Train time/batch: 0\n\t Train loss/train/total: 10.9736\n"
		 "\t Train metrics/train/LanguageCrossEntropy: 10.9\n[batch=2/100]:\n\t Train loss/train/total: 10.5\n",
		 "1/100 loss=10.9736; 2/100 loss=10.5"},
		{"0: [batch=1/300]:\n0:       Train loss/train/total: 12.0000\n0:       Train throughput/tokens_per_sec: 20082.8\n"
		 "0:       Train throughput/device/tokens_per_sec: 1255.1\n"
		 "0: [batch=2/300]:\n0:       Train loss/train/total: 11.0000\n",
		 "1/300 loss=12; 2/300 loss=11 tokens_per_s=20082.8"},
		{"INFO\t[step=100/2000,epoch=0,eta=5h11m]\n    optim/total grad norm=1.5\n    train/CE loss=6.2341\n    train/Z loss=0.01\n"
		 "    train/PPL=511.9\n    throughput/device/TPS=12,345\n",
		 "100/2000 loss=6.2341 grad_norm=1.5"},
		{"    train/CE loss=6.2341\n", ""},
		{"[batch=1/9]:\n\t Train loss/train/total: 3\n\t Train loss/train/total: 3.1\n[batch=2/9]:\n"
		 "\t Train loss/train/total: 2\n",
		 "1/9 loss=3; 2/9 loss=2"},
		{"[batch=1/9]:\n[batch=2/9]:\n\t Train time/batch: 1\n", "1/9; 2/9"},
		{"[step=1/9,epoch=0]\n    train/CrossEntropyLoss=nan\n    eval/CE loss=2\n", "1/9 loss=nan"},
		{"INFO :: Progress on:train 19.0it/70.0it rate:76.8s/it remaining:1:05:15 elapsed:31:40 postfix:loss=4.2\n"
		 "INFO :: Progress on:eval 3.00it/184it rate:1.0it/s postfix:loss=9\n",
		 "19/70 loss=4.2"},
		{"INFO :: Progress on:train 1.28kit/10.0kit rate:1.1it/s remaining:02:16 elapsed:19:43 postfix:loss=3.4\n",
		 "1280/10000 loss=3.4"},
		/* tqdm with unit_scale; what counts bytes, examples or tokens is no step */
		{"  5%|5         | 250/5.00k [00:00<00:01, 3.7kit/s]\r 25%|25        | 1.25k/5.00k [00:00<00:00, 13.3kit/s, loss=3.25]\n",
		 "250/5000; 1250/5000 loss=3.25"},
		{"train: 90%|##| 1.10M/1.20M [10:00<00:01, 1.00step/s]\n", "1100000/1200000"},
		{"100%|##########| 1.2k/5.0k [00:00<00:00, 13.3kB/s]\nMap:  25%|25        | 1.25k/5.00k [00:00<00:00, 300 examples/s]\n"
		 " 25%|25        | 1.25k/5.00k [00:00<00:00, 21.0k tokens/s]\nval:  25%|25        | 1.25k/5.00k [00:00<00:00, 13.3kit/s]\n", ""},
		/* evaluations between the steps: fairseq2, OLMo-core, MaxText, prime-rl, TF models */
		{"INFO fairseq2 - Train Metrics (step 1,000) - NLL Loss: 2.5 | Gradient Norm: 1.25\n"
		 "INFO fairseq2 - Validation Metrics (step 2000) - wiki - Loss: 3.5\n", "1000 loss=2.5 grad_norm=1.25"},
		{"[step=10/1000,epoch=1,eta=1h]\n[eval=lm-validation,step=3/10]\n[eval=downstream,step=4/10]\n", "10/1000"},
		{"completed step: 10, seconds: 1.2, loss: 10.5, lm_loss: 10.4\nCompleted eval after train step 20, loss=9.5\n", "10 loss=10.5"},
		{"INFO Step 10 |  1m 2s | Loss 2.5000 | Grad. Norm 1.25 | LR 1.00e-06 | Throughput 1234 tokens/s | MFU 12.5%\n"
		 "DEBUG Micro Step 3/8 | Loss 2.0000\nSUCCESS Validation | Step 20 | Loss 3.5000\n",
		 "10 loss=2.5 lr=1e-06 grad_norm=1.25 tokens_per_s=1234 mfu=0.125"},
		{"train | step:   1000 | output: {'training_loss': 2.5}\n eval | step:   2000 | output: {'loss': 3.5}\n", "1000 loss=2.5"},
		{"step 1 loss 3\nstep 2 [eval] loss 3.5\nstep 3 | test: {'loss': 4.5}\nstep 4: evaluation loss: 5.5\nstep 5 loss 2\n",
		 "1 loss=3; 2 val_loss=3.5; 3 val_loss=4.5; 4 val_loss=5.5; 5 loss=2"},
		{"step 500 loss 2.5\nBest loss 2.25 at step 100\n", "500 loss=2.5"},
		{"{\"mode\": \"train\", \"iter\": 50, \"loss\": 2.5}\n{\"mode\": \"val\", \"iter\": 60, \"loss\": 3.5}\n", "50 loss=2.5"},
		{"step 15 loss 2 train/val loss: 2.5/3.5\n", "15 loss=2"},
		{"2023-05-01 10:00:00 | INFO | train_inner | epoch 001:    100 / 5000 loss=12.5, nll_loss=12.1, num_updates=100, lr=1e-05, gnorm=3.5\n"
		 "2023-05-01 10:01:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 9.5 | nll_loss 8.9 | num_updates 5000\n"
		 "Step 6000: validation results: loss 8.5\n", "100 loss=12.5 lr=1e-05 grad_norm=3.5; 5000 val_loss=9.5; 6000 val_loss=8.5"},
		/* as Python prints what was not made a number */
		{"step 5 loss tensor(2.5, device='cuda:0', grad_fn=<NllLossBackward0>)\nstep 6 loss: Array(2.25, dtype=float32)\n"
		 "{'step': 7, 'loss': np.float32(2.0), 'lr': np.float64(1e-05)}\n", "5 loss=2.5; 6 loss=2.25; 7 loss=2 lr=1e-05"},
		/* parts of an epoch are no batches */
		{"step 5 loss 2\nEpoch 1.25/3 loss 2\n [ 10/60 00:23 < 02:24, 0.35 it/s, Epoch 0.17/1]\n", "5 loss=2"},
		{"Epoch 1.25/3 loss 2\nEpoch 1.50/3 loss 2\n", ""},
		/* what something took, and losses by their numbers, are no loss */
		{"step 5 time cost: 3.25 s\nstep 6 lr 0.1, cost 3.25 sec\nstep 7 lr 0.1, Time cost=90.25, Throughput=5\nstep 8 cost 3.25\n",
		 "7 lr=0.1; 8 loss=3.25"},
		{"step 5 loss1: 0.5 loss2: 0.25\nstep 6 loss1 0.5, val_loss2=0.25, loss 0.75\nstep 7 loss2.5\n", "5; 6 loss=0.75; 7 loss=2.5"},
		{"epoch 1 training [time: 16.26s, train_loss1: 0.4, train_loss2: 0.1]\nepoch 1 evaluating [time: 1.50s, valid_score: 0.735]\n", "1"},
		/* of several losses that of the training */
		{"step 5 | aux loss 0.01 | loss 2.5\nstep 6 | load balancing loss: 0.01 | lm loss: 2.25\nstep 7 | kl loss 0.5\n",
		 "5 loss=2.5; 6 loss=2.25; 7 loss=0.5"},
		/* a mean over all that was trained is the loss of no step */
		{"{'train_runtime': 12.5, 'train_steps_per_second': 0.5, 'train_loss': 5.5, 'epoch': 1.0}\n"
		 "100%|##########| 60/60 [00:10<00:00,  1.01s/it]\n", "60/60"},
		/* settings are no steps, and do not silence those that come; a learning rate alone may be of either */
		/* other lines in between do not hide that steps go on */
		{"step 10 lr=0.1\nepoch 1 lr=0.1\nstep 20 lr=0.1\nepoch 1 lr=0.1\nstep 30 lr=0.1\n",
		 "20 lr=0.1; 30 lr=0.1"},
		/* words about steps below a heading are none that begin again */
		{"Epoch 1/2\nstep 10 loss 3\nstep 100 loss 3\nEpoch 2/2\nevery 5 steps\nstep 5 is next\nstep 110 loss 2\n",
		 "10 loss=3; 100 loss=3; 110 loss=2"},
		{"Epoch 1\nstep 10 loss 3\nstep 100 loss 3\nEpoch 2\nwarmup step 5/10 done\nstep 110 loss 2\n",
		 "10 loss=3; 100 loss=3; 5/10; 110 loss=2"},
		{"step 1 250 ms loss 3\nstep 2 251 ms loss 2.5\nstep 3 | 300 | loss 2\nstep 4 120 tokens, loss 2\n",
		 "1 loss=3; 2 loss=2.5; 3 loss=2; 4 loss=2"},
		{"Namespace(steps=1000, batch=4, lr=0.1)\n{'iterations': 500, 'lr': 0.1}\nTotal train steps: 900, lr: 0.1\n"
		 "engine/trainer: batch=4, epochs=3, lr=0.0, save=True\nengine/trainer: batch=4, epochs=3, lr=0.0, save=True\n"
		 "        1/3         0G      6.943      3.809      4.179          4         64: 100% \xe2\x94\x81\xe2\x94\x81 2/2 3.9it/s 0.5s\n",
		 "2/6"},
		{"steps=1000 lr=0.1\nsteps=1000 lr=0.1\nstep 1 lr 0.1\nstep 2 lr 0.1\nstep 2 lr 0.1 grad norm 2\n", "2 lr=0.1; 2 lr=0.1 grad_norm=2"},
		/* thousands that are written otherwise */
		{"step 999 loss 3\nstep 1'000 loss 2.5\nstep 1 001 loss 2.5\nstep 1\xe2\x80\xaf" "010/5\xc2\xa0" "000 loss 2.5\nafter 1 020 steps: loss 2\n"
		 "step 1\xe2\x80\x99" "030 loss 2.5\nstep 1040 loss 2\nstep 1 234/12 000 | loss 2\nstep 1 234 567: loss 2\nstep 12 2.5 loss 2\n",
		 "999 loss=3; 1000 loss=2.5; 1001 loss=2.5; 1010/5000 loss=2.5; 1020 loss=2; 1030 loss=2.5; 1040 loss=2; 1234/12000 loss=2; 1234567 loss=2; 12 loss=2"},
		/* 2,5 may be 2.5 */
		{"step 1 loss 2,5\nstep 2 loss: 0,693\nstep 3 loss: 1,234.5\nstep 4,20 loss 2\nstep 5 loss 3.4k\nstep 12,345 lr=[1e-4,1e-3] loss 2\n",
		 "1; 2; 3 loss=1234.5; 4 loss=2; 5; 12345 loss=2 lr=0.0001"},
		{"11/23 10:00:00 - x - INFO - Epoch(val)  [1][  50/1000]  loss: 2.5\n[11/23 10:00] loss 2.5\n", ""},
		/* steps of the epoch, and of the training */
		{"epoch 1 | iter 1/48 | loss 40.5\nepoch 1 | iter 48/48 | loss 40\nepoch 2 | iter 1/48 | loss 39\n",
		 "1/48 loss=40.5; 48/48 loss=40; 49 loss=39"},
		{"epoch: 1 step: 1875, loss is 2.5\nepoch: 2 step: 10, loss is 2\nepoch: 1 step: 1875, loss is 2.5\n",
		 "1875 loss=2.5; 1885 loss=2"},
		{"Epoch 1 Step 500/1000 lr: 1e-05 loss: 2.5\nEpoch 2 Step 510/1000 lr: 1e-05 loss: 2.25\n",
		 "500/1000 loss=2.5 lr=1e-05; 510/1000 loss=2.25 lr=1e-05"},
		{"Epoch 1/9 Steps:   1%|  | 10/1000 [00:10<16:40,  1.01s/it, step_loss=0.25]\n"
		 "Epoch 2/9, Steps:  11%|# | 110/1000 [00:10<16:40,  1.01s/it, step_loss=0.5]\n",
		 "10/1000 loss=0.25; 110/1000 loss=0.5"},
		/* the same below a line that tells the epoch (Paddle's hapi, scripts of one's own); ranks may be late */
		{"Epoch 1/3\nstep  50/100 - loss: 3\nstep 100/100 - loss: 2.5\nEpoch 2/3\nstep 100/100 - loss: 2.25\n"
		 "Epoch 3/3\nstep  50/100 - loss: 2\n", "50/100 loss=3; 100/100 loss=2.5; 200 loss=2.25; 250 loss=2"},
		{"Epoch 0\nstep 10 loss 3\nstep 90 loss 2.5\nEpoch 1\nstep 90 loss 2.75\nstep 10 loss 2\nstep 20 loss 1\n",
		 "10 loss=3; 90 loss=2.5; 100 loss=2; 110 loss=1"},
		{"Epoch 1\nstep 40/300 loss 3\nEpoch 2\nstep 140/300 loss 2\nEpoch 3\nstep 139/300 loss 2\nstep 240/300 loss 1\n",
		 "40/300 loss=3; 140/300 loss=2; 139/300 loss=2; 240/300 loss=1"},
		{"Epoch 5\nstep 50 loss 3\nEpoch 6\nstep 60 loss 3\nEpoch 5\nstep 50 loss 3\nstep 51 loss 2\n",
		 "50 loss=3; 60 loss=3; 50 loss=3; 51 loss=2"},
		/* epochs that begin anew: curricula, folds, PPO's inner ones; of the training's steps, or of their own */
		{"epoch 3 step 40 loss 2\nepoch 0 step 50 loss 3\nepoch 0 step 60 loss 2\nepoch 1 step 70 loss 2\n",
		 "40 loss=2; 50 loss=3; 60 loss=2; 70 loss=2"},
		{"Stage 1: epoch 3 step 40 loss 2\nStage 2: epoch 0 step 5 loss 3\nStage 2: epoch 1 step 5 loss 2\n",
		 "40 loss=2; 45 loss=3; 50 loss=2"},
		{"fold 1 epoch 1 step 40 loss 2\nfold 2 epoch 0 step 5 loss 3\n", "40 loss=2; 45 loss=3"},
		{"epoch 0 step 5 loss 4\nepoch 1 step 5 loss 3\nepoch 0 step 6 loss 3\nepoch 1 step 6 loss 2\nepoch 0 step 7 loss 2\n",
		 "5 loss=4; 10 loss=3; 6 loss=3; 7 loss=2"},
		/* the best so far in each line, and alone */
		{"[best 2.31] step 100 | loss 2.5\nloss 2.5 (best 2.3) step 110\nEpoch 3 best=2.3 iter 120 loss 2\n"
		 "model=best | step 130 | loss 2\n[best 2.25 at step 90] step 140 | loss 2.5\n",
		 "100 loss=2.5; 110 loss=2.5; 120 loss=2; 130 loss=2; 140 loss=2.5"},
		{"step 500 loss 2.5\nbest step: 90 loss 2\nBest loss 2 at epoch 3, step 80\nbest val loss 2 @ iteration 70\n"
		 "new best loss 2 in epoch 6\nbest loss 2 after 60 steps\n"
		 "Best val loss: 2.25 (step 90)\nbest checkpoint: step 90, loss 2\n", "500 loss=2.5"},
		{"Generator step 10 loss 2\nGenerator step 20 loss 2\n", "10 loss=2; 20 loss=2"},
		/* steps inside a step, unless there are others */
		{"inner step 10 loss 2\ninner step 20 loss 2\n", "10 loss=2; 20 loss=2"},
		{"step 1 loss 2\ninner step 10 loss 2\nstep 2 loss 2\n", "1 loss=2; 2 loss=2"},
		{"Epoch 1/3 loss 2\ninner step 10 loss 2\n", "1/3 loss=2; 10 loss=2"},
		{"{\"split\": \"val\", \"step\": 60, \"loss\": 3.5}\n{\"step\": 60, \"loss\": 3.5, \"phase\": \"eval\"}\n", ""},
		/* timm, Swin, Marian, WeNet, kohya */
		{"Train: 1 [  50/1251 (  4%)]  Loss: 6.90 (6.92)  Time: 1.2s,  213.00/s  LR: 1.000e-06\nTest: [  10/48]  Loss: 6.8 (6.8)\n",
		 "1301 loss=6.9 lr=1e-06"},
		{"[2026-11-23 10:00:00 swin](main.py 222): INFO Train: [1/300][10/1251]\teta 1:00:00 lr 0.000001\t wd 0.0500\tloss 6.8500 (6.9500)\n",
		 "1261/375300 loss=6.85 lr=1e-06"},
		{"[2026-11-23 10:00:00] Ep. 1 : Up. 1000 : Sen. 32,000 : Cost 6.51 * 1,234,567 @ 1,234 after 12,345,678 : gNorm 1.25 : L.r. 1.0e-04\n"
		 "[2026-11-23 10:00:00] [valid] Ep. 1 : Up. 1000 : cross-entropy : 45.6789 : new best\n", "1000 loss=6.51 grad_norm=1.25"},
		{"DEBUG TRAIN | steps/sec 1.2| Batch 0/100 loss 45.5 loss_att 40.5\nDEBUG CV | steps/sec 1.2| Batch 0/100 loss 35.5\n"
		 "DEBUG TRAIN | steps/sec 1.2| Batch 0/200 loss 44.5\nDEBUG TRAIN | steps/sec 1.2| Batch 1/100 loss 43.5\n",
		 "100 loss=45.5; 200 loss=44.5; 300 loss=43.5"},
		{"steps:   1%|  | 10/1000 [00:10<16:40,  1.01s/it, avr_loss=0.125]\n", "10/1000 loss=0.125"},
		/* PyTorch's tutorials, and who learnt from them; epochs as headings, whose loss stands below (torchvision's, luz) */
		{"[1,  2000] loss: 2.173\n[1,  4000] loss: 1.879\n[2,  2000] loss: 1.412\n", "2000 loss=2.173; 4000 loss=1.879; 6000 loss=1.412"},
		{"INFO:root:[1,    10] loss: 0.325 masks: 120.0 30.0 [wd: 4.00e-02] [lr: 2.00e-04]\nINFO:root:[1,    10] grad_stats: [1.00e-02 1.00e-03]\n",
		 "10 loss=0.325 lr=0.0002"},
		{"Epoch 1\n-------\nloss: 2.303494  [   64/60000]\nloss: 2.294637  [ 6464/60000]\nTest Error: \n Accuracy: 50.9%, Avg loss: 2.157024 \n"
		 "Epoch 2\n-------\nloss: 2.168190  [   64/60000]\n", "64 loss=2.30349; 6464 loss=2.29464; 60064 loss=2.16819"},
		{"Epoch 0/24\n----------\ntrain Loss: 0.6309 Acc: 0.6926\nval Loss: 0.2319 Acc: 0.9216\n\nEpoch 1/24\n----------\ntrain Loss: 0.5309 Acc: 0.6926\n",
		 "0/24 loss=0.6309; 1/24 loss=0.5309"},
		{"Epoch 1/10\nTrain metrics: Loss: 0.5432 - Acc: 0.8\nValid metrics: Loss: 0.4432 - Acc: 0.8\nEpoch 2/10\nTrain metrics: Loss: 0.25\n",
		 "1/10 loss=0.5432; 2/10 loss=0.25"},
		{"Epoch 1/3\nstep 10 loss 3\nstep 20 loss 3\ntrain loss: 2.5\nEpoch 2/3\nstep 10 loss 2\n", "10 loss=3; 20 loss=3; 30 loss=2"},
		{"train loss: 2.5\n", ""},
		/* LeRobot, whose steps are rounded; big_vision */
		{"INFO ot_train.py:250 step:200 smpl:2K ep:12 epch:0.05 loss:0.125 lr:1.0e-05\nINFO ot_train.py:250 step:1K smpl:8K ep:42 epch:0.25 loss:0.25\n"
		 "step 1.5M/2M loss 2\nstep 5mm loss 2\n", "200 loss=0.125 lr=1e-05; 1000 loss=0.25; 1500000/2000000 loss=2"},
		{"I0101 10:00:00.123456 140 utils.py:1000] [100] training_loss = 6.5\nI0101 10:00:00.123456 140 utils.py:1000] [100] img/sec/core = 1234.5\n", "100 loss=6.5"},
		/* what a workflow around the training counts */
		{"1 of 5 steps (20%) done\nEpoch 1/10 - loss: 0.5\n2 of 5 steps (40%) done\nEpoch 2/10 - loss: 0.25\n", "1/10 loss=0.5; 2/10 loss=0.25"},
		/* verl's actor, XTuner */
		{"(TaskRunner pid=1) step:1 - critic/loss:5.5 - actor/loss:0.125 - actor/lr:1e-06\n(TaskRunner pid=1) step:2 - critic/loss:5.5 - actor/loss:nan\n",
		 "1 loss=0.125 lr=1e-06; 2 loss=nan"},
		{"[XTuner][RANK 0][2025-09-01 10:00:00][INFO] Epoch 1 Step 10/1000 lr: 0.000010 reduced_llm_loss: 1.25 grad_norm: 1.5\n", "10/1000 loss=1.25 lr=1e-05 grad_norm=1.5"},
		/* CleanRL, SheepRL, Sample Factory, Ray, pix2pix, StyleGAN, LightGBM's own program */
		{"global_step=1234, episodic_return=[12.]\nSPS: 1234\nglobal_step=2345, episodic_return=[15.]\n", "1234; 2345"},
		{"Rank-0: policy_step=1024, reward_env_0=12.0\nRank-0: policy_step=2048, reward_env_1=13.0\n", "1024; 2048"},
		{"[2024-01-01 10:00:00,123][12345] Fps is (10 sec: 12345.6). Total num frames: 4096000. Throughput: 0: 12345.6.\n", "4096000"},
		{"Training finished iteration 1 at 2026-11-29 02:00:00. Total running time: 1min 0s\nTraining finished iteration 2 at 2026-11-29 02:01:00.\n", "1; 2"},
		{"(epoch: 1, iters: 100, time: 0.123, data: 0.001) G_GAN: 1.0 G_L1: 10.0\n(epoch: 2, iters: 100, time: 0.123, data: 0.001) G_GAN: 1.0\n", "100; 200"},
		{"tick 1     kimg 4.0      time 1m 10s       sec/tick 60.1\n", "1"},
		{"[LightGBM] [Info] Iteration:10, training l2 : 0.5\n[LightGBM] [Info] 1.2 seconds elapsed, finished iteration 10\n", "10"},
		{"time=2024-01-01T10:00:00 level=info msg=train step=7 loss=2.5e+00\n", "7 loss=2.5"},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = read_text(rows[i].text);

		if (strcmp(got, rows[i].told) != 0)
			print_error("row %zu: %s", i, rows[i].text);
		assert_string_equal(got, rows[i].told);
	}
}

/* What looks a little like a step. */
static void test_others(void **state)
{
	static const char *const lines[] = {
		"step 1: downloading the data",
		"Step 1/4: Loading the tokenizer",
		"[step 2 of 4] - preparing data",
		"ready in 3 steps",
		"step one of two",
		"step 1.5 loss 2",
		"eval step 3/10 loss 2.5",
		"Validation step 3/10: loss 2.5",
		"loading step 3/10",
		"val_loss 3 at the end",
		"/data/step 3/100x",
		"stepsize 3/10",
		"epoch 3",
		"Epoch 3/10",
		"my.step 3/10",
		"12/100",
		"loss 2.5",
		"[INFO] took 12 it [x",
		"50%| 3",
		"{'loss': 2.5}",
		"saw 100% of 3/10",
		"loss 2.5 over 3/10 batches",
		"FloatingPointError: Loss became infinite or NaN at iteration=10!",
		"processing batch 3 of 10",
		"batch size 32, loss 2",
		"https://host/step 3",
		"steps: many, loss 3",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "%s\n", lines[i]);
		if (read_text(text)[0])
			print_error("%s", text);
		assert_string_equal(told, "");
	}
}

/* Where two kinds of lines tell steps, one counts. */
static void test_one_teller(void **state)
{
	(void)state;
	assert_string_equal(read_text("step 10 loss 2\nEpoch 1/3 loss 2\nstep 11 loss 2\n"),
			    "10 loss=2; 11 loss=2");
	assert_string_equal(read_text("Epoch 1/3 loss 2\nstep 10 loss 2\nEpoch 2/3 loss 2\n"),
			    "1/3 loss=2; 10 loss=2");
	assert_string_equal(read_text(" 10%|# | 1/10 [00:01<00:09, 1it/s]\nstep 5 loss 2\n"
				      " 20%|# | 2/10 [00:01<00:09, 1it/s]\n"),
			    "1/10; 5 loss=2");
	/* all ranks print the same */
	assert_string_equal(read_text("step 1 loss 2\nstep 1 loss 3\nstep 2 loss 2\n"),
			    "1 loss=2; 2 loss=2");
}

/* n such lines behind what was read; how many steps they told. */
static int told_by(struct steps *s, int n, const char *format, int first)
{
	int steps = 0;

	for (int i = 0; i < n; i++) {
		char line[100];
		json_t *step;

		snprintf(line, sizeof(line), format, first + i);
		step = steps_read(s, line, strlen(line));
		steps += step != NULL;
		json_decref(step);
	}
	return steps;
}

/* What looks like other work is the training where nothing else is told for long. */
static void test_nobody_is_silent_for_good(void **state)
{
	static const char *const heads[] = { "[test] step %d loss 2", "dev | step %d loss 2",
					     "micro step %d loss 2",
					     "{\"stage\": \"dev\", \"step\": %d, \"loss\": 2}" };
	struct steps *s = steps_create();

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		steps_reset(s);
		assert_int_equal(told_by(s, 499, heads[i], 1), 0);
		assert_int_equal(told_by(s, 100, heads[i], 500), 100);
		/* an evaluation may be long */
		assert_int_equal(told_by(s, 1, "step %d loss 2", 700), 1);
		assert_int_equal(told_by(s, 4999, heads[i], 1), 0);
		assert_int_equal(told_by(s, 100, heads[i], 5000), 100);
	}
	steps_reset(s);
	assert_int_equal(told_by(s, 600, "eval step %d/1000 loss 2", 1), 101);
	assert_int_equal(told_by(s, 1, "Epoch %d/3 loss 2", 1), 1);
	assert_int_equal(told_by(s, 600, "eval step %d/1000 loss 2", 1), 0);
	/* a slow rank is not slow for ever */
	steps_reset(s);
	assert_int_equal(told_by(s, 10, "epoch 1 step %d loss 2", 91), 10);
	assert_int_equal(told_by(s, 1, "epoch 2 step %d loss 2", 1), 1);
	assert_int_equal(told_by(s, 10, "epoch 1 step %d loss 2", 91), 0);
	assert_int_equal(told_by(s, 10, "epoch 2 step %d loss 2", 2), 10);
	assert_true(told_by(s, 600, "epoch 1 step %d loss 2", 101) >= 500);
	steps_destroy(s);
}

static void test_reset(void **state)
{
	struct steps *s = steps_create();
	json_t *line;

	(void)state;
	json_decref(steps_read(s, "step 5 loss 2", 13));
	assert_null(steps_read(s, "step 5 loss 2", 13));
	steps_reset(s);
	line = steps_read(s, "step 5 loss 2", 13);
	assert_non_null(line);
	json_decref(line);
	steps_destroy(s);
}

static void test_strip(void **state)
{
	char line[] = "a\x1b[1;31mb\x1b[0mc\x1b]0;title\ad\x1b(e\x1b[";

	(void)state;
	assert_int_equal(escapes_strip(line, strlen(line)), 5);
	assert_string_equal(line, "abcde");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes of all kinds, a line of 10 MB, and a flood: bounded in memory and time. */
static void test_hostile(void **state)
{
	static char noise[1 << 20];
	struct attempt_watch watch = { .progress_regex = TEXT(PROGRESS_AUTO) };
	uint32_t random = 1;
	double start = seconds();

	(void)state;
	memset(&parser, 0, sizeof(parser));
	assert_int_equal(output_parser_init(&parser, &watch, false, 1000, NULL), 0);
	parser.on_step = add_step;
	told[0] = '\0';
	for (size_t i = 0; i < sizeof(noise); i++) {
		random = random * 1664525 + 1013904223;
		noise[i] = (char)(random >> 24);
	}
	output_parser_bytes(&parser, 0, noise, sizeof(noise));
	memset(noise, 'x', sizeof(noise));
	for (int i = 0; i < 10; i++)
		output_parser_bytes(&parser, 0, noise, sizeof(noise));
	output_parser_bytes(&parser, 0, "\n\xff\xfe step 3/9 loss 2\n", 21);
	told[strlen(told)] = '\0';
	assert_non_null(strstr(told, "3/9 loss=2"));
	/* digits, blanks, quotes and braces, at which expressions could go back and forth */
	for (size_t i = 0; i < sizeof(noise); i++) {
		random = random * 1664525 + 1013904223;
		noise[i] = i % 4000 == 3999 ? '\n'
					    : "step 0123 {'loss': ,}%|it [/"[(random >> 24) % 28];
	}
	output_parser_bytes(&parser, 0, noise, sizeof(noise));
	assert_true(seconds() - start < 20);
	output_parser_fini(&parser);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frameworks), cmocka_unit_test(test_others),
		cmocka_unit_test(test_one_teller), cmocka_unit_test(test_nobody_is_silent_for_good),
		cmocka_unit_test(test_reset),      cmocka_unit_test(test_strip),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
