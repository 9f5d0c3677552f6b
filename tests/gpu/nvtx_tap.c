/* SPDX-License-Identifier: MIT */
/* nvtx_tap.c - what a profiler does to see NVTX ranges, as a library: NVTX_INJECTION64_PATH names
 * it, and LB_NVTX_TAP the file that it writes every range to, indented by its depth. A range that
 * is closed but was never opened, or left open, is a line that begins with '!'. */
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

static FILE *out;
static int depth;

static int push(const char *name)
{
	fprintf(out, "%*s%s\n", 2 * depth, "", name);
	return depth++;
}

static int pop(void)
{
	if (--depth < 0)
		fprintf(out, "! a range is closed that is not open\n");
	return depth;
}

static void end(void)
{
	if (depth > 0)
		fprintf(out, "! %d ranges are still open\n", depth);
	(void)fclose(out);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
	const char *path = getenv("LB_NVTX_TAP");
	NvtxFunctionTable table;
	unsigned size;

	out = path ? fopen(path, "we") : NULL;
	if (!out || !callbacks ||
	    !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) ||
	    size <= NVTX_CBID_CORE_RangePop)
		return 0;
	*table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	return atexit(end) == 0;
}
