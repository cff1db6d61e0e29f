/* SPDX-License-Identifier: Apache-2.0 */
/* shell_line: the lines of the shell, by libedit on a terminal.
 *
 * The history is one file, each line an entry. It is read at the beginning, and
 * written beside its place and put there at the end, so that it is always whole; of
 * two shells the one that ends last is remembered. Only the user can read it: code may
 * hold what nobody else should see. */
#include "cli/shell.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum {
	HISTORY_LINES_MAX = 1000,
	HISTORY_LINE_BYTES_MAX = 4096, /* a longer one is not remembered */
	INDENT_COLUMNS = 4,            /* of the Tab key */
};

struct shell_line {
	EditLine *editor; /* NULL: not on a terminal */
	History *history;
	const char *prompt;
	char path[PATH_MAX]; /* of the history; "": none */
	int terminal;        /* without waiting; or -1 */
	FILE *input;         /* without an editor: standard input, and getline's buffer */
	char *text;
	size_t capacity;
};

static char *tell_prompt(EditLine *editor)
{
	struct shell_line *line = NULL;

	el_get(editor, EL_CLIENTDATA, &line);
	return (char *)line->prompt;
}

static unsigned char indent(EditLine *editor, int key)
{
	char blanks[INDENT_COLUMNS + 1];

	snprintf(blanks, sizeof blanks, "%*s", INDENT_COLUMNS, "");
	return el_insertstr(editor, blanks) < 0 ? CC_ERROR : CC_REFRESH;
}

/* --- history -------------------------------------------------------------------- */

/* $XDG_STATE_HOME/execpy/history, or beneath ~/.local/state. False when there is no
 * place. */
