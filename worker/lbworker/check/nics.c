/* SPDX-License-Identifier: MIT */
/* nics.c - a file of sysfs for each figure; what a driver does not tell is not there. */
#include "worker/lbworker/check/nics.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"

enum { FILE_BYTES = 4096, GB = 1000 };

/* The file's text; "" when there is none. Owned. */
static char *read_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *read_text(const char *fmt, ...)
{
	char path[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	char *text = file_read(path, FILE_BYTES, NULL, NULL);
	return text ? text : xstrdup("");
}

/* The sum of what is in those files of the folder. */
static int64_t add_up(const char *folder, const char *const *names)
{
	int64_t sum = 0;

	for (; *names; names++) {
		char *text = read_text("%s/%s", folder, *names);
		sum += strtoll(text, NULL, 10);
		free(text);
	}
	return sum;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct check_nic *)a)->name, ((const struct check_nic *)b)->name);
}

/* --- sys/class/net ---------------------------------------------------------------------------- */

static bool read_interface(const char *net, const char *name, struct check_nic *out)
{
	static const char *const errors[] = { "rx_errors", "tx_errors", NULL };
	char folder[1024];

	snprintf(folder, sizeof(folder), "%s/%s", net, name);
	bool is_hardware = folder_holds(folder, "device"); /* no bridge, tunnel or loopback */
	if (!is_hardware || strlen(name) >= sizeof(out->name))
		return false;
	char *state = read_text("%s/operstate", folder), *speed = read_text("%s/speed", folder);
	char *counters = xasprintf("%s/statistics", folder);
	*out = (struct check_nic){ .is_up = strncmp(state, "up", 2) == 0,
				   .mbps = strtoll(speed, NULL, 10),
				   .errors = add_up(counters, errors) };
	if (out->mbps <= 0)
		out->mbps = -1;
	snprintf(out->name, sizeof(out->name), "%s", name);
	free(counters);
	free(speed);
	free(state);
	return true;
}

/* --- sys/class/infiniband --------------------------------------------------------------------- */

/* "4: ACTIVE", "400 Gb/sec (4X NDR)" */
static void read_port(const char *ports, const char *device, const char *port,
		      struct check_nic *out)
{
	static const char *const errors[] = {
		"symbol_error",    "link_error_recovery",         "link_downed",
		"port_rcv_errors", "local_link_integrity_errors", NULL
	};
	char *state = read_text("%s/%s/state", ports, port);
	char *rate = read_text("%s/%s/rate", ports, port);
	char *counters = xasprintf("%s/%s/counters", ports, port);

	*out = (struct check_nic){ .is_up = strncmp(state, "4:", 2) == 0,
				   .mbps = (int64_t)(strtod(rate, NULL) * GB),
				   .errors = add_up(counters, errors) };
	if (out->mbps <= 0)
		out->mbps = -1;
	snprintf(out->name, sizeof(out->name), "%.20s/%.8s", device, port);
	free(counters);
	free(rate);
	free(state);
}

static int read_ports(const char *sys, const char *device, struct check_nic *nic, int count)
{
	char *ports = xasprintf("%s/class/infiniband/%s/ports", sys, device);
	DIR *dir = opendir(ports);
	const struct dirent *entry;

	while (dir && count < CHECK_NICS_MAX && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			read_port(ports, device, entry->d_name, &nic[count++]);
	if (dir)
		closedir(dir);
	free(ports);
	return count;
}

/* ---------------------------------------------------------------------------------------------- */

int nics_read(const char *sys, struct check_nic *nic)
{
	char *net = xasprintf("%s/class/net", sys), *ib = xasprintf("%s/class/infiniband", sys);
	DIR *dir = opendir(net);
	const struct dirent *entry;
	int count = 0;

	while (dir && count < CHECK_NICS_MAX && (entry = readdir(dir)) != NULL)
		count += entry->d_name[0] != '.' && read_interface(net, entry->d_name, &nic[count]);
	if (dir)
		closedir(dir);
	dir = opendir(ib);
	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			count = read_ports(sys, entry->d_name, nic, count);
	if (dir)
		closedir(dir);
	free(net);
	free(ib);
	if (count > 0)
		qsort(nic, (size_t)count, sizeof(*nic), by_name);
	return count;
}
