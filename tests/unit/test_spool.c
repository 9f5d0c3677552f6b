/* SPDX-License-Identifier: MIT */
/* test_spool.c - lines in pieces, cut off, and out of order. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/run/spool.h"

struct seen {
	int64_t seqs[64];
	int count, bad;
	int64_t bad_at;
	char why[504];
	int stop_at; /* seq at which on_line says no; 0 = never */
};

static int on_line(const struct spool_line *line, void *arg)
{
	struct seen *seen = arg;

	if (seen->stop_at && line->seq == seen->stop_at)
		return -1;
	assert_true(seen->count < 64);
	seen->seqs[seen->count++] = line->seq;
	assert_string_equal(js_str(line->line, "type", ""), "note");
	return 0;
}

static void on_bad(int64_t offset, const struct err *why, void *arg)
{
	struct seen *seen = arg;

	seen->bad++;
	seen->bad_at = offset;
	snprintf(seen->why, sizeof(seen->why), "%s", why->text);
}

static void append(struct spool_writer *w, int lines)
{
	json_t *line = json_pack("{s:s,s:s}", "type", "note", "text", "a\nb");

	for (int i = 0; i < lines; i++)
		assert_int_equal(spool_append(w, 2, false, line, NULL), 0);
	json_decref(line);
}

