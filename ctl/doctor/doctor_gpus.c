/* SPDX-License-Identifier: MIT */
/* doctor_gpus.c - driver, CUDA and NCCL: too old for each other, or known to be bad. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/gpu/known_nccl.h"
#include "ctl/base/program.h"
#include "ctl/doctor/doctor.h"

enum { COMMAND_MS = 20 * 1000 };

struct version {
	int major, minor, patch;
};

static struct version version_of(const char *text)
{
	long parts[3] = { 0 };
	char *end = NULL;

	for (size_t i = 0; i < 3 && *text; i++, text = *end == '.' ? end + 1 : "")
		parts[i] = strtol(text, &end, 10);
	return (struct version){ (int)parts[0], (int)parts[1], (int)parts[2] };
}

static int compare(struct version a, struct version b)
{
	if (a.major != b.major)
		return a.major < b.major ? -1 : 1;
	if (a.minor != b.minor)
		return a.minor < b.minor ? -1 : 1;
	return (a.patch > b.patch) - (a.patch < b.patch);
}

/* Least driver of a CUDA release: docs.nvidia.com/deploy/cuda-compatibility, minor version
 * compatibility, table 1. */
static const struct {
	int cuda_major, driver_major;
} least_drivers[] = { { 11, 450 }, { 12, 525 }, { 13, 580 } };

/* From `first` to `last`, both included. */
static const struct {
	const char *first, *last, *trouble, *fix, *source;
} bad_drivers[] = {
	{ "560.0.0", "560.999.99", "NCCL may hang over P2P", "driver 570, or NCCL_P2P_DISABLE=1",
	  "github.com/dmlc/xgboost/issues/11242" },
};

static bool is_bad_driver(const char *version, struct finding *f)
{
	struct version v = version_of(version);

	for (size_t i = 0; i < sizeof(bad_drivers) / sizeof(bad_drivers[0]); i++) {
		if (compare(v, version_of(bad_drivers[i].first)) < 0 ||
		    compare(v, version_of(bad_drivers[i].last)) > 0)
			continue;
		finding_bad(f, bad_drivers[i].fix, "driver %s: %s (%s)", version,
			    bad_drivers[i].trouble, bad_drivers[i].source);
		return true;
	}
	return false;
}

static bool is_bad_nccl(const char *version, int capability, struct finding *f)
{
	const struct nccl_fault *fault = nccl_known_fault(nccl_version_of(version), capability);

	if (fault)
		finding_bad(f, fault->fix, "NCCL %s: %s (%s)", version, fault->trouble,
			    fault->source);
	return fault;
}

/* The word after `key` in what a program prints; owned, NULL = it is not there. */
static char *word_after(const char *const argv[], const char *key)
{
	struct err err = { 0 };
	char *text, *word = NULL;
	const char *at;

	program_output(argv, COMMAND_MS, &text, &err);
	at = strstr(text, key);
	if (at)
		word = xstrndup(at + strlen(key), strspn(at + strlen(key), "0123456789."));
	free(text);
	if (word && *word)
		return word;
	free(word);
	return NULL;
}

/* "libnccl.so.2 (…) => /usr/lib/libnccl.so.2", which is a link to libnccl.so.2.28.9. */
static char *nccl_version(void)
{
	static const char *const argv[] = { "/sbin/ldconfig", "-p", NULL };
	struct err err = { 0 };
	char *text, *real = NULL, *version = NULL, *at;

	program_output(argv, COMMAND_MS, &text, &err);
	at = strstr(text, "libnccl.so.2");
	at = at ? strstr(at, "=> ") : NULL;
	if (at) {
		at[strcspn(at, "\n")] = '\0';
		real = realpath(at + 3, NULL);
	}
	at = real ? strstr(real, "libnccl.so.") : NULL;
	if (at)
		version = xstrdup(at + strlen("libnccl.so."));
	free(real);
	free(text);
	return version;
}

