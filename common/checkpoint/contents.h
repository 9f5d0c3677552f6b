/* SPDX-License-Identifier: MIT */
/* contents.h - what the names in a folder say of it; of one that cannot be read all is false. */
#ifndef COMMON_CHECKPOINT_CONTENTS_H
#define COMMON_CHECKPOINT_CONTENTS_H

#include <stdbool.h>

/* Weights, none of them with a number: a folder without a number is a checkpoint then. */
bool contents_are_unnumbered_data(const char *folder);
/* "run1", "seed-42": a folder of checkpoints, unless it holds files itself, and none that tells a
 * step. */
bool contents_are_checkpoints(const char *folder);
/* "step_30" with nothing but pictures in it. */
bool contents_are_for_people(const char *folder);
/* Nor anything but what a run writes of itself as it begins, and its logs. */
bool contents_are_settings(const char *folder);
/* timm's "train/20261123-101500-resnet50-224/checkpoint-9.pth.tar", "run1/ckpt_20.pt": whatever the
 * folder is called, in it are checkpoints. */
bool contents_have_named_checkpoint(const char *folder);
/* So are those that tell the state of a trainer (name_tells_state): "logs/4f2a/state_step1000.pt". */
bool contents_have_state(const char *folder);
/* A folder in it holds numbered checkpoints. */
bool contents_have_run(const char *folder);
/* Are there any, or folders for them? */
bool contents_have_checkpoint(const char *folder);
/* Folders such as "step_20": of steps, not what was downloaded. */
bool contents_have_step(const char *folder);
/* nanochat's "base_checkpoints/d20/": of other folders there, "best", "exports", nothing is known
 * where the checkpoints lie beside them. */
bool contents_are_below(const char *folder);

#endif
