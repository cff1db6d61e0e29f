/* SPDX-License-Identifier: Apache-2.0 */
/* version: see version.h. */
#include "server/compat/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 3

struct parsed {
	long parts[PARTS];
	int given; /* how many are not left open */
};

/* Reads up to three numbers; `x`, `*` or nothing leaves the rest open. */
static bool parse(const char **text, struct parsed *parsed)
{
	const char *at = *text;

	*parsed = (struct parsed){0};
	for (int i = 0; i < PARTS; i++) {
		char *end;

		if (*at == '*' || *at == 'x' || *at == 'X') {
			for (at++; *at == '.' || *at == '*' || *at == 'x' || *at == 'X'; at++)
				;
			break;
		}
		if (!isdigit((unsigned char)*at))
			return false;
		parsed->parts[i] = strtol(at, &end, 10);
		parsed->given++;
		at = end;
		if (*at != '.' || i == PARTS - 1)
			break;
		at++;
	}
	*text = at;
	return *at == '\0' || *at == ' ';
}

/* The first of so many parts that differs decides; 0: none does. */
static long compare(const struct parsed *own, const struct parsed *wanted, int parts)
{
	for (int i = 0; i < parts; i++)
		if (own->parts[i] != wanted->parts[i])
			return own->parts[i] - wanted->parts[i];
	return 0;
}

static bool one_matches(const char *operator, const struct parsed * own,
			const struct parsed *wanted)
{
	long given = compare(own, wanted, wanted->given);

	if (strcmp(operator, ">=") == 0)
		return given >= 0;
	if (strcmp(operator, "<=") == 0)
		return given <= 0;
	if (strcmp(operator, ">") == 0)
		return given > 0;
	if (strcmp(operator, "<") == 0)
		return given < 0;
	if (strcmp(operator, "^") == 0)
		return compare(own, wanted, 1) == 0 && given >= 0;
	if (strcmp(operator, "~") == 0)
		return compare(own, wanted, wanted->given < 2 ? wanted->given : 2) == 0 &&
		       given >= 0;
	return (operator[0] == '\0' || strcmp(operator, "=") == 0 || strcmp(operator, "v") == 0) &&
	       given == 0;
}

bool version_matches(const char *selector, const char *version)
{
	struct parsed own, wanted;

	if (!parse(&version, &own))
		return false;
	do {
		char operator[3] = "";
		size_t length = strspn(selector, "<>=^~v");

		if (length >= sizeof operator)
			return false;
		memcpy(operator, selector, length);
		selector += length;
		if (!parse(&selector, &wanted) || !one_matches(operator, & own, &wanted))
			return false;
		selector += strspn(selector, " ");
	} while (*selector);
	return true;
}
