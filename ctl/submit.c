/* SPDX-License-Identifier: MIT */
/* submit: lbd never opens a file that a client names; lbctl reads it and sends the text. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/files.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/names.h"
#include "common/text.h"
#include "ctl/command.h"
#include "ctl/sweep.h"

enum { FILE_MAX_BYTES = 512 * 1024 };

/* What a trainer needs to find its programs and libraries again. A list, not the whole
 * environment: that may hold tokens and passwords, and what is sent ends in files. Anything else
 * belongs in run.env_file. */
static const char *const kept_variables[] = {
	"PATH",			/* programs */
	"LD_LIBRARY_PATH",	/* libraries, as modules set it */
	"PYTHONPATH",
	"VIRTUAL_ENV",		/* an activated Python environment */
	"CONDA_PREFIX", "CONDA_DEFAULT_ENV",
	"MODULEPATH", "LOADEDMODULES",	/* so that `module` in a script goes on from here */
	"LANG", "LC_ALL", "TZ",	/* how programs write text and times */
	"MASTER_ADDR", "MASTER_PORT",	/* where ranks meet */
};

/* Beginnings of variables that tune communication; a network's profile gives way to them. */
static const char *const kept_families[] = {
	"NCCL_", "TORCH_NCCL_", "OFI_NCCL_", "FI_", "GLOO_", "UCX_",
};

static void add_family(json_t *env, const char *family)
{
	size_t len = strlen(family);

	for (char **entry = environ; *entry; entry++) {
		const char *value = strchr(*entry, '=');
		char *name;

		if (!value || strncmp(*entry, family, len) != 0)
			continue;
		name = xstrndup(*entry, (size_t)(value - *entry));
		json_object_set_new(env, name, js_bytes(value + 1));
		free(name);
	}
}

static json_t *environment(void)
{
	json_t *env = json_object();

	for (size_t i = 0; i < sizeof(kept_variables) / sizeof(kept_variables[0]); i++) {
		const char *value = getenv(kept_variables[i]);

		if (value)
			json_object_set_new(env, kept_variables[i], js_bytes(value));
	}
	for (size_t i = 0; i < sizeof(kept_families) / sizeof(kept_families[0]); i++)
		add_family(env, kept_families[i]);
	return env;
}

static bool ends_with(const char *file, const char *end)
{
	size_t len = strlen(file), end_len = strlen(end);

	return len > end_len && strcmp(file + len - end_len, end) == 0;
}

/* "--time" or "-t", whose value stands apart? Which options of sbatch take one is lbd's to know. */
static bool is_bare(const char *option)
{
	return option[1] == '-' ? !strchr(option, '=') : strlen(option) == 2;
}

/* A word that is no file may well be meant as a command, or as the value of an option. */
static int no_such_file(const struct options *o, const char *file, struct err *err)
{
	const char *last = o->other_count > 0 ? o->others[o->other_count - 1] : NULL;

	if (last && is_bare(last))
		return err_set(err, ERR_USAGE, "%s: no such file; a value belongs to its option: %s%s%s",
			       file, last, last[1] == '-' ? "=" : "", file);
	if (ends_with(file, ".toml"))
		return err_set(err, ERR_USAGE, "%s: no such file", file);
	return err_set(err, ERR_USAGE, "%s: no such file; to submit a command, write: "
		       "lbctl submit -- %s", file, file);
}

/* By its first line; by its name where that is missing, so that lbd can say so. */
static bool is_script(const char *file, const char *text)
{
	static const char *const ends[] = {".slurm", ".sbatch", ".sh", ".job"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(file, ends[i]))
			return true;
	return strncmp(text, "#!", 2) == 0;
}

