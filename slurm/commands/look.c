/* SPDX-License-Identifier: MIT */
/* look.c - squeue's answer, read only when it is whole.
 *
 * With -v squeue says first how many records the controller sent; then comes one line for each, of
 * columns with fixed widths. An answer that is empty, cut or something else cannot be taken for one
 * in which a job is missing: the number is not there, or the lines are not as many, or not as
 * long. */
#include "slurm/commands/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "slurm/job_result.h"
#include "slurm/pipe/command.h"
#include "slurm/pipe/known.h"
#include "slurm/pipe/words.h"
#include "slurm/reasons.h"

enum column {
	ARRAY,
	TASK,
	ID,
	UID,
	SUBMITTED,
	STATE,
	EXIT_CODE,
	PRIORITY,
	START,
	END,
	RESTARTS,
	REASON,
	COMMENT,
	NODES,
	COLUMNS
};

enum { VALUE_BYTES = 257 };

/* What would not fit squeue cuts off; only comments, of which the beginning counts, and names of
 * nodes may be so long. */
static const struct {
	const char *name;
	int width;
} columns[COLUMNS] = {
	[ARRAY] = { "ArrayJobID", 12 },
	[TASK] = { "ArrayTaskID", 24 },
	[ID] = { "JobID", 12 },
	[UID] = { "UserID", 12 },
	[SUBMITTED] = { "SubmitTime", 22 },
	[STATE] = { "State", 24 },
	[EXIT_CODE] = { "exit_code", 12 },
	[PRIORITY] = { "PriorityLong", 22 },
	[START] = { "StartTime", 22 },
	[END] = { "EndTime", 22 },
	[RESTARTS] = { "RestartCnt", 12 },
	[REASON] = { "Reason", 64 },
	[COMMENT] = { "Comment", 56 },
	[NODES] = { "NodeList", 256 },
};

static char *format(void)
{
	struct buf out;

	buf_init(&out, 1024);
	for (int i = 0; i < COLUMNS; i++)
		buf_addf(&out, "%s%s:%d", i ? "," : "", columns[i].name, columns[i].width);
	return buf_take(&out);
}

static size_t line_bytes(void)
{
	size_t bytes = 1; /* its end */

	for (int i = 0; i < COLUMNS; i++)
		bytes += (size_t)columns[i].width;
	return bytes;
}

/* --- a line ----------------------------------------------------------------------------------- */

/* One column's text without the blanks that fill it up. */
static void value_of(const char *line, enum column column, char out[VALUE_BYTES])
{
	size_t len = (size_t)columns[column].width;

	for (int i = 0; i < (int)column; i++)
		line += columns[i].width;
	while (len > 0 && line[len - 1] == ' ')
		len--;
	memcpy(out, line, len);
	out[len] = '\0';
}

/* A number that fills its column may have been cut. */
static int number_of(const char *line, enum column column, int64_t *out)
{
	char text[VALUE_BYTES], *end;

	value_of(line, column, text);
	*out = strtoll(text, &end, 10);
	return end == text || *end || (int)strlen(text) >= columns[column].width ? -1 : 0;
}

/* What wait(2) says: that number, or, as newer releases print it, "exit status:signal". */
static int exit_of(const char *line, int64_t *out)
{
	char text[VALUE_BYTES], *colon, *end;
	int64_t status, signo;

	value_of(line, EXIT_CODE, text);
	colon = strchr(text, ':');
	if (!colon)
		return number_of(line, EXIT_CODE, out);
	status = strtoll(text, &end, 10);
	if (end == text || end != colon)
		return -1;
	signo = strtoll(colon + 1, &end, 10);
	if (end == colon + 1 || *end)
		return -1;
	*out = status * 256 + signo;
	return 0;
}

/* "N/A", "NONE", "Unknown": not yet. */
static int time_of(const char *line, enum column column, int64_t *out)
{
	char text[VALUE_BYTES];

	value_of(line, column, text);
	if (text[0] >= '0' && text[0] <= '9')
		return number_of(line, column, out);
	*out = 0;
	return 0;
}

/* squeue prints a flag instead of the state below it. A job that is COMPLETING has ended, but how
 * is only told when its nodes are free: until then it still runs. */
