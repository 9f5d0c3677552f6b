/* SPDX-License-Identifier: MIT */
/* test_lbrun_script_words.c - scripts that heed the failure of what they start, and some that only
 * speak of it. */
#include "tests/unit/unit.h"

#include "worker/lbrun/end/script_words.h"

static void scripts(void **state)
{
	static const struct {
		const char *text;
		bool is_caught;
	} cases[] = {
		{ "while ! srun python train.py; do sleep 5; done\n", true },
		{ "until srun -n 8 train; do :; done\n", true },
		{ "for i in 1 2 3; do\n\tsrun train && break\ndone\n", true },
		{ "while :; do\n  srun train\n  if [ $? -eq 0 ]; then break; fi\ndone\n", true },
		{ "while true; do torchrun t.py && exit 0; done\n", true },
		{ "srun \\\n  train ||\\\n  srun train --safe\n", true },
		{ "srun nvidia-smi || echo none\npython3 train.py\n", true },
		{ "if ! srun train; then\n  srun train --resume\nfi\n", true },
		{ "srun train\nif [ $? -ne 0 ]; then srun train; fi\n", true },
		/* the trainer's failure is said, or handed on */
		{ "srun train\necho done $?\n", false },
		{ "srun train || echo failed\necho done\n", false },
		{ "srun train\nif [ $? -eq 0 ]; then echo good; else echo bad; fi\n", false },
		{ "if srun train; then echo good; else echo bad; fi\n", false },
		{ "cd x || exit 1\nsrun prep || exit 1\nsrun train\necho done\n", false },
		{ "while read -r line; do echo $line; done <x\nsrun train\n", false },
		{ "# while ! srun train; do :; done\nsrun train; date\n", false },
		{ "srun train 2>&1 | tee log\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (failures_are_caught(cases[i].text) != cases[i].is_caught)
			fail_msg("%s", cases[i].text);
}

static void backgrounds(void **state)
{
	static const struct {
		const char *text;
		bool has;
	} cases[] = {
		{ "srun ray start --head --block &\nsleep 9\npython train.py\n", true },
		{ "srun -n 1 dmon >log 2>&1 & mon=$!\nsrun train\nkill $mon\n", true },
		{ "srun --overlap \\\n  server &\nsrun train | tee log\n", true },
		/* the trainer itself, so that bash hears signals, or several */
		{ "srun train &\nwait\n", false },
		{ "python prep.py\nsrun train & wait $!\n", false },
		{ "srun a &\nsrun b &\nwait\n", false },
		{ "srun train >log 2>&1\nsrun eval &>log2\n", false },
		{ "srun train && srun eval\n", false },
		{ "# srun dmon &\nsrun train\n", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (has_background(cases[i].text) != cases[i].has)
			fail_msg("%s", cases[i].text);
}

static void statuses(void **state)
{
	static const struct {
		const char *text;
		bool hands_on;
	} cases[] = {
		{ "srun train\nrc=$?\necho $rc\nexit $rc\n", true },
		{ "srun train & tr=$!\nwait $tr; code=$?\nkill $mon\nexit ${code}\n", true },
		{ "srun train | tee log\nexit ${PIPESTATUS[0]}\n", true },
		{ "set -o pipefail\nsrun train | tee log; rc=$?\nexit $rc\n", true },
		{ "srun train || rc=$?; exit $rc\n", true },
		{ "srun train & tr=$!\nwait $tr; rc=$?\nkill $mon; wait\nexit $rc\n", true },
		/* tee's, wait's, and echo's */
		{ "srun train &\nwait\nrc=$?\nexit $rc\n", false },
		{ "srun train & wait; rc=$?\nexit $rc\n", false },
		{ "srun train | tee log\nrc=$?\nexit $rc\n", false },
		{ "srun train\necho done\nexit $?\n", false },
		{ "srun train\nexit 0\n", false },
		{ "# exit $rc\nsrun train; date\n", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (hands_status_on(cases[i].text) != cases[i].hands_on)
			fail_msg("%s", cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts),
		cmocka_unit_test(backgrounds),
		cmocka_unit_test(statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
