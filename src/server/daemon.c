/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: see daemon.h.
 *
 * Theory of operation. This process does no more than keep: it holds the lock,
 * the socket and the configuration, and starts a warden, which accepts clients
 * from that same socket. Clients never meet this process. When the warden ends,
 * another is started; the socket stays open all the while, so that clients wait
 * in its backlog. A new configuration is served by a new warden: only when all
 * of its templates stand is the old one told to end with its last run, so a
 * configuration that fails changes nothing. If this process ends, however, the
 * warden sees its connection end and goes with everything it holds.
 *
 * One warden's life, by what is heard of it:
 *
 *              SERVING        FAILED       GONE
 *   STARTING   → SERVING      keep why     none serves: try again, or give up
 *   SERVING    -              keep why     start another
 *   DRAINING   -              -            free
 *   ENDING     -              -            free
 */
#include "server/daemon.h"
#include "server/front.h"
#include "server/notify.h"
#include "server/socket.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "engine/doctor.h"
#include "engine/owner.h"
#include "policy/config.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum keep_state { KEEP_STARTING, KEEP_SERVING, KEEP_DRAINING, KEEP_ENDING };

/* A warden that this process has started and not yet reaped. */
struct keep {
	struct daemon *daemon;
	TAILQ_ENTRY(keep) entry;
	struct owner owner;
	enum keep_state state;
	struct event *event, *patience;
	struct daemon_config candidate; /* what it serves, if that is new */
	bool has_candidate;
	char why[ERROR_TEXT_MAX];
	int64_t serving_since_ms;
};

struct daemon {
	const struct daemon_options *options;
	struct place place;
	uid_t identity; /* of root's warden and HTTP server */
	struct event_base *base;
	struct event *signals[4], *again;
	TAILQ_HEAD(, keep) keeps;
	struct front *front;         /* of HTTP; NULL: none */
	struct daemon_config config; /* the last that was served; empty: none yet */
	unsigned failures;           /* in a row */
	bool stopping, http_started;
	int result;
	struct error *err;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 3))) static void say(struct daemon *daemon, const char *format,
						      ...)
{
	char line[2 * ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	daemon->options->say(line);
}

static void set_timer(struct event *event, int64_t ms)
{
	const struct timeval delay = {ms / 1000, ms % 1000 * 1000};

	evtimer_add(event, &delay);
}

static void stop_loop(struct daemon *daemon, int result)
{
	daemon->result = result;
	event_base_loopbreak(daemon->base);
}

static void stop_when_over(struct daemon *daemon)
{
	if (daemon->stopping && TAILQ_EMPTY(&daemon->keeps) && front_is_over(daemon->front))
		stop_loop(daemon, 0);
}

static void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

static void keep_free(struct keep *keep)
{
	struct daemon *daemon = keep->daemon;

	TAILQ_REMOVE(&daemon->keeps, keep, entry);
	free_event(&keep->event);
	free_event(&keep->patience);
	owner_free(&keep->owner);
	config_free(&keep->candidate);
	free(keep);
	stop_when_over(daemon);
}

static struct keep *find(struct daemon *daemon, enum keep_state state)
{
	struct keep *keep;

	TAILQ_FOREACH(keep, &daemon->keeps, entry)
	if (keep->state == state)
		break;
	return keep;
}

/* Ends it at once. It is freed when it has been reaped. */
static void end(struct keep *keep)
{
	keep->state = KEEP_ENDING;
	free_event(&keep->event);
	owner_end(&keep->owner);
}

static void on_patience(evutil_socket_t fd, short what, void *argument)
{
	struct keep *keep = argument;

	say(keep->daemon, "runs that had not ended are ended now");
	end(keep);
}

static void drain(struct keep *keep)
{
	keep->state = KEEP_DRAINING;
	owner_drain(&keep->owner);
	set_timer(keep->patience, DAEMON_DRAIN_MS);
}

/* The first time at once, then 50, 100, … 1,000 ms later. */
static void start_again(struct daemon *daemon)
{
	int64_t delay = daemon->failures == 0 ? 0 : DAEMON_AGAIN_MS;

	for (unsigned i = 1; i < daemon->failures && delay < DAEMON_AGAIN_MAX_MS; i++)
		delay *= 2;
	daemon->failures++;
	set_timer(daemon->again, delay < DAEMON_AGAIN_MAX_MS ? delay : DAEMON_AGAIN_MAX_MS);
}

static void say_serving(struct daemon *daemon)
{
	char names[ERROR_TEXT_MAX] = "";

	for (size_t i = 0; i < daemon->config.template_count; i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
			 daemon->config.templates[i].name);
	}
	say(daemon, "serving on %s (templates: %s)", daemon->place.path, names);
}

