/* SPDX-License-Identifier: MIT */
/* node_report.c - medians of all, whoever is far below one, and a report as JSON. */
#include "common/check/node_report.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compare.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { REPORT_BYTES_MAX = 1 << 16, REPORTS_MAX = 1 << 16, REPORT_MODE = 0640 };

/* A disk may be shared, and busy for others: only what is far off counts. */
static const struct {
	const char *name, *unit, *key;
	double share;
} speeds[CHECK_SPEEDS] = {
	[CHECK_PRODUCT] = { "product", "GFLOP/s", "product_gflops", 1 },
	[CHECK_MEMORY] = { "memory", "GB/s", "memory_gbs", 1 },
	[CHECK_DISK] = { "disk", "GB/s", "disk_gbs", 0.1 },
	[CHECK_LINK] = { "link", "GB/s", "link_gbs", 1 },
};

/* --- beside the others ------------------------------------------------------------------------ */

/* Of those that were measured; 0: none. */
static double median(double *values, size_t count)
{
	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), compare_double);
	return values[count / 2];
}

static double usual_speed(const struct check_result *all, size_t count, int which)
{
	double *values = xcalloc(count + 1, sizeof(*values));
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (all[i].speed[which] > 0)
			values[known++] = all[i].speed[which];
	double usual = median(values, known);
	free(values);
	return usual;
}

static void judge_speed(struct check_result *of, int which, double usual,
			const struct check_limits *limits)
{
	double speed = of->speed[which], least = limits->least[which];

	if (speed <= 0 || of->fault[0])
		return;
	if (speed < least)
		snprintf(of->fault, sizeof(of->fault), "slow %s: %.3g %s, and it is to make %.3g",
			 speeds[which].name, speed, speeds[which].unit, least);
	else if (speed < usual * limits->slow_share * speeds[which].share)
		snprintf(of->fault, sizeof(of->fault), "slow %s: %.3g %s, where others make %.3g",
			 speeds[which].name, speed, speeds[which].unit, usual);
}

static const struct check_nic *find_nic(const struct check_result *of, const char *name)
{
	for (int i = 0; i < of->nics; i++)
		if (strcmp(of->nic[i].name, name) == 0)
			return &of->nic[i];
	return NULL;
}

/* What most have: links that are up, and how fast. */
static bool usual_nic(const struct check_result *all, size_t count, const char *name,
		      double *usual_mbps)
{
	double *values = xcalloc(count + 1, sizeof(*values));
	size_t up = 0, known = 0;

	for (size_t i = 0; i < count; i++) {
		const struct check_nic *nic = find_nic(&all[i], name);
		up += nic && nic->is_up;
		if (nic && nic->is_up && nic->mbps > 0)
			values[known++] = (double)nic->mbps;
	}
	*usual_mbps = median(values, known);
	free(values);
	return 2 * up > count;
}

static void judge_nic(struct check_result *of, const char *name, double usual_mbps)
{
	const struct check_nic *nic = find_nic(of, name);

	if (of->fault[0])
		return;
	if (!nic || !nic->is_up)
		snprintf(of->fault, sizeof(of->fault), "network: %s is %s, and up on most others",
			 name, nic ? "down" : "not there");
	else if (nic->mbps > 0 && (double)nic->mbps < usual_mbps)
		snprintf(of->fault, sizeof(of->fault),
			 "network: %s runs at %lld Mb/s, where others have %.0f", name,
			 (long long)nic->mbps, usual_mbps);
}

/* By the names that the first of each has. */
static void judge_nics(struct check_result *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int n = 0; n < all[i].nics; n++) {
			const char *name = all[i].nic[n].name;
			bool is_first = true;
			double mbps;
			for (size_t k = 0; k < i && is_first; k++)
				is_first = !find_nic(&all[k], name);
			if (!is_first || !usual_nic(all, count, name, &mbps))
				continue;
			for (size_t k = 0; k < count; k++)
				judge_nic(&all[k], name, mbps);
		}
}

/* What most have; of two nobody knows which is right, and the first's counts. */
static double usual_clock(const struct check_result *all, size_t count)
{
	double *values = xcalloc(count + 1, sizeof(*values)), usual = 0;

	for (size_t i = 0; i < count; i++)
		values[i] = all[i].clock_s;
	if (count > 0)
		usual = count > 2 ? median(values, count) : values[0];
	free(values);
	return usual;
}

static void judge_alone(struct check_result *of, double usual_s, const struct check_limits *limits)
{
	for (int n = 0; n < of->nics && !of->fault[0]; n++)
		if (of->nic[n].errors > 0)
			snprintf(of->fault, sizeof(of->fault),
				 "network: %s counted %lld errors while the node was checked",
				 of->nic[n].name, (long long)of->nic[n].errors);
	if (fabs(of->clock_s - usual_s) > limits->clock_s && !of->fault[0])
		snprintf(of->fault, sizeof(of->fault), "clock: %+.1f s beside the others",
			 of->clock_s - usual_s);
}

