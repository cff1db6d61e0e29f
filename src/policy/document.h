/* SPDX-License-Identifier: Apache-2.0 */
/* document: the small part of YAML in which people write files for us.
 *
 * The format is parsed by libyaml: it is what PyYAML, Kubernetes' Go port and
 * Ruby have parsed with since 2006, has no dependencies, an ABI that has not
 * changed since, a maintained package in every distribution, and gives line
 * and column of each token, which the alternatives in Debian (libconfig: no
 * columns; inih: flat; libconfuse: lines only; no TOML library for C) do not.
 * Only its event parser is used: every scalar is text here, so none of YAML's
 * guessing ("no", "1e3") happens. Anchors, aliases, tags and a second document
 * are errors.
 *
 * Each function returns 0 or a negative errno with "ORIGIN:LINE:COLUMN: what
 * is wrong" in the document's error. */
#ifndef EXECPY_POLICY_DOCUMENT_H
#define EXECPY_POLICY_DOCUMENT_H

#include "base/bytes.h"
#include "base/error.h"

#include <yaml.h>

struct document {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	bool held;          /* it must be freed */
	const char *origin; /* the file's name in messages */
	const char *kind;   /* "policy file" */
	struct error *err;
};

/* Takes the current event to the beginning of the document's one mapping. The
 * text and the names stay the caller's. document_close() is due in any case. */
int document_open(struct document *document, struct span text, const char *origin, const char *kind,
		  struct error *err);
/* What is left once that mapping has ended: nothing more may come. */
int document_end(struct document *document);
void document_close(struct document *document);

int document_next(struct document *document);

static inline bool document_is(const struct document *document, yaml_event_type_t type)
{
	return document->event.type == type;
}

static inline yaml_mark_t document_mark(const struct document *document)
{
	return document->event.start_mark;
}

/* The next event must begin a mapping or a list; `message` says so if not. */
int document_enter(struct document *document, yaml_event_type_t type, const char *message);

/* The scalar that is the current event, as text without NUL: 1 to size - 1
 * bytes. `what` begins the message: "a name". */
int document_scalar(struct document *document, const char *what, char *ret_text, size_t size);
/* The same of up to `most` bytes, copied; it may be empty. To be freed. */
int document_text(struct document *document, const char *what, size_t most, char **ret_text);

/* For a key that may stand there once. */
int document_once(struct document *document, bool *seen, const char *key, yaml_mark_t mark);

int document_wrong(struct document *document, yaml_mark_t mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* At the current event. */
#define document_wrong_here(document, ...) \
	document_wrong(document, document_mark(document), __VA_ARGS__)
int document_out_of_memory(struct document *document);

/* Reads a whole regular file of at most `most` bytes. `kind` is for messages. */
int document_read(const char *path, const char *kind, size_t most, struct bytes *out,
		  struct error *err);

#endif
