/* SPDX-License-Identifier: MIT */
/* submission.c - what a submission is made of. lbd never opens a file that a client names: lbctl
 * reads it and sends the text. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "common/config/kept_env.h"
#include "common/host/limits.h"
#include "common/run/verbs.h"
#include "ctl/act/submission.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/code/code.h"
#include "ctl/code/snapshot.h"
#include "slurm/batch/directives.h"

enum { FILE_MAX_BYTES = 512 * 1024, REQUEST_ROOM_BYTES = 16 * 1024 };

/* A word that is no file may well be meant as a command, or as an argument of the script before
 * it. */
static int no_such_file(const json_t *args, const struct operands *operands, const char *file,
			struct err *err)
{
	const char *next = operands->count > 1 ? operands->words[1] : NULL;
	char word[SHELL_WORD_BYTES], other[SHELL_WORD_BYTES];

	if (json_object_get(args, "script"))
		return err_set(
			err, ERR_USAGE,
			"%s: no such file; arguments of a script stand behind --: lbctl submit %s "
			"-- %s",
			file, shell_word(operands->words[0], other), shell_word(file, word));
	if (text_ends_with(file, ".toml"))
		return err_set(err, ERR_USAGE, "%s: no such file", file);
	return err_set(err, ERR_USAGE,
		       "%s: no such file; to submit a command, write: lbctl submit -- %s%s%s%s",
		       file, text_ends_with(file, ".py") ? "python " : "", shell_word(file, word),
		       next ? " " : "", next ? shell_word(next, other) : "");
}

/* By its first line, whatever stands in front of that; by its name where that is missing, so that
 * lbd can say so. */
static bool is_script(const char *file, const char *text)
{
	static const char *const ends[] = { ".slurm", ".sbatch", ".sh", ".job" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(file, ends[i]))
			return true;
	return strncmp(text, "#!", 2) == 0 || strncmp(text, "\xef\xbb\xbf#!", 5) == 0;
}

/* What comes through a pipe or from a terminal; NULL with err. */
static char *read_stream(int fd, const char *name, size_t *len, struct err *err)
{
	char part[4096];
	struct buf all;
	ssize_t n;

	buf_init(&all, FILE_MAX_BYTES);
	while ((n = read(fd, part, sizeof(part))) > 0 && buf_add(&all, part, (size_t)n) == 0)
		;
	*len = all.len;
	if (n == 0)
		return buf_take(&all);
	if (n < 0)
		err_errno(err, "%s", name);
	else
		err_set(err, ERR_USAGE, "%s: is longer than %d KiB", name, FILE_MAX_BYTES / 1024);
	buf_fini(&all);
	return NULL;
}

/* Of a pipe, too, as bash makes one of <(sed ... job.slurm). */
static char *read_operand(const char *file, size_t *len, struct err *err)
{
	struct stat st;
	char *text;
	int fd;

	if (stat(file, &st) < 0 || S_ISREG(st.st_mode))
		return file_read(file, FILE_MAX_BYTES, len, err);
	if (S_ISDIR(st.st_mode)) {
		err_set(err, ERR_USAGE, "%s: is a folder; name a TOML file or a batch script",
			file);
		return NULL;
	}
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		err_errno(err, "%s", file);
		return NULL;
	}
	text = read_stream(fd, file, len, err);
	close(fd);
	return text;
}

