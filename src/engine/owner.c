/* SPDX-License-Identifier: Apache-2.0 */
/* owner: see owner.h. */
#include "engine/owner.h"
#include "engine/engine.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* A warden that ended meanwhile has said why, or its end is seen: no failure. */
static int say(struct owner *owner, const struct bytes *frame, const int *fds, size_t count,
	       struct error *err)
{
	struct pollfd polled = {.fd = owner->socket, .events = POLLOUT};
	int r = frame->failed ? frame->failed : frame_send(owner->socket, frame, fds, count);

	while (r == -EAGAIN && poll(&polled, 1, WARDEN_TAKES_MS) > 0)
		r = frame_send(owner->socket, frame, fds, count);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? fail(err, -r, "daemon: tell the warden") : 0;
}

static int tell(struct owner *owner, const struct daemon_config *config, int listener,
		struct error *err)
{
	autobytes frame = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < config->template_count; i++) {
		bytes_clear(&frame);
		config_encode_template(&config->templates[i], &frame);
		r = say(owner, &frame, NULL, 0, err);
	}
	if (r < 0)
		return r;
	bytes_clear(&frame);
	config_encode_serve(&config->numbers, &frame);
	return say(owner, &frame, &listener, 1, err);
}

int owner_start(struct owner *owner, const char *program_directory, uid_t identity,
		const struct daemon_config *config, int listener, struct error *err)
{
	int r;

	*owner = (struct owner){.socket = -1};
	r = spawn_warden_process(program_directory, identity, &owner->process, &owner->socket, err);
	if (r < 0)
		return r;
	if (fcntl(owner->socket, F_SETFL, O_NONBLOCK) < 0)
		r = fail(err, errno, "daemon: fcntl");
	else
		r = tell(owner, config, listener, err);
	if (r < 0) {
		owner_end(owner);
		owner_reap(owner, true);
		owner_free(owner);
	}
	return r;
}

/* Names of modules, and what Python said of them, are among the words. */
static void keep_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

enum owner_word owner_read(struct owner *owner, char why[ERROR_TEXT_MAX])
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r;

	if (owner->socket < 0)
		return OWNER_NOTHING;
	r = frame_receive(owner->socket, &owner->buffer, &frame, fds, &count);
	if (r == -EAGAIN)
		return OWNER_NOTHING;
	if (r <= 0) {
		owner_end(owner);
		return OWNER_GONE;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (frame.type == MESSAGE_SERVING)
		return OWNER_SERVING;
	if (frame.type != MESSAGE_FAILED)
		return OWNER_NOTHING;
	snprintf(why, ERROR_TEXT_MAX, "the warden failed");
	frame_text(&frame, FIELD_TEXT, why, ERROR_TEXT_MAX);
	keep_one_line(why);
	return OWNER_FAILED;
}

void owner_drain(struct owner *owner)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_DRAIN, 0);

	frame_end(&frame, at);
	if (owner->socket >= 0 && say(owner, &frame, NULL, 0, NULL) < 0)
		owner_end(owner);
}

void owner_end(struct owner *owner)
{
	close_fd(&owner->socket);
}

bool owner_reap(struct owner *owner, bool wait)
{
	pid_t r = 0;

	while (owner->process > 0 && (r = waitpid(owner->process, NULL, wait ? 0 : WNOHANG)) < 0 &&
	       errno == EINTR)
		;
	if (r != 0)
		owner->process = 0;
	return owner->process == 0;
}

void owner_free(struct owner *owner)
{
	owner_end(owner);
	bytes_free(&owner->buffer);
}
