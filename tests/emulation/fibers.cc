// SPDX-License-Identifier: MIT
// fibers.cc - the threads of a block: each has a stack of its own and runs until it meets a barrier,
// a shuffle, or its end; then the next one does.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <vector>

#include "tests/emulation/emulate.h"
#include "tests/emulation/queue.h"

enum { STACK_BYTES = 256 << 10, LANES = 32, SHARED_BYTES = 227 << 10 };

emulated_index threadIdx, blockIdx, blockDim;

namespace {

enum state { RUNS, AT_BARRIER, AT_SHUFFLE, ENDED };

struct fiber {
	ucontext_t context;
	std::vector<char> stack;
	enum state state;
	uint32_t word[2];	// of its last two shuffles: a lane may be one ahead of another
	unsigned shuffles;
};

std::vector<fiber> fibers;
ucontext_t scheduler;
const std::function<void()> *body;
alignas(256) char shared[SHARED_BYTES];

[[noreturn]] void stop(const char *why)
{
	fprintf(stderr, "emulation: block %u: %s\n", blockIdx.x, why);
	abort();
}

void wait(enum state why)
{
	fiber &f = fibers[threadIdx.x];
	f.state = why;
	swapcontext(&f.context, &scheduler);
}

void entry()
{
	(*body)();
	fibers[threadIdx.x].state = ENDED;
}

void start(unsigned thread)
{
	fiber &f = fibers[thread];
	if (f.stack.empty())
		f.stack.resize(STACK_BYTES);
	getcontext(&f.context);
	f.context.uc_stack.ss_sp = f.stack.data();
	f.context.uc_stack.ss_size = f.stack.size();
	f.context.uc_link = &scheduler;
	f.state = RUNS;
	f.shuffles = 0;
	makecontext(&f.context, entry, 0);
}

// Releases those that wait for something when all who could still come are there.
bool release(size_t first, size_t end, enum state why)
{
	size_t waiting = 0, ended = 0;
	for (size_t i = first; i < end; i++) {
		waiting += fibers[i].state == why;
		ended += fibers[i].state == ENDED;
	}
	if (waiting == 0 || waiting + ended < end - first)
		return false;
	if (why == AT_SHUFFLE && ended > 0)
		stop("a shuffle that some lanes have left");
	for (size_t i = first; i < end; i++)
		if (fibers[i].state == why)
			fibers[i].state = RUNS;
	return true;
}

bool run_some(unsigned threads, bool reverse)
{
	bool any = false;
	for (unsigned i = 0; i < threads; i++) {
		unsigned thread = reverse ? threads - 1 - i : i;
		if (fibers[thread].state != RUNS)
			continue;
		any = true;
		threadIdx.x = thread;
		swapcontext(&scheduler, &fibers[thread].context);
	}
	return any;
}

void run_block(unsigned threads, bool reverse)
{
	for (unsigned i = 0; i < threads; i++)
		start(i);
	while (run_some(threads, reverse)) {
		bool released = release(0, threads, AT_BARRIER);
		for (unsigned warp = 0; warp < threads; warp += LANES)
			released |= release(warp, warp + LANES, AT_SHUFFLE);
		bool ended = true;
		for (unsigned i = 0; i < threads; i++)
			ended &= fibers[i].state == ENDED;
		if (!released && !ended)
			stop("threads wait for others that never come");
	}
}

} // namespace

void *emulated_shared(void)
{
	return shared;
}

void emulated_barrier(void)
{
	wait(AT_BARRIER);
}

uint32_t emulated_exchange(uint32_t word, int other)
{
	fiber &f = fibers[threadIdx.x];
	unsigned turn = f.shuffles++ % 2;
	f.word[turn] = word;
	wait(AT_SHUFFLE);
	return fibers[threadIdx.x ^ (unsigned)other].word[turn];
}

static void run(const std::function<void()> &kernel, size_t blocks, unsigned threads, bool flat)
{
	const char *order = getenv("LB_EMULATION_ORDER");
	bool reverse = order && strcmp(order, "reverse") == 0;

	if (threads % LANES != 0 || threads > 1024)
		stop("a block is whole warps, 1024 threads at most");
	if (!flat && fibers.size() < threads)
		fibers.resize(1024);
	body = &kernel;
	blockDim.x = threads;
	for (size_t b = 0; b < blocks; b++) {
		blockIdx.x = (unsigned)(reverse ? blocks - 1 - b : b);
		if (!flat) {
			memset(shared, 0xff, sizeof(shared));	// NaN: nothing may be taken for granted
			run_block(threads, reverse);
			continue;
		}
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
			kernel();
	}
}

void emulated_launch(const std::function<void()> &kernel, size_t blocks, unsigned threads,
		     size_t shared_bytes, bool flat)
{
	if (shared_bytes > SHARED_BYTES)
		stop("more shared memory than a block can have");
	emulated_enqueue([=] { run(kernel, blocks, threads, flat); });
}
