/* SPDX-License-Identifier: Apache-2.0 */
/* front: see front.h.
 *
 * Theory of operation. The sockets are bound once, by this process, which may do that;
 * the server's process gets them, and the files that it needs, over the link (link.h),
 * and is started again when it ends. Between the two nothing is listened for, but the
 * kernel keeps who connects meanwhile.
 *
 *              SERVING      FAILED      GONE
 *   STARTING   → SERVING    keep why    never served: failed(); else start again
 *   SERVING    -            keep why    start again
 *   ENDING     -            -           ended() */
#include "server/front.h"
#include "server/link.h"
#include "server/listen.h"
#include "server/socket.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum front_state { FRONT_IDLE, FRONT_STARTING, FRONT_SERVING, FRONT_ENDING, FRONT_OVER };

struct spot {
	struct place place; /* of a unix socket */
	bool is_local, only_here;
	int fd;
};

struct front {
	struct front_options options;
	struct spot spots[SETTING_LIST_MAX];
	unsigned spot_count;
	struct http_config config; /* its own copy of what matters after the start */
	enum front_state state;
	pid_t process;
	int socket;
	struct bytes buffer;
	struct event *event, *again;
	char why[ERROR_TEXT_MAX];
	bool served; /* once */
	unsigned failures;
	int64_t since_us;
};

/* --- where ---------------------------------------------------------------------- */

static int new_spot(struct front *front, const struct address *address, const char *text,
		    struct spot **ret_spot, struct error *err)
{
	struct spot *spot = &front->spots[front->spot_count];

	if (front->spot_count == SETTING_LIST_MAX)
		return refuse(err, E2BIG, "more than %d addresses to listen on", SETTING_LIST_MAX);
	if (!address->only_here && !front->config.keys)
		return refuse(
			err, EPERM,
			"without keys HTTP is served on loopback or a unix socket only, not on "
			"%s: see `keys` in docs/http.md",
			text);
	*spot = (struct spot){.fd = -1,
			      .only_here = address->only_here,
			      .place = {.directory = -1, .lock = -1, .listener = -1}};
	front->spot_count++;
	*ret_spot = spot;
	return 0;
}

static int add_activated(struct front *front, int fd, struct error *err)
{
	char text[SOCKET_PATH_MAX + 16];
	struct address address;
	struct spot *spot;
	int r = address_of_listener(fd, &address, err);

	if (r < 0)
		return r;
	address_describe(fd, false, text, sizeof text);
	r = new_spot(front, &address, text, &spot, err);
	if (r == 0)
		spot->fd = fd;
	return r;
}

static int add_spot(struct front *front, const char *text, struct error *err)
{
	struct address address;
	struct spot *spot;
	int r = address_parse(text, &address, err);

	if (r < 0 || (r = new_spot(front, &address, text, &spot, err)) < 0)
		return r;
	spot->is_local = address.at.any.sa_family == AF_UNIX;
	if (!spot->is_local) {
		spot->fd = address_listen(&address, text, err);
		return spot->fd < 0 ? spot->fd : 0;
	}
	r = place_take(&spot->place, address.at.local.sun_path, err);
	return r < 0 ? r : place_listen(&spot->place, SOCK_STREAM, err);
}

static int listener_of(const struct spot *spot)
{
	return spot->is_local ? spot->place.listener : spot->fd;
}

static void describe(struct front *front, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < front->spot_count && used < size; i++) {
		char one[SOCKET_PATH_MAX + 16];

		address_describe(listener_of(&front->spots[i]), front->config.certificate, one,
				 sizeof one);
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", one);
	}
}

/* --- what is handed over -------------------------------------------------------- */

static int copy_text(char **to, const char *from, struct error *err)
{
	free(*to);
	*to = from ? strdup(from) : NULL;
	return from && !*to ? fail(err, ENOMEM, "configuration") : 0;
}

static int copy_list(char ***to, char *const *from, struct error *err)
{
	int r = 0;

	text_list_free(to);
	for (size_t i = 0; r == 0 && from && from[i]; i++)
		r = text_list_add(to, from[i], err);
	return r;
}

