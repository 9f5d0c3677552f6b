/* SPDX-License-Identifier: MIT */
/* webhook.c - a request by libcurl in a thread, with a deadline. */
#include "daemon/notify/webhook.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

enum { CONNECT_S = 5, WHOLE_S = 15 };

struct webhook {
	uv_work_t work;
	char *url, *json;
	void (*done)(void *arg, const char *problem);
	void *arg;
	atomic_bool is_aborted;
	char problem[120];
};

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct webhook *w = arg;

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return atomic_load(&w->is_aborted);
}

static size_t on_answer(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count; /* what it says is of no interest */
}

/* libcurl brings some forty libraries with it, which take more memory than lbd itself: it is opened
 * when the first address is spoken to, by those who have one. Its types and numbers come from its
 * header. */
static struct {
	void *handle; /* NULL: not to be had */
	CURLcode (*global_init)(long flags);
	CURL *(*init)(void);
	CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
	CURLcode (*perform)(CURL *curl);
	CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
	const char *(*strerror)(CURLcode code);
	void (*cleanup)(CURL *curl);
	struct curl_slist *(*append)(struct curl_slist *list, const char *text);
	void (*free_all)(struct curl_slist *list);
} lib;

static uv_once_t opened = UV_ONCE_INIT;

static void open_lib(void)
{
	const struct {
		const char *name;
		void *at;
	} symbols[] = {
		{ "curl_global_init", &lib.global_init }, { "curl_easy_init", &lib.init },
		{ "curl_easy_setopt", &lib.setopt },      { "curl_easy_perform", &lib.perform },
		{ "curl_easy_getinfo", &lib.getinfo },    { "curl_easy_strerror", &lib.strerror },
		{ "curl_easy_cleanup", &lib.cleanup },    { "curl_slist_append", &lib.append },
		{ "curl_slist_free_all", &lib.free_all },
	};
	/* Debian has it behind either library for TLS. */
	void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		handle = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; handle && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (symbol == NULL)
			return; /* never closed: the other symbols may be in use */
		memcpy(symbols[i].at, &symbol, sizeof(symbol));
	}
	if (handle && lib.global_init(CURL_GLOBAL_ALL) == CURLE_OK)
		lib.handle = handle;
}

/* The library that is here may be older than the header, or the header than 7.85. */
static void allow_web_only(CURL *curl)
{
	enum { OPTION_PROTOCOLS = 181, OPTION_PROTOCOLS_STR = 10318, HTTP_AND_HTTPS = 3 };

	if (lib.setopt(curl, (CURLoption)OPTION_PROTOCOLS_STR, "http,https") != CURLE_OK)
		lib.setopt(curl, (CURLoption)OPTION_PROTOCOLS, (long)HTTP_AND_HTTPS);
}

static void set_options(CURL *curl, struct webhook *w, struct curl_slist *headers)
{
	lib.setopt(curl, CURLOPT_URL, w->url);
	allow_web_only(curl);
	if (w->json) {
		lib.setopt(curl, CURLOPT_HTTPHEADER, headers);
		lib.setopt(curl, CURLOPT_POSTFIELDS, w->json);
	}
	lib.setopt(curl, CURLOPT_NOSIGNAL, 1L);
	lib.setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	lib.setopt(curl, CURLOPT_TIMEOUT, (long)WHOLE_S);
	lib.setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
	lib.setopt(curl, CURLOPT_NOPROGRESS, 0L);
	lib.setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	lib.setopt(curl, CURLOPT_XFERINFODATA, w);
}

static void speak(struct webhook *w)
{
	CURL *curl = lib.init();
	struct curl_slist *headers = lib.append(NULL, "Content-Type: application/json");
	CURLcode rc = CURLE_FAILED_INIT;
	long status = 0;

	if (curl) {
		set_options(curl, w, headers);
		rc = lib.perform(curl);
		lib.getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	}
	if (rc != CURLE_OK)
		snprintf(w->problem, sizeof(w->problem), "%s", lib.strerror(rc));
	else if (status < 200 || status > 299)
		snprintf(w->problem, sizeof(w->problem), "it answers with status %ld", status);
	lib.free_all(headers);
	lib.cleanup(curl);
}

static void work(uv_work_t *work)
{
	struct webhook *w = work->data;

	uv_once(&opened, open_lib);
	if (lib.handle)
		speak(w);
	else
		snprintf(w->problem, sizeof(w->problem),
			 "libcurl.so.4 cannot be opened (Debian package libcurl4)");
}

static void on_posted(uv_work_t *work, int status)
{
	struct webhook *w = work->data;

	w->done(w->arg, status == 0 ? w->problem : uv_strerror(status));
	free(w->url);
	free(w->json);
	free(w);
}

struct webhook *webhook_post(uv_loop_t *loop, const char *url, const char *json,
			     void (*done)(void *arg, const char *problem), void *arg)
{
	struct webhook *w = xcalloc(1, sizeof(*w));

	w->work.data = w;
	w->url = xstrdup(url);
	w->json = json ? xstrdup(json) : NULL;
	w->done = done;
	w->arg = arg;
	atomic_init(&w->is_aborted, false);
	uv_queue_work(loop, &w->work, work, on_posted);
	return w;
}

void webhook_abort(struct webhook *w)
{
	atomic_store(&w->is_aborted, true);
	uv_cancel((uv_req_t *)&w->work);
}
