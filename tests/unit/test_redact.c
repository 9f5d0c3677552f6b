/* SPDX-License-Identifier: MIT */
/* test_redact.c - secrets in what is shown and kept: those of the environment, and their like. */
#include "tests/unit/unit.h"

#include "common/base/redact.h"

static void test_redact(void **state)
{
	char *env[] = { TEXT("HOME=/home/ada"), TEXT("MY_API_KEY=abc123def"), TEXT("A_TOKEN=xy"),
			NULL };
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "the key abc123def is bad", "the key *** is bad" },
		{ "401 for hf_abcdefghijklmnopqrst at /home/ada xy",
		  "401 for *** at /home/ada xy" },
		{ "GET https://ada:pass1@host/x?token=abcdefgh&y=1",
		  "GET https://***@host/x?token=***&y=1" },
		{ "Authorization: Bearer abc.def-ghi, twice Bearer abc.def-ghi",
		  "Authorization: Bearer ***, twice Bearer ***" },
		{ "train.py --wandb-api-key abc.def-ghi --lr 0.1 --hub_token 'x y' --token abc.def",
		  "train.py --wandb-api-key *** --lr 0.1 --hub_token 'x y' --token ***" },
		{ "[\"--password\",\"abcdefgh\",\"--use-token\",\"--max_tokens\",\"1000000\"]",
		  "[\"--password\",\"***\",\"--use-token\",\"--max_tokens\",\"1000000\"]" },
		{ "train.py --password p4&ss,word --api_key abcdef*gh --lr 0.1",
		  "train.py --password *** --api_key *** --lr 0.1" },
		{ "train.py --password=p4&ss,word --api_key=abcdef*gh --wandb.token abcdefgh --lr 0.1",
		  "train.py --password=*** --api_key=*** --wandb.token *** --lr 0.1" },
		{ "train.py --wandb-key 0123456789abcdef --private-key abcdefgh --credentials abcdefgh",
		  "train.py --wandb-key *** --private-key *** --credentials ***" },
		{ "train.py --ssh.passphrase=abcdefgh --license_key ABCD-1234",
		  "train.py --ssh.passphrase=*** --license_key ***" },
		{ "train.py --pad-token <|endoftext|> --mask_token=[MASK16] --eos-token '</s></s>'",
		  "train.py --pad-token <|endoftext|> --mask_token=[MASK16] --eos-token '</s></s>'" },
		{ "train.py --text-key content --keys abcdef12 --monkey abcdef12 --key-size 204800",
		  "train.py --text-key content --keys abcdef12 --monkey abcdef12 --key-size 204800" },
		{ "private_key: abcdefgh, WANDB_KEY=abcdefgh, credential = abcdefgh",
		  "private_key: ***, WANDB_KEY=***, credential = ***" },
		{ "pad_token=<|endoftext|>, state_key=layers.12.weight, missing key: layers.12.weight",
		  "pad_token=<|endoftext|>, state_key=layers.12.weight, missing key: layers.12.weight" },
		{ "train.py --password <p4ssword --api-key [abcdef] secret=<abcdef token = <unk><unk>",
		  "train.py --password *** --api-key *** secret=*** token = <unk><unk>" },
		{ "unexpected token in line 3, the password is wrong",
		  "unexpected token in line 3, the password is wrong" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "%s", rows[i].text);
		redact(text, env);
		assert_string_equal(text, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_redact) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
