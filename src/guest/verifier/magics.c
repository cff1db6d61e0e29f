/* SPDX-License-Identifier: Apache-2.0 */
/* magics: what only a notebook understands, taken out of code that is none of
 * Python's.
 *
 * Theory of operation. Only a source that does not parse comes here, so Python is
 * never changed. The lines are read with as much of Python's grammar as tells
 * where a statement begins: strings, brackets and joined lines are not looked
 * into. A line with a notebook's form becomes a comment, or `pass` where a block
 * would have nothing else; in front of `%time`'s statement stand as many letters
 * as before. So each line stays on its line, and what runs stays in its columns.
 * The new source is then parsed and judged as any other, and it is what runs:
 * there is no other place where code is changed.
 *
 * Each form is told. Whether one stops the code is the policy's matter; where it
 * does not, the line is left out all the same, as a notebook goes on after a
 * command that failed. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"
#include "policy/text.h"

#include <ctype.h>
#include <errno.h>

#define MAGICS_MAX 200 /* of one source: the rest stays what the parser refuses */

enum form {
	FORM_DROPPED, /* does nothing that matters here */
	FORM_TIMED,   /* a statement follows, which is run once */
	FORM_REPLACED,
	FORM_INSTALLER,
	FORM_COMMAND, /* a shell's */
	FORM_REFUSED,
	FORM_FOREIGN, /* what is behind it, to the end, is no Python */
};

/* `text` is a hint; of FORM_TIMED the options that take a value; of FORM_REPLACED
 * the Python that stands for it. */
struct magic {
	const char *name;
	enum form form;
	const char *text;
};

static const char use_python[] = "there is no shell here: do it in Python";

static const struct magic line_magics[] = {
	{"matplotlib", FORM_DROPPED, "nothing to do: figures are captured without it"},
	{"config", FORM_DROPPED, NULL},
	{"load_ext", FORM_DROPPED, NULL},
	{"reload_ext", FORM_DROPPED, NULL},
	{"unload_ext", FORM_DROPPED, NULL},
	{"autoreload", FORM_DROPPED, NULL},
	{"aimport", FORM_DROPPED, NULL},
	{"precision", FORM_DROPPED, "use numpy.set_printoptions(precision=…)"},
	{"pprint", FORM_DROPPED, NULL},
	{"Pprint", FORM_DROPPED, NULL},
	{"xmode", FORM_DROPPED, NULL},
	{"colors", FORM_DROPPED, NULL},
	{"autosave", FORM_DROPPED, NULL},
	{"autocall", FORM_DROPPED, NULL},
	{"automagic", FORM_DROPPED, NULL},
	{"gui", FORM_DROPPED, NULL},
	{"pdb", FORM_DROPPED, "there is no debugger: print what you want to see"},
	{"debug", FORM_DROPPED, "there is no debugger: print what you want to see"},
	{"clear", FORM_DROPPED, NULL},
	{"cls", FORM_DROPPED, NULL},
	{"who", FORM_DROPPED, "print the variables that you want to see"},
	{"whos", FORM_DROPPED, "print the variables that you want to see"},
	{"lsmagic", FORM_DROPPED, NULL},
	{"watermark", FORM_DROPPED, NULL},
	{"pylab", FORM_REPLACED, "from pylab import *"},
	{"time", FORM_TIMED, ""},
	{"timeit", FORM_TIMED, "nrp"},
	{"prun", FORM_TIMED, "slTD"},
	{"memit", FORM_TIMED, "rti"},
	{"pip", FORM_INSTALLER, NULL},
	{"conda", FORM_INSTALLER, NULL},
	{"mamba", FORM_INSTALLER, NULL},
	{"uv", FORM_INSTALLER, NULL},
	{"cd", FORM_COMMAND, "open files by a name relative to the workspace"},
	{"pwd", FORM_COMMAND, NULL},
	{"ls", FORM_COMMAND, NULL},
	{"ll", FORM_COMMAND, NULL},
	{"cat", FORM_COMMAND, NULL},
	{"more", FORM_COMMAND, NULL},
	{"less", FORM_COMMAND, NULL},
	{"mkdir", FORM_COMMAND, NULL},
	{"rm", FORM_COMMAND, NULL},
	{"rmdir", FORM_COMMAND, NULL},
	{"cp", FORM_COMMAND, NULL},
	{"mv", FORM_COMMAND, NULL},
	{"sx", FORM_COMMAND, use_python},
	{"system", FORM_COMMAND, use_python},
	{"env", FORM_REFUSED, "give environment variables with the request"},
	{"set_env", FORM_REFUSED, "give environment variables with the request"},
	{"run", FORM_REFUSED, "write that file's code here, or import it"},
	{"reset", FORM_REFUSED, "delete the variables by name: del x"},
};