static void open_writer(struct spool_writer *w, const char *path, int64_t seq)
{
	struct err err = { 0 };

	if (spool_writer_open(w, path, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(w->seq, seq);
}

static void add_text(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "a");

	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

static int64_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void test_write_and_tail(void **state)
{
	struct spool_writer w;
	struct seen seen = { 0 };
	int64_t offset = 0;

	(void)state;
	assert_int_equal(spool_read("a", &offset, 1000, on_line, on_bad, &seen, NULL), 0);
	open_writer(&w, "a", 0);
	append(&w, 3);
	assert_int_equal(spool_sync(&w, NULL), 0);
	assert_int_equal(spool_read("a", &offset, 1 << 20, on_line, on_bad, &seen, NULL),
			 size_of("a"));
	assert_int_equal(offset, size_of("a"));
	append(&w, 2);
	spool_read("a", &offset, 1 << 20, on_line, on_bad, &seen, NULL);
	assert_int_equal(seen.count, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(seen.seqs[i], i + 1);
	assert_int_equal(spool_read("a", &offset, 1 << 20, on_line, on_bad, &seen, NULL), 0);
	spool_writer_close(&w);
	spool_writer_close(&w);
	assert_int_equal(spool_append(&w, 1, true, NULL, NULL), -1);
	open_writer(&w, "a", 5);
	spool_writer_close(&w);
}

/* Cut at every byte: the reader sees whole lines only, the writer goes on without a gap. */
static void test_torn_at_every_byte(void **state)
{
	struct spool_writer w;
	char *text;
	size_t len, line_end;

	(void)state;
	open_writer(&w, "torn", 0);
	append(&w, 2);
	spool_writer_close(&w);
	text = file_read("torn", 100000, &len, NULL);
	line_end = (size_t)(strchr(text, '\n') - text) + 1;
	for (size_t cut = 0; cut <= len; cut++) {
		struct seen seen = { 0 };
		int64_t offset = 0;
		int whole = cut == len ? 2 : cut >= line_end;

		unlink("torn");
		add_text("torn", text, cut);
		spool_read("torn", &offset, 1 << 20, on_line, on_bad, &seen, NULL);
		assert_int_equal(seen.count, whole);
		open_writer(&w, "torn", whole);
		append(&w, 1);
		spool_writer_close(&w);
		spool_read("torn", &offset, 1 << 20, on_line, on_bad, &seen, NULL);
		assert_int_equal(seen.count, whole + 1);
		assert_int_equal(seen.seqs[whole], whole + 1);
		assert_int_equal(seen.bad, 0);
	}
	free(text);
}

static void test_bad_lines(void **state)
{
	static const char *const cases[] = {
		"garbage\n",
		"\n",
		"{}\n",
		"\0\0\0\n",
		"{\"v\":2,\"seq\":9,\"time_ms\":1,\"launch\":1,\"from\":\"lbrun\",\"line\":{}}\n",
		"{\"v\":1,\"seq\":0,\"time_ms\":1,\"launch\":1,\"from\":\"lbrun\",\"line\":{}}\n",
		"{\"v\":1,\"seq\":9,\"time_ms\":1,\"launch\":1,\"from\":\"me\",\"line\":{}}\n",
		"{\"v\":1,\"seq\":9,\"time_ms\":1,\"launch\":1,\"from\":\"lbrun\",\"line\":7}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t len = i == 3 ? 4 : strlen(cases[i]);
		struct spool_writer w;
		struct seen seen = { 0 };
		int64_t offset = 0, before;

		unlink("bad");
		open_writer(&w, "bad", 0);
		append(&w, 1);
		before = size_of("bad");
		add_text("bad", cases[i], len);
		spool_writer_close(&w);
		open_writer(&w, "bad", 1); /* seq goes on behind the last good line */
		append(&w, 1);
		spool_writer_close(&w);
		assert_int_equal(spool_read("bad", &offset, 1 << 20, on_line, on_bad, &seen, NULL),
				 size_of("bad"));
		assert_int_equal(seen.count, 2);
		assert_int_equal(seen.bad, 1);
		assert_int_equal(seen.bad_at, before);
		offset = 0;
		seen = (struct seen){ 0 };
		spool_read("bad", &offset, 1 << 20, on_line, NULL, &seen, NULL);
		assert_int_equal(seen.count, 2);
	}
}

static int see_own(const struct spool_line *line, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	assert_int_equal(line->seq, 9);
	assert_int_equal(line->time_ms, 123456789012);
	assert_int_equal(line->launch, 0);
	assert_true(line->from_trainer);
	assert_int_equal(js_int(line->line, "step", 0), 7);
	if (line->text)
		assert_memory_equal(line->text, "{\"step\":7", 9);
	return 0;
}

/* As our own writer puts it, or as anybody might: it reads the same, and nothing passes as the
 * first that the parser would refuse. */
static void test_envelopes(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
#define OWN "{\"v\":1,\"seq\":9,\"time_ms\":123456789012,\"launch\":0,\"from\":\"trainer\","
		{ OWN "\"line\":{\"step\":7}}", true },
		{ OWN "\"line\":{\"step\":7} }", true },
		{ OWN "\"line\":{\"step\":7,\"s\":\"},\\\"line\\\":{\"}}", true },
		{ OWN "\"line\":{\"step\":7},\"more\":{}}", true },
		{ "{\"line\":{\"step\":7},\"from\":\"trainer\",\"launch\":0,\"time_ms\":123456789012,"
		  "\"seq\":9,\"v\":1}",
		  true },
		{ OWN "\"line\":{\"step\":7},\"line\":{}}", false },
		{ OWN "\"line\":{\"step\":7}}}", false },
		{ OWN "\"line\":{\"step\":7}} {}", false },
		{ OWN "\"line\":{\"step\":07}}", false },
		{ OWN "\"line\":[{\"step\":7}]}", false },
		{ "{\"v\":1,\"seq\":09,\"time_ms\":123456789012,\"launch\":0,\"from\":\"trainer\","
		  "\"line\":{\"step\":7}}",
		  false },
		{ "{\"v\":1,\"seq\":9999999999999999999,\"time_ms\":1,\"launch\":0,\"from\":\"trainer\","
		  "\"line\":{\"step\":7}}",
		  false },
#undef OWN
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct seen seen = { 0 };
		int64_t offset = 0;

		unlink("own");
		add_text("own", cases[i].text, strlen(cases[i].text));
		add_text("own", "\n", 1);
		spool_read("own", &offset, 1 << 20, see_own, on_bad, &seen, NULL);
		assert_int_equal(seen.count, cases[i].good);
		assert_int_equal(seen.bad, !cases[i].good);
	}
}

struct steps {
	int64_t seqs[8], steps[8];
	int count, plain, bad;
};

static int see_step(const struct spool_line *line, void *arg)
{
	struct steps *seen = arg;

	assert_true((line->line == NULL) != (line->step == NULL));
	seen->seqs[seen->count] = line->seq;
	seen->plain += line->step != NULL;
	if (line->step) {
		assert_memory_equal(line->text, "{\"type\":\"step\"", 14);
		assert_int_equal(line->text[line->text_len - 1], '}');
	}
	seen->steps[seen->count++] = line->step ? line->step->step : js_int(line->line, "step", -9);
	return 0;
}

static void count_bad_step(int64_t offset, const struct err *why, void *arg)
{
	(void)offset;
	assert_true(why->text[0]);
	((struct steps *)arg)->bad++;
}

/* Plain steps of a trainer come without a tree, all else as ever. */
static void test_plain_steps(void **state)
{
	static const char text[] =
#define LINE(seq, from, line) \
	"{\"v\":1,\"seq\":" #seq ",\"time_ms\":5,\"launch\":1,\"from\":\"" from \
	"\",\"line\":" line "}\n"
		LINE(1, "lbrun", "{\"type\":\"note\"}")
			LINE(2, "trainer", "{\"type\":\"step\",\"step\":7,\"loss\":0.5}")
				LINE(3, "trainer", "{\"type\":\"step\",\"step\":8,\"at\":\"n1\"}")
					LINE(4, "lbrun", "{\"type\":\"step\",\"step\":9}")
						LINE(5, "trainer",
						     "{\"type\":\"step\",\"step\":07}")
							LINE(6, "trainer",
							     "{\"type\":\"step\",\"step\":10}")
#undef LINE
		;
	static const int64_t steps[] = { -9, 7, 8, 9, 10 }, seqs[] = { 1, 2, 3, 4, 6 };
	struct steps seen = { 0 };
	int64_t offset = 0;

	(void)state;
	unlink("plain");
	add_text("plain", text, sizeof(text) - 1);
	assert_int_equal(spool_read_plain("plain", &offset, 1 << 20, see_step, count_bad_step,
					  &seen, NULL),
			 sizeof(text) - 1);
	assert_int_equal(seen.count, 5);
	assert_int_equal(seen.plain, 2);
	assert_int_equal(seen.bad, 1);
	assert_memory_equal(seen.steps, steps, sizeof(steps));
	assert_memory_equal(seen.seqs, seqs, sizeof(seqs));
}

static void test_long_lines(void **state)
{
	static const size_t sizes[] = { SPOOL_MAX_LINE_BYTES + 1, 300 * 1024, 1024 * 1024 };
	char *big = malloc(2 * 1024 * 1024);

	(void)state;
	memset(big, 'x', 2 * 1024 * 1024);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct spool_writer w;
		struct seen seen = { 0 };
		int64_t offset = 0;

		unlink("long");
		open_writer(&w, "long", 0);
		append(&w, 1);
		add_text("long", big, sizes[i]);
		/* Its newline is still to come: nothing to say yet. */
		spool_read("long", &offset, 1 << 22, on_line, on_bad, &seen, NULL);
		assert_int_equal(seen.count, 1);
		assert_int_equal(seen.bad, 0);
		add_text("long", "\n", 1);
		append(&w, 1);
		spool_writer_close(&w);
		open_writer(&w, "long", 2);
		spool_writer_close(&w);
		/* In tiny bites, and still forwards. */
		while (spool_read("long", &offset, 10, on_line, on_bad, &seen, NULL) > 0)
			;
		assert_int_equal(seen.count, 2);
		assert_int_equal(seen.bad, 1);
		assert_contains(seen.why, "longer than");
		assert_int_equal(offset, size_of("long"));
	}
	free(big);
}

/* Who reads it is lbd, and does nothing else meanwhile. */
static void test_hole(void **state)
{
	struct seen seen = { 0 };
	struct spool_writer w;
	int64_t offset = 0;

	(void)state;
	unlink("hole");
	open_writer(&w, "hole", 0);
	append(&w, 1);
	assert_int_equal(truncate("hole", (off_t)2 << 40), 0);
	add_text("hole", "\n", 1);
	append(&w, 1);
	spool_writer_close(&w);
	alarm(20);
	while (spool_read("hole", &offset, 1 << 22, on_line, on_bad, &seen, NULL) > 0)
		;
	alarm(0);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.bad, 1);
	assert_int_equal(offset, size_of("hole"));
	unlink("hole");
}

