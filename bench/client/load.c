/* SPDX-License-Identifier: Apache-2.0 */
/* load: many clients at once, each a process, so that nothing of ours is shared
 * but the count of runs. */
#include "client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 64
#define SAMPLES_MAX (1u << 20) /* of one client */

/* Memory that all clients share. */
struct board {
	_Atomic unsigned ready, failed;
	_Atomic uint64_t taken;    /* runs that were begun */
	_Atomic uint64_t begin_ns; /* 0: not yet */
	struct score {
		uint64_t runs, busy, warm, last_ns;
		struct error err;
	} scores[CLIENTS_MAX];
};

/* The one failure that a load may bring about: told so, with the advice to try
 * again. */
static bool is_busy(const struct answer *answer)
{
	static const char advice[] = "\"retry\":true";

	return strcmp(answer->status, "internal_error") == 0 &&
	       memmem(answer->said.data, answer->said.length, advice, strlen(advice));
}

static int client(struct board *board, unsigned number, uint64_t *samples, const struct load *load,
		  const struct driver *driver, const struct workload *workload,
		  const struct expectation *expectation)
{
	struct score *score = &board->scores[number];
	uint64_t ns, begin, end;
	struct answer answer;
	void *state = NULL;
	int r = driver->open(workload, &state, &score->err);

	/* The first run finds everything as it will be. */
	if (r == 0)
		r = sample(driver, state, expectation, &answer, &ns, &score->err);
	if (r == 0 && driver->forget)
		driver->forget(state);
	if (r < 0)
		board->failed++;
	board->ready++;
	while (!(begin = board->begin_ns))
		usleep(100);
	while (now_ns() < begin)
		;
	end = begin + (uint64_t)(load->seconds * 1e9);
	while (r == 0 && now_ns() < end && score->runs < SAMPLES_MAX &&
	       (load->runs == 0 || board->taken++ < load->runs)) {
		r = sample(driver, state, expectation, &answer, &ns, &score->err);
		if (r < 0 && is_busy(&answer)) {
			score->busy++;
			r = 0;
		} else if (r == 0) {
			samples[score->runs++] = ns;
			score->warm += was_warm(&answer);
		}
		if (driver->forget)
			driver->forget(state);
	}
	score->last_ns = now_ns();
	if (state)
		driver->close(state);
	return r;
}

static int by_size(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void tell(const struct board *board, unsigned clients, uint64_t *samples)
{
	uint64_t runs = 0, busy = 0, warm = 0, last = 0;

	/* Close the gaps between the clients' samples. */
	for (unsigned i = 0; i < clients; i++) {
		const struct score *score = &board->scores[i];

		memmove(samples + runs, samples + (size_t)i * SAMPLES_MAX,
			score->runs * sizeof *samples);
		runs += score->runs;
		busy += score->busy;
		warm += score->warm;
		last = score->last_ns > last ? score->last_ns : last;
	}
	if (runs)
		qsort(samples, runs, sizeof *samples, by_size);
	printf("{\"clients\":%u,\"runs\":%llu,\"busy\":%llu,\"warm\":%llu,\"seconds\":%.6f",
	       clients, (unsigned long long)runs, (unsigned long long)busy,
	       (unsigned long long)warm, (double)(last - board->begin_ns) / 1e9);
	if (runs)
		printf(",\"p50_ms\":%.4f,\"p90_ms\":%.4f,\"p99_ms\":%.4f,\"max_ms\":%.4f",
		       (double)samples[runs / 2] / 1e6, (double)samples[runs * 9 / 10] / 1e6,
		       (double)samples[runs * 99 / 100] / 1e6, (double)samples[runs - 1] / 1e6);
	printf("}\n");
}

int load_run(const struct load *load, const struct driver *driver, const struct workload *workload,
	     const struct expectation *expectation, struct error *err)
{
	unsigned clients = load->clients < CLIENTS_MAX ? load->clients : CLIENTS_MAX;
	size_t size = (size_t)clients * SAMPLES_MAX * sizeof(uint64_t);
	struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t *samples = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned started = 0;
	int status, r = 0;

	if (board == MAP_FAILED || samples == MAP_FAILED)
		return fail(err, errno, "mmap");
	for (; started < clients; started++) {
		pid_t pid = fork();

		if (pid < 0) {
			r = fail(err, errno, "fork");
			break;
		}
		if (pid == 0)
			_exit(client(board, started, samples + (size_t)started * SAMPLES_MAX, load,
				     driver, workload, expectation) < 0);
	}
	while (board->ready < started)
		usleep(1000);
	usleep((useconds_t)(load->settle_ms * 1000));
	board->begin_ns = now_ns() + 20000000;
	while (wait(&status) > 0)
		if (status != 0 && r == 0)
			r = refuse(err, EIO, "a client of %u ended with status %d", clients,
				   status);
	for (unsigned i = 0; i < started; i++)
		if (board->scores[i].err.number && r < 0) {
			*err = board->scores[i].err;
			break;
		}
	if (r == 0)
		tell(board, clients, samples);
	return r;
}
