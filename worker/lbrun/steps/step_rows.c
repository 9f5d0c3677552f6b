/* SPDX-License-Identifier: MIT */
/* step_rows.c - the tables of step_rows.h. Escape sequences are gone when lines come here. */
#include "worker/lbrun/steps/step_rows.h"

#include <math.h>

/* "12345", "12,345": of "3,5" the 3, which is no thousand. "12'345", also with blanks that do not
 * break. With others "12 000" is one, and what stands alone: "step 12 345 ms" is step 12. */
#define APART "(?:[,_']|\u2019|\u00a0|\u2009|\u202f)"
#define ALONE \
	"(?: \\d{3})+\\s*(?:$|[:;|)\\]]|,\\D|/ ?[1-9]\\d{0,2} \\d{3}|(?:train\\w*[ _])?loss|steps|iter)"
#define COUNT \
	"(?:[1-9]\\d{0,2}(?:(?:" APART "\\d{3})+|(?= 0\\d\\d|" ALONE \
	")(?: \\d{3})+)(?!\\d|\\.\\d)|[1-9]\\d{0,2}(?:[,_]\\d{3})+|\\d+)"
#define BATCH "(?<batch>\\d+)\\s*(?:/|of)\\s*(?<batches>\\d+)(?![\\w/])"
#define EPOCH "\\bepoch\\W*(?<epoch>\\d++)(?!\\.\\d)(?:\\s*(?:/|of)\\s*(?<epochs>\\d+))?"
#define BATCH_WORD "(?<!micro[ _-])(?<![\\w./])(?:mini-?)?batch(?:es)?\\s*[:=#]?\\s*[\\[(]?\\s*"
#define IN_EPOCH "(?:" EPOCH "\\W+)?"
/* "Best loss 2 at epoch 3, step 100", "best loss 2 (step 100)", "best model: step 100" are passed
 * over, "best=2 step 100" is not. */
#define NOT_BEST \
	"(?i)\\bbest\\b(?:[^|,;)\\]]{0,30}(?:\\b(?:at|in|from|after)\\s|[@(])|" \
	"(?:\\s(?:model|checkpoint|ckpt))?[\\s:])\\s*(?:epochs?\\W*\\d+[\\s,]+)?(?:" COUNT \
	"\\s+)?" \
	"(?:global[_ -]?)?(?:steps?|iter(?:ation)?s?|updates?|epochs?)\\b(?:\\W*\\d+)?(*SKIP)(*FAIL)|"
/* "1K", "1.5M", as LeRobot rounds them */
#define ROUNDED "\\d+(?:\\.\\d+)?[KM]\\b"
/* "12", "[ 12/100]", "= 12 of 100": a step, perhaps how many there are */
#define OF_STEPS \
	"\\s*[:=#]?\\s*[\\[(]?\\s*(?<step>" ROUNDED "|" COUNT \
	")\\s*(?:(?:/|of)\\s*(?<target_step>" ROUNDED "|" COUNT "))?" \
	"[\\])]?(?![\\w%]|\\.\\d)"

/* A bar without a name that counts "200.00 examples/s" while data are made ready; not what a trainer
 * adds behind its own rate. */
#define OF_DATA \
	"\\s*\\d{1,3}%\\|[^|]*\\|[^\\[\\]]*\\[[^\\],]*,\\s*[\\d.?]+[kMG]?\\s" \
	"(?:examples|ex|rows|docs|documents|files|shards|tok(?:en)?s?|[kMG]?i?B)/s(?![^\\]]*loss)"

#define TRAIN_LOSS "(?:CE ?|CrossEntropy ?)?[Ll]oss\\b"

