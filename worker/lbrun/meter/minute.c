/* SPDX-License-Identifier: MIT */
/* minute.c - means of what varies, the highest of what must not grow, counters as they are. */
#include "worker/lbrun/meter/minute.h"

#include "common/base/json.h"

static void mean_add(struct mean *m, int64_t value)
{
	if (value < 0)
		return;
	m->sum += (double)value;
	m->count++;
}

static void set_mean(json_t *o, const char *key, const struct mean *m)
{
	if (m->count > 0)
		js_set_int(o, key, (int64_t)(m->sum / (double)m->count + 0.5));
}

static void set_known(json_t *o, const char *key, int64_t value)
{
	if (value >= 0)
		js_set_int(o, key, value);
}

static void raise_to(int64_t *highest, int64_t value)
{
	if (value > *highest)
		*highest = value;
}

void minute_begin(struct minute *m, int64_t now_ms)
{
	struct machine_reading last = m->last;

	*m = (struct minute){ .begin_ms = now_ms, .first = last, .last = last };
}

void minute_machine(struct minute *m, const struct machine_reading *r)
{
	m->last = *r;
	m->readings++;
	m->blocked += r->is_blocked;
	raise_to(&m->resident_mb, r->resident_mb);
}

void minute_gpu(struct minute *m, int gpu, int index, const struct gpu_reading *r)
{
	struct gpu_minute *g = &m->gpus[gpu];

	if (g->readings++ == 0) {
		g->index = index;
		g->memory_mb = g->memory_total_mb = g->celsius = -1;
	}
	if (gpu >= m->gpu_count)
		m->gpu_count = gpu + 1;
	mean_add(&g->use, r->use_percent);
	mean_add(&g->watts, r->watts);
	mean_add(&g->mhz, r->sm_mhz);
	raise_to(&g->memory_mb, r->memory_mb);
	raise_to(&g->memory_total_mb, r->memory_total_mb);
	raise_to(&g->celsius, r->celsius);
	if (r->throttle > 0) {
		g->power += (r->throttle & THROTTLE_POWER) != 0;
		g->thermal += (r->throttle & THROTTLE_THERMAL) != 0;
		g->hardware += (r->throttle & THROTTLE_HARDWARE) != 0;
	}
	g->last = *r;
}

static void add_throttle(json_t *o, const struct gpu_minute *g)
{
	json_t *list = json_array();

	if (g->power > 0)
		json_array_append_new(list, json_string("power"));
	if (g->thermal > 0)
		json_array_append_new(list, json_string("thermal"));
	if (g->hardware > 0)
		json_array_append_new(list, json_string("hardware"));
	if (json_array_size(list) > 0)
		json_object_set(o, "throttled", list);
	json_decref(list);
}

static json_t *gpu_line(const struct gpu_minute *g)
{
	json_t *o = json_object();

	js_set_int(o, "gpu", g->index);
	set_mean(o, "use", &g->use);
	set_known(o, "memory_mb", g->memory_mb);
	set_known(o, "memory_total_mb", g->memory_total_mb);
	set_mean(o, "watts", &g->watts);
	set_mean(o, "sm_mhz", &g->mhz);
	set_known(o, "celsius", g->celsius);
	add_throttle(o, g);
	set_known(o, "ecc_corrected", g->last.ecc_corrected);
	set_known(o, "ecc_uncorrected", g->last.ecc_uncorrected);
	set_known(o, "nvlink_errors", g->last.nvlink_errors);
	return o;
}

json_t *minute_line(const struct minute *m, int64_t now_ms)
{
	int64_t span_ms = now_ms > m->begin_ms ? now_ms - m->begin_ms : 1;
	json_t *o = json_object(), *gpus = json_array();

	js_set_int(o, "seconds", (span_ms + 500) / 1000);
	/* who ends takes away what nobody waited for: never less than nothing */
	if (m->last.cpu_ms >= m->first.cpu_ms)
		js_set_real(o, "cpu", (double)(m->last.cpu_ms - m->first.cpu_ms) / (double)span_ms);
	js_set_int(o, "resident_mb", m->resident_mb);
	set_known(o, "job_peak_mb", m->last.job_peak_mb);
	if (m->readings > 0)
		js_set_real(o, "blocked", (double)m->blocked / (double)m->readings);
	if (m->first.io_stall_us >= 0 && m->last.io_stall_us >= m->first.io_stall_us)
		js_set_real(o, "io_stall",
			    (double)(m->last.io_stall_us - m->first.io_stall_us) / 1000.0 /
				    (double)span_ms);
	for (int i = 0; i < m->gpu_count; i++)
		json_array_append_new(gpus, gpu_line(&m->gpus[i]));
	if (m->gpu_count > 0)
		json_object_set(o, "gpus", gpus);
	json_decref(gpus);
	return o;
}