static const char write_in_python[] =
	"write the file in Python: open(name, \"w\").write(text), and leave this cell out";
static const char show_in_python[] =
	"leave this cell out, or display() an object that has such a _repr_ method";
static const char other_language[] = "write it in Python";

static const struct magic cell_magics[] = {
	{"capture", FORM_DROPPED, "nothing is captured: the output is shown"},
	{"python", FORM_DROPPED, NULL},
	{"python3", FORM_DROPPED, NULL},
	{"time", FORM_TIMED, ""},
	{"timeit", FORM_TIMED, "nrp"},
	{"prun", FORM_TIMED, "slTD"},
	{"memit", FORM_TIMED, "rti"},
	{"bash", FORM_FOREIGN, use_python},
	{"sh", FORM_FOREIGN, use_python},
	{"shell", FORM_FOREIGN, use_python},
	{"script", FORM_FOREIGN, use_python},
	{"system", FORM_FOREIGN, use_python},
	{"sx", FORM_FOREIGN, use_python},
	{"cmd", FORM_FOREIGN, use_python},
	{"writefile", FORM_FOREIGN, write_in_python},
	{"file", FORM_FOREIGN, write_in_python},
	{"html", FORM_FOREIGN, show_in_python},
	{"HTML", FORM_FOREIGN, show_in_python},
	{"markdown", FORM_FOREIGN, show_in_python},
	{"latex", FORM_FOREIGN, show_in_python},
	{"svg", FORM_FOREIGN, show_in_python},
	{"SVG", FORM_FOREIGN, show_in_python},
	{"javascript", FORM_FOREIGN, "there is no browser here: leave this cell out"},
	{"js", FORM_FOREIGN, "there is no browser here: leave this cell out"},
	{"perl", FORM_FOREIGN, other_language},
	{"ruby", FORM_FOREIGN, other_language},
	{"R", FORM_FOREIGN, other_language},
	{"julia", FORM_FOREIGN, other_language},
	{"cython", FORM_FOREIGN, other_language},
	{"sql", FORM_FOREIGN, "use the module sqlite3"},
	{"bigquery", FORM_FOREIGN, "there is no network: give the data as an input file"},
};