/* A run spec, or a batch script. */
static int add_file(json_t *args, const char *file, const struct ctl *ctl, struct err *err)
{
	struct err why = {0};
	struct stat st;
	size_t len;
	char *text;

	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: is a folder; name a TOML file or a batch script", file);
	text = file_read(file, FILE_MAX_BYTES, &len, &why);
	if (!text && why.code == ERR_NOT_FOUND)
		return no_such_file(&ctl->options, file, err);
	if (!text)
		return err_set(err, ERR_USAGE, "%s", why.text);
	if (strlen(text) != len || !text_is_utf8(text, len)) {
		free(text);
		return err_set(err, ERR_USAGE, "%s: this is no text; a TOML file or a script is UTF-8", file);
	}
	if (is_script(file, text)) {
		batch_add_script(args, file, text, len, &ctl->operands);
	} else {
		json_object_set_new(args, "toml", json_stringn(text, len));
		json_object_set_new(args, "file", js_bytes(file));
	}
	free(text);
	return 0;
}

int add_settings(json_t *args, const struct options *options, struct err *err)
{
	json_t *set = json_array();

	json_object_set_new(args, "set", set);
	for (size_t i = 0; i < options->set_count; i++) {
		const char *word = options->set[i];

		if (!strchr(word, '=') || word[0] == '=')
			return err_set(err, ERR_USAGE, "--set %s: write it as section.key=value",
				       word);
		if (json_array_append_new(set, json_string(word)) < 0)
			return err_set(err, ERR_USAGE, "--set %s: this is not UTF-8", word);
	}
	return 0;
}

static int add_workdir(json_t *args, struct err *err)
{
	/* getcwd gives the physical path: one without links means the same on every node. */
	char *folder = getcwd(NULL, 0);

	if (!folder)
		return err_errno(err, "cannot tell the current folder");
	json_object_set_new(args, "workdir", js_bytes(folder));
	free(folder);
	return 0;
}

static void add_words(json_t *args, const char *key, const char *const *words, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, js_bytes(words[i]));
	json_object_set_new(args, key, list);
}

/* The arguments as PROTOCOL.md lists them, or NULL with err. */
static json_t *submission(const struct ctl *ctl, struct err *err)
{
	const struct operands *o = &ctl->operands;
	json_t *args = json_object();
	bool has_script;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->count; i++)
		rc = add_file(args, o->words[i], ctl, err);
	has_script = json_object_get(args, "script") != NULL;
	if (rc == 0 && o->count > 1 && (!has_script || !json_object_get(args, "toml")))
		rc = err_set(err, ERR_USAGE, "submit: two files must be a run spec and a batch script");
	if (rc == 0 && o->rest_count > 0 && !has_script)
		add_words(args, "command", o->rest, o->rest_count);
	if (rc == 0 && ctl->options.other_count > 0)
		add_words(args, "options", ctl->options.others, ctl->options.other_count);
	if (rc == 0 && ctl->options.name) {
		rc = name_check(ctl->options.name, err);
		json_object_set_new(args, "name", json_string(ctl->options.name));
	}
	if (rc == 0 && ctl->options.after.count > 0)
		add_words(args, "after", ctl->options.after.items, ctl->options.after.count);
	if (rc == 0 && ctl->options.after_ok.count > 0)
		add_words(args, "after_ok", ctl->options.after_ok.items, ctl->options.after_ok.count);
	if (rc == 0)
		rc = add_settings(args, &ctl->options, err);
	if (rc == 0)
		rc = add_workdir(args, err);
	json_object_set_new(args, "env", has_script ? batch_environment() : environment());
	if (ctl->options.dry_run)
		json_object_set_new(args, "dry_run", json_true());
	if (rc == 0)
		return args;
	json_decref(args);
	return NULL;
}

/* Without an answer nobody knows whether the run exists; saying so keeps people from trying a
 * second one. And train.py was hardly meant as a run spec. */
static void explain(const struct ctl *ctl, struct err *err)
{
	const char *file = ctl->operands.count == 1 ? ctl->operands.words[0] : NULL;
	struct err why = *err;

	if (ctl->client.sent && (err->code == ERR_TIMEOUT || err->code == ERR_DAEMON)) {
		err_wrap(err, "the run may or may not have been submitted, lbctl ls will tell");
	} else if (err->code == ERR_USAGE && file && ends_with(file, ".py")) {
		*err = (struct err){0};
		err_set(err, why.code, "%s; to submit a command, write: lbctl submit -- python %s",
			why.text, file);
	}
}