/* A run spec, or a batch script; "-": from standard input, and called as sbatch calls it. */
static int add_file(json_t *args, const char *word, const struct ctl *ctl, struct err *err)
{
	bool is_stdin = strcmp(word, "-") == 0;
	const char *file = is_stdin ? "standard input" : word;
	struct err why = { 0 };
	size_t len;
	char *text;

	text = is_stdin ? read_stream(STDIN_FILENO, file, &len, &why)
			: read_operand(file, &len, &why);
	if (!text && why.code == ERR_NOT_FOUND)
		return no_such_file(args, &ctl->operands, file, err);
	if (!text)
		return err_set(err, ERR_USAGE, "%s", why.text);
	/* a script may be in whatever its author's editor wrote, as for sbatch */
	if (strlen(text) != len || (!is_script(file, text) && !text_is_utf8(text, len))) {
		free(text);
		return err_set(err, ERR_USAGE,
			       "%s: this is no text; a TOML file is UTF-8, a script begins with #!",
			       file);
	}
	/* to lbd it is a file, and nobody would find that */
	if (is_stdin && is_script(file, text) &&
	    directives_check_script(text, len, file, err) < 0) {
		free(text);
		return -1;
	}
	if (is_script(file, text)) {
		batch_add_script(args, is_stdin ? "sbatch" : file, text, &ctl->operands);
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

/* lbd asks for run.workdir where the current folder was removed, or cannot be told. */
static void add_workdir(json_t *args)
{
	/* getcwd gives the physical path: one without links means the same on every node. */
	char *folder = getcwd(NULL, 0);

	if (folder)
		json_object_set_new(args, "workdir", js_bytes(folder));
	free(folder);
}

static void add_words(json_t *args, const char *key, const char *const *words, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, js_bytes(words[i]));
	json_object_set_new(args, key, list);
}

static int add_wrap(json_t *args, const struct ctl *ctl, struct err *err)
{
	const char *command = ctl->options.wrap;

	if (json_object_get(args, "script"))
		return err_set(err, ERR_USAGE, "--wrap: excludes a batch script");
	if (ctl->operands.rest_count > 0)
		return err_set(err, ERR_USAGE, "--wrap: excludes a command after --");
	if (!text_is_utf8(command, strlen(command)))
		return err_set(err, ERR_USAGE, "--wrap: this is not UTF-8");
	batch_add_wrap(args, command);
	return 0;
}

/* The code as it is now, for whoever asks later what the run was made of. A request that would
 * become too long by that goes without the changes. */
static void add_code(json_t *args)
{
	char *folder = js_bytes_take(json_object_get(args, "workdir"));
	json_t *code = folder ? code_of(folder) : NULL;

	if (!code)
		return;
	json_object_set_new(args, "code", code);
	if (json_dumpb(args, NULL, 0, JSON_COMPACT) > CONTROL_MAX_BYTES - REQUEST_ROOM_BYTES) {
		json_object_del(code, "files");
		json_object_del(code, "patch");
		js_set_str(code, "why", "the changes do not fit beside the script");
	}
	free(folder);
}

/* lbd moves the copy into the run's folder: it is made beside that. The folder's path; owned. */
static char *choose_copy(struct ctl *ctl, struct err *err)
{
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, err);
	char *runs = lbd ? js_bytes_take(json_object_get(lbd, "runs_folder")) : NULL, *path = NULL;

	if (lbd && !runs)
		err_set(err, ERR_USAGE, "--snapshot: this lbd is too old for it");
	if (runs)
		path = path_join("%s/" SNAPSHOT_PREFIX "%016llx", runs,
				 (unsigned long long)random_u64());
	free(runs);
	json_decref(lbd);
	return path;
}

json_t *submission_send(struct ctl *ctl, json_t *args, struct err *err)
{
	bool is_wanted = ctl->options.snapshot && !js_bool(args, "dry_run", false);
	char *folder = js_bytes_take(json_object_get(args, "workdir"));
	char *copy = is_wanted && folder ? choose_copy(ctl, err) : NULL;
	json_t *data = NULL;

	if (is_wanted && !folder)
		err_set(err, ERR_USAGE, "the current folder cannot be told: cd into the code's");
	if (is_wanted && (!copy || snapshot_make(folder, copy, err) < 0)) {
		err_wrap(err, "--snapshot");
		json_decref(args);
	} else {
		if (copy)
			json_object_set_new(args, "snapshot", js_bytes(path_base(copy)));
		data = client_ask(&ctl->client, VERB_SUBMIT, args, err);
	}
	if (copy && !data) /* else it was moved away */
		folder_remove(copy, NULL);
	free(copy);
	free(folder);
	return data;
}

json_t *submission(const struct ctl *ctl, struct err *err)
{
	const struct operands *o = &ctl->operands;
	json_t *args = json_object();
	bool has_script;
	json_t *env;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->count; i++)
		rc = add_file(args, o->words[i], ctl, err);
	if (rc == 0 && ctl->options.wrap)
		rc = add_wrap(args, ctl, err);
	has_script = json_object_get(args, "script") != NULL;
	if (rc == 0 && o->count > 1 && (!has_script || !json_object_get(args, "toml")))
		rc = err_set(err, ERR_USAGE,
			     "submit: two files must be a run spec and a batch script");
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
		add_words(args, "after_ok", ctl->options.after_ok.items,
			  ctl->options.after_ok.count);
	if (rc == 0)
		rc = add_settings(args, &ctl->options, err);
	add_workdir(args);
	env = has_script ? batch_environment() : kept_environment();
	limits_tell(env);
	json_object_set_new(args, "env", env);
	if (ctl->options.dry_run)
		json_object_set_new(args, "dry_run", json_true());
	else if (rc == 0)
		add_code(args);
	if (rc == 0)
		return args;
	json_decref(args);
	return NULL;
}

void submission_note(const struct ctl *ctl, const json_t *answer)
{
	const char *note = js_str(answer, "note", NULL);

	if (note)
		complain(ctl, note);
}
