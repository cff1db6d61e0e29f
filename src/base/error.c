/* SPDX-License-Identifier: Apache-2.0 */
/* error: see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append_errno(struct error *err, int number)
{
	size_t used = strlen(err->text);
	const char *words = strerrordesc_np(number);

	snprintf(err->text + used, sizeof err->text - used, ": %s",
		 words ? words : "unknown error");
}

/* What is quoted may come from anybody: a message stays one line. */
static void keep_one_line(struct error *err)
{
	for (char *at = err->text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
}

int fail(struct error *err, int number, const char *format, ...)
{
	if (err) {
		va_list args;

		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		keep_one_line(err);
		err->number = number ? number : EIO;
		if (number)
			append_errno(err, number);
	}
	return number ? -number : -EIO;
}

int refuse(struct error *err, int number, const char *format, ...)
{
	if (err) {
		va_list args;

		va_start(args, format);
		vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		keep_one_line(err);
		err->number = number;
	}
	return -number;
}

int fail_wrap(struct error *err, const char *format, ...)
{
	char context[ERROR_TEXT_MAX], whole[2 * ERROR_TEXT_MAX + 4];
	va_list args;

	if (!err)
		return -EIO;
	va_start(args, format);
	vsnprintf(context, sizeof context, format, args);
	va_end(args);
	snprintf(whole, sizeof whole, "%s: %s", context, err->text);
	memcpy(err->text, whole, sizeof err->text - 1);
	err->text[sizeof err->text - 1] = '\0';
	keep_one_line(err);
	return err->number ? -err->number : -EIO;
}

const char *errno_name(int number)
{
	static _Thread_local char unknown[24];
	const char *name = strerrorname_np(number);

	if (name)
		return name;
	snprintf(unknown, sizeof unknown, "errno %d", number);
	return unknown;
}