/* The first warden stands: now HTTP. Or what is served is new: its settings. True when
 * front_serving() will say that all is ready. */
static bool serve_http(struct daemon *daemon, bool is_new)
{
	struct error err = {0};

	if (!daemon->http_started) {
		daemon->http_started = true;
		if (front_start(daemon->front, &err) < 0)
			stop_loop(daemon, refuse(daemon->err, EIO, "%s", err.text));
		return true;
	}
	if (is_new && front_reload(daemon->front, &daemon->config.http, &err) < 0)
		say(daemon, "the new configuration of HTTP is not taken: %s", err.text);
	return false;
}

static void begin_serving(struct keep *keep)
{
	struct daemon *daemon = keep->daemon;
	bool is_new = keep->has_candidate;
	struct keep *old = find(daemon, KEEP_SERVING);

	keep->state = KEEP_SERVING;
	keep->serving_since_ms = now_ms();
	if (keep->has_candidate) {
		config_free(&daemon->config);
		daemon->config = keep->candidate;
		keep->candidate = (struct daemon_config){0};
		keep->has_candidate = false;
	}
	if (old)
		drain(old);
	say_serving(daemon);
	if (!daemon->front || !serve_http(daemon, is_new))
		notify("READY=1\nSTATUS=serving");
}

/* It never served. */
static void start_failed(struct keep *keep)
{
	struct daemon *daemon = keep->daemon;
	const char *why = keep->why[0] ? keep->why : "the warden ended";

	if (daemon->config.template_count == 0) {
		stop_loop(daemon, refuse(daemon->err, EIO, "%s", why));
		return;
	}
	if (keep->has_candidate) {
		say(daemon, "the new configuration is not taken: %s", why);
		notify("READY=1\nSTATUS=serving; the new configuration was not taken");
	} else {
		say(daemon, "the warden cannot be started again yet: %s", why);
	}
	if (!find(daemon, KEEP_SERVING))
		start_again(daemon);
}

static void lost(struct keep *keep)
{
	struct daemon *daemon = keep->daemon;

	say(daemon, "the warden ended%s%s; it is started again", keep->why[0] ? ": " : "",
	    keep->why);
	if (now_ms() - keep->serving_since_ms >= DAEMON_CALM_MS)
		daemon->failures = 0;
	if (!find(daemon, KEEP_STARTING))
		start_again(daemon);
}

static void on_gone(struct keep *keep)
{
	enum keep_state state = keep->state;

	end(keep);
	if (state == KEEP_STARTING)
		start_failed(keep);
	else if (state == KEEP_SERVING)
		lost(keep);
	if (owner_reap(&keep->owner, false))
		keep_free(keep);
}

static void on_word(evutil_socket_t socket, short what, void *argument)
{
	struct keep *keep = argument;

	switch (owner_read(&keep->owner, keep->why)) {
	case OWNER_SERVING:
		if (keep->state == KEEP_STARTING)
			begin_serving(keep);
		break;
	case OWNER_GONE:
		on_gone(keep);
		break;
	case OWNER_FAILED: /* its end follows */
	case OWNER_NOTHING:
		break;
	}
}

