/* SPDX-License-Identifier: MIT */
/* options.c - lbd's command line. */
#include "daemon/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/base/failpoint.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/config/run_spec.h"
#include "sql/ledger.h"

static const char usage_text[] =
	"usage: lbd [--home DIR] [--foreground] [--ready-fd N] [--until TIME] [--check-config] [-v]\n"
	"       lbd [--home DIR] --print-job\n"
	"       lbd [--home DIR] --recover\n"
	"\n"
	"The controller of your training runs: submits them, follows them, brings them back.\n"
	"\n"
	"  --home DIR       the folder of runs and ledger ($LB_HOME, else ~/.local/state/lb)\n"
	"  --foreground     stay in the terminal and log to stderr\n"
	"  --ready-fd N     write a newline to descriptor N once commands are served\n"
	"  --until TIME     end at this time (seconds since 1970), for the next lbd to take over\n"
	"  --print-job      print a batch script that runs lbd in a job of its own, and end\n"
	"  --check-config   read DIR/lbd.toml, say what is in force, and end\n"
	"  --print-keys     list the keys of a run, and end\n"
	"  --recover        make a lost or damaged ledger anew from the folders of the runs, and end\n"
	"  -v, --verbose    log every decision\n"
	"  --failpoints     list the points at which tests crash these programs, and end\n"
	"  --version, --help\n";

static void print_keys(void)
{
	for (size_t i = 0; i < run_spec_key_count; i++)
		printf("%s.%s\n", run_spec_keys[i].section, run_spec_keys[i].name);
}

static _Noreturn void refuse(const char *word, const char *why)
{
	fprintf(stderr, "lbd: %s: %s\n", word, why);
	exit(err_exit_status(ERR_USAGE));
}

/* A misspelt one must not count as 0. */
static int64_t number(const char *option, const char *text, int64_t max)
{
	int64_t n = text_is_digits(text) ? strtoll(text, NULL, 10) : -1;
	char why[200];

	if (n >= 0 && n <= max)
		return n;
	snprintf(why, sizeof(why), "\"%.100s\" is no number from 0 to %lld", text, (long long)max);
	refuse(option, why);
}

/* Long options have numbers that are no letters: of a letter that it refuses getopt tells the
 * letter, but not the word that it stood in (-fv). */
enum { LONG = 1 << 8 };

static _Noreturn void refuse_option(int option, const char *word)
{
	char letter[] = { '-', (char)optopt, '\0' };

	if (option == ':')
		refuse(word, "its value is missing; try: lbd --help");
	if (optopt >= LONG)
		refuse(word, "takes no value");
	refuse(optopt ? letter : word, "no such option; try: lbd --help");
}

/* What is asked for is printed, and there is nothing more to do. */
static bool prints(int option)
{
	switch (option) {
	case LONG + 'k':
		print_keys();
		return true;
	case LONG + 'F':
		failpoint_list(stdout);
		return true;
	case LONG + 'V':
		printf("lbd %s (%s, libuv %s)\n", LB_VERSION, ledger_library(),
		       uv_version_string());
		return true;
	case 'h':
	case LONG + 'h':
		fputs(usage_text, stdout);
		return true;
	default:
		return false;
	}
}

static void take(struct daemon_options *o, int option, const char *word)
{
	switch (option) {
	case LONG + 'H':
		o->home = xstrdup(optarg);
		break;
	case LONG + 'f':
		o->foreground = true;
		break;
	case LONG + 'r':
		o->ready_fd = (int)number("--ready-fd", optarg, INT_MAX);
		break;
	case LONG + 'u':
		o->until_ms = number("--until", optarg, INT64_MAX / 2000) * 1000;
		break;
	case LONG + 'j':
		o->print_job = true;
		break;
	case LONG + 'n':
		o->check_config = true;
		break;
	case LONG + 'R':
		o->recover = true;
		break;
	case 'v':
	case LONG + 'v':
		o->verbose = true;
		break;
	default:
		refuse_option(option, word);
	}
}

void daemon_options_read(int argc, char **argv, struct daemon_options *o)
{
	static const struct option table[] = {
		{ "home", required_argument, NULL, LONG + 'H' },
		{ "foreground", no_argument, NULL, LONG + 'f' },
		{ "ready-fd", required_argument, NULL, LONG + 'r' },
		{ "until", required_argument, NULL, LONG + 'u' },
		{ "print-job", no_argument, NULL, LONG + 'j' },
		{ "check-config", no_argument, NULL, LONG + 'n' },
		{ "print-keys", no_argument, NULL, LONG + 'k' },
		{ "recover", no_argument, NULL, LONG + 'R' },
		{ "verbose", no_argument, NULL, LONG + 'v' },
		{ "failpoints", no_argument, NULL, LONG + 'F' },
		{ "version", no_argument, NULL, LONG + 'V' },
		{ "help", no_argument, NULL, LONG + 'h' },
		{ 0 },
	};
	int option;

	opterr = 0; /* one line of our own says it */
	while ((option = getopt_long(argc, argv, ":vh", table, NULL)) != -1) {
		if (prints(option))
			exit(0);
		take(o, option, argv[optind - 1]);
	}
	if (optind < argc) {
		fprintf(stderr, "lbd: \"%s\": lbd takes options only; try: lbd --help\n",
			argv[optind]);
		exit(err_exit_status(ERR_USAGE));
	}
}
