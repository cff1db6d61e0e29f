/* SPDX-License-Identifier: Apache-2.0 */
/* standby: see standby.h. */
#include "guest/standby.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "guest/processes.h"

#include <string.h>

static struct {
	struct process process; /* pid 0: none, or on its way when there is a socket */
	pid_t of;               /* which checkpoint's */
	unsigned runs;          /* for which one is kept */
	int64_t due_us, asked_us;
	char lost[SESSION_LOST_MAX];
} standby = {.process = {.pidfd = -1, .socket = -1}};

void standby_expect(void)
{
	standby.runs = STANDBY_RUNS;
	standby.due_us = now_us() + STANDBY_PAUSE_US;
}

void standby_follow(const struct process *checkpoint)
{
	standby.due_us = now_us() + STANDBY_PAUSE_US;
	if (standby.of == checkpoint->pid)
		return;
	standby.of = checkpoint->pid;
	if (standby.runs > 0)
		standby.runs--;
	process_kill(&standby.process);
}

int64_t standby_due_us(void)
{
	return standby.runs > 0 && standby.process.socket < 0 ? standby.due_us : -1;
}

void standby_ask(const struct process *checkpoint)
{
	standby.asked_us = now_us();
	/* One that does not listen is not asked again. */
	if (checkpoint->pid != standby.of ||
	    process_send_pair(checkpoint->socket, MESSAGE_RESUME, 0, &standby.process) < 0)
		standby.runs = 0;
}

int standby_socket(int64_t *ret_asked_us)
{
	*ret_asked_us = standby.asked_us;
	return standby.process.pid ? -1 : standby.process.socket;
}

void standby_hear(void)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(standby.process.socket, &buffer, &frame, fds, &count);

	if (r == 1 && frame.type == MESSAGE_PARKED && count == 1) {
		standby.process.pidfd = take_fd(&fds[0]);
		standby.process.pid = descriptors_pid(standby.process.pidfd);
		standby.lost[0] = '\0';
		frame_text(&frame, FIELD_NOTE, standby.lost, sizeof standby.lost);
		process_expose(standby.process.pid);
		return;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	standby_forget();
}

void standby_forget(void)
{
	process_close(&standby.process);
	standby.runs = 0;
}

bool standby_is(pid_t pid)
{
	return standby.process.pid == pid && pid > 0;
}

int standby_count(void)
{
	if (standby.process.pid)
		return 1;
	return standby.process.socket < 0 ? 0 : -1;
}

bool standby_take(const struct process *checkpoint, struct process *ret_runner,
		  char ret_lost[SESSION_LOST_MAX])
{
	if (!standby.process.pid || standby.of != checkpoint->pid)
		return false;
	memcpy(ret_lost, standby.lost, SESSION_LOST_MAX);
	*ret_runner = standby.process;
	standby.process = (struct process){.pidfd = -1, .socket = -1};
	return true;
}