/* clang-format off */
const struct step_row step_rows[] = {
	{"NeMo, whose iterations begin again with each epoch", "global_step: ",
	 "\\bepoch \\d+, iteration (?<i>\\d+)/(?:(?<target_step>\\d+)(?= .*\\bglobal_step: \\k<i>\\b)|\\d+) .*\\bglobal_step: (?<step>\\d+)",
	 STEP_PLAIN, false, 0},
	{"Megatron-LM, GPT-NeoX", "iteration",
	 "\\biteration\\s+(?<step>\\d+)\\s*/\\s*(?<target_step>\\d+)\\s*\\|", STEP_PLAIN, false, 0},
	{"LitGPT", " step ", "\\|\\s*iter \\d+ step (?<step>\\d+) \\|", STEP_PLAIN, false, 0},
	{"DeepSpeed's timer, CleanRL, SheepRL", "_step=", "\\b(?:global|policy)_step=(?<step>\\d+)\\b", STEP_PLAIN, false, 0},
	{"DeepSpeed", "skipped=", "\\bstep=(?<step>\\d+), skipped=\\d+", STEP_PLAIN, false, 0},
	{"Composer", "batch=", "^\\[batch=(?<step>\\d+)/(?<target_step>\\d+)\\]", STEP_HEAD, false, 0},
	{"OLMo", "[step=", "\\[step=(?<step>" COUNT ")/(?<target_step>" COUNT "),epoch=", STEP_HEAD, false, 0},
	{"Levanter, whose thousands are \"1.28k\"", "Progress on:train",
	 "\\bProgress on:train (?<step>\\d[\\d.]*k?)it/(?<target_step>\\d[\\d.]*k?)it\\b", STEP_PLAIN, false, 0},
	{"torchtune", "Loss:", "^\\d+\\|(?<step>\\d+)\\|Loss: ", STEP_PLAIN, false, 0},
	{"Coqui and others that tell the step of an epoch and of the training", "global",
	 "(?i)(?<![\\w/.-])(?:step|batch)\\W{1,4}\\d+\\b.*?\\bglobal[_ ]step['\"]?\\s*[:=]\\s*(?<step>" COUNT ")(?![\\w%]|\\.\\d)",
	 STEP_HEAD, false, 0},
	{"stable-baselines3, OpenAI's tables", "step", "^\\|\\s*(?:time/\\s*)?(?:total_time)?steps?\\s*\\|\\s*(?<step>\\d+)\\s*\\|",
	 STEP_HEAD, false, 0},
	{"XGBoost, LightGBM", "]\t", "^\\[(?<step>\\d+)\\]\\t[\\w' @-]+:\\s?-?\\d", STEP_PLAIN, false, 0},
	{"CatBoost", "learn: ", "^(?<step>\\d+):\\tlearn: ", STEP_PLAIN, false, 0},
	{"LightGBM's own program", "Iteration:", "\\[Info\\] Iteration:(?<step>\\d+), ", STEP_PLAIN, false, 0},
	{"Sample Factory", "frames: ", "\\bTotal num frames: (?<step>\\d+)\\.", STEP_PLAIN, false, 0},
	{"StyleGAN", "kimg", "^tick (?<step>\\d+)\\s+kimg ", STEP_PLAIN, false, 0},
	{"Ray Train, around what its workers print", "finished iteration", "^Training finished iteration (?<step>\\d+) at ", STEP_EPOCH, false, 0},
	{"rl_games", "fps total", "\\bfps total: .*\\bepoch: (?<step>\\d+)/(?<target_step>\\d+) frames: ", STEP_PLAIN, false, 0},
	{"llama2.c, candle", " loss", "^\\s*(?<step>\\d+)(?: \\| loss| train loss:) +\\d", STEP_PLAIN, false, 0},
	{"mmengine, by steps", "Iter(train)", "\\bIter\\(train\\)\\s*\\[\\s*(?<step>\\d+)/(?<target_step>\\d+)\\]",
	 STEP_PLAIN, false, 0},
	{"mmengine, by epochs", "Epoch(train)",
	 "\\bEpoch\\(train\\)\\s*\\[(?<epoch>\\d+)\\]\\s*\\[\\s*" BATCH "\\]", STEP_IN_EPOCH, false, 1},
	{"Swin, timm", "rain: ",
	 "\\bTrain: \\[?(?<epoch>\\d+)(?:/(?<epochs>\\d+)\\])?\\s*\\[\\s*" BATCH, STEP_IN_EPOCH, false, 0},
	{"DINOv2", "raining ", "\\bTraining\\s+\\[\\s*" BATCH "\\]", STEP_IN_EPOCH, false, 0},
	{"PyTorch's examples (DCGAN)", "][", "^\\[(?<epoch>\\d+)/(?<epochs>\\d+)\\]\\[" BATCH "\\]", STEP_IN_EPOCH, false, 0},
	{"WeNet, CosyVoice", "Batch ", "\\bTRAIN\\b.*\\bBatch (?<epoch>\\d+)/(?<batch>\\d+) loss", STEP_IN_EPOCH, false, 0},
	{"Marian", "Up.", "\\bEp\\. \\d+ : Up\\. (?<step>\\d+) : Sen\\.", STEP_PLAIN, false, 0},
	{"PyTorch's examples (MNIST)", "rain Epoch:",
	 "\\bTrain Epoch: (?<epoch>\\d+) \\[" BATCH, STEP_IN_EPOCH, false, 1},
	{"PyTorch's examples (ImageNet)", "poch: [",
	 "\\bEpoch: \\[(?<epoch>\\d+)\\]\\s*\\[\\s*" BATCH "\\]", STEP_IN_EPOCH, false, 0},
	{"PyTorch's tutorials (CIFAR-10), the JEPAs", "] loss:", "\\[(?<epoch>\\d+),\\s+(?<batch>\\d+)\\] loss:", STEP_IN_EPOCH, false, 1},
	{"PyTorch's tutorials (the first one)", "loss", "(?i)^\\W*(?:train(?:ing)?\\s)?loss\\W+[\\d.e-]+\\s+\\[\\s*" BATCH "\\]", STEP_IN_EPOCH, false, 1},
	{"pix2pix", "iters: ", "^\\(epoch: (?<epoch>\\d+), iters: (?<batch>\\d+), ", STEP_IN_EPOCH, false, 1},
	{"Ignite", "Iteration[", "\\bEpoch\\[(?<epoch>\\d+)\\] Iteration\\[" BATCH "\\]", STEP_IN_EPOCH, false, 1},
	{"ESPnet", "epoch:train:", "\\b(?<epoch>\\d+)epoch:train:\\d+-(?<batch>\\d+)batch:", STEP_IN_EPOCH, false, 1},
	{"Ultralytics", "%", "^\\s*(?<epoch>\\d+)/(?<epochs>\\d+)\\s+[\\d.]+[GM]\\s.*\\d%[^\\d]*" BATCH, STEP_IN_EPOCH, false, 1},
	{"Epoch [1/5], Step [100/600]", "poch",
	 "(?i)\\bepoch\\W*(?<epoch>\\d+)\\s*/\\s*(?<epochs>\\d+)\\W+(?:step|iter(?:ation)?)\\W*" BATCH,
	 STEP_IN_EPOCH, false, 1},
	{"PyTorch's examples (language model)", "batches |",
	 "\\bepoch\\s+(?<epoch>\\d+) \\|\\s*" BATCH " batches \\|", STEP_IN_EPOCH, false, 1},
	{"OpenRLHF, around the bars of batches of each step", "Episode [",
	 "^Episode \\[(?<epoch>\\d+)/(?<epochs>\\d+)\\]:\\s*\\d{1,3}%\\|[^|]*\\|\\s*" BATCH " \\[", STEP_IN_EPOCH, false, 1},
	{"tqdm; Lightning and Hugging Face by it", "%|",
	 "^(?!" OF_DATA ")(?<label>.*?):?\\s*\\d{1,3}%\\|[^|]*\\|\\s*" BATCH " \\[", STEP_BAR, false, 0},
	{"tqdm with unit_scale, where it counts no bytes or tokens", "%|",
	 "^(?<label>.*?):?\\s*\\d{1,3}%\\|[^|]*\\|\\s*(?<batch>\\d[\\d.]*[kM]?)/(?<batches>\\d[\\d.]*[kM]) \\[[^\\]]*?"
	 "[\\dkM?] ?(?:(?:it|iter|step|batch)(?:e?s)?/s|s/(?:it|iter|step|batch))\\b", STEP_BAR, false, 0},
	{"tqdm without a known end, by itself and in Lightning", " [",
	 "^(?:(?<label>[^\\d].*?):\\s*)?(?:\\|[^|]*\\|\\s*)?(?<batch>\\d+)(?:it \\[\\d+:\\d+,|/\\? \\[\\d+:\\d+<)", STEP_BAR, false, 0},
	{"Lightning's rich bar", "\xe2\x94\x81",
	 "^Epoch (?<epoch>\\d+)(?:/-?\\d+)?\\s+\\S+(?:\\s\\S+)?\\s+(?<batch>\\d+)/(?:(?<batches>\\d+)|--)\\s+\\d+:\\d+:\\d+",
	 STEP_IN_EPOCH, false, 0},
	{"Keras", "/step", "^\\s*(?<batch>\\d+)\\s*/\\s*(?:(?<batches>\\d+)|Unknown)\\s.*\\d[mun]?s/step", STEP_IN_EPOCH, false, 1},
	{"Keras 2", "ETA:", "^\\s*" BATCH " \\[[=>.]+\\] - ETA:", STEP_IN_EPOCH, false, 1},
	{"Keras and others, before the batches of an epoch", "poch",
	 "(?i)^\\W*(?:(?:start|begin|train)\\w* )?" EPOCH "\\W*$", STEP_CONTEXT, false, 1},
	{"a line of JSON (fairseq, ...) or a printed dictionary", ":",
	 "\\{.*['\"](?:train(?:er)?/)?(?:global_step|_?step|num_updates|iteration|iter)['\"]: *['\"]?(?<step>\\d+)\\b",
	 STEP_PLAIN, true, 0},
	{"Hugging Face's dictionaries, beside its bar", "loss'",
	 "^\\{(?!.*'train_runtime')'[^']+': [^,{}]+(?:, '[^']+': [^,{}]+)*\\}\\s*$", STEP_FIELDS, false, 0},
	{"torchtitan, llm.c, nanoGPT, MaxText, most scripts of one's own", "tep",
	 NOT_BEST IN_EPOCH "(?<![\\w./])(?:train(?:er|ing)?[_ /-])?(?:global[_ -]?)?steps?['\"]?" OF_STEPS, STEP_PLAIN, true, 0},
	{"the same by iterations", "ter", NOT_BEST IN_EPOCH "(?<![\\w./])iter(?:ation)?s?" OF_STEPS, STEP_PLAIN, true, 0},
	{"the same by updates (fairseq) or \"it\"", "",
	 NOT_BEST "(?<![\\w./])(?:(?:num[_ ])?updates?|it)['\"]?" OF_STEPS, STEP_PLAIN, true, 0},
	{"100 steps of 600 behind a word, or in front of the line", "s",
	 NOT_BEST "(?:^\\W*|\\b(?:after|trained(?: for)?|at)\\s+)(?<step>" COUNT ")\\s*(?:(?:/|of)\\s*(?<target_step>" COUNT "))?"
	 "\\s*(?:train(?:ing)?\\s+)?(?:steps|iterations|updates|batches)\\b", STEP_PLAIN, true, 0},
	{"Epoch 2, batch 40 of 100; Epoch 2/5 [40/100]", "poch", "(?i)" EPOCH "\\W+(?:" BATCH_WORD ")?" BATCH,
	 STEP_IN_EPOCH, false, 1},
	{"batch 40 of 100", "atch", "(?i)" BATCH_WORD BATCH, STEP_IN_EPOCH, true, 1},
	{"Epoch 2 Batch 40, of how many is not told", "atch",
	 "(?i)(?:" EPOCH "\\W+)?" BATCH_WORD "(?<batch>\\d+)[\\])]?(?![\\w%]|\\.\\d)", STEP_IN_EPOCH, true, 1},
	{"a script that prints epochs only", "poch", NOT_BEST "(?<![\\w./])epochs?" OF_STEPS, STEP_EPOCH, true, 0},
	{"epochs as headings, by the loss below", "rain", "(?i)^(?!\\s)\\W*train(?:ing)?(?:\\W+(?:metrics|results|stats))?\\W+" TRAIN_LOSS "\\W+[\\d.]", STEP_EPOCH, true, 0},
	{"CLU and big_vision (JAX): [100] loss=2.5", "] [", "\\] \\[(?<step>\\d+)\\] [\\w/]+ ?=", STEP_PLAIN, true, 0},
	{"Composer and OLMo, below their steps", "", "^\\s+(?:Train (?:loss/train/total|throughput/)|train/" TRAIN_LOSS
	 "|optim/|throughput/)[^:=]*[:=]", STEP_BELOW, false, 0},
	{"Coqui, below its steps", "| > loss", "^\\s*\\| > loss: ", STEP_BELOW, false, 0},
	{"stable-baselines3, below its steps", "loss", "^\\|\\s+loss\\s*\\|", STEP_BELOW, false, 0},
	{"[3/10] without a word", "/", "^\\W*(?<step>\\d+)\\s*/\\s*(?<target_step>\\d+)(?![\\w/]|\\s+\\d\\d?:\\d\\d)", STEP_EPOCH, true, 0},
};
/* clang-format on */
const size_t step_row_count = sizeof(step_rows) / sizeof(step_rows[0]);
_Static_assert(sizeof(step_rows) / sizeof(step_rows[0]) <= STEP_ROWS_MAX,
	       "each has its place in struct step_reader");