/* What to do instead of a program, by its name. */
static const struct {
	const char *program, *hint;
} programs[] = {
	{"ls", "print(os.listdir())"},
	{"ll", "print(os.listdir())"},
	{"dir", "print(os.listdir())"},
	{"find", "use pathlib.Path().rglob(pattern)"},
	{"pwd", "the working directory is /workspace"},
	{"cd", "open files by a name relative to the workspace"},
	{"cat", "print(open(name).read())"},
	{"more", "print(open(name).read())"},
	{"less", "print(open(name).read())"},
	{"head", "print its first lines: open(name).readlines()[:10]"},
	{"tail", "print its last lines: open(name).readlines()[-10:]"},
	{"wc", "count in Python: len(open(name).readlines())"},
	{"grep", "use a loop over open(name) and the module re"},
	{"sed", "use str.replace or the module re"},
	{"awk", "use str.split, or pandas.read_csv"},
	{"sort", "use sorted()"},
	{"echo", "use print()"},
	{"date", "use datetime.datetime.now()"},
	{"mkdir", "use pathlib.Path(name).mkdir(parents=True, exist_ok=True)"},
	{"touch", "use pathlib.Path(name).touch()"},
	{"rm", "the workspace is cleared by itself: leave this line out"},
	{"rmdir", "the workspace is cleared by itself: leave this line out"},
	{"cp", "use shutil.copy(source, target)"},
	{"mv", "use pathlib.Path(name).rename(target)"},
	{"unzip", "use the module zipfile"},
	{"zip", "use the module zipfile"},
	{"tar", "use the module tarfile"},
	{"gzip", "use the module gzip"},
	{"gunzip", "use the module gzip"},
	{"wget", "there is no network: give the file with the request"},
	{"curl", "there is no network: give the file with the request"},
	{"gdown", "there is no network: give the file with the request"},
	{"kaggle", "there is no network: give the data with the request"},
	{"git", "there is no network: give the files with the request"},
	{"apt", "programs cannot be installed here: leave this line out"},
	{"apt-get", "programs cannot be installed here: leave this line out"},
	{"brew", "programs cannot be installed here: leave this line out"},
	{"npm", "programs cannot be installed here: leave this line out"},
	{"pip", "use importlib.metadata.version(name) to see what is installed"},
	{"pip3", "use importlib.metadata.version(name) to see what is installed"},
	{"conda", "use importlib.metadata.version(name) to see what is installed"},
	{"python", "write that code here, or import it: no other Python can be started"},
	{"python3", "write that code here, or import it: no other Python can be started"},
	{"nvidia-smi", "there is no GPU here: leave this line out"},
	{"nproc", "use os.cpu_count()"},
	{"jupyter", "this is plain Python: leave this line out"},
};

/* Statements that can stand behind no other on a line. */
static const char *const compound[] = {"for", "while", "if",    "with",  "try",
				       "def", "class", "async", "match", "@"};

struct reading {
	struct walk *walk;
	struct bytes *out;
	size_t line; /* that is looked at, from 1 */
	unsigned found;
	/* What the lines before leave open. */
	unsigned depth; /* brackets */
	uint8_t quote;  /* a string's */
	bool triple, joined;
	bool opens; /* a colon: a block follows */
};

/* --- lines --------------------------------------------------------------- */

/* A line of the source without what ends it. */
static struct span line_of(const struct walk *walk, size_t line, struct span *ret_end)
{
	size_t start = walk->line_starts[line - 1], length;
	size_t next = line < walk->line_count ? walk->line_starts[line] : walk->source.length;
	const uint8_t *data = walk->source.data + start;

	length = next - start;
	while (length > 0 && (data[length - 1] == '\n' || data[length - 1] == '\r'))
		length--;
	*ret_end = (struct span){data + length, next - start - length};
	return (struct span){data, length};
}

static bool is_blank(uint8_t letter)
{
	return letter == ' ' || letter == '\t' || letter == '\f';
}

static struct span trimmed(struct span text)
{
	while (text.length > 0 && is_blank(text.data[0])) {
		text.data++;
		text.length--;
	}
	while (text.length > 0 && is_blank(text.data[text.length - 1]))
		text.length--;
	return text;
}

static struct span behind(struct span text, size_t length)
{
	return trimmed((struct span){text.data + length, text.length - length});
}

/* Inside a string: the place behind the letter at `at`. */
static size_t read_string(struct reading *reading, struct span line, size_t at)
{
	uint8_t letter = line.data[at];

	if (letter == '\\')
		return at + 2;
	if (letter != reading->quote)
		return at + 1;
	if (!reading->triple) {
		reading->quote = 0;
		return at + 1;
	}
	if (at + 2 < line.length && line.data[at + 1] == letter && line.data[at + 2] == letter) {
		reading->quote = 0;
		return at + 3;
	}
	return at + 1;
}

