/* SPDX-License-Identifier: MIT */
/* test_sock.c - sockets at short and long paths. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/sock.h"

enum { PATIENCE_MS = 60 * 1000 };

static void talk(const char *path)
{
	struct err err = { 0 };
	int server = sock_listen(path, 0660, &err);
	int client, peer;
	struct stat st;
	char c = 0;

	if (server < 0)
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_true(fcntl(server, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(server, F_GETFD) & FD_CLOEXEC);
	client = sock_connect(path, PATIENCE_MS, &err);
	assert_true(client >= 0);
	assert_false(fcntl(client, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
	peer = accept(server, NULL, NULL);
	assert_int_equal(write(client, "x", 1), 1);
	assert_int_equal(read(peer, &c, 1), 1);
	assert_int_equal(c, 'x');
	/* A second one is refused while the first lives, … */
	assert_int_equal(sock_listen(path, 0660, &err), -1);
	assert_int_equal(err.code, ERR_LOCKED);
	close(peer);
	close(client);
	close(server);
	/* … and what it left behind is replaced afterwards. */
	err_clear(&err);
	assert_int_equal(sock_connect(path, PATIENCE_MS, &err), -1);
	assert_int_equal(err.code, ERR_DAEMON);
	server = sock_listen(path, 0600, NULL);
	assert_true(server >= 0);
	close(server);
}

static void test_short_path(void **state)
{
	(void)state;
	talk("s");
}

static void test_long_path(void **state)
{
	char folder[300] = "", path[320];

	(void)state;
	for (int i = 0; i < 5; i++)
		strncat(folder, &"/a-folder-with-quite-a-long-name-in-it/"[i == 0],
			sizeof(folder) - strlen(folder) - 1);
	assert_int_equal(folder_make(folder, 0700, NULL), 0);
	snprintf(path, sizeof(path), "%slbd.sock", folder);
	assert_true(strlen(path) > 180);
	talk(path);
}

/* A frozen daemon accepts nobody: once its backlog is full, who comes is not kept for ever. */
static void test_frozen(void **state)
{
	struct err err = { 0 };
	int server = sock_listen("frozen", 0600, &err), client, waiting[1000], count = 0;

	(void)state;
	while ((client = sock_connect("frozen", 0, &err)) >= 0 && count < 1000)
		waiting[count++] = client;
	assert_true(count > 0 && count < 1000);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_contains(err.text, "frozen: nobody accepts a connection");
	while (count > 0)
		close(waiting[--count]);
	close(server);
}

static void test_refusals(void **state)
{
	struct err err = { 0 };
	char name[200];

	(void)state;
	assert_int_equal(sock_connect("missing/s", PATIENCE_MS, &err), -1);
	assert_int_equal(err.code, ERR_DAEMON);
	err_clear(&err);
	assert_int_equal(sock_connect("", PATIENCE_MS, &err), -1);
	assert_int_equal(sock_listen("", 0600, NULL), -1);
	err_clear(&err);
	/* A file of somebody's that is no socket is never removed. */
	write_text("file", "precious");
	assert_int_equal(sock_listen("file", 0600, &err), -1);
	assert_contains(err.text, "no socket");
	assert_true(file_exists("file"));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sock_listen(name, 0600, NULL), -1);
	err_clear(&err);
	assert_int_equal(sock_listen("no/such/folder/s", 0600, &err), -1);
	assert_int_equal(err.code, ERR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_path),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