int check_judge(struct check_result *all, size_t count, const struct check_limits *limits)
{
	int broken = 0;

	for (int k = 0; k < CHECK_SPEEDS; k++) {
		double usual = usual_speed(all, count, k);
		for (size_t i = 0; i < count; i++)
			judge_speed(&all[i], k, usual, limits);
	}
	judge_nics(all, count);
	double usual_s = usual_clock(all, count);
	for (size_t i = 0; i < count; i++) {
		judge_alone(&all[i], usual_s, limits);
		broken += all[i].fault[0] != '\0';
	}
	return broken;
}

/* --- as a file -------------------------------------------------------------------------------- */

static json_t *json_of_nics(const struct check_result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->nics; i++) {
		const struct check_nic *nic = &r->nic[i];
		json_t *o = json_object();

		js_set_str(o, "name", nic->name);
		js_set_bool(o, "up", nic->is_up);
		js_set_int(o, "mbps", nic->mbps < 0 ? JS_NONE : nic->mbps);
		js_set_int(o, "errors", nic->errors);
		json_array_append_new(list, o);
	}
	return list;
}

int check_report_write(const char *folder, const struct check_result *r,
		       const struct check_limits *limits, struct err *err)
{
	json_t *o = json_object(), *least = json_object();

	js_set_str(o, "host", r->host);
	js_set_int(o, "rank", r->rank);
	js_set_str(o, "device", r->device);
	js_set_str(o, "fault", r->fault);
	if (r->past[0])
		js_set_str(o, "past_xids", r->past);
	for (int k = 0; k < CHECK_SPEEDS; k++) {
		js_set_real(o, speeds[k].key, r->speed[k]);
		js_set_real(least, speeds[k].key, limits->least[k]);
	}
	js_set_real(o, "clock_s", r->clock_s);
	json_object_set_new(o, "nics", json_of_nics(r));
	js_set_real(o, "slow_share", limits->slow_share);
	js_set_real(o, "clock_limit_s", limits->clock_s);
	json_object_set_new(o, "least", least);
	char *line = js_line(o), *text = xasprintf("%s\n", line);
	char *path = path_join("%s/rank-%d.json", folder, r->rank);
	int rc = file_write_visible(path, text, strlen(text), REPORT_MODE, err);
	free(path);
	free(text);
	free(line);
	json_decref(o);
	return rc;
}

static void take_nics(const json_t *list, struct check_result *r)
{
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o) {
		if (r->nics == CHECK_NICS_MAX)
			break;
		struct check_nic *nic = &r->nic[r->nics++];
		snprintf(nic->name, sizeof(nic->name), "%s", js_str(o, "name", ""));
		nic->is_up = js_bool(o, "up", false);
		nic->mbps = js_int(o, "mbps", -1);
		nic->errors = js_int(o, "errors", 0);
	}
}

static void take_report(const json_t *o, struct check_result *r, struct check_limits *limits)
{
	const json_t *least = json_object_get(o, "least");

	*r = (struct check_result){ .rank = (int)js_int(o, "rank", 0),
				    .clock_s = js_real(o, "clock_s", 0) };
	snprintf(r->host, sizeof(r->host), "%s", js_str(o, "host", ""));
	snprintf(r->device, sizeof(r->device), "%s", js_str(o, "device", ""));
	snprintf(r->fault, sizeof(r->fault), "%s", js_str(o, "fault", ""));
	snprintf(r->past, sizeof(r->past), "%s", js_str(o, "past_xids", ""));
	for (int k = 0; k < CHECK_SPEEDS; k++) {
		r->speed[k] = js_real(o, speeds[k].key, 0);
		limits->least[k] = js_real(least, speeds[k].key, 0);
	}
	take_nics(json_object_get(o, "nics"), r);
	limits->slow_share = js_real(o, "slow_share", 0);
	limits->clock_s = js_real(o, "clock_limit_s", INFINITY);
}

static int by_rank(const void *a, const void *b)
{
	const struct check_result *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

struct check_result *check_reports_read(const char *folder, size_t *count,
					struct check_limits *limits)
{
	struct check_result *all = NULL;
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	*count = 0;
	*limits = (struct check_limits){ 0 };
	while (dir && *count < REPORTS_MAX && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, "rank-", 5) != 0)
			continue;
		char *path = path_join("%s/%s", folder, entry->d_name);
		json_t *o = js_load(path, REPORT_BYTES_MAX, NULL);
		free(path);
		if (!o)
			continue;
		all = xrealloc(all, (*count + 1) * sizeof(*all));
		take_report(o, &all[(*count)++], limits);
		json_decref(o);
	}
	if (dir)
		closedir(dir);
	if (all)
		qsort(all, *count, sizeof(*all), by_rank);
	return all;
}
