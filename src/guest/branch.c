/* SPDX-License-Identifier: Apache-2.0 */
/* branch: see branch.h.
 *
 * Between two cells nothing lasts. Files go from judge to judge, neither of which ever
 * ran user code. Memory goes from the checkpoint to the process that takes over, both of
 * which may be told by user code what to do: so each has a pipe of its own, and the judge
 * between them moves the bytes on. When it closes its ends there is no way left from one
 * to the other, whatever either kept open or handed on.
 *
 * Should: end in time, whatever the checkpoint does.
 * Mustn't: hand out an end that the other side can reach. */
#include "guest/branch.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "guest/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define PIPE_BYTES        ((int)MIB)
#define LATE_MESSAGES_MAX 16

/* All that a cell may write to. */
static const char *const places[] = {"/workspace", "/tmp", "/dev/shm", "/var/cache/matplotlib"};

/* What comes first, from judge to judge. */
struct opening {
	uint64_t run, name_bytes;
};

static int wait_for(int fd, short what, int64_t until_us)
{
	struct pollfd polled = {.fd = fd, .events = what};
	int64_t left_us = until_us - now_us();

	return left_us > 0 ? poll(&polled, 1, (int)(left_us / 1000) + 1) : 0;
}

/* One message of a process that may be anything; its descriptors are of no use. */
static int hear(const struct process *process, struct frame *ret_frame, int64_t until_us)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX], r;
	size_t count = 0;

	if (wait_for(process->socket, POLLIN, until_us) <= 0)
		return -ETIMEDOUT;
	r = frame_receive(process->socket, &buffer, ret_frame, fds, &count);
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	return r == 1 ? 0 : -EPIPE;
}

/* That it is there, or why it is not. */
static int hear_parked(const struct process *process, int64_t until_us, struct error *err)
{
	char why[160] = "its process did not answer";
	struct frame frame;

	if (hear(process, &frame, until_us) == 0) {
		if (frame.type == MESSAGE_PARKED)
			return 0;
		frame_text(&frame, FIELD_TEXT, why, sizeof why);
	}
	return refuse(err, EPROTO, "%s", why);
}

static int tell(const struct process *process, struct span wanted, int fd, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_BRANCH, 0);
	int r;

	if (wanted.length > 0)
		frame_put(&frame, FIELD_DATA, wanted.data, wanted.length);
	frame_end(&frame, at);
	r = frame_send(process->socket, &frame, &fd, fd >= 0);
	return r < 0 ? fail(err, -r, "its process does not listen") : 0;
}

/* What it said too late, when it was asked before. */
static void hear_out(const struct process *checkpoint)
{
	struct pollfd polled = {.fd = checkpoint->socket, .events = POLLIN};
	struct frame frame;

	for (int said = 0; said < LATE_MESSAGES_MAX && poll(&polled, 1, 0) > 0; said++)
		if (hear(checkpoint, &frame, now_us() + BRANCH_MS * 1000) < 0)
			return;
}

int branch_ask(const struct process *checkpoint, struct error *err)
{
	int r;

	hear_out(checkpoint);
	r = tell(checkpoint, (struct span){NULL, 0}, -1, err);

	return r < 0 ? r : hear_parked(checkpoint, now_us() + BRANCH_MS * 1000, err);
}

static int send_files(int out, uint64_t run, struct error *err)
{
	struct span known = judge_names();
	struct opening opening = {run, known.length};
	int r = transfer_put(out, &opening, sizeof opening, err);

	if (r == 0)
		r = transfer_put(out, known.data, known.length, err);
	for (size_t i = 0; i < ARRAY_LENGTH(places) && r == 0; i++)
		r = transfer_send(places[i], out, err);
	return r;
}

/* Moves all that comes, without a copy. */
static int relay(int from, int to, int64_t until_us, struct error *err)
{
	for (;;) {
		ssize_t r = splice(from, NULL, to, NULL, MIB, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (r == 0)
			return 0;
		if (r < 0 && errno != EAGAIN && errno != EINTR)
			return fail(err, errno, "its memory cannot be passed on");
		if (r < 0 && errno == EAGAIN &&
		    (wait_for(from, POLLIN, until_us) <= 0 || wait_for(to, POLLOUT, until_us) <= 0))
			return refuse(err, ETIMEDOUT, "its memory was not passed on in time");
	}
}

static int send_memory(const struct process *checkpoint, struct span wanted, int out,
		       struct error *err)
{
	int64_t until_us = now_us() + BRANCH_MS * 1000;
	autofd from = -1, to = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail(err, errno, "branch: pipe");
	from = ends[0];
	to = ends[1];
	/* As large as may be; it works with any. */
	fcntl(from, F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(out, F_SETPIPE_SZ, PIPE_BYTES);
	r = tell(checkpoint, wanted, to, err);
	close_fd(&to);
	if (r == 0)
		r = relay(from, out, until_us, err);
	close_fd(&from);
	return r < 0 ? r : hear_parked(checkpoint, until_us, err);
}

int branch_give(const struct process *checkpoint, uint64_t run, struct span wanted, int files,
		int memory, struct error *err)
{
	int r = send_files(files, run, err);

	if (r == 0)
		r = send_memory(checkpoint, wanted, memory, err);
	/* The other side has given up, and says why. */
	return r == -EPIPE ? 0 : r;
}

static int receive_files(int in, uint64_t *ret_run, struct error *err)
{
	static uint8_t known[SESSION_NAMES_BYTES_MAX];
	struct opening opening;
	int r = transfer_get(in, &opening, sizeof opening, err);

	if (r == 0 && opening.name_bytes > sizeof known)
		r = refuse(err, EBADMSG, "branch: there are too many names");
	if (r == 0)
		r = transfer_get(in, known, opening.name_bytes, err);
	if (r < 0)
		return r;
	*ret_run = opening.run;
	if (judge_know_names((struct span){known, opening.name_bytes}) < 0)
		return fail(err, ENOMEM, "branch: names");
	for (size_t i = 0; i < ARRAY_LENGTH(places) && r == 0; i++)
		r = transfer_receive(places[i], in, err);
	return r;
}

int branch_take(const struct process *blank, int files, int memory, uint64_t *ret_run,
		struct error *err)
{
	/* Its files first: memory may be mapped from them. */
	int r = receive_files(files, ret_run, err);

	if (r == 0)
		r = tell(blank, (struct span){NULL, 0}, memory, err);
	return r < 0 ? r : hear_parked(blank, now_us() + BRANCH_MS * 1000, err);
}
