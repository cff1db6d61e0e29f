/* SPDX-License-Identifier: Apache-2.0 */
/* report: from a rule and a node to a finding with its place. */
#include "guest/verifier/walk.h"

#include "policy/text.h"

#include <stdlib.h>
#include <string.h>

/* Half of them are used: more than a verdict holds. */
#define REPORTED_SLOTS 512u

_Static_assert(REPORTED_SLOTS / 2 > FINDINGS_MAX, "what is told once must be remembered");

/* The start of the line behind the one at `at`; NULL when it is the last.
 * CPython's lines end at \n, \r\n and \r, which few sources have. */
static const uint8_t *next_line(const uint8_t *at, const uint8_t *end, bool returns)
{
	if (!returns) {
		at = memchr(at, '\n', (size_t)(end - at));
		return at ? at + 1 : NULL;
	}
	for (; at < end; at++)
		if (*at == '\n' || (*at == '\r' && !(at + 1 < end && at[1] == '\n')))
			return at + 1;
	return NULL;
}

void lines_index(struct walk *walk)
{
	const uint8_t *start = walk->source.length ? walk->source.data : (const uint8_t *)"";
	const uint8_t *end = start + walk->source.length;
	bool returns = memchr(start, '\r', walk->source.length) != NULL;
	size_t count = 1;

	for (const uint8_t *at = start; (at = next_line(at, end, returns)) != NULL;)
		count++;
	walk->line_starts = arena_take(&walk->arena, count * sizeof *walk->line_starts);
	walk->line_count = 1;
	for (const uint8_t *at = start; (at = next_line(at, end, returns)) != NULL;)
		walk->line_starts[walk->line_count++] = (uint32_t)(at - start);
}

static uint32_t column_of(const struct walk *walk, long line, long offset)
{
	size_t start, length;

	if (line < 1 || (size_t)line > walk->line_count || offset < 0)
		return 1;
	start = walk->line_starts[line - 1];
	length = (size_t)offset;
	if (length > walk->source.length - start)
		length = walk->source.length - start;
	return (uint32_t)utf8_count((struct span){walk->source.data + start, length}) + 1;
}

void position_of(const struct walk *walk, const struct node *node, uint32_t ret_range[4])
{
	long position[4];

	memset(ret_range, 0, 4 * sizeof *ret_range);
	if (walk->quoted)
		node = walk->quoted_at;
	if (!node || !node_position(node, position))
		return;
	ret_range[0] = (uint32_t)position[0] + walk->line_offset;
	ret_range[1] = column_of(walk, position[0], position[1]);
	ret_range[2] = (uint32_t)position[2] + walk->line_offset;
	ret_range[3] = column_of(walk, position[2], position[3]);
}

static bool is_network(enum rule rule)
{
	return rule == RULE_NETWORK || rule == RULE_DOWNLOAD || rule == RULE_SERVER;
}

bool rule_applies(const struct walk *walk, enum rule rule)
{
	if (is_network(rule) && walk->context->network_allowed)
		return false;
	if (walk->context->fragment && strcmp(rule_infos[rule].kind, "lint") == 0)
		return false;
	return walk->policy->severity[rule] != SEVERITY_OFF;
}

/* False when this rule was already told for this place. */
static bool first_time(struct walk *walk, enum rule rule, const uint32_t range[4])
{
	uint64_t key =
		((uint64_t)range[0] << 32 | (uint64_t)(range[1] & 0xffffff) << 8 | (uint64_t)rule) +
		1;
	size_t at = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % REPORTED_SLOTS;

	if (!walk->reported)
		walk->reported = arena_take(&walk->arena, REPORTED_SLOTS * sizeof *walk->reported);
	for (; walk->reported[at]; at = (at + 1) % REPORTED_SLOTS)
		if (walk->reported[at] == key)
			return false;
	if (walk->reported_count++ < REPORTED_SLOTS / 2)
		walk->reported[at] = key;
	return true;
}

void report_with(struct walk *walk, enum rule rule, enum severity severity, const struct node *node,
		 const char *message, const char *hint)
{
	uint32_t range[4];

	if (!walk->report || walk->muted || severity == SEVERITY_OFF)
		return;
	position_of(walk, node, range);
	if (!first_time(walk, rule, range))
		return;
	if (verdict_add(walk->verdict, rule, severity, range, message,
			hint && *hint ? hint : rule_infos[rule].hint) < 0)
		longjmp(walk->out, ENOMEM);
}