/* What stands between a name and its number: "loss: 3", "loss=3", "'loss': '3'", "lr=[3e-4]",
 * "loss tensor(3, device='cuda:0')", "'loss': np.float32(3)". */
#define IS \
	"['\"]?\\s*(?:[:=]|is\\b)?\\s*[\\['\"]?(?:(?:tensor|[Aa]rray|(?:np|numpy|jnp)\\.float\\d+)\\()?"
/* "3", "1,234.5"; "3,5" is none: it may mean 3.5 */
#define NUMBER \
	"(?<v>[-+]?(?:(?:[1-9]\\d{0,2}(?:,\\d{3})+|\\d+)(?!\\d|,\\d)(?:\\.\\d*)?(?:e[-+]?\\d+)?|" \
	"\\.\\d+(?:e[-+]?\\d+)?|nan|inf(?:inity)?))(?!\\w|\\.\\d|%)"

#define TOKENS_PER_S "(?:tps|tok(?:en)?s?[_ ]?(?:/|per)[_ ]?s(?:ec(?:ond)?)?)(?:/device)?"

/* "val loss", "[eval] loss", "test: {'loss'", "validation results: loss", "valid | epoch 1 | loss" are
 * passed over. */
#define HELD_OUT "(?:val(?:id(?:ation)?)?|eval(?:uation)?|test|dev|cv)"
#define IN_COLUMNS "\\s*\\|(?:[^|]*\\|){1,2}\\s*"
#define RESULTS "\\s(?:results?|metrics?|stats)\\W{1,3}"
#define TRAINED(word) \
	"(?i)\\b" HELD_OUT "\\b(?:[^\\w=]{0,4}|" IN_COLUMNS "|" RESULTS ")" word \
	"(*SKIP)(*FAIL)|(?<![\\w/-])"
