/* SPDX-License-Identifier: MIT */
/* entry_names.h - what the name of a file or folder says of what is in it. */
#ifndef COMMON_CHECKPOINT_ENTRY_NAMES_H
#define COMMON_CHECKPOINT_ENTRY_NAMES_H

#include <stdbool.h>

/* Is it called like something that is still being written (".tmp", "tmp-", ".part", …), or hidden?
 */
bool name_is_temporary(const char *name);
/* Ends as files with weights do (".pt", ".npz", …)? */
bool name_is_data(const char *name);
/* Ends as pictures, logs and tables do? */
bool name_is_for_people(const char *name);
/* What a run writes of itself as it begins: "config.yaml", TensorBoard's events. */
bool name_is_of_settings(const char *name);
/* Has it a word of evaluations and profilers: "eval_step_30.json"? */
bool name_is_of_other_work(const char *name);
/* A folder for that alone: "samples", "eval_30", "images_step_30". */
bool name_is_for_other_work(const char *name);
/* Of a file that names the newest: "last_checkpoint", "latest.txt", TensorFlow's "checkpoint", DINOv2's
 * "last_checkpoint.rank_0", big_vision's "checkpoint.bv-LAST". */
bool name_is_pointer(const char *name);
/* Not the work itself: for people, or by an evaluation or a profiler, as "eval_step_30.json". */
bool name_is_other_file(const char *name);
/* A part of something without a step: "model-00001-of-00003.safetensors". */
bool name_is_shard(const char *name);
/* "rank_1": what a rank keeps, of one step or of many. */
bool name_is_of_a_rank(const char *name);
/* The one before, or one of those, is kept so: "checkpoint_prev.pt", "checkpoint_prev3.pt". */
bool name_is_previous(const char *name);
/* Of the one file that is written over each time: "ckpt.pt", "checkpoint_last.pt". */
bool name_is_single(const char *name);
/* Another's weights, as W&B keeps what it downloads: "model-abc:v3". */
bool name_is_downloaded(const char *name);
/* In one, or in one and the words of any script's folders, "-state" and "-unsharded". */
bool name_ends_in_number(const char *name);
/* Has it the word checkpoint, or its like? */
bool name_has_checkpoint(const char *name);
/* A trainer's state at some step, whatever its folder is called: "state_step001000.pt",
 * "epoch_2.pth"; arrays alone may be anything. */
bool name_tells_state(const char *name);
/* Of a folder for checkpoints and weights: "my_checkpoints", "saved_models". */
bool name_is_for_checkpoints(const char *name);

#endif
