/* SPDX-License-Identifier: Apache-2.0 */
/* server_main: how the process that serves HTTP starts, and what the daemon tells it.
 *
 *   execpy-server
 *
 * with the link to the daemon (link.h) as descriptor 3. Stages:
 *
 *   1. As whoever the daemon is, possibly root. Should: take the settings, open and load
 *      what is needed later. Mustn't: read a byte that a client sent.
 *   2. Confine itself: from here on nothing can be opened by its name.
 *   3. Serve until the daemon says stop, or is gone. */
#include "server/keys.h"
#include "server/link.h"
#include "server/owned.h"
#include "server/server.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memfile.h"
#include "jail/confine.h"
#include "policy/policies.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What came over the link since the last MESSAGE_APPLY. */
struct settings {
	int listeners[SETTING_LIST_MAX];
	unsigned listener_count;
	struct http_numbers numbers;
	char **hosts, **compat, **compat_policy; /* policy: one at most */
	int keys, certificate, private_key, log, audit;
	char keys_path[256]; /* as far as messages name it */
	uint64_t identity;   /* 0: stays who it is */
	struct policies policies;
	struct error wrong; /* the first thing that is, of what is read when it comes */
};

struct process {
	struct server server;
	struct settings settings;
	struct bytes buffer;
	struct event *link, *deadline, *terminate;
	bool apply, drain, gone;
	int dialed; /* the answer to a question: -1 none, -2 refused */
	bool answered;
};

static void settings_clear(struct settings *settings)
{
	int *const fds[] = {&settings->keys, &settings->certificate, &settings->private_key,
			    &settings->log, &settings->audit};

	for (unsigned i = 0; i < settings->listener_count; i++)
		close_fd(&settings->listeners[i]);
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
		close_fd(fds[i]);
	text_list_free(&settings->hosts);
	text_list_free(&settings->compat);
	policies_free(&settings->policies);
	text_list_free(&settings->compat_policy);
}

static void settings_init(struct settings *settings)
{
	struct http_config config;

	http_config_default(&config);
	*settings = (struct settings){.numbers = config.numbers};
	settings->keys = settings->certificate = settings->private_key = -1;
	settings->log = settings->audit = -1;
}

static void take_fd_setting(int *place, int *fd)
{
	close_fd(place);
	*place = take_fd(fd);
}

static void take_number(struct settings *settings, const char *key, uint64_t number)
{
	for (size_t i = 0; i < http_number_count; i++)
		if (strcmp(http_number_infos[i].key, key) == 0)
			*(uint64_t *)((char *)&settings->numbers + http_number_infos[i].offset) =
				number;
}

static void take_policy(struct settings *settings, const char *path, int fd)
{
	autobytes text = {0};

	if (settings->wrong.number)
		return;
	if (memfile_read(fd, path, POLICY_FILE_BYTES_MAX, &text, &settings->wrong) == 0)
		policies_add(&settings->policies, bytes_span(&text), path, &settings->wrong);
}

static void take_setting(struct settings *settings, const struct frame *frame, int *fd)
{
	char name[32] = "", text[SETTING_BYTES_MAX] = "";
	struct error ignored = {0};
	struct {
		const char *name;
		int *place;
	} const files[] = {
		{SETTING_KEYS, &settings->keys},
		{SETTING_CERTIFICATE, &settings->certificate},
		{SETTING_PRIVATE_KEY, &settings->private_key},
		{SETTING_LOG, &settings->log},
		{SETTING_AUDIT, &settings->audit},
	};

	frame_text(frame, FIELD_NAME, name, sizeof name);
	frame_text(frame, FIELD_TEXT, text, sizeof text);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
		if (strcmp(files[i].name, name) == 0)
			take_fd_setting(files[i].place, fd);
	if (strcmp(name, SETTING_KEYS) == 0)
		snprintf(settings->keys_path, sizeof settings->keys_path, "%s", text);
	if (strcmp(name, SETTING_LISTENER) == 0 && settings->listener_count < SETTING_LIST_MAX)
		settings->listeners[settings->listener_count++] = take_fd(fd);
	else if (strcmp(name, SETTING_NUMBER) == 0)
		take_number(settings, text, frame_number(frame, FIELD_NUMBER));
	else if (strcmp(name, SETTING_POLICY) == 0)
		take_policy(settings, text, *fd);
	else if (strcmp(name, SETTING_HOST) == 0)
		text_list_add(&settings->hosts, text, &ignored);
	else if (strcmp(name, SETTING_COMPAT) == 0)
		text_list_add(&settings->compat, text, &ignored);
	else if (strcmp(name, SETTING_COMPAT_POLICY) == 0)
		text_list_add(&settings->compat_policy, text, &ignored);
	else if (strcmp(name, SETTING_IDENTITY) == 0)
		settings->identity = frame_number(frame, FIELD_NUMBER);
}

