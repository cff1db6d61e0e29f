/* SPDX-License-Identifier: Apache-2.0 */
/* document: see document.h. */
#include "policy/document.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int document_wrong(struct document *document, yaml_mark_t mark, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return refuse(document->err, EINVAL, "%.80s:%zu:%zu: %s", document->origin, mark.line + 1,
		      mark.column + 1, text);
}

int document_out_of_memory(struct document *document)
{
	return fail(document->err, ENOMEM, "%.80s", document->origin);
}

static int no_event(struct document *document)
{
	const yaml_parser_t *parser = &document->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		return document_out_of_memory(document);
	if (parser->error == YAML_READER_ERROR)
		return refuse(document->err, EINVAL, "%.80s: %s at byte %zu", document->origin,
			      parser->problem, parser->problem_offset);
	if (parser->problem)
		return document_wrong(document, parser->problem_mark, "%s", parser->problem);
	return document_wrong(document, parser->problem_mark, "not a %s", document->kind);
}

int document_next(struct document *document)
{
	const yaml_event_t *event = &document->event;

	if (document->held)
		yaml_event_delete(&document->event);
	document->held = false;
	if (!yaml_parser_parse(&document->parser, &document->event))
		return no_event(document);
	document->held = true;
	if (event->type == YAML_ALIAS_EVENT)
		return document_wrong(document, event->start_mark, "aliases are not allowed");
	if ((event->type == YAML_SCALAR_EVENT &&
	     (event->data.scalar.anchor || event->data.scalar.tag)) ||
	    (event->type == YAML_MAPPING_START_EVENT &&
	     (event->data.mapping_start.anchor || event->data.mapping_start.tag)) ||
	    (event->type == YAML_SEQUENCE_START_EVENT &&
	     (event->data.sequence_start.anchor || event->data.sequence_start.tag)))
		return document_wrong(document, event->start_mark,
				      "anchors and tags are not allowed");
	return 0;
}

int document_enter(struct document *document, yaml_event_type_t type, const char *message)
{
	int r = document_next(document);

	if (r < 0)
		return r;
	if (!document_is(document, type))
		return document_wrong_here(document, "%s", message);
	return 0;
}

static bool has_nul(const yaml_event_t *scalar)
{
	return memchr(scalar->data.scalar.value, '\0', scalar->data.scalar.length) != NULL;
}

int document_scalar(struct document *document, const char *what, char *ret_text, size_t size)
{
	const yaml_event_t *event = &document->event;
	size_t length;

	if (event->type != YAML_SCALAR_EVENT)
		return document_wrong(document, event->start_mark, "%s must be one word", what);
	length = event->data.scalar.length;
	if (!length || length >= size || has_nul(event))
		return document_wrong(document, event->start_mark, "%s must have 1 to %zu bytes",
				      what, size - 1);
	memcpy(ret_text, event->data.scalar.value, length);
	ret_text[length] = '\0';
	return 0;
}

int document_text(struct document *document, const char *what, size_t most, char **ret_text)
{
	const yaml_event_t *event = &document->event;
	char *text;

	if (event->type != YAML_SCALAR_EVENT)
		return document_wrong(document, event->start_mark, "%s must be text", what);
	if (event->data.scalar.length > most || has_nul(event))
		return document_wrong(document, event->start_mark,
				      "%s must have at most %zu bytes, none of them NUL", what,
				      most);
	text = span_to_string((struct span){event->data.scalar.value, event->data.scalar.length});
	if (!text)
		return document_out_of_memory(document);
	*ret_text = text;
	return 0;
}

int document_once(struct document *document, bool *seen, const char *key, yaml_mark_t mark)
{
	if (*seen)
		return document_wrong(document, mark, "the key '%s' stands here twice", key);
	*seen = true;
	return 0;
}

int document_open(struct document *document, struct span text, const char *origin, const char *kind,
		  struct error *err)
{
	int r;

	*document = (struct document){.origin = origin, .kind = kind, .err = err};
	if (!yaml_parser_initialize(&document->parser))
		return document_out_of_memory(document);
	yaml_parser_set_encoding(&document->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&document->parser, text.data, text.length);
	if ((r = document_next(document)) < 0 || (r = document_next(document)) < 0)
		return r;
	if (!document_is(document, YAML_DOCUMENT_START_EVENT))
		return document_wrong_here(document, "the %s is empty", kind);
	if ((r = document_next(document)) < 0)
		return r;
	if (!document_is(document, YAML_MAPPING_START_EVENT))
		return document_wrong_here(document, "a %s is a mapping of keys", kind);
	return 0;
}

int document_end(struct document *document)
{
	int r;

	if ((r = document_next(document)) < 0 || (r = document_next(document)) < 0)
		return r;
	if (!document_is(document, YAML_STREAM_END_EVENT))
		return document_wrong_here(document, "there is a second document");
	return 0;
}

void document_close(struct document *document)
{
	if (document->held)
		yaml_event_delete(&document->event);
	document->held = false;
	/* Harmless for one that was not initialized: it is zero then. */
	yaml_parser_delete(&document->parser);
}

int document_read(const char *path, const char *kind, size_t most, struct bytes *out,
		  struct error *err)
{
	autofd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return fail(err, errno, "%s %.100s", kind, path);
	if (fstat(fd, &status) < 0)
		return fail(err, errno, "%s %.100s", kind, path);
	if (!S_ISREG(status.st_mode))
		return fail(err, EINVAL, "%s %.100s is no regular file", kind, path);
	for (;;) {
		uint8_t *room = bytes_reserve(out, 4096);
		ssize_t got;

		if (!room)
			return fail(err, -out->failed, "%s %.100s", kind, path);
		got = read(fd, room, 4096);
		if (got < 0)
			return fail(err, errno, "%s %.100s", kind, path);
		if (got == 0)
			return 0;
		out->length += (size_t)got;
		if (out->length > most)
			return refuse(err, EINVAL, "%.80s: larger than %zu bytes", path, most);
	}
}