/* root/lib/python3.N/site-packages/nvidia_nccl_cu12-2.21.5.dist-info: what PyTorch opens there. */
static void add_wheels(struct strv *found, const char *root)
{
	glob_t folders = { 0 };
	char *literal = root ? path_literal(root) : NULL;
	char *pattern = root ? path_join("%s/{lib,lib64}/python3*/{site,dist}-packages/"
					 "nvidia_nccl_cu*-*.dist-info",
					 literal)
			     : NULL;

	if (pattern && glob(pattern, GLOB_BRACE, NULL, &folders) == 0) {
		for (size_t i = 0; i < folders.gl_pathc; i++) {
			const char *at = strchr(path_base(folders.gl_pathv[i]), '-') + 1;
			size_t length = strspn(at, "0123456789.");
			while (length > 0 && at[length - 1] == '.') /* of ".dist-info" */
				length--;
			strv_add(found, xstrndup(at, length));
		}
		globfree(&folders);
	}
	free(pattern);
	free(literal);
}

/* The loader's, and those of the Python environments in which people are: such a program uses its
 * own. */
static void nccl_versions(struct strv *found)
{
	char *loaded = nccl_version();

	if (loaded)
		strv_add(found, loaded);
	add_wheels(found, getenv("VIRTUAL_ENV"));
	add_wheels(found, getenv("CONDA_PREFIX"));
}

/* One that is bad is told, whichever it is. */
static bool has_bad_nccl(const struct strv *versions, int capability, struct finding *f)
{
	for (size_t i = 0; i < versions->count; i++)
		if (is_bad_nccl(versions->items[i], capability, f))
			return true;
	return false;
}

static char *list_of(const struct strv *versions)
{
	char *list = xstrdup(versions->count > 0 ? versions->items[0] : "none");

	for (size_t i = 1; i < versions->count; i++) {
		char *longer = xasprintf("%s and %s", list, versions->items[i]);
		free(list);
		list = longer;
	}
	return list;
}

static bool is_too_old(const char *driver, const char *cuda, struct finding *f)
{
	for (size_t i = 0; i < sizeof(least_drivers) / sizeof(least_drivers[0]); i++)
		if (version_of(cuda).major == least_drivers[i].cuda_major &&
		    version_of(driver).major < least_drivers[i].driver_major) {
			finding_bad(f, "a newer driver, or an older CUDA toolkit",
				    "driver %s is too old for CUDA %s, which needs %d", driver,
				    cuda, least_drivers[i].driver_major);
			return true;
		}
	return false;
}

void look_at_gpus(const struct patient *p, struct finding *f)
{
	static const char *const smi[] = { "nvidia-smi", "--query-gpu=driver_version",
					   "--format=csv,noheader", NULL };
	static const char *const capability[] = { "nvidia-smi", "--query-gpu=compute_cap",
						  "--format=csv,noheader", NULL };
	static const char *const nvcc[] = { "nvcc", "--version", NULL };
	char *driver = word_after(smi, ""), *cuda = word_after(nvcc, "release ");
	char *gpu = word_after(capability, "");
	struct version of_gpu = version_of(gpu ? gpu : "");
	struct strv nccl = { 0 };

	(void)p;
	nccl_versions(&nccl);
	char *all = list_of(&nccl);
	if (!driver && !cuda && nccl.count == 0)
		finding_skip(f, "no NVIDIA driver, CUDA or NCCL on this machine; run it on a GPU "
				"node, too");
	else if (!(driver && cuda && is_too_old(driver, cuda, f)) &&
		 !(driver && is_bad_driver(driver, f)) &&
		 !has_bad_nccl(&nccl, 10 * of_gpu.major + of_gpu.minor, f))
		finding_fine(f, "driver %s, CUDA %s, NCCL %s: nothing bad is known",
			     driver ? driver : "none", cuda ? cuda : "none", all);
	free(gpu);
	free(driver);
	free(cuda);
	free(all);
	strv_free(nccl.items);
}
