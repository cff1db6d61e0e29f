/* SPDX-License-Identifier: Apache-2.0 */
/* judge: the verdict, before a line of user code has run.
 *
 * The cell that will run the code verifies it first: it is confined, a fresh
 * fork, and no user code has touched it. The verdict is written
 * before anything else, to a descriptor that is closed at once, so that the code
 * cannot touch it; if the process dies before that, the engine finds none and
 * says that the code could not be verified. What is run are the very bytes
 * that were judged. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <time.h>

static uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int judge(struct span code, const struct policy *policy, const struct verify_context *context,
	  struct error *err)
{
	uint64_t began = microseconds();
	autoverdict verdict = {0};
	autobytes encoded = {0};
	autobytes frame = {0};
	size_t at;
	int r = verify(code, policy, context, &verdict, err);

	if (r < 0)
		return r;
	verdict_encode(&verdict, &encoded);
	at = frame_begin(&frame, MESSAGE_VERDICT, 0);
	frame_put(&frame, FIELD_FINDINGS, encoded.data, encoded.length);
	frame_put_number(&frame, FIELD_VERIFY_US, microseconds() - began);
	r = encoded.failed ? encoded.failed : frame_end(&frame, at);
	if (r == 0)
		r = outbox_write_verdict(&frame);
	if (r < 0)
		return fail(err, -r, "cell: write the verdict");
	audit_know_imports(&verdict);
	return verdict.blocked ? 0 : 1;
}