static int copy_config(const struct front *front, struct http_config *to,
		       const struct http_config *from, struct error *err)
{
	const char *keys = front->options.keys ? front->options.keys : from->keys;
	int r = 0;

	to->numbers = from->numbers;
	if ((r = copy_list(&to->hosts, from->hosts, err)) < 0 ||
	    (r = copy_list(&to->policies, from->policies, err)) < 0 ||
	    (r = copy_list(&to->compat, from->compat, err)) < 0 ||
	    (r = copy_text(&to->compat_policy, from->compat_policy, err)) < 0 ||
	    (r = copy_text(&to->keys, keys, err)) < 0 ||
	    (r = copy_text(&to->certificate, from->certificate, err)) < 0 ||
	    (r = copy_text(&to->private_key, from->private_key, err)) < 0 ||
	    (r = copy_text(&to->log, from->log, err)) < 0)
		return r;
	return copy_text(&to->audit, from->audit, err);
}

static int tell(struct front *front, const char *name, const char *text, uint64_t number, int fd,
		struct error *err)
{
	return link_send(front->socket, MESSAGE_SETTING, name, text, number, fd, err);
}

/* Files that a configuration names, beside its policies. */
static const struct {
	const char *name;
	size_t offset; /* of the path in struct http_config */
	bool append;
} file_settings[] = {
	{SETTING_KEYS, offsetof(struct http_config, keys), false},
	{SETTING_CERTIFICATE, offsetof(struct http_config, certificate), false},
	{SETTING_PRIVATE_KEY, offsetof(struct http_config, private_key), false},
	{SETTING_LOG, offsetof(struct http_config, log), true},
	{SETTING_AUDIT, offsetof(struct http_config, audit), true},
};

static const char *path_of(const struct http_config *config, size_t index)
{
	return *(char *const *)((const char *)config + file_settings[index].offset);
}

/* All of them, open; -1: it names none. */
struct opened {
	int policies[SETTING_LIST_MAX];
	int files[ARRAY_LENGTH(file_settings)];
};

#define NOTHING_OPENED                                        \
	((struct opened){{[0 ... SETTING_LIST_MAX - 1] = -1}, \
			 {[0 ... ARRAY_LENGTH(file_settings) - 1] = -1}})

static void close_opened(struct opened *opened)
{
	for (size_t i = 0; i < SETTING_LIST_MAX; i++)
		close_fd(&opened->policies[i]);
	for (size_t i = 0; i < ARRAY_LENGTH(file_settings); i++)
		close_fd(&opened->files[i]);
}

static int open_file(const char *name, const char *path, bool append, int *ret_fd,
		     struct error *err)
{
	if (!path)
		return 0;
	if (append && strcmp(path, "-") == 0)
		*ret_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		*ret_fd = append ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY,
					0600)
				 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return *ret_fd < 0 ? fail(err, errno, "%s: open %s", name, path) : 0;
}

/* All or none: what is not whole is not told to the server. close_opened() is due. */
static int open_files(const struct http_config *config, struct opened *opened, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && config->policies && config->policies[i]; i++)
		r = open_file(SETTING_POLICY, config->policies[i], false, &opened->policies[i],
			      err);
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(file_settings); i++)
		r = open_file(file_settings[i].name, path_of(config, i), file_settings[i].append,
			      &opened->files[i], err);
	return r;
}

static int tell_file(struct front *front, const char *name, const char *path, int fd,
		     struct error *err)
{
	return fd < 0 ? 0 : tell(front, name, path, 0, fd, err);
}

static int tell_settings(struct front *front, const struct http_config *config,
			 const struct opened *opened, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < http_number_count; i++)
		r = tell(front, SETTING_NUMBER, http_number_infos[i].key,
			 *(const uint64_t *)((const char *)&config->numbers +
					     http_number_infos[i].offset),
			 -1, err);
	for (size_t i = 0; r == 0 && config->hosts && config->hosts[i]; i++)
		r = tell(front, SETTING_HOST, config->hosts[i], 0, -1, err);
	for (size_t i = 0; r == 0 && config->compat && config->compat[i]; i++)
		r = tell(front, SETTING_COMPAT, config->compat[i], 0, -1, err);
	for (size_t i = 0; r == 0 && config->policies && config->policies[i]; i++)
		r = tell_file(front, SETTING_POLICY, config->policies[i], opened->policies[i], err);
	if (r == 0 && config->compat_policy)
		r = tell(front, SETTING_COMPAT_POLICY, config->compat_policy, 0, -1, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(file_settings); i++)
		r = tell_file(front, file_settings[i].name, path_of(config, i), opened->files[i],
			      err);
	if (r < 0)
		return r;
	return link_send(front->socket, MESSAGE_APPLY, NULL, NULL, 0, -1, err);
}

