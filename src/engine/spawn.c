/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: finds the programs and starts the warden. */
#include "engine/engine.h"
#include "engine/owner.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARDEN_SOCKET 3

/* The warden's own environment: nothing of the caller's but facts about the
 * processor that it hands on to templates. */
static const char *const passed_on[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};

struct programs {
	char warden[PATH_MAX], guest[PATH_MAX], keeper[PATH_MAX], fonts[PATH_MAX];
	char server[PATH_MAX]; /* need not be there */
};

static bool is_executable(const char *path)
{
	return access(path, X_OK) == 0;
}

/* matplotlib names the file after its own version: fontlist-v330.json. */
static void find_fonts(const char *directory, char path[PATH_MAX])
{
	DIR *entries = opendir(directory);
	struct dirent *entry;

	path[0] = '\0';
	if (!entries)
		return;
	while ((entry = readdir(entries)))
		if (strncmp(entry->d_name, "fontlist-", 9) == 0 &&
		    snprintf(path, PATH_MAX, "%s/%s", directory, entry->d_name) >= PATH_MAX)
			path[0] = '\0';
	closedir(entries);
}

/* Where the programs are, beneath a directory. */
struct places {
	const char *warden, *guest, *keeper, *fonts, *server;
};

static const struct places together = {"execpy-warden", "execpy-guest", "execpy-keeper", "fonts",
				       "execpy-server"};
/* Seen from <prefix>/bin/execpy, and from build/src/cli/execpy. */
static const struct places installed = {
	"../libexec/execpy/execpy-warden", "../libexec/execpy/execpy-guest",
	"../libexec/execpy/execpy-keeper", "../libexec/execpy/fonts",
	"../libexec/execpy/execpy-server"};
static const struct places built = {"../warden/execpy-warden", "../guest/execpy-guest",
				    "../jail/execpy-keeper", "../guest/fonts",
				    "../server/execpy-server"};

static bool join(char path[PATH_MAX], const char *directory, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
}

static bool try_places(struct programs *programs, const char *directory,
		       const struct places *places)
{
	char fonts_directory[PATH_MAX];

	if (!join(programs->warden, directory, places->warden) ||
	    !join(programs->guest, directory, places->guest) ||
	    !join(programs->keeper, directory, places->keeper) ||
	    !join(programs->server, directory, places->server) ||
	    !join(fonts_directory, directory, places->fonts))
		return false;
	if (!is_executable(programs->warden) || !is_executable(programs->guest) ||
	    !is_executable(programs->keeper))
		return false;
	find_fonts(fonts_directory, programs->fonts);
	return true;
}

static int find_programs(struct programs *programs, const char *directory, struct error *err)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (directory) {
		if (try_places(programs, directory, &together))
			return 0;
		return refuse(err, ENOENT,
			      "engine: no execpy-warden, execpy-keeper and execpy-guest in %s",
			      directory);
	}
	if (length > 0) {
		self[length] = '\0';
		slash = strrchr(self, '/');
		*(slash ? slash : self) = '\0';
		if (try_places(programs, self, &installed) || try_places(programs, self, &built))
			return 0;
	}
	if (try_places(programs, EXECPY_LIBEXEC, &together))
		return 0;
	return refuse(
		err, ENOENT,
		"engine: execpy-warden, execpy-keeper and execpy-guest are not installed in %s",
		EXECPY_LIBEXEC);
}

/* Starts a program with `socket` as descriptor 3. */
static int spawn(const char *program, const char *const *arguments, int socket, pid_t *ret_pid,
		 struct error *err)
{
	char passed[ARRAY_LENGTH(passed_on)][128];
	char *environment[ARRAY_LENGTH(passed_on) + 2] = {(char *)"PATH=/usr/bin:/bin"};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	size_t count = 1;
	int r;

	for (size_t i = 0; i < ARRAY_LENGTH(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (!value)
			continue;
		snprintf(passed[i], sizeof passed[i], "%s=%s", passed_on[i], value);
		environment[count++] = passed[i];
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, socket, WARDEN_SOCKET);
	/* Its own session: a Ctrl-C is for the caller, who then cancels. */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	r = posix_spawn(ret_pid, program, &actions, &attributes, (char *const *)arguments,
			environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return r ? fail(err, r, "engine: start %s", program) : 0;
}

/* The same with one end of a new pair; the other is the caller's. */
static int spawn_with_pair(const char *program, const char *const *arguments, pid_t *ret_pid,
			   int *ret_socket, struct error *err)
{
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(err, errno, "engine: socketpair");
	r = spawn(program, arguments, pair[1], ret_pid, err);
	close(pair[1]);
	if (r < 0)
		close(pair[0]);
	else
		*ret_socket = pair[0];
	return r;
}

int spawn_warden_process(const char *program_directory, uid_t identity, pid_t *ret_pid,
			 int *ret_socket, struct error *err)
{
	struct programs programs;
	char number[16];
	const char *arguments[10] = {"execpy-warden", "--guest", programs.guest, "--keeper",
				     programs.keeper};
	size_t count = 5;
	int r = find_programs(&programs, program_directory, err);

	if (r < 0)
		return r;
	if (programs.fonts[0]) {
		arguments[count++] = "--fonts";
		arguments[count++] = programs.fonts;
	}
	if (identity) {
		snprintf(number, sizeof number, "%u", (unsigned)identity);
		arguments[count++] = "--identity";
		arguments[count++] = number;
	}
	return spawn_with_pair(programs.warden, arguments, ret_pid, ret_socket, err);
}

int spawn_server_process(const char *program_directory, pid_t *ret_pid, int *ret_socket,
			 struct error *err)
{
	static const char *const arguments[] = {"execpy-server", NULL};
	struct programs programs;
	int r = find_programs(&programs, program_directory, err);

	return r < 0 ? r : spawn_with_pair(programs.server, arguments, ret_pid, ret_socket, err);
}

int spawn_warden(struct execpy_engine *engine, const struct execpy_options *options,
		 struct error *err)
{
	return spawn_warden_process(options ? options->program_directory : NULL, 0, &engine->warden,
				    &engine->socket, err);
}
