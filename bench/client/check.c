/* SPDX-License-Identifier: Apache-2.0 */
/* check: whether a run's answer is the expected one, and reading of files. */
#include "client.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

int read_some(int fd, struct bytes *out, struct error *err)
{
	uint8_t *at = bytes_reserve(out, READ_BYTES);
	ssize_t length;

	if (!at)
		return fail(err, ENOMEM, "read");
	do
		length = read(fd, at, READ_BYTES);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return fail(err, errno, "read");
	out->length += (size_t)length;
	return length > 0;
}

int read_whole_file(const char *path, struct bytes *out, struct error *err)
{
	autofd fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return fail(err, errno, "open %s", path);
	while ((r = read_some(fd, out, err)) == 1)
		;
	return r < 0 ? fail_wrap(err, "%s", path) : 0;
}

void base64(struct span data, struct bytes *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < data.length; i += 3) {
		size_t left = data.length - i;
		uint32_t group = (uint32_t)data.data[i] << 16 |
				 (uint32_t)(left > 1 ? data.data[i + 1] : 0) << 8 |
				 (left > 2 ? data.data[i + 2] : 0);
		char four[4] = {digits[group >> 18], digits[group >> 12 & 63],
				left > 1 ? digits[group >> 6 & 63] : '=',
				left > 2 ? digits[group & 63] : '='};

		bytes_append(out, four, sizeof four);
	}
}

static bool contains(struct span where, const void *what, size_t length)
{
	return memmem(where.data, where.length, what, length) != NULL;
}

bool was_warm(const struct answer *answer)
{
	static const char text[] = "\"warm\":true";

	return contains(answer->said, text, strlen(text));
}

static int wrong(const struct answer *answer, struct error *err, const char *what)
{
	size_t tail = answer->said.length < 200 ? answer->said.length : 200;

	for (size_t i = answer->said.length - tail; i < answer->said.length; i++)
		if (answer->said.data[i] == '\n')
			((uint8_t *)answer->said.data)[i] = '|';
	return refuse(err, EBADMSG, "%.60s; status %s, %zu bytes of output, said: %.*s", what,
		      answer->status, answer->out.length, (int)tail,
		      (const char *)answer->said.data + answer->said.length - tail);
}

int check(const struct expectation *expectation, const struct answer *answer, struct error *err)
{
	const struct bytes *file =
		answer->file_in_json ? &expectation->file_base64 : &expectation->file;

	if (expectation->status && strcmp(expectation->status, answer->status) != 0)
		return wrong(answer, err, "wrong status");
	if (expectation->has_out &&
	    (answer->out.length != expectation->out.length ||
	     memcmp(answer->out.data, expectation->out.data, expectation->out.length) != 0))
		return wrong(answer, err, "wrong output");
	for (size_t i = 0; i < expectation->text_count; i++)
		if (!contains(answer->said, expectation->texts[i], strlen(expectation->texts[i])))
			return wrong(answer, err, expectation->texts[i]);
	if (file->length == 0)
		return 0;
	if (answer->file_in_json ? !contains(answer->said, file->data, file->length)
				 : answer->file.length != file->length ||
					   memcmp(answer->file.data, file->data, file->length) != 0)
		return wrong(answer, err, "wrong file");
	return 0;
}
