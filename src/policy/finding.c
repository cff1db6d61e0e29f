/* SPDX-License-Identifier: Apache-2.0 */
/* finding: see finding.h. */
#include "policy/finding.h"

#include "base/cleanup.h"
#include "policy/text.h"
#include "proto/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void verdict_free(struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->import_count; i++)
		free(verdict->imports[i]);
	free(verdict->imports);
	free(verdict->findings);
	bytes_free(&verdict->source);
	*verdict = (struct verdict){0};
}

static void copy_text(char to[FINDING_TEXT_BYTES_MAX + 1], const char *from)
{
	size_t length = strnlen(from, FINDING_TEXT_BYTES_MAX + 1);

	if (length > FINDING_TEXT_BYTES_MAX)
		length = utf8_floor((struct span){(const uint8_t *)from, length},
				    FINDING_TEXT_BYTES_MAX);
	memcpy(to, from, length);
	to[length] = '\0';
	/* One line, whatever stood in the code. */
	for (size_t i = 0; i < length; i++)
		if ((uint8_t)to[i] < 0x20 || to[i] == 0x7f)
			to[i] = ' ';
}

int verdict_add(struct verdict *verdict, enum rule rule, enum severity severity,
		const uint32_t range[4], const char *message, const char *hint)
{
	struct finding *finding = NULL;

	if (severity == SEVERITY_OFF)
		return 0;
	verdict->blocked |= severity == SEVERITY_BLOCK;
	if (verdict->finding_count == FINDINGS_MAX) {
		verdict->truncated = true;
		if (severity != SEVERITY_BLOCK)
			return 0;
		for (size_t i = FINDINGS_MAX; i-- > 0 && !finding;)
			if (verdict->findings[i].severity != SEVERITY_BLOCK)
				finding = &verdict->findings[i];
		if (!finding)
			return 0;
	} else {
		if (verdict->finding_count % 16 == 0) {
			struct finding *grown = realloc(
				verdict->findings, (verdict->finding_count + 16) * sizeof *grown);

			if (!grown)
				return -ENOMEM;
			verdict->findings = grown;
		}
		finding = &verdict->findings[verdict->finding_count++];
	}
	finding->rule = rule;
	finding->severity = severity;
	finding->line = range[0];
	finding->column = range[1];
	finding->end_line = range[2];
	finding->end_column = range[3];
	copy_text(finding->message, message);
	copy_text(finding->hint, hint);
	return 0;
}

int verdict_add_import(struct verdict *verdict, const char *module)
{
	char *copy, **grown;

	if (strlen(module) > VERDICT_IMPORT_BYTES_MAX ||
	    verdict->import_count >= VERDICT_IMPORTS_MAX)
		return 0;
	for (size_t i = 0; i < verdict->import_count; i++)
		if (strcmp(verdict->imports[i], module) == 0)
			return 0;
	grown = realloc(verdict->imports, (verdict->import_count + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	verdict->imports = grown;
	copy = strdup(module);
	if (!copy)
		return -ENOMEM;
	grown[verdict->import_count++] = copy;
	return 0;
}

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	return (int)a->rule - (int)b->rule;
}

void verdict_sort(struct verdict *verdict)
{
	if (verdict->finding_count)
		qsort(verdict->findings, verdict->finding_count, sizeof *verdict->findings,
		      compare_findings);
}

const struct finding *verdict_cause(const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->finding_count; i++)
		if (verdict->findings[i].severity == SEVERITY_BLOCK)
			return &verdict->findings[i];
	return NULL;
}

const char *finding_error_type(const struct finding *finding)
{
	switch (finding->rule) {
	case RULE_INDENTATION:
		return "IndentationError";
	case RULE_TAB:
		return "TabError";
	case RULE_SYNTAX:
	case RULE_NOTEBOOK:
	case RULE_NOTEBOOK_INSTALL:
	case RULE_NOTEBOOK_SHELL:
	case RULE_ENCODING:
	case RULE_NUL:
	case RULE_TOO_DEEP:
		return "SyntaxError";
	default:
		return "SecurityError";
	}
}

enum verdict_field {
	VERDICT_FLAGS = 1, /* bit 0 blocked, bit 1 truncated */
	VERDICT_IMPORT,
	VERDICT_FINDING, /* starts a finding: its rule's id */
	VERDICT_SEVERITY,
	VERDICT_LINE,
	VERDICT_COLUMN,
	VERDICT_END_LINE,
	VERDICT_END_COLUMN,
	VERDICT_MESSAGE,
	VERDICT_HINT, /* ends a finding */
};

void verdict_encode(const struct verdict *verdict, struct bytes *out)
{
	frame_put_number(out, VERDICT_FLAGS,
			 (verdict->blocked ? 1u : 0u) | (verdict->truncated ? 2u : 0u));
	for (size_t i = 0; i < verdict->import_count; i++)
		frame_put_text(out, VERDICT_IMPORT, verdict->imports[i]);
	for (size_t i = 0; i < verdict->finding_count; i++) {
		const struct finding *finding = &verdict->findings[i];

		frame_put_text(out, VERDICT_FINDING, rule_infos[finding->rule].id);
		frame_put_number(out, VERDICT_SEVERITY, finding->severity);
		frame_put_number(out, VERDICT_LINE, finding->line);
		frame_put_number(out, VERDICT_COLUMN, finding->column);
		frame_put_number(out, VERDICT_END_LINE, finding->end_line);
		frame_put_number(out, VERDICT_END_COLUMN, finding->end_column);
		frame_put_text(out, VERDICT_MESSAGE, finding->message);
		frame_put_text(out, VERDICT_HINT, finding->hint);
	}
}

