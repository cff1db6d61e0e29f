/* SPDX-License-Identifier: Apache-2.0 */
/* batch: the verdicts on many codes.
 *
 * Theory of operation. No user code runs when code is only checked, so one cell
 * can judge many codes, one after another; making a cell costs as much as judging
 * some sixty scripts. A cell is given at most BATCH_CODES_MAX codes, which
 * together are no larger than one code may be, so the limits of one check bound
 * it. It ends after the last, or before: killed by a limit or by what a code does
 * to the parser. Then the codes that have no verdict go on in a new cell, and the
 * first of them is the one that was being judged: as the first in its cell it has
 * all to itself, and a second end is put down to it (result.c). So no code's verdict
 * depends on its neighbours, and each cell settles one code at least.
 *
 * Trust: who takes over the parser with one code can forge the verdicts of those
 * that are behind it in the same cell. Nothing runs on the ground of these
 * verdicts: a run verifies its code itself, in its own cell. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void free_results(struct batch *batch, size_t from)
{
	for (size_t i = from; i < batch->count; i++)
		execpy_result_free(batch->results[i]);
}

/* Adds the codes that fit into one cell behind the first. */
static int fill(struct batch *batch, const struct execpy_code *codes, size_t count,
		struct error *err)
{
	size_t bytes = codes[0].code_length;

	if (bytes > CODE_BYTES_MAX)
		return 0; /* is refused by itself */
	for (size_t i = 1; i < count && batch->count + 1 < BATCH_CODES_MAX; i++) {
		struct span code = {(const uint8_t *)codes[i].code, codes[i].code_length};
		struct execpy_result *result;

		if (code.length > CODE_BYTES_MAX - bytes)
			break;
		bytes += code.length;
		result = calloc(1, sizeof *result);
		if (!result)
			return fail(err, ENOMEM, "code");
		result->exit_code = -1;
		result->check_only = true;
		batch->results[batch->count++] = result;
		if (request_take_code(result, code, err) < 0)
			return -err->number;
		run_make_id(result->id);
	}
	return 0;
}

/* What a result has from the request that all share. */
static int share(struct execpy_result *result, const struct execpy_result *first, struct error *err)
{
	result->limits = first->limits;
	result->warm = first->warm;
	result->policy = strdup(first->policy);
	result->template = first->template ? strdup(first->template) : NULL;
	return result->policy ? 0 : fail(err, ENOMEM, "result");
}

int execpy_check_many(struct execpy_engine *engine, const struct execpy_request *request,
		      const struct execpy_code *codes, size_t count,
		      void (*tell)(void *user, size_t index, struct execpy_result *result),
		      void *user, struct execpy_error *error)
{
	struct error *err = (struct error *)error;
	autofree struct batch *batch = malloc(sizeof *batch);
	const struct run_purpose purpose = {.check_only = true, .batch = batch};
	int r = batch ? 0 : fail(err, ENOMEM, "batch");

	for (size_t next = 0; r == 0 && next < count;) {
		struct execpy_request first = *request;
		struct execpy_result *result = NULL;
		size_t told = 0;

		first.code = codes[next].code;
		first.code_length = codes[next].code_length;
		batch->count = batch->judged = 0;
		r = fill(batch, &codes[next], count - next, err);
		if (r == 0)
			r = run_to_end(engine, &first, NULL, &purpose, &result, err);
		for (size_t i = 0; r == 0 && i < batch->judged; i++)
			r = share(batch->results[i], result, err);
		if (r == 0) {
			tell(user, next++, result);
			for (; told < batch->judged; told++)
				tell(user, next++, batch->results[told]);
		} else {
			execpy_result_free(result);
		}
		free_results(batch, told);
	}
	return r;
}
