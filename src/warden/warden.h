/* SPDX-License-Identifier: Apache-2.0 */
/* warden: what the files of the warden share.
 *
 * The warden is the only process that outlives a run and the only one that can
 * end it. It serves one engine over one socket, owns templates and cells, and
 * parses nothing that a guest wrote: a guest's bytes go from the cell to the
 * engine through descriptors that the warden passes on. */
#ifndef EXECPY_WARDEN_WARDEN_H
#define EXECPY_WARDEN_WARDEN_H

#include "base/bytes.h"
#include "base/error.h"
#include "jail/cgroup.h"
#include "policy/limits.h"
#include "proto/frame.h"
#include "proto/mailbox.h"
#include "proto/messages.h"

#include <event2/event.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

/* A cell's life. See cell.c for the table. */
enum cell_state {
	CELL_MAKING,  /* init is being made, or the template is not ready yet */
	CELL_FORKING, /* the template was told */
	CELL_PARKED,  /* ready; with a run: offered to the engine */
	CELL_RUNNING,
	CELL_STOPPING, /* a limit was reached: waiting for the frames */
	CELL_DRAINING, /* the main process ended, children have a moment */
	CELL_KILLED,   /* init was killed, its death not yet seen */
	CELL_ENDED,    /* nothing of it lives; its files may be collected */
};

struct warden {
	struct event_base *base;
	int engine;
	struct event *engine_event;
	struct bytes buffer; /* of the message at hand */
	struct cgroup_root cgroups;
	uid_t uid; /* the id that guests are outside */
	gid_t gid;
	int guest_program; /* sealed memfd */
	int font_list;     /* or -1 */
	char font_list_name[64];
	uint64_t next_id;
	TAILQ_HEAD(, template) templates;
	TAILQ_HEAD(, cell) cells;
	int exit_status;
};

struct template
{
	struct warden *warden;
	TAILQ_ENTRY(template) entry;
	struct bytes modules; /* newline-separated: its key */
	pid_t keeper;
	int keeper_pidfd, keeper_socket, socket, log;
	struct event *keeper_event, *death_event, *event, *timer;
	bool loaded, dead, once;  /* once: it ends when its cell is parked */
	char why[ERROR_TEXT_MAX]; /* it died */
	unsigned cells;
	int next_pid;
};

struct cell {
	struct warden *warden;
	struct template *template;
	TAILQ_ENTRY(cell) entry;
	uint64_t id;
	enum cell_state state;
	struct limits limits;
	struct cgroup_cell cgroup;
	bool own_network, has_cgroup, parked;
	pid_t pid; /* of the main process, as its template and keeper see it */

	int init_socket, init_pidfd, main_pidfd, control, workspace, listener;
	int spaces[6]; /* until forked: user, pid, mount, ipc, uts, (net) */
	int mailbox, verdict;
	struct mailbox_header *header;
	int stdio[3]; /* the engine's ends, until they are passed on */
	struct event *init_event, *death_event, *control_event, *listener_event;
	struct event *deadline, *poll, *retry;

	/* the run that has it */
	uint64_t run;
	bool has_run, warm;
	int64_t asked_us, started_us, ended_us;
	int64_t stop_asked_us, poll_cost_us;
	enum ending ending;
	uint64_t reason; /* of an engine's kill */
	int status;
	bool has_status;
	uint64_t baseline_bytes;  /* sampling: what the parked cell weighs */
	uint64_t baseline_cpu_us; /* what parking it cost: not the run's */
	struct cgroup_usage usage;
	enum watch_mode watch_mode;
	bool probing; /* usage is sampled, and everything watched is noted */
	unsigned sample_count;
	struct bytes notes;          /* fields of what was only reported */
	char event[32], detail[256]; /* of the anomaly that ended it */
	char why[ERROR_TEXT_MAX];    /* ENDING_FAILED */
};

int64_t now_us(void);

static inline void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* warden.c */
int warden_run(struct warden *warden, struct error *err);
void warden_shut_down(struct warden *warden);
/* Sends one frame to the engine; an engine that is gone ends the warden. */
void warden_say(struct warden *warden, const struct bytes *frame, const int *fds, size_t count);
/* MESSAGE_FAILED for a run: ours, never the code's. */
void warden_say_failed(struct warden *warden, uint64_t run, const char *why);

/* template.c */
struct template *template_get(struct warden *warden, const struct bytes *modules,
			      struct error *err);
int template_make_init(struct template *template, struct cell *cell, int init_socket,
		       struct error *err);
int template_fork(struct template *template, struct cell *cell, const int *fds, size_t count,
		  struct error *err);
/* It is not needed any more: it ends by itself, while its last cell runs. */
void template_dismiss(struct template *template);
/* When the last cell of a dead template is gone, so is it. */
void template_release(struct template *template);
/* Kills every keeper and waits for it. Stage: the warden's last act. */
void template_end_all(struct warden *warden);

/* cell.c */
struct cell *cell_make(struct template *template, const struct limits *limits, struct error *err);
struct cell *cell_find_run(struct warden *warden, uint64_t run);
void cell_template_loaded(struct cell *cell);
void cell_forked(struct cell *cell, pid_t pid, const char *failed);
/* The kernel's word on the main process. */
void cell_main_ended(struct cell *cell, int status);
void cell_offer(struct cell *cell);
void cell_start(struct cell *cell);
void cell_kill(struct cell *cell, enum ending ending, uint64_t reason);
void cell_fail(struct cell *cell, const char *why);
/* A limit was reached, or an anomaly seen: asks for the frames, then kills. */
void cell_stop(struct cell *cell, enum ending ending);
void cell_release(struct cell *cell);
int cell_put(struct cell *cell, struct span name, uint64_t mode, int fd, struct error *err);

/* usage.c: what the kernel says of a cell, by cgroup or by sampling. */
void usage_read(struct cell *cell);
void usage_baseline(struct cell *cell); /* once, when it is parked */
/* Adds what was read last to the cell's notes: time, CPU, memory. */
void usage_sample(struct cell *cell);
/* Whether no process of the cell is left but init. */
bool usage_alone(struct cell *cell);
bool usage_disk_full(const struct cell *cell);

/* watch.c: what the watch of a cell reports. */
int watch_begin(struct cell *cell, int listener, struct error *err);

/* collect.c */
void collect_workspace(struct cell *cell);

#endif