static int decode_text(struct span value, char to[FINDING_TEXT_BYTES_MAX + 1])
{
	if (value.length > FINDING_TEXT_BYTES_MAX || !utf8_valid(value) ||
	    memchr(value.data, '\0', value.length))
		return -EBADMSG;
	memcpy(to, value.data, value.length);
	to[value.length] = '\0';
	return 0;
}

/* One of the fields between VERDICT_FINDING and VERDICT_HINT. */
static int decode_part(const struct field *field, struct finding *finding)
{
	uint64_t number;

	if (field->name == VERDICT_MESSAGE)
		return decode_text(field->value, finding->message);
	if (field->name == VERDICT_HINT)
		return decode_text(field->value, finding->hint);
	if (field_number(field, &number) < 0 || number > UINT32_MAX)
		return -EBADMSG;
	switch (field->name) {
	case VERDICT_SEVERITY:
		if (number < SEVERITY_NOTE || number > SEVERITY_BLOCK)
			return -EBADMSG;
		finding->severity = (enum severity)number;
		return 0;
	case VERDICT_LINE:
		finding->line = (uint32_t)number;
		return 0;
	case VERDICT_COLUMN:
		finding->column = (uint32_t)number;
		return 0;
	case VERDICT_END_LINE:
		finding->end_line = (uint32_t)number;
		return 0;
	case VERDICT_END_COLUMN:
		finding->end_column = (uint32_t)number;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* The state of decoding: the field that must come next inside a finding, or 0
 * between findings. */
static int decode_field(const struct field *field, struct verdict *verdict, uint64_t *ret_flags,
			struct finding *finding, uint16_t *next)
{
	autofree char *text = NULL;
	int r;

	if (*next) {
		if (field->name != *next)
			return -EBADMSG;
		r = decode_part(field, finding);
		if (r < 0)
			return r;
		if (field->name != VERDICT_HINT) {
			(*next)++;
			return 0;
		}
		*next = 0;
		return verdict_add(verdict, finding->rule, finding->severity,
				   (uint32_t[4]){finding->line, finding->column, finding->end_line,
						 finding->end_column},
				   finding->message, finding->hint);
	}
	switch (field->name) {
	case VERDICT_FLAGS:
		return field_number(field, ret_flags);
	case VERDICT_IMPORT:
		if (!field->value.length || field->value.length > VERDICT_IMPORT_BYTES_MAX ||
		    !utf8_valid(field->value) || verdict->import_count >= VERDICT_IMPORTS_MAX ||
		    memchr(field->value.data, '\0', field->value.length))
			return -EBADMSG;
		text = span_to_string(field->value);
		return text ? verdict_add_import(verdict, text) : -ENOMEM;
	case VERDICT_FINDING:
		if (field->value.length > 64 || verdict->finding_count >= FINDINGS_MAX)
			return -EBADMSG;
		text = span_to_string(field->value);
		if (!text)
			return -ENOMEM;
		*finding = (struct finding){.rule = rule_find(text)};
		if (finding->rule == RULE_COUNT)
			return -EBADMSG;
		*next = VERDICT_SEVERITY;
		return 0;
	default:
		return -EBADMSG;
	}
}

int verdict_decode(struct span encoded, struct verdict *ret_verdict, struct error *err)
{
	autoverdict verdict = {0};
	struct reader reader = reader_of(encoded);
	struct finding finding = {0};
	uint64_t flags = UINT64_MAX;
	struct field field;
	uint16_t next = 0;
	int r;

	while ((r = frame_next_field(&reader, &field)) > 0) {
		r = decode_field(&field, &verdict, &flags, &finding, &next);
		if (r < 0)
			return fail(err, -r, "cannot read field %u of a verdict", field.name);
	}
	if (r < 0 || next || flags > 3)
		return fail(err, EBADMSG, "cannot read a verdict");
	/* A block among the findings counts whatever the flag says. */
	verdict.blocked |= flags & 1;
	verdict.truncated = flags & 2;
	*ret_verdict = verdict;
	verdict = (struct verdict){0};
	return 0;
}

int verdict_of_crash(enum severity severity, const char *how, struct verdict *ret_verdict)
{
	struct verdict verdict = {0};
	const uint32_t whole[4] = {0};
	char message[FINDING_TEXT_BYTES_MAX + 1];
	int r;

	snprintf(message, sizeof message, "the code could not be verified: %s", how);
	r = verdict_add(&verdict, RULE_CRASH, severity, whole, message,
			rule_infos[RULE_CRASH].hint);
	if (r == 0)
		*ret_verdict = verdict;
	return r;
}
