/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_response: the engine's reader of a mailbox, and the JSON that it makes.
 *
 *     u8 ending  u8 flags  u16 wait status  u32 claimed response length
 *     u32 claimed frames length  u16 length of the stop frames  u16 of the code
 *     stop frames, code, response
 *
 * Whatever a cell left, the result is one line of valid JSON. */
#include "fuzz.h"
#include "json_check.h"

#include "engine/engine.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int mailbox = -1;
static uint8_t *memory;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct error err = {0};

	mailbox = mailbox_create(&err);
	MUST(mailbox >= 0);
	memory = mailbox_map(mailbox, MAILBOX_BYTES, &err);
	MUST(memory);
	return 0;
}

/* Mostly near the truth; the whole area only now and then, for it takes long. */
static uint32_t claim(uint32_t said, size_t truth)
{
	return said >= 0xffff0000 ? said
				  : (uint32_t)(truth + said % 65536 - (said & 1 ? 65536 : 0));
}

static void fill(struct reader *reader, struct execpy_result *result)
{
	struct mailbox_header *header = (struct mailbox_header *)memory;
	uint32_t response_claim = reader_u32(reader), frames_claim = reader_u32(reader);
	size_t frames_length = reader_u16(reader), code_length = reader_u16(reader);
	struct span frames, code, response;

	frames = reader_take(reader, frames_length < reader->left ? frames_length : reader->left);
	code = reader_take(reader, code_length < reader->left ? code_length : reader->left);
	response = reader_take(reader, reader->left);
	memcpy(memory + MAILBOX_FRAMES_AT, frames.data, frames.length);
	memset(memory + MAILBOX_FRAMES_AT + frames.length, 0, 1024);
	memcpy(memory + MAILBOX_RESPONSE_AT, response.data, response.length);
	memset(memory + MAILBOX_RESPONSE_AT + response.length, 0, 1024);
	header->response_length = response_claim < 256 ? (uint32_t)response.length
						       : claim(response_claim, response.length);
	header->frames_length =
		frames_claim < 256 ? (uint32_t)frames.length : claim(frames_claim, frames.length);
	bytes_append(&result->code, code.data, code.length);
	/* The same bytes as what was printed, and as a file's name. */
	capture_add(result->output, 0, response.data, response.length, 4096, frames_length & 1);
	capture_add(result->output, 1, code.data, code.length, 4096, frames_length & 1);
}

static void add_file(struct run *run, struct span name)
{
	char path[256];
	size_t length = 0;

	/* A directory entry: any bytes but NUL. */
	while (length < name.length && length < sizeof path - 1 && name.data[length])
		length++;
	memcpy(path, name.data, length);
	path[length] = '\0';
	files_add(run, path, 0, -1, "is a FIFO");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader reader = reader_of((struct span){data, size});
	struct execpy_request request = {.out_directory = -1, .stdin_fd = -1};
	struct execpy_result *result = calloc(1, sizeof *result);
	struct run run = {.request = &request, .result = result, .mailbox = mailbox};
	const char *json, *wrong;
	size_t length = 0, offset = 0;
	uint8_t flags;

	MUST(result);
	result->exit_code = -1;
	result->limits = limits_default();
	snprintf(result->id, sizeof result->id, "run_0");
	result->policy = strdup("open");
	result->template = strdup("bare");
	run.ending = (enum ending)(reader_u8(&reader) % 8);
	flags = reader_u8(&reader);
	run.has_status = flags & 1;
	run.disk_full = flags & 2;
	run.cancelled = flags & 4;
	run.reason = flags >> 3 & 3;
	request.truncate_output = flags & 32;
	result->check_only = flags & 64;
	run.status = reader_u16(&reader);
	fill(&reader, result);
	add_file(&run, (struct span){data, size < 200 ? size : 200});
	result_finish(&run);
	json = execpy_result_json(result, &length);
	/* Only when it is larger than anything of ours may be. */
	MUST(json || size > 1 << 20 || result->response.length > 1 << 20);
	if (json) {
		MUST(strlen(json) == length);
		wrong = json_check_text(json, length, &offset);
		if (wrong) {
			fprintf(stderr, "at %zu: %s: %.80s\n", offset, wrong,
				json + (offset > 40 ? offset - 40 : 0));
			abort();
		}
	}
	execpy_result_free(result);
	return 0;
}
