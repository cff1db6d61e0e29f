/* SPDX-License-Identifier: Apache-2.0 */
/* judge: the verdict, before a line of user code has run.
 *
 * The cell that will run the code verifies it first: it is confined, a fresh
 * fork, and no user code has touched it. The verdict is written
 * before anything else, to a descriptor that is closed at once, so that the code
 * cannot touch it; if the process dies before that, the engine finds none and
 * says that the code could not be verified. What is run are the very bytes
 * that were judged: if the verifier took a notebook's forms out, what it had then.
 *
 * Where nothing will run, one cell judges many codes, one after another. Each
 * verdict is out before the next code is looked at, so that a code which takes
 * the process with it takes no other's verdict: a new cell goes on
 * (engine/batch.c). */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <time.h>

static uint64_t microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Verifies and writes: the verdict in *ret_verdict, and the length of its frame. */
static int judge_one(struct span code, const struct policy *policy,
		     const struct verify_context *context, struct verdict *ret_verdict,
		     size_t *ret_length, struct error *err)
{
	uint64_t began = microseconds();
	autobytes encoded = {0};
	autobytes frame = {0};
	size_t at;
	int r = verify(code, policy, context, ret_verdict, err);

	if (r < 0)
		return r;
	verdict_encode(ret_verdict, &encoded);
	at = frame_begin(&frame, MESSAGE_VERDICT, 0);
	frame_put(&frame, FIELD_FINDINGS, encoded.data, encoded.length);
	frame_put_number(&frame, FIELD_VERIFY_US, microseconds() - began);
	r = encoded.failed ? encoded.failed : frame_end(&frame, at);
	if (r == 0)
		r = outbox_write_verdict(&frame);
	*ret_length = frame.length;
	return r < 0 ? fail(err, -r, "cell: write the verdict") : 0;
}

int judge(struct span *code, const struct policy *policy, const struct verify_context *context,
	  struct error *err)
{
	static struct bytes plain; /* what will run, when that is not what was sent */
	autoverdict verdict = {0};
	size_t length;
	int r = judge_one(*code, policy, context, &verdict, &length, err);

	if (r < 0)
		return r;
	r = outbox_close_verdict();
	if (r < 0)
		return fail(err, -r, "cell: close the verdict");
	audit_know_imports(&verdict);
	if (verdict.source.length > 0) {
		bytes_free(&plain);
		plain = verdict.source;
		verdict.source = (struct bytes){0};
		*code = bytes_span(&plain);
	}
	return verdict.blocked ? 0 : 1;
}

int judge_each(struct span request, const struct policy *policy,
	       const struct verify_context *context, struct error *err)
{
	struct reader reader = reader_of(request), fields;
	struct frame frame;
	struct field field;
	size_t written = 0, length;

	if (frame_next(&reader, MAILBOX_REQUEST_BYTES, &frame) != 1)
		return refuse(err, EBADMSG, "cell: no request");
	fields = frame_fields(&frame);
	while (written <= VERDICTS_BYTES_MAX - VERDICT_BYTES_MAX &&
	       frame_next_field(&fields, &field) == 1) {
		autoverdict verdict = {0};
		int r;

		if (field.name != FIELD_CODE)
			continue;
		r = judge_one(field.value, policy, context, &verdict, &length, err);
		if (r < 0)
			return r;
		written += length;
	}
	return 0;
}

/* Names of the session's variables, each with its NUL. */
static struct bytes variables;

void judge_take_names(const struct frame *frame)
{
	struct reader fields = frame_fields(frame);
	struct field field;

	bytes_clear(&variables);
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name != FIELD_NAME || memchr(field.value.data, 0, field.value.length))
			continue;
		bytes_append(&variables, field.value.data, field.value.length);
		bytes_append(&variables, "", 1);
	}
}

struct span judge_names(void)
{
	return bytes_span(&variables);
}

int judge_know_names(struct span known)
{
	bytes_clear(&variables);
	return bytes_append(&variables, known.data, known.length);
}

static size_t list_names(const char *known[SESSION_NAMES_MAX])
{
	size_t count = 0;

	for (size_t at = 0; at < variables.length && count < SESSION_NAMES_MAX;) {
		known[count] = (const char *)variables.data + at;
		at += strlen(known[count++]) + 1;
	}
	return count;
}

int judge_turn(struct verdict *ret_verdict, struct error *err)
{
	static const char *known[SESSION_NAMES_MAX + 1];
	static struct bytes request; /* out of reach of threads that a run left */
	struct span sent = outbox_request();
	struct order order = {0};
	size_t length;
	int r;

	bytes_clear(&request);
	if (bytes_append(&request, sent.data, sent.length) < 0)
		return fail(err, ENOMEM, "session: copy the request");
	if (outbox_renew_verdict() < 0)
		return fail(err, errno, "session: make room for the verdict");
	if (order_read(bytes_span(&request), &order) < 0) {
		order_free(&order);
		return interpreter_error(err, "session: read the request");
	}
	order.context.any_file = order.context.top_level_await = true;
	order.context.names = known;
	order.context.name_count = list_names(known);
	/* In the first run, too, a name may be `_` or Out. */
	known[order.context.name_count++] = "_";
	r = judge_one(order.code, &order.policy, &order.context, ret_verdict, &length, err);
	order_free(&order);
	return r < 0 ? r : !ret_verdict->blocked;
}