static uint32_t state_of(const char *word)
{
	static const struct {
		const char *word;
		uint32_t state;
	} flags[] = {
		{ "COMPLETING", SJ_RUNNING },    { "CONFIGURING", SJ_RUNNING | SJ_CONFIGURING },
		{ "STAGE_OUT", SJ_RUNNING },     { "SIGNALING", SJ_RUNNING },
		{ "RESIZING", SJ_RUNNING },      { "STOPPED", SJ_SUSPENDED },
		{ "REQUEUED", SJ_PENDING },      { "REQUEUE_FED", SJ_PENDING },
		{ "REQUEUE_HOLD", SJ_PENDING },  { "SPECIAL_EXIT", SJ_PENDING },
		{ "RESV_DEL_HOLD", SJ_PENDING }, { "POWER_UP_NODE", SJ_PENDING },
		{ "EXPEDITING", SJ_PENDING },    { "REVOKED", SJ_CANCELLED },
	};
	uint32_t state;

	if (slurm_state_from_word(word, &state))
		return state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(flags[i].word, word) == 0)
			return flags[i].state;
	}
	log_warn("squeue tells a state that is not known: %s", word);
	return SJ_RUNNING; /* nothing is over before it is known to be */
}

static int read_numbers(const char *line, struct seen *job)
{
	struct wire_row *row = &job->row;
	int64_t id, uid, priority, restarts;

	if (number_of(line, ARRAY, &row->job_id) || number_of(line, ID, &id) ||
	    number_of(line, UID, &uid) || exit_of(line, &row->exit_code) ||
	    number_of(line, PRIORITY, &priority) || number_of(line, RESTARTS, &restarts) ||
	    number_of(line, SUBMITTED, &row->submit_time) ||
	    time_of(line, START, &row->start_time) || time_of(line, END, &row->end_time))
		return -1;
	job->job_id = (uint32_t)id;
	job->uid = (uint32_t)uid;
	row->is_held = priority == 0;
	row->restarts = restarts;
	return row->job_id > 0 && id > 0 ? 0 : -1;
}

/* Of a job without a limit Slurm tells an end after a year. */
static int64_t limit_of(const struct wire_row *row)
{
	enum { YEAR_S = 365 * 24 * 3600 };

	return row->start_time > 0 && row->end_time < row->start_time + YEAR_S ? row->end_time : 0;
}

/* The start of a job that has not started is an estimate; the end of one that runs, its limit. */
static int read_line(const char *line, struct seen *job)
{
	char text[VALUE_BYTES];
	struct wire_row *row = &job->row;

	if (read_numbers(line, job))
		return -1;
	value_of(line, STATE, text);
	if (!text[0])
		return -1;
	row->state = state_of(text);
	job->is_ending = strcmp(text, "COMPLETING") == 0;
	if ((row->state & SJ_MASK) == SJ_PENDING)
		row->start_time = 0;
	if ((row->state & SJ_MASK) <= SJ_SUSPENDED) {
		row->limit_time = limit_of(row);
		row->end_time = 0;
	}
	value_of(line, REASON, text);
	row->reason = slurm_reason_told(text);
	value_of(line, TASK, text);
	job->is_task = strcmp(text, "N/A") != 0;
	snprintf(job->tasks, sizeof(job->tasks), "%.24s",
		 (int)strlen(text) < columns[TASK].width ? text : "...");
	value_of(line, COMMENT, text);
	wire_comment_parse(text, row->ledger_id, row->token);
	value_of(line, NODES, text);
	job->nodes = xstrdup(text);
	return 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Where the lines begin, and how many records the controller sent; NULL when that was not told. */
static const char *find_lines(const char *text, int64_t *time, size_t *records)
{
	static const char head[] = "last_update_time=", middle[] = " records=";
	const char *at = text, *newline;
	char *end;

	while (at && strncmp(at, head, sizeof(head) - 1) != 0) {
		newline = strchr(at, '\n');
		at = newline ? newline + 1 : NULL;
	}
	if (!at)
		return NULL;
	*time = strtoll(at + sizeof(head) - 1, &end, 10);
	if (strncmp(end, middle, sizeof(middle) - 1) != 0)
		return NULL;
	at = end + sizeof(middle) - 1;
	*records = strtoul(at, &end, 10);
	if (end == at || *end != '\n')
		return NULL;
	return end + 1;
}

/* squeue makes one line of the waiting tasks of an array, however many records they have: then
 * there may be fewer lines, and the answer is only good when it comes twice. */
static bool may_be_joined(const struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		if (look->jobs[i].is_task && (look->jobs[i].row.state & SJ_MASK) == SJ_PENDING)
			return true;
	}
	return false;
}