/* --- --dry-run ------------------------------------------------------------------------------- */

static void show_line(const struct ctl *ctl, const char *name, const json_t *value)
{
	char *bytes = js_bytes_take(value), *text;

	if (json_is_array(value)) {
		char *list = js_line(value);

		printf("  %s = %s\n", name, list);
		free(list);
	} else if (json_is_integer(value)) {
		printf("  %s = %lld\n", name, (long long)json_integer_value(value));
	} else if (bytes) {
		text = clean_copy(bytes, &ctl->out);
		printf("  %s = %s\n", name, text);
		free(text);
	}
	free(bytes);
}

static void show_object(const struct ctl *ctl, const char *title, json_t *object)
{
	const char *name;
	json_t *value;

	printf("\n%s\n", title);
	json_object_foreach(object, name, value) {
		if (strcmp(title, "environment") == 0 && json_is_null(value))
			printf("  %s   (not shown: it may be secret)\n", name);
		else
			show_line(ctl, name, value);
	}
}

static void show_script(const struct ctl *ctl, const char *script)
{
	printf("\nscript\n");
	while (*script) {
		size_t len = strcspn(script, "\n");
		char *line = xstrndup(script, len), *text = clean_copy(line, &ctl->out);

		printf("  %s\n", text);
		free(text);
		free(line);
		script += len + (script[len] == '\n');
	}
}

static void show_words(const struct ctl *ctl, const char *title, const json_t *words)
{
	const json_t *arg;
	size_t i;

	if (json_array_size(words) == 0)
		return;
	printf("\n%s\n", title);
	json_array_foreach(words, i, arg) {
		char *bytes = js_bytes_take(arg), *text = clean_copy(bytes, &ctl->out);

		printf("  %s\n", text);
		free(text);
		free(bytes);
	}
}

static void show_job(struct ctl *ctl, json_t *job)
{
	static const char *const plain[] = {"run", "scheduler", "launcher", "workdir", "output",
					    "checkpoints"};

	if (ctl->options.json) {
		print_json(json_incref(job));
		return;
	}
	printf("this job would be submitted; nothing was\n");
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		show_line(ctl, plain[i], json_object_get(job, plain[i]));
	show_object(ctl, "resources", json_object_get(job, "resources"));
	show_words(ctl, "srun", json_object_get(job, "srun"));
	show_words(ctl, "profiler", json_object_get(job, "profiler"));
	show_words(ctl, "torchrun", json_object_get(job, "torchrun"));
	show_words(ctl, "trainer", json_object_get(job, "command"));
	show_script(ctl, js_str(job, "script", ""));
	show_object(ctl, "environment", json_object_get(job, "environment"));
}

/* --- --sweep ---------------------------------------------------------------------------------- */

/* "base" of "configs/base.toml", unless --name says another. */
static int sweep_name(const struct ctl *ctl, char out[NAME_MAX_BYTES + 1], struct err *err)
{
	const char *name = ctl->options.name;
	const char *file = ctl->operands.count ? ctl->operands.words[0] : NULL, *slash;

	if (!name && !file)
		return err_set(err, ERR_USAGE, "--sweep: needs --name: its runs are NAME-1, NAME-2, ...");
	slash = name ? NULL : strrchr(file, '/');
	if (!name)
		name = slash ? slash + 1 : file;
	snprintf(out, NAME_MAX_BYTES + 1, "%.*s",
		 ctl->options.name ? NAME_MAX_BYTES : (int)strcspn(name, "."), name);
	return name_check(out, err);
}

static bool sets_group(const json_t *sets)
{
	const json_t *set;
	size_t i;

	json_array_foreach(sets, i, set) {
		if (strncmp(json_string_value(set), "run.group=", 10) == 0)
			return true;
	}
	return false;
}