/* What a line of Python leaves open for the next. */
static void read_line(struct reading *reading, struct span line)
{
	size_t at = 0;

	reading->joined = false;
	while (at < line.length) {
		uint8_t letter = line.data[at];

		if (reading->quote) {
			at = read_string(reading, line, at);
			continue;
		}
		if (letter == '#')
			return;
		if (letter == '"' || letter == '\'') {
			reading->triple = at + 2 < line.length && line.data[at + 1] == letter &&
					  line.data[at + 2] == letter;
			reading->quote = letter;
			at += reading->triple ? 2 : 0;
		} else if (letter == '(' || letter == '[' || letter == '{') {
			reading->depth++;
		} else if (letter == ')' || letter == ']' || letter == '}') {
			reading->depth -= reading->depth > 0;
		}
		if (!is_blank(letter))
			reading->opens = letter == ':' && reading->depth == 0;
		reading->joined = letter == '\\' && at + 1 == line.length;
		at++;
	}
	/* A string that a backslash carries over the end of its line, or one that
	 * never ends, of which the parser will tell. */
	if (reading->quote && !reading->triple && at == line.length)
		reading->quote = 0;
}

/* --- findings ------------------------------------------------------------ */

static void tell(struct reading *reading, enum rule rule, struct span at, const char *message,
		 const char *hint)
{
	uint32_t range[4];

	source_range(reading->walk, (size_t)(at.data - reading->walk->source.data), at.length,
		     range);
	source_add(reading->walk, rule, range, message, hint);
}

/* As much of the first line as a message may hold. */
static int shown_length(struct span text)
{
	const uint8_t *end = memchr(text.data, '\n', text.length);

	if (end)
		text.length = (size_t)(end - text.data);
	return (int)utf8_floor(text, 60);
}

static void tell_command(struct reading *reading, struct span at, struct span command,
			 const char *hint)
{
	char message[FINDING_TEXT_BYTES_MAX + 1];
	struct span rest = command, word;

	if (!hint && command_word(&rest, &word)) {
		word.length -= word.length > 1 && word.data[word.length - 1] == ';';
		for (size_t i = 0; i < ARRAY_LENGTH(programs) && !hint; i++)
			if (span_equals(word, programs[i].program))
				hint = programs[i].hint;
	}
	snprintf(message, sizeof message, "there is no shell here: `%.*s` cannot be run",
		 shown_length(command), (const char *)command.data);
	tell(reading, RULE_NOTEBOOK_SHELL, at, message, hint);
}

static void judge_command(struct reading *reading, struct span at, struct span command)
{
	size_t findings = reading->walk->verdict->finding_count;

	if (!installs_judge(reading->walk, command) ||
	    reading->walk->verdict->finding_count == findings)
		tell_command(reading, at, command, NULL);
}

static void tell_dropped(struct reading *reading, struct span at, const char *mark,
			 struct span name, const char *hint)
{
	char message[FINDING_TEXT_BYTES_MAX + 1];

	snprintf(message, sizeof message, "%s%.*s is for notebooks: this line is left out", mark,
		 shown_length(name), (const char *)name.data);
	tell(reading, RULE_NOTEBOOK_MAGIC, at, message, hint);
}

/* --- what stands for a line ---------------------------------------------- */

/* The line, and those joined to it, as comments. */
static void put_comments(struct reading *reading, size_t lines)
{
	for (size_t i = 0; i < lines; i++) {
		struct span end, line = line_of(reading->walk, reading->line + i, &end);
		struct span text = trimmed(line);

		if (text.length > 0) {
			bytes_append(reading->out, line.data, (size_t)(text.data - line.data));
			bytes_append_text(reading->out,
					  i == 0 && reading->opens ? "pass  # " : "# ");
			bytes_append(reading->out, text.data, text.length);
		}
		bytes_append(reading->out, end.data, end.length);
	}
	reading->opens = false;
	reading->line += lines;
}

/* Python in the line's place, with the line as its comment. */
static void put_instead(struct reading *reading, struct span until, const char *python)
{
	struct span end, line = line_of(reading->walk, reading->line, &end);

	bytes_append(reading->out, line.data, (size_t)(until.data - line.data));
	bytes_append_text(reading->out, python);
	bytes_append_text(reading->out, "  # ");
	bytes_append(reading->out, until.data, until.length);
	bytes_append(reading->out, end.data, end.length);
	reading->opens = false;
	reading->line++;
}

