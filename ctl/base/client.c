/* SPDX-License-Identifier: MIT */
/* client.c - one request to lbd and its answer, with a deadline.
 *
 * A stopped or sick lbd must not hang the terminal: connecting and answering share one deadline.
 * Sending uses MSG_NOSIGNAL, because SIGPIPE is left to end us when *our* reader goes away. */
#include "ctl/base/client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/config/keys.h"
#include "common/run/lease.h"
#include "common/base/paths.h"
#include "common/base/sock.h"

enum {
	DEADLINE_MS = 30 * 1000,
	DEADLINE_LEAST_MS = 1000, /* what a busy lbd may take */
	RETRY_MS = 250,
	ANSWER_MAX_BYTES = 64 * 1024 * 1024,
	MAX_NAMES = 10000,
};

static volatile sig_atomic_t stop_signal;

static void on_stop(int number)
{
	stop_signal = number;
}

void interrupt_catch(void)
{
	/* No SA_RESTART: waiting calls are to return. The second signal finds the default. */
	struct sigaction sa = { .sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

bool interrupted(void)
{
	return stop_signal != 0;
}

void nap(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	if (ms > 0 && !interrupted())
		nanosleep(&t, NULL);
}

int client_init(struct client *client, const char *home, struct err *err)
{
	*client = (struct client){ .fd = -1,
				   .patience_ms = CLIENT_PATIENCE_MS,
				   .deadline_ms = DEADLINE_MS };
	buf_init(&client->in, ANSWER_MAX_BYTES);
	if (home && home[0] == '\0')
		return err_set(err, ERR_USAGE, "--home needs a folder");
	if (home && setenv("LB_HOME", home, 1) < 0)
		return err_errno(err, "LB_HOME");
	client->home = path_lb_home(err);
	return client->home ? 0 : -1;
}

void client_hurry(struct client *client, int64_t left_ms)
{
	client->deadline_ms = left_ms < DEADLINE_LEAST_MS ? DEADLINE_LEAST_MS
			      : left_ms < DEADLINE_MS     ? left_ms
							  : DEADLINE_MS;
}

static void hang_up(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->in.len = 0;
}

void client_fini(struct client *client)
{
	hang_up(client);
	buf_fini(&client->in);
	free(client->home);
	client->home = NULL;
}

static int not_running(const struct client *client, const char *why, struct err *err)
{
	char *path = lease_path(client->home, 0);
	struct lease lease;
	bool is_known = lease_read(path, &lease, NULL) == 0;

	free(path);
	if (is_known && lease.ended_ms == 0 && !lease_is_here(&lease))
		return err_set(err, ERR_DAEMON,
			       lease_is_silent(&lease)
				       ? "lbd for %s is silent (pid %lld on %s): "
					 "lbctl daemon start takes its place"
				       : "lbd for %s is at work elsewhere (pid %lld on %s): "
					 "log in there, or see: lbctl daemon status",
			       client->home, (long long)lease.pid, lease.host);
	return err_set(err, ERR_DAEMON,
		       "lbd is not running for %s (%s); start it with: "
		       "lbctl daemon start",
		       client->home, why);
}

static const char *why_silent(const struct client *client)
{
	struct stat st;

	if (stat(client->home, &st) < 0)
		return errno == EACCES ? "that folder is not open to you"
				       : "there is no such folder";
	return S_ISDIR(st.st_mode) ? "nobody listens at lbd.sock" : "that is no folder";
}

/* 1 ready, 0 the deadline is over, -1 a signal wants us to stop. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int64_t left = deadline_ms - clock_mono_ms();
		int n = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (interrupted())
			return -1;
		if (n > 0)
			return 1;
		if (n == 0)
			return 0;
	}
}

static int no_answer(struct client *client, int waited, struct err *err)
{
	hang_up(client);
	if (waited < 0)
		return err_set(err, ERR_INTERNAL, "interrupted");
	return err_set(err, ERR_TIMEOUT,
		       "lbd for %s has not answered for %lld s; it may be "
		       "stopped or overloaded",
		       client->home, (long long)client->deadline_ms / 1000);
}

static int dial(struct client *client, struct err *err)
{
	struct err why = { 0 };
	char *path = path_join("%s/lbd.sock", client->home);

	client->fd = sock_connect(path, client->deadline_ms, &why);
	free(path);
	if (client->fd >= 0)
		return 0;
	if (why.code == ERR_DAEMON)
		return not_running(client, why_silent(client), err);
	if (why.code == ERR_TIMEOUT)
		return no_answer(client, 0, err);
	return err_set(err, why.code, "cannot reach lbd: %s", why.text);
}

static int went_away(struct client *client, struct err *err)
{
	hang_up(client);
	return err_set(err, ERR_DAEMON,
		       "lbd for %s ended before it answered; look again in a "
		       "moment",
		       client->home);
}

static int send_line(struct client *client, const char *line, int64_t deadline_ms, struct err *err)
{
	size_t len = strlen(line);

	while (len > 0) {
		int ready = wait_for(client->fd, POLLOUT, deadline_ms);
		ssize_t n;

		if (ready <= 0)
			return no_answer(client, ready, err);
		n = send(client->fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && errno == EPIPE)
			return 0; /* it may have said why before it hung up: read that */
		if (n < 0)
			return went_away(client, err);
		line += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Length of the first line in client->in, without the newline; -1 with err. */
static ssize_t read_line(struct client *client, int64_t deadline_ms, struct err *err)
{
	static char chunk[64 * 1024];
	size_t seen = 0;

	for (;;) {
		size_t fresh = client->in.len - seen;
		const char *end = fresh ? memchr(client->in.data + seen, '\n', fresh) : NULL;
		int ready;
		ssize_t n;

		if (end)
			return end - client->in.data;
		seen = client->in.len;
		ready = wait_for(client->fd, POLLIN, deadline_ms);
		if (ready <= 0)
			return no_answer(client, ready, err);
		n = recv(client->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return went_away(client, err);
		if (buf_add(&client->in, chunk, (size_t)n) < 0) {
			hang_up(client);
			return err_set(err, ERR_INTERNAL, "lbd's answer is larger than %d MiB",
				       ANSWER_MAX_BYTES >> 20);
		}
	}
}

/* All verbs that we have are asked as our table spells them. */
static const char *advice_for(const char *text)
{
	return text_begins_with(text, VERB_UNKNOWN)
		       ? ": the lbd that runs is older than this lbctl; lbctl daemon restart "
			 "starts today's"
		       : "";
}

/* Takes `answer`. */
static json_t *open_answer(json_t *answer, struct err *err)
{
	const char *text = js_str(answer, "text", "lbd refused and did not say why");
	json_t *data = NULL;

	if (js_int(answer, "v", 0) != CONTROL_VERSION)
		err_set(err, ERR_INTERNAL,
			"lbd speaks version %lld of the protocol, this lbctl "
			"%d; use the lbctl that came with it",
			(long long)js_int(answer, "v", 0), CONTROL_VERSION);
	else if (js_bool(answer, "ok", false))
		data = json_incref(json_object_get(answer, "data"));
	else
		err_set(err, err_code_from_name(js_str(answer, "error", "internal")), "%s%s", text,
			advice_for(text));
	if (!data && err->code == ERR_NONE)
		err_set(err, ERR_INTERNAL, "lbd's answer holds no data");
	json_decref(answer);
	return data;
}

/* Takes `args`. */
static char *request_line(enum verb verb, json_t *args, struct err *err)
{
	json_t *request = json_pack("{s:i, s:s, s:o}", "v", CONTROL_VERSION, "verb",
				    verb_info[verb].name, "args", args ? args : json_object());
	char *text = js_line(request);
	char *line = xasprintf("%s\n", text);

	free(text);
	json_decref(request);
	if (strlen(line) <= CONTROL_MAX_BYTES)
		return line;
	free(line);
	err_set(err, ERR_USAGE,
		"too much for one request: lbd takes at most %d KiB of file, "
		"command and environment together",
		CONTROL_MAX_BYTES / 1024);
	return NULL;
}

static json_t *exchange(struct client *client, const char *line, struct err *err)
{
	int64_t deadline_ms = clock_mono_ms() + client->deadline_ms;
	json_t *answer;
	ssize_t len;

	client->sent = false;
	if (client->fd < 0 && dial(client, err) < 0)
		return NULL;
	if (send_line(client, line, deadline_ms, err) < 0)
		return NULL;
	client->sent = true;
	len = read_line(client, deadline_ms, err);
	if (len < 0)
		return NULL;
	answer = js_parse(client->in.data, (size_t)len, err);
	buf_drop(&client->in, (size_t)len + 1);
	if (answer)
		return open_answer(answer, err);
	hang_up(client);
	err->code = ERR_INTERNAL;
	err_wrap(err, "lbd's answer makes no sense");
	return NULL;
}

json_t *client_ask(struct client *client, enum verb verb, json_t *args, struct err *err)
{
	char *line = request_line(verb, args, err);
	json_t *data = line ? exchange(client, line, err) : NULL;

	free(line);
	return data;
}

int64_t client_peer_pid(const struct client *client)
{
	struct ucred peer = { 0 };
	socklen_t bytes = sizeof(peer);

	if (client->fd < 0 || getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
		return 0;
	return peer.pid;
}

static void say(const struct client *client, const char *text)
{
	if (client->tell)
		client->tell(client->tell_arg, text);
}

/* Whether to try again. */
static bool still_patient(struct client *client, const struct err *err)
{
	if (err->code != ERR_DAEMON)
		return false;
	if (!client->away) {
		client->away = true;
		client->away_since_ms = clock_mono_ms();
		say(client, "lbd is away; waiting up to a minute for it to come back (the run "
			    "goes on)");
	}
	return clock_mono_ms() - client->away_since_ms < client->patience_ms;
}

json_t *client_ask_patient(struct client *client, enum verb verb, json_t *args, struct err *err)
{
	char *line = request_line(verb, args, err);
	json_t *data = line ? exchange(client, line, err) : NULL;

	while (line && !data && !interrupted() && still_patient(client, err)) {
		nap(RETRY_MS);
		if (interrupted())
			break;
		err_clear(err);
		data = exchange(client, line, err);
	}
	free(line);
	if (client->away && err->code != ERR_DAEMON && !interrupted()) {
		client->away = false;
		say(client, "lbd is back");
	}
	if (!data && interrupted())
		err_clear(err);
	return data;
}

void client_suggest(struct client *client, const char *run, struct err *err)
{
	struct err quiet = { 0 };
	const char **names;
	const char *near;
	size_t count = 0;
	json_t *runs, *each;
	size_t i;

	if (err->code != ERR_NOT_FOUND)
		return;
	runs = client_ask(client, VERB_LS, json_pack("{s:b}", "all", 1), &quiet);
	names = xcalloc(MAX_NAMES, sizeof(*names));
	json_array_foreach(runs, i, each) {
		const char *name = js_str(each, "name", NULL);

		if (name && count < MAX_NAMES)
			names[count++] = name;
	}
	near = nearest(run, names, count);
	if (near) {
		struct err more = { 0 };

		err_set(&more, ERR_NOT_FOUND, "%s; did you mean %s?", err->text, near);
		*err = more;
	}
	free(names);
	json_decref(runs);
}