/* "loss1: 3" is one of several, "loss2.5" is one */
#define NOT_NUMBERED "(?!\\d+(?![\\d.]))"
#define LOSS \
	"(?:(?:reduced_)?(?:train(?:ing)?|lm|llm|gpt|total|avg|avr|mean|ce|reduced|running|step|batch)[_ /-]|" \
	"(?:actor|policy)/)?" \
	"loss(?: train|_step)?" NOT_NUMBERED IS NUMBER

/* "cost: 3.2 s" is what a step took. */
#define OF_NO_TIME "(?!\\s*(?:[mun]?s|sec(?:ond)?s?|min(?:ute)?s?|hours?)\\b)"

/* clang-format off */
const struct step_field step_fields[] = {
	{"loss", "rain", "^\\s+(?:Train loss/train/total|train/" TRAIN_LOSS ")" IS NUMBER, 1, -INFINITY},
	{"loss", "loss", "^\\|\\s+loss\\s*\\|\\s*" NUMBER, 1, -INFINITY},
	{"loss", "oss", TRAINED("loss") "(?<![a-z] )" LOSS, 1, -INFINITY}, /* before "aux loss", "kl loss" */
	{"loss", "oss", TRAINED("loss") LOSS, 1, -INFINITY},
	{"loss", "", TRAINED("(?:loss|cost)") "(?:train(?:ing)?[_ /-])?(?:loss|cost)\\b[^:=]{0,40}\\b(?:at|after|in|on)\\b[^:=]{0,40}(?<!step|iter|iteration|epoch|batch|update)[:=]\\s*" NUMBER,
	 1, -INFINITY},
	{"loss", "", TRAINED("(?:nll|xent|cost|cross)") "(?<!time )(?:train(?:ing)?[_ /-])?(?:nll|xent|cost|cross[_ -]?entropy)" IS NUMBER OF_NO_TIME,
	 1, -INFINITY},
	{"val_loss", "oss", "(?i)(?<![\\w-])(?<!train/)" HELD_OUT "(?:_|[^\\w=]{1,4}|" IN_COLUMNS "|" RESULTS ")loss" NOT_NUMBERED IS NUMBER, 1, -INFINITY},
	{"lr", "", "(?i)(?<![\\w-])(?:lr|learning[_ ]rate)" IS NUMBER, 1, 0},
	{"grad_norm", "norm", "(?i)(?<![\\w-])(?:grad(?:ient)?[_ ]?norm|gnorm|norm)" IS NUMBER, 1, 0},
	{"tokens_per_s", "k", "(?i)(?<![\\w-])" TOKENS_PER_S "['\"]?\\s*[:=]\\s*(?<v>\\d[\\d.]*)k\\b", 1000, 0},
	{"tokens_per_s", "", "(?i)(?<![\\w-])" TOKENS_PER_S "['\"]?\\s*[:=]\\s*" NUMBER, 1, 0},
	{"tokens_per_s", "ok", "(?i)(?<![\\w.])" NUMBER "\\s*tok(?:en)?s?/s", 1, 0},
	{"tokens_per_s", "k tok", "(?<![\\w.])(?<v>[\\d.]+)k tok(?:en)?s?/s", 1000, 0},
	{"mfu", "", "(?i)(?<!\\w)mfu" IS "(?<v>-?[\\d.]+)\\s*%", 0.01, 0},
	{"mfu", "MFU", "(?<v>-?[\\d.]+)%\\s*(?:\\w+ )?MFU", 0.01, 0},
};
/* clang-format on */
const size_t step_field_count = sizeof(step_fields) / sizeof(step_fields[0]);
_Static_assert(sizeof(step_fields) / sizeof(step_fields[0]) <= STEP_FIELDS_MAX,
	       "each has its place in struct step_reader");