/* --- the process ---------------------------------------------------------------- */

static void unlink_process(struct front *front)
{
	if (front->event)
		event_free(front->event);
	front->event = NULL;
	close_fd(&front->socket);
}

static void try_again(struct front *front)
{
	uint64_t delay = front->failures == 0 ? 0 : DAEMON_AGAIN_MS;
	struct timeval wait;

	for (unsigned i = 1; i < front->failures && delay < DAEMON_AGAIN_MAX_MS; i++)
		delay *= 2;
	front->failures++;
	if (delay > DAEMON_AGAIN_MAX_MS)
		delay = DAEMON_AGAIN_MAX_MS;
	wait = (struct timeval){(time_t)(delay / 1000), (suseconds_t)(delay % 1000 * 1000)};
	evtimer_add(front->again, &wait);
}

static void say_why(struct front *front, const char *what)
{
	char line[2 * ERROR_TEXT_MAX];

	snprintf(line, sizeof line, "%s%s%s", what, front->why[0] ? ": " : "", front->why);
	front->options.say(front->options.user, line);
}

/* The link has ended, and with it the process. */
static void on_gone(struct front *front)
{
	enum front_state state = front->state;

	unlink_process(front);
	if (state == FRONT_ENDING)
		return; /* until it is reaped */
	front->state = FRONT_IDLE;
	if (!front->served) {
		front->options.failed(front->options.user,
				      front->why[0] ? front->why : "the HTTP server ended");
		return;
	}
	say_why(front, state == FRONT_SERVING ? "the HTTP server ended; it is started again"
					      : "the HTTP server cannot be started again yet");
	if (now_us() - front->since_us >= DAEMON_CALM_MS * 1000)
		front->failures = 0;
	try_again(front);
}

/* A connection to the warden, by somebody whom it knows. */
static void dial(struct front *front)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	autofd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", front->options.socket);
	/* A full backlog refuses: this process must not wait for the warden. */
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		close_fd(&fd);
	link_send(front->socket, MESSAGE_DIAL, NULL, NULL, 0, fd, NULL);
}

static void on_message(evutil_socket_t socket, short what, void *argument)
{
	struct front *front = argument;
	char where[ERROR_TEXT_MAX];
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, &front->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		on_gone(front);
		return;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (frame.type == MESSAGE_DIAL) {
		dial(front);
	} else if (frame.type == MESSAGE_FAILED) {
		frame_text(&frame, FIELD_TEXT, front->why, sizeof front->why);
		if (front->state == FRONT_SERVING) {
			say_why(front, "the HTTP server");
			front->why[0] = '\0';
		}
	} else if (frame.type == MESSAGE_SERVING && front->state == FRONT_STARTING) {
		front->state = FRONT_SERVING;
		front->served = true;
		front->since_us = now_us();
		describe(front, where, sizeof where);
		front->options.serving(front->options.user, where);
	}
}

int front_start(struct front *front, struct error *err)
{
	struct opened opened = NOTHING_OPENED;
	int r = spawn_server_process(front->options.program_directory, &front->process,
				     &front->socket, err);

	if (r < 0)
		return r;
	front->state = FRONT_STARTING;
	front->why[0] = '\0';
	fcntl(front->socket, F_SETFL, O_NONBLOCK);
	front->event = event_new(front->options.base, front->socket, EV_READ | EV_PERSIST,
				 on_message, front);
	if (!front->event || event_add(front->event, NULL) < 0)
		r = fail(err, ENOMEM, "daemon: watch the HTTP server");
	if (r == 0 && front->options.identity)
		r = tell(front, SETTING_IDENTITY, NULL, front->options.identity, -1, err);
	for (unsigned i = 0; r == 0 && i < front->spot_count; i++)
		r = tell(front, SETTING_LISTENER, NULL, 0, listener_of(&front->spots[i]), err);
	if (r == 0 && (r = open_files(&front->config, &opened, err)) == 0)
		r = tell_settings(front, &front->config, &opened, err);
	close_opened(&opened);
	if (r < 0)
		unlink_process(front);
	return r;
}