enum { WHOLE, JOINED, CUT };

static int read_answer(const struct said *said, struct look *look)
{
	size_t records, bytes = line_bytes(), left;
	const char *line = find_lines(said->out, &look->time, &records);

	if (!line)
		return CUT;
	left = said->len - (size_t)(line - said->out);
	if (left % bytes || left / bytes > records)
		return CUT;
	look->count = left / bytes;
	look->jobs = xcalloc(look->count + 1, sizeof(*look->jobs));
	for (size_t i = 0; i < look->count; i++, line += bytes) {
		if (line[bytes - 1] != '\n' || read_line(line, &look->jobs[i]))
			return CUT;
	}
	for (size_t i = 0; i < look->count; i++) {
		look->jobs[i].row.nodes = look->jobs[i].nodes;
		look->jobs[i].row.failed = "";
	}
	return look->count == records ? WHOLE : may_be_joined(look) ? JOINED : CUT;
}

static void ask(const char *option, const char *which, struct said *said)
{
	char *names = format(), *fields = xasprintf("--Format=%s", names);
	const char *const words[] = {
		"squeue", "-v", "-h", "-a", "--states=all", option, which, fields, NULL,
	};

	command_ask(words, said);
	free(fields);
	free(names);
}

/* --- long lists of nodes ---------------------------------------------------------------------- */

static bool may_be_cut(const struct seen *job)
{
	return (int)strlen(job->nodes) >= columns[NODES].width;
}

/* "7 n[1-3]" */
static void take_list(struct look *look, char *line)
{
	char *blank = strchr(line, ' ');
	uint32_t id = (uint32_t)strtoul(line, NULL, 10);

	for (size_t i = 0; blank && i < look->count; i++) {
		struct seen *job = &look->jobs[i];

		if (job->job_id != id)
			continue;
		free(job->nodes);
		job->row.nodes = job->nodes = xstrndup(blank + 1, strcspn(blank + 1, " "));
		job->is_listed = true;
	}
}

static char *ids_of_cut(const struct look *look)
{
	struct buf ids;

	buf_init(&ids, 1 << 20);
	for (size_t i = 0; i < look->count; i++)
		if (may_be_cut(&look->jobs[i]))
			buf_addf(&ids, "%s%u", ids.len ? "," : "", look->jobs[i].job_id);
	return buf_take(&ids);
}

/* What fills its column was cut, perhaps within a name: of those jobs squeue prints the list once
 * more, as long as it is. */
static int look_whole(struct answer *a, struct look *look)
{
	char *ids = ids_of_cut(look), *rest, *line;
	const char *const words[] = {
		"squeue", "-h", "-a", "--states=all", "-j", ids, "--format=%A %N", NULL,
	};
	struct said said = { 0 };
	int rc = 0;

	if (ids[0])
		command_ask(words, &said);
	rest = said.out;
	if (said.status != 0)
		rc = said_failed(a, &said, false, "squeue");
	while (rc == 0 && (line = strsep(&rest, "\n")))
		take_list(look, line);
	said_clear(&said);
	free(ids);
	for (size_t i = 0; i < look->count && rc == 0; i++)
		if (may_be_cut(&look->jobs[i]) && !look->jobs[i].is_listed)
			rc = answer_set(a, SCHEDULER_DOWN,
					"squeue does not tell all nodes of job %u",
					look->jobs[i].job_id);
	return rc;
}

static int look(struct answer *a, const char *option, const char *which, struct look *look)
{
	struct said said, again = { 0 };
	int rc = 0, form;

	*look = (struct look){ 0 };
	ask(option, which, &said);
	if (said.status != 0) {
		rc = said_failed(a, &said, false, "squeue");
	} else {
		form = read_answer(&said, look);
		if (form == JOINED)
			ask(option, which, &again);
		if (form == CUT || (form == JOINED && (again.status != 0 || again.len != said.len ||
						       memcmp(again.out, said.out, said.len) != 0)))
			rc = answer_set(a, SCHEDULER_DOWN, "squeue's answer is not whole: %.200s",
					said.errors);
	}
	said_clear(&said);
	said_clear(&again);
	return rc ? rc : look_whole(a, look);
}

int look_all(struct answer *a, struct look *out)
{
	char uid[16];

	snprintf(uid, sizeof(uid), "%u", getuid());
	return look(a, "-u", uid, out);
}