static bool history_place(char path[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length = -1;

	if (state && state[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/execpy/history", state);
	else if (home && home[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/.local/state/execpy/history", home);
	return length > 0 && length + sizeof ".XXXXXX" < PATH_MAX;
}

/* All directories on the way, for this user alone. */
static int make_way(const char *path)
{
	char way[PATH_MAX];

	snprintf(way, sizeof way, "%s", path);
	for (char *slash = strchr(way + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(way, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int history_write(const struct shell_line *line)
{
	char temporary[PATH_MAX];
	autofile *file = NULL;
	autofd fd = -1;
	HistEvent event;
	int r = make_way(line->path);

	if (r < 0)
		return r;
	snprintf(temporary, sizeof temporary, "%.*s.XXXXXX", PATH_MAX - 10, line->path);
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (file) {
		take_fd(&fd);
		if (history(line->history, &event, H_SAVE_FP, file) >= 0 && fflush(file) == 0 &&
		    rename(temporary, line->path) == 0)
			return 0;
	}
	r = errno ? -errno : -EIO;
	unlink(temporary);
	return r;
}

static void remember(struct shell_line *line, const char *text, size_t length)
{
	HistEvent event;

	if (strspn(text, " \t\n") < length && length <= HISTORY_LINE_BYTES_MAX)
		history(line->history, &event, H_ENTER, text);
}

/* --- lines ---------------------------------------------------------------------- */

/* read(2) from standard input that no signal slips past: it ends with EINTR also when the
 * signal came just before it. */
static ssize_t read_input(void *cookie, char *buffer, size_t size)
{
	const struct shell_line *line = cookie;
	struct pollfd input = {.fd = line->terminal < 0 ? STDIN_FILENO : line->terminal,
			       .events = POLLIN};
	sigset_t blocked, before;
	ssize_t length = -1;
	int error;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	do {
		errno = EINTR;
		if (!shell_interrupted() && !shell_ended_by() &&
		    ppoll(&input, 1, NULL, &before) >= 0)
			length = read(input.fd, buffer, size);
	} while (length < 0 && errno == EAGAIN);
	error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return length;
}

/* The editor's next character, as EL_GETCFN wants it: 1; 0 at the end of input, -1 with
 * errno. What is no character is left out, as libedit itself does. */
static int read_character(EditLine *editor, wchar_t *ret_character)
{
	struct shell_line *line = NULL;
	mbstate_t state = {0};

	el_get(editor, EL_CLIENTDATA, &line);
	for (;;) {
		char byte;
		ssize_t length = read_input(line, &byte, 1);

		if (length <= 0)
			return (int)length;
		switch (mbrtowc(ret_character, &byte, 1, &state)) {
		case (size_t)-2: /* more of it comes */
			break;
		case (size_t)-1:
			state = (mbstate_t){0};
			break;
		default:
			return 1;
		}
	}
}

static int open_editor(struct shell_line *line)
{
	HistEvent event;

	/* Ctrl-C also throws away what was typed before it, maybe between ppoll() and read():
	 * so that this one waits for nothing, the terminal is opened once more, for us alone. */
	line->terminal = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* What is typed is UTF-8, as code is, also where the locale is not. */
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	line->editor = el_init("execpy", stdin, stdout, stderr);
	line->history = history_init();
	if (!line->editor || !line->history)
		return -ENOMEM;
	history(line->history, &event, H_SETSIZE, HISTORY_LINES_MAX);
	history(line->history, &event, H_SETUNIQUE, 1);
	if (history_place(line->path))
		history(line->history, &event, H_LOAD, line->path);
	else
		line->path[0] = '\0';
	el_set(line->editor, EL_CLIENTDATA, line);
	el_set(line->editor, EL_GETCFN, read_character);
	el_set(line->editor, EL_PROMPT, tell_prompt);
	el_set(line->editor, EL_EDITOR, "emacs");
	el_set(line->editor, EL_HIST, history, line->history);
	el_set(line->editor, EL_ADDFN, "execpy-indent", "Insert four blanks", indent);
	el_set(line->editor, EL_BIND, "^I", "execpy-indent", NULL);
	el_set(line->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_source(line->editor, NULL); /* ~/.editrc, in which a user may want otherwise */
	return 0;
}

static int open_plain(struct shell_line *line)
{
	line->input = fopencookie(line, "r", (cookie_io_functions_t){.read = read_input});
	return line->input ? 0 : -ENOMEM;
}

struct shell_line *shell_line_open(bool interactive)
{
	struct shell_line *line = calloc(1, sizeof *line);

	if (!line)
		return NULL;
	line->terminal = -1;
	if (interactive ? open_editor(line) == 0 : open_plain(line) == 0)
		return line;
	line->path[0] = '\0';
	shell_line_close(line);
	return NULL;
}

static int read_plain(struct shell_line *line, struct span *ret_text)
{
	ssize_t length;

	errno = 0;
	length = getline(&line->text, &line->capacity, line->input);
	if (length < 0)
		return errno ? -errno : 0;
	if (length > 0 && line->text[length - 1] == '\n')
		length--;
	*ret_text = (struct span){(const uint8_t *)line->text, (size_t)length};
	return 1;
}

int shell_line_read(struct shell_line *line, const char *prompt, struct span *ret_text)
{
	const char *text;
	int count = 0;

	if (!line->editor)
		return read_plain(line, ret_text);
	line->prompt = prompt;
	errno = 0;
	text = el_gets(line->editor, &count);
	if (!text)
		return count < 0 && errno ? -errno : 0;
	if (count > 0)
		remember(line, text, (size_t)count);
	while (count > 0 && (text[count - 1] == '\n' || text[count - 1] == '\r'))
		count--;
	*ret_text = (struct span){(const uint8_t *)text, (size_t)count};
	return 1;
}

void shell_line_close(struct shell_line *line)
{
	int r = line->path[0] ? history_write(line) : 0;

	if (r < 0)
		fprintf(stderr, "execpy: the history is not kept: %s: %s\n", line->path,
			strerror(-r));
	if (line->editor)
		el_end(line->editor);
	if (line->history)
		history_end(line->history);
	if (line->input)
		fclose(line->input);
	close_fd(&line->terminal);
	free(line->text);
	free(line);
}