void report(struct walk *walk, enum rule rule, const struct node *node, const char *name,
	    const char *hint)
{
	const char *place, *template = rule_infos[rule].message;
	char message[FINDING_TEXT_BYTES_MAX + 1];

	if (!rule_applies(walk, rule) || (!walk->quoted && (!walk->report || walk->muted)))
		return;
	if (walk->quoted && strcmp(rule_infos[rule].kind, "danger") == 0) {
		/* Told once, for the string as a whole. */
		if (walk->policy->severity[rule] == SEVERITY_BLOCK && !walk->quoted_refused) {
			walk->quoted_refused = true;
			walk->quoted_name = name;
		}
		return;
	}
	if (walk->quoted)
		return;
	place = strstr(template, "%s");
	if (place)
		snprintf(message, sizeof message, "%.*s%s%s", (int)(place - template), template,
			 name, place + 2);
	else
		snprintf(message, sizeof message, "%s", template);
	report_with(walk, rule, walk->policy->severity[rule], node, message, hint);
}

void report_argument(struct walk *walk, enum rule rule, const struct node *node, const char *name)
{
	const struct reference *checked = walk->checked;
	const char *place, *template = rule_infos[rule].message;
	char message[FINDING_TEXT_BYTES_MAX + 1], hint[FINDING_TEXT_BYTES_MAX + 1];

	if (!checked || !checked->module || walk->quoted ||
	    strcmp(checked->module->name, "builtins") == 0 ||
	    strcmp(rule_infos[rule].kind, "danger") != 0) {
		report(walk, rule, node, name, NULL);
		return;
	}
	if (!rule_applies(walk, rule))
		return;
	place = strstr(template, "%s");
	snprintf(message, sizeof message, "module '%s' is not allowed", checked->module->name);
	snprintf(hint, sizeof hint, "%s: %.*s%.200s%s; %s", checked->path,
		 place ? (int)(place - template) : 0, template, place ? name : "",
		 place ? place + 2 : template, rule_infos[rule].hint);
	report_with(walk, rule, walk->policy->severity[rule], walk->checked_at, message, hint);
}

void report_reference(struct walk *walk, const struct reference *reference, const struct node *node)
{
	const struct name_info *info = reference->info;
	enum rule rule = info && info->rule != RULE_COUNT ? info->rule : RULE_MODULE;
	char message[FINDING_TEXT_BYTES_MAX + 1], hint[FINDING_TEXT_BYTES_MAX + 1];
	const char *name = reference->path, *use_hint = NULL;
	enum severity severity = walk->policy->severity[rule];

	if (!walk->quoted && (!walk->report || walk->muted))
		return;
	if (reference->forced) {
		severity = reference->severity;
		snprintf(message, sizeof message, "%s is not allowed by this policy", name);
		report_with(walk, RULE_MODULE, severity, node, message, "do without it");
		return;
	}
	if (!rule_applies(walk, rule))
		return;
	if (walk->quoted && strcmp(rule_infos[rule].kind, "danger") == 0) {
		report(walk, rule, node, name, NULL);
		return;
	}
	if (strncmp(name, "?.", 2) == 0)
		name++;
	if (strncmp(name, "builtins.", 9) == 0)
		name += 9;
	if (info && info->kind != NAME_CALL && info->kind != NAME_ALIAS)
		use_hint = info->text;
	if (!reference->module || strcmp(reference->module->name, "builtins") == 0 ||
	    strcmp(rule_infos[rule].kind, "lint") == 0) {
		report(walk, rule, node, name, use_hint);
		return;
	}
	if (!use_hint)
		use_hint = rule_infos[rule].hint;
	if (strcmp(reference->module->name, name) == 0)
		snprintf(hint, sizeof hint, "%s", use_hint);
	else
		snprintf(hint, sizeof hint, "%s: %s", name, use_hint);
	snprintf(message, sizeof message, "module '%s' is not allowed", reference->module->name);
	report_with(walk, rule, severity, node, message, hint);
}