static void on_again(evutil_socket_t fd, short what, void *argument)
{
	struct front *front = argument;
	struct error err = {0};

	if (front->process > 0) { /* not reaped yet */
		try_again(front);
	} else if (front_start(front, &err) < 0) {
		snprintf(front->why, sizeof front->why, "%s", err.text);
		on_gone(front);
	}
}

int front_new(const struct front_options *options, const struct http_config *config,
	      struct front **ret_front, struct error *err)
{
	static const char *const standard[] = {LISTEN_DEFAULT, NULL}, *const nothing[] = {NULL};
	unsigned activated = listen_activated();
	const char *const *list = options->listen  ? options->listen
				  : config->listen ? (const char *const *)config->listen
				  : activated      ? nothing
						   : standard;
	struct front *front;
	int r;

	*ret_front = NULL;
	if (list[0] && strcmp(list[0], "none") == 0 && !list[1])
		return 0;
	front = calloc(1, sizeof *front);
	if (!front)
		return fail(err, ENOMEM, "daemon");
	front->options = *options;
	front->socket = -1;
	front->again = evtimer_new(options->base, on_again, front);
	r = front->again ? copy_config(front, &front->config, config, err)
			 : fail(err, ENOMEM, "daemon");
	for (unsigned i = 0; r == 0 && i < activated; i++)
		r = add_activated(front, LISTEN_FIRST_FD + (int)i, err);
	for (size_t i = 0; r == 0 && list[i]; i++)
		r = add_spot(front, list[i], err);
	if (r < 0) {
		front_free(front);
		return r;
	}
	*ret_front = front;
	return 0;
}

int front_reload(struct front *front, const struct http_config *config, struct error *err)
{
	struct http_config fresh = {0};
	struct opened opened = NOTHING_OPENED;
	int r = 0;

	for (unsigned i = 0; i < front->spot_count; i++)
		if (!front->spots[i].only_here && !config->keys && !front->options.keys)
			return refuse(err, EPERM,
				      "keys cannot be left out while others than this "
				      "machine are served");
	r = copy_config(front, &fresh, config, err);
	if (r == 0)
		r = open_files(&fresh, &opened, err);
	/* From here on it is the one; a process that is started later gets it, too. */
	if (r == 0) {
		const struct http_config old = front->config;

		front->config = fresh;
		fresh = old;
		if (front->state == FRONT_STARTING || front->state == FRONT_SERVING)
			r = tell_settings(front, &front->config, &opened, err);
	}
	close_opened(&opened);
	http_config_free(&fresh);
	return r;
}

static void close_spots(struct front *front)
{
	for (unsigned i = 0; i < front->spot_count; i++) {
		if (front->spots[i].is_local)
			place_leave(&front->spots[i].place);
		close_fd(&front->spots[i].fd);
	}
	front->spot_count = 0;
}

void front_drain(struct front *front)
{
	if (!front || front->state >= FRONT_ENDING)
		return;
	evtimer_del(front->again);
	close_spots(front);
	if (front->process == 0) {
		front->state = FRONT_OVER;
		return;
	}
	front->state = FRONT_ENDING;
	if (front->socket < 0 ||
	    link_send(front->socket, MESSAGE_DRAIN, NULL, NULL, 0, -1, NULL) < 0)
		unlink_process(front);
}

void front_end(struct front *front)
{
	if (!front || front->state == FRONT_OVER)
		return;
	front_drain(front);
	if (front->process > 0)
		kill(front->process, SIGKILL);
}

static void reap(struct front *front, int flags)
{
	if (!front || front->process == 0 || waitpid(front->process, NULL, flags) == 0)
		return;
	front->process = 0;
	if (front->state == FRONT_ENDING) {
		unlink_process(front);
		front->state = FRONT_OVER;
		front->options.ended(front->options.user);
	}
}

void front_reap(struct front *front)
{
	reap(front, WNOHANG);
}

bool front_is_over(const struct front *front)
{
	return !front || front->state == FRONT_OVER;
}

static void ignore(void *user)
{
}

void front_free(struct front *front)
{
	if (!front)
		return;
	front->options.ended = ignore;
	front_end(front);
	reap(front, 0);
	unlink_process(front);
	close_spots(front);
	if (front->again)
		event_free(front->again);
	http_config_free(&front->config);
	bytes_free(&front->buffer);
	free(front);
}