static void on_child(evutil_socket_t number, short what, void *argument)
{
	struct daemon *daemon = argument;
	struct keep *keep, *next;

	for (keep = TAILQ_FIRST(&daemon->keeps); keep; keep = next) {
		next = TAILQ_NEXT(keep, entry);
		if (owner_reap(&keep->owner, false) && keep->state == KEEP_ENDING)
			keep_free(keep);
	}
	front_reap(daemon->front);
}

static void front_serving(void *user, const char *where)
{
	struct daemon *daemon = user;

	say(daemon, "serving HTTP on %s", where);
	notify("READY=1\nSTATUS=serving");
}

static void front_failed(void *user, const char *why)
{
	struct daemon *daemon = user;

	stop_loop(daemon, refuse(daemon->err, EIO, "%s", why));
}

static void front_ended(void *user)
{
	stop_when_over(user);
}

static void front_says(void *user, const char *line)
{
	say(user, "%s", line);
}

static int make_front(struct daemon *daemon, const struct http_config *config, struct error *err)
{
	const struct front_options options = {
		.base = daemon->base,
		.program_directory = daemon->options->program_directory,
		.socket = daemon->place.path,
		.identity = daemon->identity,
		.listen = daemon->options->listen,
		.keys = daemon->options->keys,
		.serving = front_serving,
		.failed = front_failed,
		.ended = front_ended,
		.say = front_says,
		.user = daemon,
	};

	return front_new(&options, config, &daemon->front, err);
}

/* Starts a warden for the configuration in force, or for a new one, which it
 * takes over in any case. */
static int start(struct daemon *daemon, struct daemon_config *candidate, struct error *err)
{
	struct keep *keep = calloc(1, sizeof *keep);
	int r;

	if (!keep) {
		if (candidate)
			config_free(candidate);
		return fail(err, ENOMEM, "daemon");
	}
	keep->daemon = daemon;
	keep->owner.socket = -1;
	TAILQ_INSERT_HEAD(&daemon->keeps, keep, entry);
	if (candidate) {
		keep->candidate = *candidate;
		keep->has_candidate = true;
		*candidate = (struct daemon_config){0};
	}
	r = owner_start(&keep->owner, daemon->options->program_directory, daemon->identity,
			candidate ? &keep->candidate : &daemon->config, daemon->place.listener,
			err);
	if (r == 0) {
		keep->event = event_new(daemon->base, keep->owner.socket, EV_READ | EV_PERSIST,
					on_word, keep);
		keep->patience = evtimer_new(daemon->base, on_patience, keep);
		if (!keep->event || !keep->patience || event_add(keep->event, NULL) < 0)
			r = fail(err, ENOMEM, "daemon: watch the warden");
	}
	if (r < 0) {
		owner_end(&keep->owner);
		owner_reap(&keep->owner, true);
		keep_free(keep);
	}
	return r;
}

static void on_again(evutil_socket_t fd, short what, void *argument)
{
	struct daemon *daemon = argument;
	struct error err = {0};

	if (start(daemon, NULL, &err) < 0) {
		say(daemon, "the warden cannot be started again yet: %s", err.text);
		start_again(daemon);
	}
}

/* SIGHUP: what is being started is for an older configuration. */
static void on_reload(evutil_socket_t number, short what, void *argument)
{
	struct daemon *daemon = argument;
	struct daemon_config config = {0};
	struct error err = {0};
	struct keep *starting = find(daemon, KEEP_STARTING);

	if (daemon->stopping)
		return;
	notify_reloading();
	if (config_load(daemon->options->config, &config, &err) < 0) {
		say(daemon, "the new configuration is not taken: %s", err.text);
		notify("READY=1\nSTATUS=serving; the new configuration was not taken");
		return;
	}
	evtimer_del(daemon->again);
	if (starting)
		end(starting);
	if (start(daemon, &config, &err) == 0)
		return;
	say(daemon, "the new configuration is not taken: %s", err.text);
	notify("READY=1\nSTATUS=serving; the new configuration was not taken");
	if (!find(daemon, KEEP_SERVING))
		start_again(daemon);
}