/* "eval step", "[eval=wiki,step", "Validation metrics (step", "Evaluation after train step", "micro
 * step" */
#define OF_WHAT "(?:global[_ -]?)?(?:steps?|iter(?:ation)?s?|updates?|epochs?|batch(?:es)?)?\\W*$"
/* Of a host's name ("gpu-test-3: Epoch 1/3"), or of a "dev run", no part is such a word; "dev-clean"
 * is one. */
#define HELD_OUT_BAR \
	"(?:\\b(?:eval\\w*|val|valid\\w*|held-?out|hold-?out|sanity)\\b|" \
	"(?<![-\\w.])(?:test|testing|dev(?! run\\b))(?!\\w|[-.][-\\w.]*[:\\]]\\s*\\w))"
/* "val loss: 2.3", "best val 0.91", "valid loss inf" */
#define OF_VALUE \
	"[\\s:=/-]*(?:(?!epoch|step|batch|iter)\\w+\\W{1,3})?(?:[-+.]*\\d|(?:inf|nan|none)\\b)"
const char *const step_words[] = {
	[STEP_WORD_OTHER] =
		"(?i)\\b(?:(?:eval\\w*|val(?:id\\w*)?|test\\w*|dev|cv|sanity\\w*)(?:=[^\\s=,]*)?[\\s:|,\\[\\]()_/-]*"
		"(?:(?:metrics?|results?|stats|set|loss)\\W+)?(?:(?:after|at|on|for)\\s+)?(?:train(?:ing)?\\s+)?|"
		"(?:infer\\w*|predict\\w*|download\\w*|load\\w*|prepar\\w*|install\\w*|setup|build\\w*|micro|"
		"sampling|denoising|decoding|generat(?:e|ing|ion)|rollout)[\\s:\\[\\]()_/-]*)" OF_WHAT,
	[STEP_WORD_INNER] = "(?i)\\binner[\\s:\\[\\]()_/-]*" OF_WHAT,
	[STEP_WORD_OTHER_LINE] =
		"['\"](?:mode|split|phase|stage|subset)['\"]: *['\"](?:val|eval|test|dev)|"
		"\\bsteps \\(\\d+(?:\\.\\d+)?%\\) done|"
		"(?i:\\bstep\\W{0,3}\\d+\\s*(?:/|of)\\s*\\d+\\]?\\s*[:.-]\\s*(?:download|load|prepar|build|install|set|"
		"initiali[sz]|tokeni[sz]|compil|read|creat|import|pars|process|pre-?process)\\w*ing\\b)",
	[STEP_WORD_LOSS] = TRAINED("loss") "(?:train(?:ing)?[_ /-])?loss" IS "[-+.]?\\d",
	[STEP_WORD_BAR] =
		"(?i)^\\W*$|^(?!.+\\btrain\\w*\\s(?:data(?:sets?)?|split|shards?)\\b).*train|epoch|"
		"\\bstep|\\biter|\\bloss\\b|\\bfit|\\boptimi|^\\W*progress\\W*$",
	[STEP_WORD_OTHER_BAR] =
		"(?i)^(?:(?!\\btrain|\\bloss\\b).)*?" HELD_OUT_BAR "|" HELD_OUT_BAR "(?!" OF_VALUE
		")|"
		"^\\W*(?:infer|predict|download|load|prepar|install|build|sampl|denois|decod|generat|calculat|"
		"comput|writ|sav|tokeni[sz]|convert|collect|extract|encod|merg|fetch|copy|upload|scor)\\w*ing\\b",
};