/* The line with its magic, from `from` to `statement`, made into a statement that
 * does nothing, or into blanks behind an `=`. */
static void put_statement(struct reading *reading, struct span from, struct span statement,
			  bool assigned)
{
	static const char blanks[] = "                                ";
	struct span end, line = line_of(reading->walk, reading->line, &end);
	size_t left = (size_t)(statement.data - from.data);

	bytes_append(reading->out, line.data, (size_t)(from.data - line.data));
	/* As long as the shortest of the magics. */
	if (!assigned) {
		bytes_append_text(reading->out, "pass;");
		left -= strlen("pass;");
	}
	for (size_t part; left > 0; left -= part) {
		part = left < strlen(blanks) ? left : strlen(blanks);
		bytes_append(reading->out, blanks, part);
	}
	bytes_append(reading->out, statement.data,
		     (size_t)(end.data + end.length - statement.data));
	read_line(reading, (struct span){statement.data, (size_t)(end.data - statement.data)});
	reading->line++;
}

/* --- forms --------------------------------------------------------------- */

/* How many lines a magic has: a backslash at the end joins the next. */
static size_t joined_lines(const struct walk *walk, size_t first)
{
	size_t line = first;
	struct span end;

	for (; line < walk->line_count; line++) {
		struct span text = line_of(walk, line, &end);

		if (text.length == 0 || text.data[text.length - 1] != '\\')
			break;
	}
	return line - first + 1;
}

/* From a place in the first line to the end of the last. */
static struct span joined_text(const struct walk *walk, struct span from, size_t last)
{
	struct span end, line = line_of(walk, last, &end);

	return trimmed((struct span){from.data, (size_t)(line.data + line.length - from.data)});
}

static size_t name_length(struct span text)
{
	size_t length = 0;

	while (length < text.length && (isalnum(text.data[length]) || text.data[length] == '_'))
		length++;
	return length;
}

static const struct magic *find(const struct magic *table, size_t count, struct span name)
{
	for (size_t i = 0; i < count; i++)
		if (span_equals(name, table[i].name))
			return &table[i];
	return NULL;
}

/* The statement behind %timeit's options; of no length when there is none. */
static struct span skip_options(struct span text, const char *valued)
{
	while (text.length > 1 && text.data[0] == '-' &&
	       (isalpha(text.data[1]) || text.data[1] == '-')) {
		struct span rest = text, word;

		command_word(&rest, &word);
		if (word.length == 2 && strchr(valued, word.data[1]))
			command_word(&rest, &word);
		text = trimmed(rest);
	}
	return text;
}

static bool is_compound(struct span statement)
{
	size_t length = name_length(statement);

	if (statement.length > 0 && statement.data[0] == '@')
		return true;
	for (size_t i = 0; i < ARRAY_LENGTH(compound); i++)
		if (span_equals((struct span){statement.data, length}, compound[i]))
			return true;
	return false;
}

static void take_timed(struct reading *reading, struct span at, const char *mark, struct span name,
		       const char *valued, bool assigned)
{
	size_t marks = (size_t)(name.data - at.data);
	struct span statement = skip_options(behind(at, marks + name.length), valued);
	char message[FINDING_TEXT_BYTES_MAX + 1];

	if (statement.length == 0 || statement.data[0] == '#') {
		tell_dropped(reading, at, mark, name, "the result tells the time of the whole run");
		put_comments(reading, 1);
		return;
	}
	snprintf(message, sizeof message, "%s%.*s is for notebooks: %s", mark, shown_length(name),
		 (const char *)name.data,
		 is_compound(statement) ? "it cannot stand before this statement"
					: "what is behind it runs once and is not measured");
	if (is_compound(statement)) {
		tell(reading, RULE_NOTEBOOK, at, message, "write the statement without it");
		put_comments(reading, 1);
		return;
	}
	tell(reading, RULE_NOTEBOOK_MAGIC, at, message,
	     "the result tells the time of the whole run; measure a part with "
	     "time.perf_counter()");
	put_statement(reading, at, statement, assigned);
}

