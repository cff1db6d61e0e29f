/* SPDX-License-Identifier: Apache-2.0 */
/* batch: the verdicts on many codes.
 *
 * Theory of operation. No user code runs when code is only checked, so one cell
 * can judge many codes, one after another; making a cell costs as much as judging
 * some sixty scripts. The codes are cut into shares, a few cells work side by side,
 * each on one share, and what they found is told in the codes' order. A share has at
 * most BATCH_CODES_MAX codes, which together are no larger than one code may be, so
 * the limits of one check bound it. Its cell ends after the last, or before:
 * ended by a limit or by what a code does to the parser. Then the codes of the
 * share that have no verdict go on in a new cell, and the first of them is the one
 * that was being judged: as the first in its cell it has all to itself, and a second
 * end is put down to it (result.c). So no code's verdict depends on its neighbours,
 * and each cell settles one code at least.
 *
 * Trust: who takes over the parser with one code can forge the verdicts of those
 * that are behind it in the same cell. Nothing runs on the ground of these
 * verdicts: a run verifies its code itself, in its own cell. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_OF_ONE 256 /* what a code costs beside its bytes, in bytes */

struct share {
	size_t first, end; /* of the codes; what is before `first` was told */
	struct execpy_request request;
	struct batch batch; /* behind the first */
	struct run *run;    /* NULL: free */
};

struct crew {
	struct execpy_engine *engine;
	const struct execpy_request *request;
	const struct execpy_code *codes;
	size_t count, next; /* all codes, and those that are in no share yet */
	size_t share_bytes;
	struct share shares[BATCH_CELLS_MAX]; /* a ring, in the order of the codes */
	size_t cells, oldest, busy;
};

static size_t processor_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

static void plan(struct crew *crew)
{
	size_t processors = processor_count(), bytes = 0;

	crew->cells = processors < BATCH_CELLS_MAX ? processors : BATCH_CELLS_MAX;
	for (size_t i = 0; i < crew->count; i++)
		bytes += crew->codes[i].code_length + WEIGHT_OF_ONE;
	crew->share_bytes = bytes / crew->cells + 1;
	if (crew->share_bytes < BATCH_SHARE_BYTES)
		crew->share_bytes = BATCH_SHARE_BYTES;
}

/* The end of the share that begins at `first`: one code at least. */
static size_t share_end(const struct crew *crew, size_t first)
{
	size_t weight = 0, bytes = 0, at = first;

	for (; at < crew->count && at - first < BATCH_CODES_MAX; at++) {
		size_t length = crew->codes[at].code_length;

		if (at > first && (weight > crew->share_bytes || length > CODE_BYTES_MAX - bytes))
			break;
		if (length > CODE_BYTES_MAX)
			return at + 1; /* it is refused, all by itself */
		bytes += length;
		weight += length + WEIGHT_OF_ONE;
	}
	return at;
}

static void free_results(struct batch *batch, size_t from)
{
	for (size_t i = from; i < batch->count; i++)
		execpy_result_free(batch->results[i]);
	batch->count = batch->judged = 0;
}

static int add_code(struct batch *batch, const struct execpy_code *code, struct error *err)
{
	struct span bytes = {(const uint8_t *)code->code, code->code_length};
	struct execpy_result *result = calloc(1, sizeof *result);

	if (!result)
		return fail(err, ENOMEM, "code");
	result->exit_code = -1;
	result->check_only = true;
	run_make_id(result->id);
	batch->results[batch->count++] = result;
	return request_take_code(result, bytes, err);
}

/* Gives what is left of a share to a new cell. */
static int begin(struct crew *crew, struct share *share, struct error *err)
{
	const struct run_purpose purpose = {.check_only = true, .batch = &share->batch};
	int r = 0;

	share->request = *crew->request;
	share->request.code = crew->codes[share->first].code;
	share->request.code_length = crew->codes[share->first].code_length;
	for (size_t i = share->first + 1; r == 0 && i < share->end; i++)
		r = add_code(&share->batch, &crew->codes[i], err);
	if (r == 0) {
		share->run = run_start(crew->engine, &share->request, NULL, &purpose, err);
		r = share->run ? 0 : -err->number;
	}
	if (r < 0)
		free_results(&share->batch, 0);
	return r;
}

/* What a result has from the request that all have in common. */
static int complete(struct execpy_result *result, const struct execpy_result *first,
		    struct error *err)
{
	result->limits = first->limits;
	result->warm = first->warm;
	result->policy = strdup(first->policy);
	result->template = first->template ? strdup(first->template) : NULL;
	return result->policy ? 0 : fail(err, ENOMEM, "result");
}

/* Waits for a share's cell, tells its verdicts, and gives what is left to another. */
static int end(struct crew *crew, struct share *share,
	       void (*tell)(void *user, size_t index, struct execpy_result *result), void *user,
	       struct error *err)
{
	struct batch *batch = &share->batch;
	struct execpy_result *result = NULL;
	size_t told = 0;
	int r = run_wait(share->run, &result, err);

	share->run = NULL;
	for (size_t i = 0; r == 0 && i < batch->judged; i++)
		r = complete(batch->results[i], result, err);
	if (r == 0) {
		tell(user, share->first++, result);
		for (; told < batch->judged; told++)
			tell(user, share->first++, batch->results[told]);
	} else {
		execpy_result_free(result);
	}
	free_results(batch, told);
	return r == 0 && share->first < share->end ? begin(crew, share, err) : r;
}

static void abandon(struct share *share)
{
	struct execpy_result *result;

	if (!share->run)
		return;
	result = share->run->result;
	run_free(share->run);
	execpy_result_free(result);
	free_results(&share->batch, 0);
}

int execpy_check_many(struct execpy_engine *engine, const struct execpy_request *request,
		      const struct execpy_code *codes, size_t count,
		      void (*tell)(void *user, size_t index, struct execpy_result *result),
		      void *user, struct execpy_error *error)
{
	struct error *err = (struct error *)error;
	autofree struct crew *crew = calloc(1, sizeof *crew);
	int r = 0;

	if (!crew)
		return fail(err, ENOMEM, "batch");
	crew->engine = engine;
	crew->request = request;
	crew->codes = codes;
	crew->count = count;
	plan(crew);
	while (r == 0 && (crew->busy > 0 || crew->next < count)) {
		struct share *share;

		if (crew->busy < crew->cells && crew->next < count) {
			share = &crew->shares[(crew->oldest + crew->busy++) % crew->cells];
			share->first = crew->next;
			share->end = crew->next = share_end(crew, crew->next);
			r = begin(crew, share, err);
			continue;
		}
		share = &crew->shares[crew->oldest];
		r = end(crew, share, tell, user, err);
		if (r == 0 && !share->run) {
			crew->oldest = (crew->oldest + 1) % crew->cells;
			crew->busy--;
		}
	}
	for (size_t i = 0; i < crew->cells; i++)
		abandon(&crew->shares[i]);
	return r;
}