/* One message of the daemon, if there is one. */
static bool take_message(struct process *process)
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(LINK_SOCKET, &process->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return false;
	if (r <= 0) {
		process->gone = true;
		return false;
	}
	switch (frame.type) {
	case MESSAGE_SETTING:
		take_setting(&process->settings, &frame, count ? &fds[0] : &(int){-1});
		break;
	case MESSAGE_APPLY:
		process->apply = true;
		break;
	case MESSAGE_DIAL:
		process->answered = true;
		process->dialed = count ? take_fd(&fds[0]) : -1;
		break;
	case MESSAGE_DRAIN:
		process->drain = true;
		break;
	default:
		break;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	return true;
}

static void wait_for_message(struct process *process)
{
	struct pollfd polled = {.fd = LINK_SOCKET, .events = POLLIN};

	if (!take_message(process) && !process->gone)
		poll(&polled, 1, WARDEN_TAKES_MS);
}

/* A connection to the daemon's warden, which this process could not make itself. */
static int dial(void *user)
{
	struct process *process = user;
	int64_t until = now_us() + WARDEN_TAKES_MS * 1000;

	process->answered = false;
	process->dialed = -1;
	if (link_send(LINK_SOCKET, MESSAGE_DIAL, NULL, NULL, 0, -1, NULL) < 0)
		return -EPIPE;
	while (!process->answered && !process->gone && now_us() < until)
		wait_for_message(process);
	return process->dialed >= 0 ? process->dialed : -ECONNREFUSED;
}

/* --- stage 1 ------------------------------------------------------------------- */

/* A connection is one. */
static void allow_many_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

static int prepare(struct process *process, struct error *err)
{
	int r = descriptors_fill_standard(err);

	if (r < 0)
		return r;
	if (fcntl(LINK_SOCKET, F_GETFD) < 0 || fcntl(LINK_SOCKET, F_SETFL, O_NONBLOCK) < 0)
		return refuse(err, EBADF, "execpy-server: is started by execpy, not by hand");
	fcntl(LINK_SOCKET, F_SETFD, FD_CLOEXEC);
	if (close_range(LINK_SOCKET + 1, ~0U, 0) < 0)
		return fail(err, errno, "server: close inherited descriptors");
	/* What threads allocate the loop frees: one place for all of it keeps the least. */
	mallopt(M_ARENA_MAX, 1);
	signal(SIGPIPE, SIG_IGN);
	allow_many_descriptors();
	while (!process->apply && !process->gone)
		wait_for_message(process);
	return process->gone ? refuse(err, EPIPE, "the daemon is gone") : 0;
}

static int take_keys(struct server *server, const struct settings *settings, struct error *err)
{
	autobytes text = {0};
	int r;

	if (settings->keys < 0) {
		keys_none(&server->tenants);
		return 0;
	}
	r = memfile_read(settings->keys, settings->keys_path, KEYS_FILE_BYTES_MAX, &text, err);
	return r < 0 ? r
		     : keys_parse(&server->tenants, bytes_span(&text), settings->keys_path, err);
}

/* What the settings say, all but the listeners: also when they come anew. */
static int apply(struct process *process, struct error *err)
{
	struct server *server = &process->server;
	struct settings *settings = &process->settings;

	void *tls = NULL;

	/* What may fail comes first. */
	if (settings->wrong.number) {
		*err = settings->wrong;
		return -err->number;
	}
	if (settings->certificate >= 0 &&
	    tls_context(settings->certificate, settings->private_key, &tls, err) < 0)
		return -err->number;
	if (take_keys(server, settings, err) < 0) {
		tls_context_free(tls);
		return -err->number;
	}
	tls_context_free(server->tls);
	server->tls = tls;
	policies_know(&settings->policies);
	server->numbers = settings->numbers;
	text_list_free(&server->hosts);
	text_list_free(&server->compat);
	keys_retire(&server->tenants, &server->compat_policy);
	server->hosts = take_ptr(settings->hosts);
	server->compat = take_ptr(settings->compat);
	server->compat_policy = take_ptr(settings->compat_policy);
	close_fd(&server->logs.access);
	close_fd(&server->logs.audit);
	server->logs.access = take_fd(&settings->log);
	server->logs.audit = take_fd(&settings->audit);
	return 0;
}

/* --- stage 3 ------------------------------------------------------------------- */

static void on_link(evutil_socket_t fd, short what, void *argument)
{
	const struct process *process = argument;

	/* What comes behind the word to apply them belongs to the next settings. */
	while (take_message(argument) && !process->apply)
		;
}

static void on_deadline(evutil_socket_t fd, short what, void *argument)
{
	struct process *process = argument;

	process->gone = true;
}

static void stop(struct process *process)
{
	const struct timeval delay = {(DAEMON_DRAIN_MS + SERVER_FLUSH_MS) / 1000, 0};

	process->drain = false;
	process->server.stopping = true;
	http_stop(&process->server.http);
	evtimer_add(process->deadline, &delay);
}

static int start_serving(struct process *process, struct error *err)
{
	const struct execpy_options options = {
		.daemon_only = true, .dial = dial, .dial_user = process};
	struct server *server = &process->server;
	int r = execpy_open(&options, &server->engine, (struct execpy_error *)err);

	if (r < 0)
		return r;
	server->base = async_base(server->engine);
	http_init(&server->http, server, server->base);
	process->link =
		event_new(server->base, LINK_SOCKET, EV_READ | EV_PERSIST, on_link, process);
	process->deadline = evtimer_new(server->base, on_deadline, process);
	if (!process->link || !process->deadline || event_add(process->link, NULL) < 0)
		return refuse(err, ENOMEM, "server: no event");
	r = confine_server((uid_t)process->settings.identity, err);
	for (size_t i = 0; r == 0 && server_parts[i]; i++)
		if (server_parts[i]->begin && server_part_is_on(server, server_parts[i]))
			r = server_parts[i]->begin(server, err);
	for (unsigned i = 0; r == 0 && i < process->settings.listener_count; i++)
		r = http_listen(&server->http, take_fd(&process->settings.listeners[i]), err);
	return r;
}

static void turn(struct process *process)
{
	struct server *server = &process->server;
	struct error err = {0};

	if (process->apply) {
		process->apply = false;
		if (apply(process, &err) < 0)
			link_send(LINK_SOCKET, MESSAGE_FAILED, NULL, err.text, 0, -1, NULL);
		settings_clear(&process->settings);
		settings_init(&process->settings);
	}
	if (process->drain)
		stop(process);
	server->again |= http_turn(&server->http);
	for (size_t i = 0; server_parts[i]; i++)
		if (server_parts[i]->turn && server_part_is_on(server, server_parts[i]))
			server_parts[i]->turn(server);
}

static int serve(struct process *process, struct error *err)
{
	struct server *server = &process->server;

	while (!process->gone && (!server->stopping || server->http.connection_count > 0)) {
		int flags = EVLOOP_ONCE | (server->again ? EVLOOP_NONBLOCK : 0);

		server->again = false;
		if (event_base_loop(server->base, flags) < 0)
			return refuse(err, EIO, "the event loop ended");
		turn(process);
	}
	return 0;
}

static int run(struct process *process, struct error *err)
{
	int r = prepare(process, err);

	if (r == 0)
		r = apply(process, err);
	if (r == 0)
		r = start_serving(process, err);
	process->apply = false;
	settings_clear(&process->settings);
	settings_init(&process->settings);
	if (r == 0)
		r = link_send(LINK_SOCKET, MESSAGE_SERVING, NULL, NULL, 0, -1, err);
	return r < 0 ? r : serve(process, err);
}

int main(void)
{
	struct process process = {.dialed = -1, .server.logs = {.access = -1, .audit = -1}};
	struct error err = {0};

	settings_init(&process.settings);
	if (run(&process, &err) < 0) {
		if (fcntl(LINK_SOCKET, F_GETFD) < 0 ||
		    link_send(LINK_SOCKET, MESSAGE_FAILED, NULL, err.text, 0, -1, NULL) < 0)
			fprintf(stderr, "execpy-server: %s\n", err.text);
		return 1;
	}
	/* First, since it tells the parts of the clients that they lose. */
	http_free(&process.server.http);
	for (size_t i = 0; server_parts[i]; i++)
		if (server_parts[i]->end && server_part_is_on(&process.server, server_parts[i]))
			server_parts[i]->end(&process.server);
	owned_free(&process.server);
	policies_know(&(struct policies){0});
	tls_context_free(process.server.tls);
	execpy_close(process.server.engine);
	/* Last, since sessions that were given up leave the room of their tenants. */
	keys_free(&process.server.tenants);
	return 0;
}