/* A cell magic: `%%name …`, with everything to the end of the source behind it. */
static void take_cell_magic(struct reading *reading, struct span at)
{
	struct span rest = behind(at, 2), name = {at.data + 2, name_length(rest)};
	const struct magic *magic = find(cell_magics, ARRAY_LENGTH(cell_magics), name);
	char message[FINDING_TEXT_BYTES_MAX + 1];
	enum rule rule = RULE_NOTEBOOK;

	if (!magic)
		magic = find(line_magics, ARRAY_LENGTH(line_magics), name);
	if (magic && magic->form == FORM_TIMED) {
		take_timed(reading, at, "%%", name, magic->text, false);
		return;
	}
	if (magic && magic->form == FORM_DROPPED) {
		tell_dropped(reading, at, "%%", name, magic->text);
		put_comments(reading, 1);
		return;
	}
	if (magic && magic->form == FORM_FOREIGN && magic->text == use_python)
		rule = RULE_NOTEBOOK_SHELL;
	snprintf(message, sizeof message, "%%%%%.*s is for notebooks: this cell is not Python",
		 shown_length(name), (const char *)name.data);
	tell(reading, rule, at, message, magic && magic->form == FORM_FOREIGN ? magic->text : NULL);
	put_comments(reading, magic && magic->form == FORM_FOREIGN
				      ? reading->walk->line_count - reading->line + 1
				      : 1);
}

/* `%name …`, perhaps behind an `=`. */
static void take_line_magic(struct reading *reading, struct span at, bool assigned)
{
	size_t lines = joined_lines(reading->walk, reading->line);
	struct span name = {at.data + 1, name_length(behind(at, 1))}, whole;
	const struct magic *magic = find(line_magics, ARRAY_LENGTH(line_magics), name);
	char message[FINDING_TEXT_BYTES_MAX + 1];
	enum form form = magic ? magic->form : FORM_REFUSED;

	if (form == FORM_TIMED && (!assigned || strcmp(magic->name, "time") == 0)) {
		take_timed(reading, at, "%", name, magic->text, assigned);
		return;
	}
	whole = joined_text(reading->walk, name, reading->line + lines - 1);
	if (form == FORM_INSTALLER && !assigned) {
		judge_command(reading, at, whole);
	} else if (form == FORM_INSTALLER || form == FORM_COMMAND) {
		tell_command(reading, at, whole, magic->text);
	} else if (form == FORM_DROPPED && !assigned) {
		tell_dropped(reading, at, "%", name, magic->text);
	} else if (form == FORM_REPLACED && !assigned) {
		snprintf(message, sizeof message, "%%%s is for notebooks: `%s` runs in its place",
			 magic->name, magic->text);
		tell(reading, RULE_NOTEBOOK_MAGIC, at, message, "write that instead");
		put_instead(reading, at, magic->text);
		return;
	} else {
		snprintf(message, sizeof message, "%%%.*s is for notebooks", shown_length(name),
			 (const char *)name.data);
		tell(reading, RULE_NOTEBOOK, at, message,
		     magic && form == FORM_REFUSED ? magic->text : NULL);
	}
	if (assigned) {
		put_instead(reading, at, "None");
		lines--;
	}
	put_comments(reading, lines);
}

/* `!command`, `!!command`, and `pip install` without anything in front. */
static void take_command(struct reading *reading, struct span at, bool assigned)
{
	size_t lines = joined_lines(reading->walk, reading->line), marks = 0;
	struct span command;

	while (marks < at.length && at.data[marks] == '!')
		marks++;
	command = joined_text(reading->walk, behind(at, marks), reading->line + lines - 1);
	if (assigned)
		tell_command(reading, at, command, NULL);
	else
		judge_command(reading, at, command);
	/* What IPython gives for a command without output. */
	if (assigned) {
		put_instead(reading, at, "[]");
		lines--;
	}
	put_comments(reading, lines);
}