/* The first signal lets the runs end, the second does not. */
static void on_stop(evutil_socket_t number, short what, void *argument)
{
	struct daemon *daemon = argument;
	struct keep *keep, *next;
	bool at_once = daemon->stopping;

	daemon->stopping = true;
	notify("STOPPING=1");
	evtimer_del(daemon->again);
	place_close(&daemon->place);
	for (keep = TAILQ_FIRST(&daemon->keeps); keep; keep = next) {
		next = TAILQ_NEXT(keep, entry);
		if (keep->state == KEEP_STARTING || (at_once && keep->state != KEEP_ENDING))
			end(keep);
		else if (keep->state == KEEP_SERVING)
			drain(keep);
	}
	if (at_once)
		front_end(daemon->front);
	else
		front_drain(daemon->front);
	stop_when_over(daemon);
}

/* libevent would write to stderr; what matters comes back as an error. */
static void say_nothing(int severity, const char *message)
{
}

static int make_loop(struct daemon *daemon, struct error *err)
{
	static const struct {
		int number;
		event_callback_fn callback;
	} signals[] = {
		{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_reload}, {SIGCHLD, on_child}};

	event_set_log_callback(say_nothing);
	daemon->base = event_base_new();
	if (!daemon->base)
		return refuse(err, ENOMEM, "daemon: no event loop");
	daemon->again = evtimer_new(daemon->base, on_again, daemon);
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		daemon->signals[i] =
			evsignal_new(daemon->base, signals[i].number, signals[i].callback, daemon);
		if (!daemon->signals[i] || event_add(daemon->signals[i], NULL) < 0)
			return refuse(err, ENOMEM, "daemon: no event for signals");
	}
	return daemon->again ? 0 : refuse(err, ENOMEM, "daemon: no timer");
}

static int prepare(struct daemon *daemon, struct daemon_config *config, struct error *err)
{
	const struct daemon_options *options = daemon->options;
	const struct execpy_options engine = {.program_directory = options->program_directory};
	int r;

	/* In the order in which a person wants to know what is wrong. Signals end
	 * the process here, before there is a socket. */
	r = place_take(&daemon->place, options->socket, err);
	if (r < 0)
		return r;
	if ((r = doctor_self_test(&engine, err)) < 0)
		return fail_wrap(err, "the sandbox does not hold on this host");
	if ((r = make_loop(daemon, err)) < 0 ||
	    (r = place_listen(&daemon->place, SOCK_SEQPACKET, err)) < 0 ||
	    (r = make_front(daemon, &config->http, err)) < 0)
		return r;
	return start(daemon, config, err);
}

/* What is left is ended, and waited for: no warden survives its daemon. */
static void clean_up(struct daemon *daemon)
{
	struct keep *keep;

	daemon->stopping = false;
	place_close(&daemon->place);
	front_free(daemon->front);
	daemon->front = NULL;
	while ((keep = TAILQ_FIRST(&daemon->keeps))) {
		end(keep);
		owner_reap(&keep->owner, true);
		keep_free(keep);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(daemon->signals); i++)
		free_event(&daemon->signals[i]);
	free_event(&daemon->again);
	if (daemon->base)
		event_base_free(daemon->base);
	config_free(&daemon->config);
	place_leave(&daemon->place);
}

int daemon_serve(const struct daemon_options *options, struct daemon_config *config,
		 struct error *err)
{
	struct daemon daemon = {.options = options, .err = err};
	int r;

	daemon.place = (struct place){.directory = -1, .lock = -1, .listener = -1};
	TAILQ_INIT(&daemon.keeps);
	daemon.identity = geteuid() == 0 ? IDENTITY_BASE + (uid_t)getpid() : 0;
	signal(SIGPIPE, SIG_IGN);
	r = prepare(&daemon, config, err);
	config_free(config); /* empty once it was taken */
	if (r == 0) {
		event_base_dispatch(daemon.base);
		r = daemon.result;
	}
	clean_up(&daemon);
	return r;
}
