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

/* A misspelt one must not count as 0. */
static int64_t number(const char *option, const char *text, int64_t max)
{
	int64_t n = text_is_digits(text) ? strtoll(text, NULL, 10) : -1;

	if (n >= 0 && n <= max)
		return n;
	fprintf(stderr, "lbd: --%s: \"%s\" is no number from 0 to %lld\n", option, text,
		(long long)max);
	exit(err_exit_status(ERR_USAGE));
}

void daemon_options_read(int argc, char **argv, struct daemon_options *o)
{
	static const struct option table[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "until", required_argument, NULL, 'u' },
		{ "print-job", no_argument, NULL, 'j' },
		{ "check-config", no_argument, NULL, 'n' },
		{ "print-keys", no_argument, NULL, 'k' },
		{ "recover", no_argument, NULL, 'R' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "failpoints", no_argument, NULL, 'F' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	opterr = 0; /* one line of our own says it */
	while ((c = getopt_long(argc, argv, "vh", table, NULL)) != -1) {
		switch (c) {
		case 'H':
			o->home = xstrdup(optarg);
			break;
		case 'f':
			o->foreground = true;
			break;
		case 'r':
			o->ready_fd = (int)number("ready-fd", optarg, INT_MAX);
			break;
		case 'u':
			o->until_ms = number("until", optarg, INT64_MAX / 2000) * 1000;
			break;
		case 'j':
			o->print_job = true;
			break;
		case 'n':
			o->check_config = true;
			break;
		case 'k':
			print_keys();
			exit(0);
		case 'R':
			o->recover = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'F':
			failpoint_list(stdout);
			exit(0);
		case 'V':
			printf("lbd %s (%s, libuv %s)\n", LB_VERSION, ledger_library(),
			       uv_version_string());
			exit(0);
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fprintf(stderr,
				"lbd: %s: no such option, or its value is missing; try: "
				"lbd --help\n",
				argv[optind - 1]);
			exit(err_exit_status(ERR_USAGE));
		}
	}
	if (optind < argc) {
		fprintf(stderr, "lbd: \"%s\": lbd takes options only; try: lbd --help\n",
			argv[optind]);
		exit(err_exit_status(ERR_USAGE));
	}
}
