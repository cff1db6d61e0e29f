/* SPDX-License-Identifier: Apache-2.0 */
/* installs: `pip install NAME…` and its like, as models write them in front of
 * an import. What is installed is said, what is not ends in a finding that names
 * what is near. Nothing is ever installed. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"
#include "policy/text.h"

#include <ctype.h>

#define PACKAGES_LOOKED_AT_MAX 50 /* of one command */
#define PACKAGE_NAME_MAX       64

/* Beginnings of commands that install, word by word. */
static const char *const installers[] = {
	"pip install",
	"pip3 install",
	"python -m pip install",
	"python3 -m pip install",
	"{sys.executable} -m pip install",
	"conda install",
	"mamba install",
	"uv pip install",
	"uv add",
	"sudo pip install",
	"sudo pip3 install",
};

/* Options of theirs whose value is the next word. */
static const char *const valued[] = {
	"-r",          "--requirement",     "-c",           "--constraint", "-i",
	"--index-url", "--extra-index-url", "-f",           "--find-links", "-t",
	"--target",    "--trusted-host",    "--python",     "-n",           "--name",
	"--channel",   "--platform",        "--only-binary"};

static bool is_one_of(struct span word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (span_equals(word, list[i]))
			return true;
	return false;
}

static bool is_blank(uint8_t letter)
{
	return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r' ||
	       letter == '\f' || letter == '\v';
}

/* A backslash at the end of a line joins it with the next: no more than a blank. */
static size_t blank_length(struct span rest)
{
	if (rest.length > 0 && is_blank(rest.data[0]))
		return 1;
	if (rest.length > 1 && rest.data[0] == '\\' &&
	    (rest.data[1] == '\n' || rest.data[1] == '\r'))
		return 2;
	return 0;
}

static void skip(struct span *rest, size_t length)
{
	rest->data += length;
	rest->length -= length;
}

bool command_word(struct span *rest, struct span *ret_word)
{
	size_t blanks;

	while ((blanks = blank_length(*rest)) > 0)
		skip(rest, blanks);
	if (rest->length == 0 || rest->data[0] == '#')
		return false;
	*ret_word = (struct span){rest->data, 0};
	while (rest->length > 0 && blank_length(*rest) == 0) {
		ret_word->length++;
		skip(rest, 1);
	}
	/* "name>=1" in quotes. */
	if (ret_word->length > 2 && (ret_word->data[0] == '"' || ret_word->data[0] == '\'') &&
	    ret_word->data[ret_word->length - 1] == ret_word->data[0])
		*ret_word = (struct span){ret_word->data + 1, ret_word->length - 2};
	return true;
}

/* Takes the words of `beginning` off; options may stand between them. */
static bool begins_with(struct span *command, const char *beginning)
{
	struct span rest = *command, word;

	while (*beginning) {
		size_t length = strcspn(beginning, " ");

		do {
			if (!command_word(&rest, &word))
				return false;
		} while (word.data[0] == '-' && beginning[0] != '-');
		if (word.length != length || memcmp(word.data, beginning, length) != 0)
			return false;
		beginning += length + (beginning[length] == ' ');
	}
	*command = rest;
	return true;
}

/* The part of a requirement that names the package; "" for a path or an address. */
static void package_name(struct span word, char name[PACKAGE_NAME_MAX])
{
	size_t used = 0;

	while (used < word.length && used < PACKAGE_NAME_MAX - 1 &&
	       (isalnum(word.data[used]) || strchr("_-.", word.data[used]) != NULL)) {
		name[used] = (char)word.data[used];
		used++;
	}
	if (used == 0 || !isalnum((uint8_t)name[0]) ||
	    (used < word.length && !strchr("=<>!~[;@,", word.data[used])))
		used = 0;
	name[used] = '\0';
}

