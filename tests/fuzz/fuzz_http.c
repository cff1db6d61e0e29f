/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http: any bytes as what a client of HTTP sends, in pieces of any size.
 *
 * The first byte is the size of the pieces. However a request is parted it must be the
 * same request, or be refused for the same reason; and what is taken for one must be
 * framed in the one way that there is. */
#include "server/http/request.h"

#include "base/cleanup.h"
#include "fuzz.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* What became of the bytes. */
struct outcome {
	struct request request;
	struct bytes body;
	unsigned status; /* with which it is refused; 0: not */
	bool whole, bad_chunks, ended;
	size_t head, taken;
};

static void read_body(struct outcome *outcome, struct span bytes, size_t piece)
{
	struct chunks chunks = {0};

	while (outcome->taken < bytes.length && chunks.state != CHUNK_END) {
		struct span part = {bytes.data + outcome->taken, bytes.length - outcome->taken},
			    data;
		long taken;

		if (part.length > piece)
			part.length = piece;
		taken = chunks_take(&chunks, part, &data);
		if (taken < 0) {
			outcome->bad_chunks = true;
			return;
		}
		MUST(taken > 0 && (size_t)taken <= part.length && data.length <= part.length);
		MUST(data.length == 0 || (data.data >= part.data &&
					  data.data + data.length <= part.data + part.length));
		bytes_append(&outcome->body, data.data, data.length);
		outcome->taken += (size_t)taken;
	}
	outcome->ended = chunks.state == CHUNK_END;
}

static void read_request(struct outcome *outcome, struct span bytes, size_t piece)
{
	const char *why = NULL;

	outcome->request.head.ceiling = HTTP_HEAD_BYTES_MAX + 1;
	while (!outcome->whole && !outcome->status && outcome->taken < bytes.length) {
		struct span part = {bytes.data + outcome->taken, bytes.length - outcome->taken};

		if (part.length > piece)
			part.length = piece;
		outcome->taken += request_take_head(&outcome->request, part, &outcome->whole,
						    &outcome->status, &why);
	}
	outcome->head = outcome->taken;
	if (outcome->whole)
		outcome->status = request_parse(&outcome->request, &why);
	MUST(!outcome->status || (why && why[0]));
	if (outcome->whole && !outcome->status && outcome->request.chunked)
		read_body(outcome, bytes, piece);
}

static unsigned count_field(const struct request *request, const char *name)
{
	const struct request_field *field = NULL;
	unsigned count = 0;

	while ((field = request_field(request, name, field)))
		count++;
	return count;
}

/* What another reader must not be able to see in another way. */
static void check_request(const struct outcome *outcome, struct span bytes)
{
	const struct request *request = &outcome->request;
	const struct request_field *length = request_field(request, "content-length", NULL);
	const struct request_field *encoding = request_field(request, "transfer-encoding", NULL);

	MUST(outcome->head <= HTTP_HEAD_BYTES_MAX);
	MUST(memcmp(bytes.data + outcome->head - 4, "\r\n\r\n", 4) == 0);
	for (size_t i = 0; i < outcome->head; i++) {
		uint8_t byte = bytes.data[i];

		MUST(byte >= ' ' || byte == '\t' || byte == '\r' || byte == '\n');
		MUST(byte != '\n' || (i > 0 && bytes.data[i - 1] == '\r'));
		MUST(byte != '\r' || bytes.data[i + 1] == '\n');
	}
	MUST(count_field(request, "host") == 1 && request->host[0]);
	MUST(!length || !encoding);
	MUST(count_field(request, "content-length") <= 1);
	MUST(count_field(request, "transfer-encoding") <= 1);
	MUST(request->chunked == (encoding != NULL));
	MUST(!encoding || (strcasecmp(encoding->value, "chunked") == 0 && !request->is_1_0));
	if (length) {
		char number[32];

		snprintf(number, sizeof number, "%llu", (unsigned long long)request->length);
		MUST(strcmp(number, length->value) == 0);
	} else {
		MUST(request->length == 0);
	}
	MUST(request->method && request->path[0] == '/' && !strchr(request->path, '?'));
	MUST(!strstr(request->path, "/../") && !strstr(request->path, "/./"));
	for (unsigned i = 0; i < request->field_count; i++) {
		const char *value = request->fields[i].value;
		size_t size = strlen(value);

		MUST(request->fields[i].name[0] && !strpbrk(request->fields[i].name, " \t:"));
		MUST(size == 0 || (!strchr(" \t", value[0]) && !strchr(" \t", value[size - 1])));
	}
}

static void outcome_free(struct outcome *outcome)
{
	request_free(&outcome->request);
	bytes_free(&outcome->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = {0}, parted = {0};
	struct span bytes = {data + 1, size ? size - 1 : 0};

	if (size == 0)
		return 0;
	read_request(&whole, bytes, bytes.length ? bytes.length : 1);
	read_request(&parted, bytes, 1 + data[0] % 64);
	MUST(whole.whole == parted.whole && whole.status == parted.status &&
	     whole.head == parted.head && whole.bad_chunks == parted.bad_chunks &&
	     whole.ended == parted.ended);
	if (whole.whole && !whole.status) {
		check_request(&whole, bytes);
		MUST(whole.bad_chunks ||
		     (whole.body.length == parted.body.length && whole.taken == parted.taken));
		MUST(whole.body.length == 0 || whole.bad_chunks ||
		     memcmp(whole.body.data, parted.body.data, whole.body.length) == 0);
	}
	outcome_free(&whole);
	outcome_free(&parted);
	return 0;
}
