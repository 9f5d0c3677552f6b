// SPDX-License-Identifier: MIT
// fibers.cc - the threads of a block: each has a stack of its own and runs until it meets a barrier,
// a shuffle, or its end; then the next lane of its warp does, and the next warp when all lanes of
// this one are at a barrier or at their end: the stacks of a warp stay in the cache. The change is a
// dozen instructions of x86-64: swapcontext() makes two system calls each time, which is most of
// what an emulated step would take.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/emulation/emulate.h"
#include "tests/emulation/queue.h"

// Stacks are not a power of two apart: their tops would share a few lines of the cache.
enum { STACK_BYTES = (256 << 10) + 320, LANES = 32, THREADS = 1024, SHARED_BYTES = 227 << 10 };

emulated_index threadIdx, blockIdx, blockDim;

// Saves what a call must keep, leaves the stack's top in *from, and goes on where `to` was left.
extern "C" void emulated_switch(void **from, void *to);
__asm__(".text\n"
	".globl emulated_switch\n"
	".hidden emulated_switch\n"
	"emulated_switch:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n");

// Changes of threads are most of what an emulated step takes: sanitizers look at what kernels do, not at these.
#define PLAIN __attribute__((no_sanitize("address", "undefined")))

namespace {

enum state { RUNS, AT_BARRIER, AT_SHUFFLE, ENDED };

struct fiber {
	void *top;		// of its stack, while it does not run
	enum state state;
	uint32_t word[2];	// of its last two shuffles: a lane may be one ahead of another
	unsigned shuffles;
};

fiber fibers[THREADS];
char *stacks;		// of all threads; memory only where one has been
void *scheduler;	// the top of the stack that all of them return to
const std::function<void()> *body;
unsigned warp_first;	// of the warp that runs: its first lane
int to_next;		// lane, +1 or -1
alignas(256) char shared[SHARED_BYTES];

[[noreturn]] void stop(const char *why)
{
	fprintf(stderr, "emulation: block %u: %s\n", blockIdx.x, why);
	abort();
}

// The lane behind this one that can run, or -1.
PLAIN int next_lane()
{
	for (int i = (int)threadIdx.x + to_next; i >= (int)warp_first && i < (int)warp_first + LANES; i += to_next)
		if (fibers[i].state == RUNS)
			return i;
	return -1;
}

PLAIN void wait(enum state why)
{
	fiber &f = fibers[threadIdx.x];
	f.state = why;
	int next = next_lane();
	if (next >= 0)
		threadIdx.x = (unsigned)next;
	emulated_switch(&f.top, next >= 0 ? fibers[next].top : scheduler);
}

[[noreturn]] void entry()
{
	(*body)();
	wait(ENDED);
	stop("a thread runs on after its end");
}

PLAIN void start(unsigned thread)
{
	fiber &f = fibers[thread];
	// As if it had just been left: six saved registers, then where to go on; entry() finds the
	// stack as a call would leave it, eight bytes off a multiple of sixteen.
	void **top = (void **)(stacks + (thread + (size_t)1) * STACK_BYTES) - 2;
	*top = (void *)entry;
	f.top = top - 6;
	f.state = RUNS;
	f.shuffles = 0;
}

void make_stacks()
{
	void *memory = mmap(NULL, (size_t)THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		stop("no memory for stacks");
	stacks = (char *)memory;
}

// Releases those that wait for something when all who could still come are there.
PLAIN bool release(size_t first, size_t end, enum state why)
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

// Each lane until it waits: the first hands over to the next.
PLAIN void run_lanes(bool reverse)
{
	threadIdx.x = reverse ? warp_first + LANES - 1 : warp_first;
	int lane = fibers[threadIdx.x].state == RUNS ? (int)threadIdx.x : next_lane();
	if (lane < 0)
		return;
	threadIdx.x = (unsigned)lane;
	emulated_switch(&scheduler, fibers[lane].top);
}

// Until all of its lanes are at a barrier or at their end.
PLAIN void run_warp(unsigned first, bool reverse)
{
	warp_first = first;
	to_next = reverse ? -1 : 1;
	do
		run_lanes(reverse);
	while (release(first, first + LANES, AT_SHUFFLE));
	for (unsigned i = first; i < first + LANES; i++)
		if (fibers[i].state == AT_SHUFFLE)
			stop("threads wait for others that never come");
}

PLAIN void run_block(unsigned threads, bool reverse)
{
	for (unsigned i = 0; i < threads; i++)
		start(i);
	do
		for (unsigned warp = 0; warp < threads; warp += LANES)
			run_warp(reverse ? threads - LANES - warp : warp, reverse);
	while (release(0, threads, AT_BARRIER));
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

PLAIN uint32_t emulated_exchange(uint32_t word, int other)
{
	fiber &f = fibers[threadIdx.x];
	unsigned turn = f.shuffles++ % 2;
	f.word[turn] = word;
	wait(AT_SHUFFLE);
	return fibers[threadIdx.x ^ (unsigned)other].word[turn];
}

static void run(const std::function<void()> &kernel, size_t blocks, unsigned threads,
		size_t shared_bytes, bool flat)
{
	const char *order = getenv("LB_EMULATION_ORDER");
	bool reverse = order && strcmp(order, "reverse") == 0;

	if (threads % LANES != 0 || threads > THREADS)
		stop("a block is whole warps, 1024 threads at most");
	if (!flat && !stacks)
		make_stacks();
	body = &kernel;
	blockDim.x = threads;
	for (size_t b = 0; b < blocks; b++) {
		blockIdx.x = (unsigned)(reverse ? blocks - 1 - b : b);
		if (!flat) {
			memset(shared, 0xff, shared_bytes);	// NaN: nothing may be taken for granted
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
	emulated_enqueue([=] { run(kernel, blocks, threads, shared_bytes, flat); });
}