static void tell_missing(struct walk *walk, struct span word, const char *name)
{
	char message[FINDING_TEXT_BYTES_MAX + 1], buffer[FINDING_TEXT_BYTES_MAX + 1];
	char hint[FINDING_TEXT_BYTES_MAX + 1];
	const char *instead = NULL;
	uint32_t range[4];

	if (name[0] && walk->suggestions++ < SUGGESTIONS_MAX)
		instead = module_instead(name, buffer);
	if (name[0])
		snprintf(message, sizeof message,
			 "'%s' is not installed, and packages cannot be installed here", name);
	else
		snprintf(message, sizeof message,
			 "packages cannot be installed here: not from %.*s",
			 (int)utf8_floor(word, 60), (const char *)word.data);
	if (instead)
		snprintf(hint, sizeof hint, "%.300s; leave this line out", instead);
	source_range(walk, (size_t)(word.data - walk->source.data), word.length, range);
	source_add(walk, RULE_NOTEBOOK_INSTALL, range, message, instead ? hint : NULL);
}

/* One requirement: missing, or appended to the list of those that are there. */
static void judge_package(struct walk *walk, struct span word, char *there, size_t size)
{
	char name[PACKAGE_NAME_MAX], version[PACKAGE_VERSION_MAX];
	size_t used = strlen(there);

	package_name(word, name);
	if (!name[0] || !package_exists(name, version)) {
		tell_missing(walk, word, name);
		return;
	}
	snprintf(there + used, size - used, "%s%s%s%s", used ? ", " : "", name,
		 version[0] ? " " : "", version);
}

static void tell_there(struct walk *walk, struct span command, const char *there)
{
	char message[FINDING_TEXT_BYTES_MAX + 1];
	uint32_t range[4];

	snprintf(message, sizeof message, "installed already: %.300s; this line is left out",
		 there);
	source_range(walk, (size_t)(command.data - walk->source.data), command.length, range);
	source_add(walk, RULE_NOTEBOOK_MAGIC, range, message,
		   "nothing to do; packages need not and cannot be installed here");
}

/* The part of a command line up to what stands between commands, which is taken
 * off, too. */
static struct span one_command(struct span *rest, bool *ret_piped)
{
	struct span whole = *rest, word;

	*ret_piped = false;
	while (command_word(rest, &word)) {
		bool ends = word.length > 1 && word.data[word.length - 1] == ';';

		if (ends)
			return (struct span){whole.data,
					     (size_t)(word.data - whole.data) + word.length - 1};
		if (span_equals(word, ";") || span_equals(word, "&&") || span_equals(word, "||") ||
		    span_equals(word, "|")) {
			*ret_piped = span_equals(word, "|");
			return (struct span){whole.data, (size_t)(word.data - whole.data)};
		}
	}
	skip(rest, rest->length); /* a comment */
	return whole;
}

static bool installs(struct walk *walk, struct span command)
{
	char there[FINDING_TEXT_BYTES_MAX + 1] = "";
	struct span rest = command, word, value;
	size_t looked_at = 0;
	bool any = false;

	for (size_t i = 0; i < ARRAY_LENGTH(installers) && !any; i++)
		any = begins_with(&rest, installers[i]);
	if (!any)
		return false;
	while (command_word(&rest, &word) && looked_at < PACKAGES_LOOKED_AT_MAX) {
		if (memchr(word.data, '>', word.length) == word.data || span_equals(word, "2>&1") ||
		    span_equals(word, "&"))
			break; /* where its output goes */
		if (is_one_of(word, valued, ARRAY_LENGTH(valued))) {
			if (command_word(&rest, &value) &&
			    (span_equals(word, "-r") || span_equals(word, "--requirement")))
				tell_missing(walk, value, "");
		} else if (word.data[0] != '-') {
			judge_package(walk, word, there, sizeof there);
			looked_at++;
		}
	}
	if (there[0])
		tell_there(walk, command, there);
	return true;
}

bool installs_judge(struct walk *walk, struct span command)
{
	bool piped = false;

	/* All of a chain must install; where its output goes does not matter. */
	while (command.length > 0) {
		struct span rest = command, word;

		if (!piped && command_word(&rest, &word)) {
			struct span one = one_command(&command, &piped);

			if (!installs(walk, one))
				return false;
		} else {
			one_command(&command, &piped);
		}
	}
	return true;
}