static void take_help(struct reading *reading, struct span at)
{
	char message[FINDING_TEXT_BYTES_MAX + 1];

	snprintf(message, sizeof message, "`%.*s` is for notebooks: this line is left out",
		 shown_length(at), (const char *)at.data);
	tell(reading, RULE_NOTEBOOK_MAGIC, at, message, "call help() on it");
	put_comments(reading, 1);
}

/* `name?`, `?name`, `a.b??`: no more than that. */
static bool is_help(struct span at)
{
	size_t first = 0, last = at.length;

	while (first < last && at.data[first] == '?')
		first++;
	while (last > first && at.data[last - 1] == '?')
		last--;
	if (first == last || last - first == at.length)
		return false;
	for (size_t i = first; i < last; i++)
		if (!isalnum(at.data[i]) && at.data[i] != '_' && at.data[i] != '.')
			return false;
	return true;
}

/* The `!` or `%` behind `name =`, or nothing. */
static struct span assigned_form(struct span at)
{
	const uint8_t *equals = memchr(at.data, '=', at.length);
	struct span value;

	if (!equals)
		return (struct span){0};
	for (const uint8_t *letter = at.data; letter < equals; letter++)
		if (!isalnum(*letter) && !is_blank(*letter) && !strchr("_.,", *letter))
			return (struct span){0};
	value = behind(at, (size_t)(equals - at.data) + 1);
	if (value.length > 1 &&
	    (value.data[0] == '!' || (value.data[0] == '%' && isalpha(value.data[1]))) &&
	    value.data[1] != '=')
		return value;
	return (struct span){0};
}

static bool installs_bare(struct span at)
{
	static const char *const starts[] = {"pip ", "pip3 ", "conda ", "python -m pip ",
					     "python3 -m pip "};

	for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
		struct span rest = at, word;

		if (at.length <= strlen(starts[i]) ||
		    memcmp(at.data, starts[i], strlen(starts[i])) != 0)
			continue;
		rest = behind(at, strlen(starts[i]));
		while (command_word(&rest, &word))
			if (word.data[0] != '-')
				return span_equals(word, "install");
	}
	return false;
}

/* Takes the form that the line is, if it is one. */
static bool take_form(struct reading *reading, struct span line)
{
	struct span at = trimmed(line), value;

	if (at.length < 2)
		return false;
	if (at.data[0] == '%' && at.data[1] == '%' && at.length > 2 && isalpha(at.data[2]))
		take_cell_magic(reading, at);
	else if (at.data[0] == '%' && isalpha(at.data[1]))
		take_line_magic(reading, at, false);
	else if (at.data[0] == '!' || installs_bare(at))
		take_command(reading, at, false);
	else if (is_help(at))
		take_help(reading, at);
	else if ((value = assigned_form(at)).length > 0 && value.data[0] == '%')
		take_line_magic(reading, value, true);
	else if (value.length > 0)
		take_command(reading, value, true);
	else
		return false;
	return true;
}

bool magics_take_out(struct walk *walk)
{
	struct reading reading = {.walk = walk, .out = &walk->verdict->source, .line = 1};

	bytes_clear(reading.out);
	while (reading.line <= walk->line_count) {
		struct span end, line = line_of(walk, reading.line, &end);
		bool begins = !reading.quote && !reading.depth && !reading.joined;

		if (begins && reading.found < MAGICS_MAX && take_form(&reading, line)) {
			reading.found++;
			continue;
		}
		read_line(&reading, line);
		bytes_append(reading.out, line.data, line.length + end.length);
		reading.line++;
	}
	if (reading.out->failed)
		longjmp(walk->out, ENOMEM);
	if (reading.found == 0) {
		bytes_clear(reading.out);
		return false;
	}
	walk->source = bytes_span(reading.out);
	lines_index(walk);
	return true;
}