int look_at(struct answer *a, uint32_t job_id, struct look *out)
{
	char id[16];

	snprintf(id, sizeof(id), "%u", job_id);
	return look(a, "-j", id, out);
}

void look_clear(struct look *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->jobs[i].nodes);
	free(l->jobs);
	free(l->down);
	*l = (struct look){ 0 };
}

char *look_line(uint32_t job_id, const char *format)
{
	char id[16], *line = NULL;
	const char *const words[] = {
		"squeue", "-h", "-a", "--states=all", "-j", id, format, NULL,
	};
	struct said said;

	snprintf(id, sizeof(id), "%u", job_id);
	command_ask(words, &said);
	if (said.status == 0 && strchr(said.out, '\n'))
		line = xstrndup(said.out, strcspn(said.out, "\n"));
	said_clear(&said);
	return line;
}

bool seen_is_held(const struct seen *job)
{
	return (job->row.state & SJ_MASK) == SJ_PENDING && job->row.is_held;
}

/* --- which record counts ---------------------------------------------------------------------- */

static int weight_of(const struct seen *job, const struct array_ends *ends)
{
	const struct wire_row *row = &job->row;

	return array_record_weight((uint32_t)row->state, (uint32_t)row->reason, job->nodes[0],
				   row->end_time, ends);
}

static const struct seen *foremost(const struct seen *const *jobs, size_t count)
{
	const struct seen *best = NULL;
	struct array_ends ends = { 0 };

	for (size_t i = 0; i < count; i++)
		array_ends_add(&ends, (uint32_t)jobs[i]->row.state, (uint32_t)jobs[i]->row.reason,
			       jobs[i]->row.end_time);
	for (size_t i = 0; i < count; i++)
		if (!best || weight_of(jobs[i], &ends) > weight_of(best, &ends))
			best = jobs[i];
	return best;
}

static int by_array(const void *a, const void *b)
{
	const struct seen *x = *(const struct seen *const *)a, *y = *(const struct seen *const *)b;

	return (x->row.job_id > y->row.job_id) - (x->row.job_id < y->row.job_id);
}

const struct seen **look_foremost_of_each(const struct look *l, size_t *count)
{
	const struct seen **jobs = xcalloc(l->count + 1, sizeof(struct seen *));
	size_t kept = 0, end;

	for (size_t i = 0; i < l->count; i++)
		jobs[i] = &l->jobs[i];
	qsort(jobs, l->count, sizeof(struct seen *), by_array);
	for (size_t i = 0; i < l->count; i = end) {
		for (end = i + 1; end < l->count && by_array(&jobs[i], &jobs[end]) == 0; end++)
			;
		jobs[kept++] = foremost(jobs + i, end - i);
	}
	*count = kept;
	return jobs;
}

const struct seen *look_foremost(const struct look *l, const struct seen *of)
{
	const struct seen **jobs = xcalloc(l->count + 1, sizeof(struct seen *)), *best;
	size_t count = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->jobs[i].row.job_id == of->row.job_id && l->jobs[i].uid == of->uid)
			jobs[count++] = &l->jobs[i];
	best = foremost(jobs, count);
	free(jobs);
	return best;
}

/* Of an array each task that was sent back into the queue has a submission of its own. */
static bool has_ours(const struct look *l, const json_t *request)
{
	const char *token = js_str(request, "token", "-");
	int64_t submit_time = js_int(request, "submit_time", -1);

	for (size_t i = 0; i < l->count; i++)
		if (l->jobs[i].uid == getuid() && strcmp(l->jobs[i].row.token, token) == 0 &&
		    l->jobs[i].row.submit_time == submit_time)
			return true;
	return false;
}

int look_find(struct answer *a, const json_t *request, struct look *l, const struct seen **job)
{
	uint32_t job_id = (uint32_t)js_int(request, "job_id", 0);

	*job = NULL;
	if (look_at(a, job_id, l))
		return -1;
	if (l->count == 0)
		return answer_set(a, SCHEDULER_DOWN, "squeue tells nothing of job %u", job_id);
	for (size_t i = 0; i < l->count; i++) {
		if (!l->jobs[i].row.token[0])
			known_find_now(&l->jobs[i].row);
	}
	*job = look_foremost(l, &l->jobs[0]);
	if (!has_ours(l, request))
		return answer_set(a, SCHEDULER_GONE, "job %u is another one now", job_id);
	return 0;
}
