/* SPDX-License-Identifier: MIT */
#include "daemon/webhook.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"

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
	return size * count;	/* what it says is of no interest */
}

static void set_options(CURL *curl, struct webhook *w, struct curl_slist *headers)
{
	curl_easy_setopt(curl, CURLOPT_URL, w->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, w->json);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)WHOLE_S);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, w);
}

static void post(uv_work_t *work)
{
	struct webhook *w = work->data;
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURLcode rc = CURLE_FAILED_INIT;
	long status = 0;

	if (curl) {
		set_options(curl, w, headers);
		rc = curl_easy_perform(curl);
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	}
	if (rc != CURLE_OK)
		snprintf(w->problem, sizeof(w->problem), "%s", curl_easy_strerror(rc));
	else if (status < 200 || status > 299)
		snprintf(w->problem, sizeof(w->problem), "it answers with status %ld", status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
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
	w->json = xstrdup(json);
	w->done = done;
	w->arg = arg;
	atomic_init(&w->is_aborted, false);
	uv_queue_work(loop, &w->work, post, on_posted);
	return w;
}

void webhook_abort(struct webhook *w)
{
	atomic_store(&w->is_aborted, true);
	uv_cancel((uv_req_t *)&w->work);
}