/* The submission of one combination; a new reference. */
static json_t *one_of_sweep(const json_t *args, const char *base, size_t number, json_t *sets,
			    bool dry)
{
	json_t *one = json_deep_copy(args), *all = json_object_get(one, "set");
	char *name = xasprintf("%s-%zu", base, number), *group = xasprintf("run.group=%s", base);

	if (!sets_group(all))
		json_array_append_new(all, json_string(group));
	json_array_extend(all, sets);
	json_object_set_new(one, "name", json_string(name));
	if (dry)
		json_object_set_new(one, "dry_run", json_true());
	free(name);
	free(group);
	return one;
}

/* Every combination is judged before the first is submitted. */
static int sweep_pass(struct ctl *ctl, const json_t *args, const char *base, const json_t *all,
		      bool dry, json_t *runs, struct err *err)
{
	json_t *sets;
	size_t i;

	json_array_foreach(all, i, sets) {
		json_t *one = one_of_sweep(args, base, i + 1, sets, dry);
		json_t *data = client_ask(&ctl->client, VERB_SUBMIT, one, err);

		if (!data) {
			char *which = js_line(sets);

			err_wrap(err, dry ? "%s-%zu %s: nothing was submitted" :
				 "%s-%zu %s: the runs before it were submitted", base, i + 1, which);
			free(which);
			return -1;
		}
		if (!dry || ctl->options.dry_run)
			json_array_append_new(runs, json_pack("{s:O, s:O}", "run",
							      json_object_get(data, "run"), "set", sets));
		json_decref(data);
	}
	return 0;
}

static void show_sweep(struct ctl *ctl, const char *base, json_t *runs)
{
	const json_t *each, *set;
	size_t i, k;

	if (ctl->options.json) {
		print_json(json_incref(runs));
		return;
	}
	json_array_foreach(runs, i, each) {
		printf("%s", js_str(each, "run", "?"));
		if (ctl->options.dry_run) {
			json_array_foreach(json_object_get(each, "set"), k, set) {
				printf(" %s", json_string_value(set));
			}
		}
		putchar('\n');
	}
	if (!ctl->options.dry_run)
		hint(ctl, "compare them: lbctl compare %s; end them: lbctl kill %s@group", base, base);
}

static int submit_sweep(struct ctl *ctl, struct err *err)
{
	json_t *all = sweep_combinations(&ctl->options.sweep, err), *args = NULL;
	json_t *runs = json_array();
	char base[NAME_MAX_BYTES + 1];
	int rc = -1;

	if (all && ctl->options.follow)
		err_set(err, ERR_USAGE, "--sweep: excludes --follow");
	else if (all && sweep_name(ctl, base, err) == 0)
		args = submission(ctl, err);
	if (args) {
		json_object_del(args, "dry_run");
		rc = sweep_pass(ctl, args, base, all, true, runs, err);
	}
	if (rc == 0 && !ctl->options.dry_run)
		rc = sweep_pass(ctl, args, base, all, false, runs, err);
	if (rc == 0)
		show_sweep(ctl, base, runs);
	json_decref(args);
	json_decref(all);
	json_decref(runs);
	return rc;
}

int submit_run(struct ctl *ctl, struct err *err)
{
	json_t *args, *data;
	char *name;
	int status = 0;

	if (ctl->operands.count == 0 && ctl->operands.rest_count == 0)
		return err_set(err, ERR_USAGE, "submit: name a file or a command; usage: "
			       "lbctl submit %s", ctl->command->usage);
	if (ctl->options.sweep.count > 0)
		return submit_sweep(ctl, err);
	args = submission(ctl, err);
	data = args ? client_ask(&ctl->client, VERB_SUBMIT, args, err) : NULL;
	if (!data) {
		explain(ctl, err);
		return -1;
	}
	if (ctl->options.dry_run) {
		show_job(ctl, data);
		json_decref(data);
		return 0;
	}
	name = clean_copy(js_str(data, "run", NULL), &ctl->out);
	if (ctl->options.json)
		print_json(json_incref(data));
	else
		puts(name);
	fflush(stdout);
	if (ctl->options.follow)
		status = follow_show(ctl, name, true, err);
	else
		hint(ctl, "follow it: lbctl follow %s", name);
	free(name);
	json_decref(data);
	return status;
}