static void test_append_refuses_too_long(void **state)
{
	struct spool_writer w;
	struct err err = { 0 };
	char *big = calloc(1, SPOOL_MAX_LINE_BYTES);
	json_t *line;

	(void)state;
	memset(big, 'x', SPOOL_MAX_LINE_BYTES - 1);
	line = json_pack("{s:s,s:s}", "type", "note", "text", big);
	open_writer(&w, "toolong", 0);
	assert_int_equal(spool_append(&w, 1, true, line, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	assert_int_equal(size_of("toolong"), 0);
	append(&w, 1);
	assert_int_equal(w.seq, 1);
	spool_writer_close(&w);
	json_decref(line);
	free(big);
}

static void test_portions_and_stop(void **state)
{
	struct spool_writer w;
	struct seen seen = { .stop_at = 7 };
	struct err err = { 0 };
	int64_t offset = 0, line;

	(void)state;
	open_writer(&w, "p", 0);
	append(&w, 1);
	line = size_of("p");
	append(&w, 8);
	spool_writer_close(&w);
	assert_int_equal(spool_read("p", &offset, 2 * line + 5, on_line, on_bad, &seen, NULL),
			 2 * line);
	assert_int_equal(seen.count, 2);
	assert_int_equal(spool_read("p", &offset, 1 << 20, on_line, on_bad, &seen, &err), -1);
	assert_int_equal(seen.count, 6);
	assert_int_equal(offset, 6 * line);
	seen.stop_at = 0;
	spool_read("p", &offset, 1 << 20, on_line, on_bad, &seen, NULL);
	assert_int_equal(seen.count, 9);
	/* The file shrank below what was read: somebody else's file. */
	assert_int_equal(truncate("p", 10), 0);
	err_clear(&err);
	assert_int_equal(spool_read("p", &offset, 1 << 20, on_line, on_bad, &seen, &err), -1);
	assert_contains(err.text, "shorter");
	assert_int_equal(unlink("p"), 0);
	assert_int_equal(spool_read("p", &offset, 1 << 20, on_line, on_bad, &seen, NULL), 0);
}

/* A full disk, played by the file size limit: write(2) then writes a part of the line, too. */
static void test_disk_full(void **state)
{
	struct rlimit old, low;
	struct spool_writer w;
	struct seen seen = { 0 };
	struct err err = { 0 };
	json_t *line = json_pack("{s:s}", "type", "note");
	int64_t before, offset = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	open_writer(&w, "full", 0);
	append(&w, 2);
	before = size_of("full");
	getrlimit(RLIMIT_FSIZE, &old);
	low = (struct rlimit){ (rlim_t)before + 20, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &low);
	assert_int_equal(spool_append(&w, 1, true, line, &err), -1);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(size_of("full"), before);
	assert_int_equal(w.seq, 2);
	append(&w, 1);
	spool_read("full", &offset, 1 << 20, on_line, on_bad, &seen, NULL);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.bad, 0);
	spool_writer_close(&w);
	json_decref(line);
}

static void test_many_chunks(void **state)
{
	struct spool_writer w;
	int64_t offset = 0, total = 0, n;
	struct seen seen;
	int count = 0;

	(void)state;
	open_writer(&w, "many", 0);
	append(&w, 10000);
	do {
		seen = (struct seen){ 0 };
		n = spool_read("many", &offset, 5000, on_line, on_bad, &seen, NULL);
		for (int i = 0; i < seen.count; i++)
			assert_int_equal(seen.seqs[i], ++count);
		total += n;
	} while (n > 0);
	assert_int_equal(count, 10000);
	assert_int_equal(total, size_of("many"));
	spool_writer_close(&w);
	open_writer(&w, "many", 10000);
	spool_writer_close(&w);
}

static void test_launch_from(void **state)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{ "{\"resumed_from_step\":30,\"resumed_from\":\"/c/ckpt_30.pt\"}", "from step 30" },
		{ "{\"resumed_from_step\":null,\"resumed_from\":\"/c/model.pt\"}",
		  "from model.pt" },
		{ "{\"resumed_from_step\":null,\"resumed_from\":null}", "from scratch" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		json_t *line = js_parse(cases[i].line, strlen(cases[i].line), NULL);
		char *text = spool_launch_from(line);

		assert_string_equal(text, cases[i].text);
		free(text);
		json_decref(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_and_tail),
		cmocka_unit_test(test_torn_at_every_byte),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_envelopes),
		cmocka_unit_test(test_plain_steps),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_append_refuses_too_long),
		cmocka_unit_test(test_portions_and_stop),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_launch_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
