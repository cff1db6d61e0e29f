/* SPDX-License-Identifier: Apache-2.0 */
/* warden: what the files of the warden share.
 *
 * The warden is the only process that outlives a run and the only one that can
 * end it. It serves engines over sockets: one that started it and owns it, and,
 * as a daemon, any that connect. It owns templates and cells, and parses
 * nothing that a guest wrote: a guest's bytes go from the cell to the engine
 * through descriptors that the warden passes on.
 *
 *   client ─ has ─▶ claims ─ wait in ─▶ pool ─ of ─▶ cells ─ forks of its ─▶ template */
#ifndef EXECPY_WARDEN_WARDEN_H
#define EXECPY_WARDEN_WARDEN_H

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/cgroup.h"
#include "policy/config.h"
#include "policy/limits.h"
#include "proto/frame.h"
#include "proto/mailbox.h"
#include "proto/messages.h"

#include <event2/event.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

/* Which of several events that are due comes first. */
enum priority {
	PRIORITY_ANSWER, /* a client, or the end of its run */
	PRIORITY_RUN,    /* limits, deaths, cells on their way */
	PRIORITY_BEHIND, /* refilling and removing: when nobody waits */
	PRIORITY_COUNT,
};

/* A cell's life. See cell.c for the table. */
enum cell_state {
	CELL_MAKING,  /* init is being made, or the template is not ready yet */
	CELL_FORKING, /* the template was told */
	CELL_PARKED,  /* ready: in its pool, or a claim's that has not started */
	CELL_RUNNING,
	CELL_STOPPING,  /* a limit was reached: waiting for the frames */
	CELL_RESTORING, /* a session's: it returns to a checkpoint */
	CELL_DRAINING,  /* the main process ended, children have a moment */
	CELL_KILLED,    /* init was killed, its death not yet seen */
	CELL_ENDED,     /* nothing of it lives */
};

struct warden {
	struct event_base *base;
	struct bytes buffer; /* of the message at hand */
	struct cgroup_root cgroups;
	uid_t owner_uid; /* who started it, and may connect */
	uid_t uid;       /* the id that guests are outside */
	gid_t gid;
	int guest_program, keeper_program; /* sealed memfds */
	int font_list;                     /* or -1 */
	char font_list_name[64];
	uint64_t next_id;
	TAILQ_HEAD(, pool) pools;
	TAILQ_HEAD(, template) templates;
	TAILQ_HEAD(, cell) cells;                /* newest first */
	TAILQ_HEAD(, session) sessions;          /* ended ones, too, for a while */
	TAILQ_HEAD(client_list, client) clients; /* whose turn it is first */
	struct client *owner;
	struct daemon_numbers serving; /* all 0 without a daemon: no bound */
	bool daemon, open;             /* open: connections are accepted */
	bool draining;                 /* not any more: it ends with its last run */
	int listener;
	struct event *listener_event, *tick, *drained;
	unsigned client_count, running, queued, session_count, ended_count;
	uint64_t runs_total, missed_total, refused_total;
	int64_t started_us;
	struct cgroup_cell spares[CGROUP_SPARES_MAX];
	unsigned spare_count;
	struct event *spares_unused;
	int exit_status;
};

/* An engine's connection. */
struct client {
	struct warden *warden;
	TAILQ_ENTRY(client) entry;
	int socket;
	struct event *event;
	TAILQ_HEAD(, claim) claims;
	unsigned running, queued;
};

/* What a client asked for: a cell for one run. It lasts until its end is told. */
struct claim {
	struct client *client;
	struct pool *pool;
	struct cell *cell; /* NULL while it waits */
	TAILQ_ENTRY(claim) entry, turn;
	uint64_t id;
	struct limits limits;
	bool single; /* the client's only run: the template may go */
	bool admitted, retried, started;
	bool asked;              /* a cell is being made for it, or for one before it */
	struct session *session; /* in which it runs, or NULL */
	bool begun, ended;       /* its code; a session's claim lasts until it is released */
	bool offered;            /* its client has been told of the cell */
	bool feeds;              /* the client has input for it */
	int64_t asked_us, waited_us;
	/* MESSAGE_START, which may come before there is a cell */
	enum watch_mode watch_mode;
	bool probing;
	struct bytes request;
	int request_fd;
};

/* Cells of one kind, made ahead of need when a daemon keeps it. */
struct pool {
	struct warden *warden;
	TAILQ_ENTRY(pool) entry;
	char name[64];        /* "": of an engine's own, by its modules */
	struct bytes modules; /* newline-separated */
	struct bytes warm_up;
	unsigned least, most, target; /* parked cells */
	struct template *current, *next;
	TAILQ_HEAD(pooled_cells, cell) parked; /* newest first */
	TAILQ_HEAD(, claim) waiting;           /* admitted, oldest first */
	unsigned parked_count, parked_least, making, failures;
	bool missed; /* since the last look */
	int64_t used_us, retry_us, grown_us, adapted_us;
	uint64_t hits, misses;
	struct event *refill;
	char why[ERROR_TEXT_MAX]; /* its template could not be loaded */
};

/* A cell that stays, from run to run. See session.c for its states. */
struct session {
	struct warden *warden;
	TAILQ_ENTRY(session) entry;
	char id[40];
	char template[64];
	struct cell *cell; /* NULL once it ended */
	struct limits limits;
	struct claim *current;       /* the run that has it, until it is released */
	TAILQ_HEAD(, claim) waiting; /* runs after it */
	enum session_step {
		SESSION_STEADY,
		SESSION_OPENING,
		SESSION_CLEARING,
		SESSION_RESUMING,
		SESSION_NAMING,
		SESSION_BRANCHING,
	} step;
	struct client *asker; /* who waits for the answer to `asked`, or NULL */
	uint64_t asked;
	struct bytes later;            /* fields: what is asked once it is back at its checkpoint */
	enum checkpoint_choice choice; /* what it returns to */
	char name[SESSION_NAME_BYTES_MAX + 1];
	bool with_files;
	uint64_t naming, returning; /* the numbers of what its judge was asked last */
	bool runner_ended;          /* while its judge was asked to return */
	bool restored;              /* since the last result */
	bool stale_output;          /* there may be some of a runner that was killed */
	unsigned returns;           /* since the last run began */
	uint64_t ours;     /* processes that its judge knows of, now that a runner ended; or 0 */
	struct bytes lost; /* fields: what that cost */
	uint64_t runs;
	int64_t made_us, used_us;
	uint64_t idle_ms, life_ms;
	int listing;                 /* an engine's own, of the workspace; or -1 */
	struct bytes checkpoints;    /* fields: their names */
	struct bytes policy;         /* an engine's own, for runs that bring none */
	struct branching *branching; /* what is being made of it; see branch.c */
	struct session *origin;      /* a branch on its way: of what, or NULL */
	struct bytes changed;        /* its process's word on what it needs */
	struct event *timer;
	char why[ERROR_TEXT_MAX]; /* it ended */
};

struct template
{
	struct warden *warden;
	struct pool *pool;
	TAILQ_ENTRY(template) entry;
	pid_t keeper;
	int keeper_pidfd, keeper_socket, socket, log;
	struct event *keeper_event, *death_event, *event, *timer;
	bool loaded, dead;
	char why[ERROR_TEXT_MAX]; /* it died */
	unsigned cells, sessions; /* of the cells */
	bool dismissed;           /* it waits for its sessions' ends: branches need it */
	uint64_t forked;
	uint64_t memory_bytes; /* its own, once it is loaded */
	int64_t loaded_us;
	int next_pid;
};

struct cell {
	struct warden *warden;
	struct template *template;
	struct pool *pool;
	TAILQ_ENTRY(cell) entry, parked_entry;
	uint64_t id;
	enum cell_state state;
	struct limits limits; /* as its cgroup has them */
	struct cgroup_cell cgroup;
	bool own_network, has_cgroup, parked, behind;
	bool lasting;            /* made for a session, of no pool */
	bool pooled;             /* among its pool's parked cells */
	pid_t pid;               /* of the main process, as its template and keeper see it */
	struct session *session; /* whose it is, or NULL */

	int init_socket, init_pidfd, main_pidfd, control, workspace, listener;
	int runner_pidfd, input; /* a session's: who runs code, the next run's stdin */
	int spaces[6];           /* until forked: user, pid, mount, ipc, uts, (net) */
	int mailbox, verdict;
	struct mailbox_header *header;
	int stdio[3]; /* our ends; the engine gets copies */
	struct event *init_event, *death_event, *control_event, *listener_event;
	struct event *hang_up, *deadline, *poll, *retry;

	/* the run that has it */
	struct claim *claim;
	bool warm;
	int64_t started_us, ended_us;
	int64_t stop_asked_us, poll_cost_us;
	enum ending ending;
	uint64_t reason; /* of an engine's kill */
	int status;
	bool has_status;
	uint64_t baseline_bytes;                         /* what the parked cell weighs */
	uint64_t baseline_cpu_us;                        /* what parking it cost: not the run's */
	uint64_t baseline_oom_kills, baseline_processes; /* a session's, from earlier runs */
	struct cgroup_usage usage;
	uint64_t processes; /* all of the cell's, when usage was read last */
	enum watch_mode watch_mode;
	bool probing; /* usage is sampled, and everything watched is noted */
	unsigned sample_count;
	struct bytes notes;          /* fields of what was only reported */
	char event[32], detail[256]; /* of the anomaly that ended it */
	char why[ERROR_TEXT_MAX];    /* ENDING_FAILED */
};

static inline void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* An event of this priority, added; NULL when memory is out. fd -1: a timer,
 * which is not set yet. */
struct event *warden_event(struct warden *warden, int fd, short what, enum priority priority,
			   event_callback_fn callback, void *argument);
void set_timer(struct event *event, int64_t us);

/* warden.c */
/* Serves until its owner is gone. `owner` is the socket to it. */
int warden_run(struct warden *warden, int owner, struct error *err);
void warden_stop(struct warden *warden, int exit_status);
void warden_shut_down(struct warden *warden);
/* Starts to accept connections once every template stands. */
void warden_pool_ready(struct warden *warden);
/* A template that must stand at start does not: the owner is told. */
void warden_pool_failed(struct warden *warden, const char *why);
/* TEMPLATE and SERVE: the owner's alone, before any other. */
int warden_add_pool(struct warden *warden, const struct frame *frame, struct error *err);
int warden_serve(struct warden *warden, const struct frame *frame, int *listener,
		 struct error *err);
/* DRAIN: nobody is accepted any more. Those who are connected may go on, until
 * for a moment none of them has a run. */
int warden_drain(struct warden *warden, struct error *err);
/* A client or a claim is gone: a warden that drains may end. */
void warden_drained(struct warden *warden);

/* client.c */
struct client *client_add(struct warden *warden, int socket, struct error *err);
/* Ends its runs; the owner's end is the warden's. */
void client_gone(struct client *client);
/* Sends one frame; a client that is gone, or does not read, is ended. */
void client_say(struct client *client, const struct bytes *frame, const int *fds, size_t count);
/* MESSAGE_FAILED: never the code's. EINVAL: the request is wrong. */
void client_say_failed(struct client *client, uint64_t id, int number, const char *why);
/* The claim is over, whatever became of it; its end was told. */
void claim_end(struct claim *claim);
/* Tells the client why there is no cell, and ends the claim. */
void claim_fail(struct claim *claim, int number, const char *why);
/* Those that waited longer than the daemon's bound are told so. */
void clients_expire(struct warden *warden);

/* pool.c */
struct pool *pool_get(struct warden *warden, const struct bytes *modules, struct error *err);
struct pool *pool_make(struct warden *warden, const char *name, const struct bytes *modules,
		       struct error *err);
/* Of the daemon's pools: by name, or the smallest that covers most of the modules. */
struct pool *pool_choose(struct warden *warden, struct span name, const struct bytes *modules,
			 struct error *err);
/* An admitted claim gets a cell: now, or when one is parked. */
void pool_take(struct pool *pool, struct claim *claim);
/* How its cells and templates fare. */
struct template *pool_template(struct pool *pool, struct error *err);
void pool_template_loaded(struct template *template);
void pool_template_died(struct template *template);
void pool_cell_parked(struct cell *cell);
void pool_cell_lost(struct cell *cell); /* before it was a run's: see cell->why */
/* Once a second: sizes, rotation, idle templates. */
void pool_tick(struct pool *pool);
/* What the templates and the parked cells weigh, together. */
uint64_t pool_memory_of_all(const struct warden *warden);

/* template.c */
struct template *template_start(struct pool *pool, struct error *err);
int template_make_init(struct template *template, struct cell *cell, int init_socket,
		       struct error *err);
int template_fork(struct template *template, struct cell *cell, const int *fds, size_t count,
		  struct error *err);
/* It is not needed any more: it ends by itself, while its cells go on; while there are
 * sessions it waits for their branches. */
void template_dismiss(struct template *template);
/* A cell is gone. When the last one of a dead template is, so is the template. */
void template_release(struct template *template);
/* Kills every keeper and waits for it. Stage: the warden's last act. */
void template_end_all(struct warden *warden);

/* cell.c */
/* behind: made ahead of need, with little weight until it is parked. session: it
 * is that session's, and of no pool. */
struct cell *cell_make(struct template *template, const struct limits *limits, bool behind,
		       struct session *session, struct error *err);
void cell_template_loaded(struct cell *cell);
void cell_forked(struct cell *cell, pid_t pid, const char *failed);
/* The kernel's word on the main process. */
void cell_main_ended(struct cell *cell, int status, uint64_t cpu_us);
/* The parked cell is the claim's from now on, and starts if it was told to. */
void cell_give(struct cell *cell, struct claim *claim);
void cell_start(struct cell *cell);
void cell_kill(struct cell *cell, enum ending ending, uint64_t reason);
void cell_fail(struct cell *cell, const char *why);
/* A limit was reached, or an anomaly seen: asks for the frames, then kills. */
void cell_stop(struct cell *cell, enum ending ending);
/* Each run of a session has an input of its own: makes it, unless it is there. */
int cell_make_input(struct cell *cell);
/* A session's run is over, and its cell stays: tells how. */
void cell_tell_end(struct cell *cell);
/* The clocks of a run stand still. */
void cell_stop_clocks(struct cell *cell);

/* branch.c */
/* Makes sessions of one that is idle; its asker gets them all, or the reason. Negative
 * when it cannot begin. */
int branch_begin(struct session *session, uint64_t count, bool same_random, struct error *err);
/* It cannot be done, or nobody wants it any more: what was made of it ends. The session,
 * if it was being branched, goes on by session_go_on() or ends. */
void branch_fail(struct session *session, int number, const char *why);
/* What the judges of both sides say, and that the cell of a branch is parked. */
void branch_message(struct session *session, const struct frame *frame, int *fds, size_t count);
void branch_parked(struct session *session);
void branch_take_changed(struct session *session, const struct frame *frame);
/* A branch on its way has ended. */
void branch_lost(struct session *session, const char *why);
/* spare.c */
/* A cgroup that was kept, for a cell with these limits, which it has; false: none. */
bool spare_take(struct warden *warden, const struct limits *limits, struct cgroup_cell *ret_cgroup);
/* Keeps the cgroup of a cell that is gone, for a moment; false when it has to be removed. */
bool spare_keep(struct cell *cell);

/* tell.c */
/* Its client gets the cell, if it has not. */
void tell_cell(struct cell *cell);
/* How the run ended: nothing of it can act any more. */
void tell_ended(struct cell *cell);

/* session.c */
/* A session that is not begun yet, among the warden's; NULL without memory. */
struct session *session_make(struct warden *warden, struct error *err);
void session_unmake(struct session *session);
int session_open(struct client *client, const struct frame *frame, struct error *err);
struct session *session_find(struct warden *warden, struct span id);
/* An admitted claim gets the session's cell when it is its turn. */
void session_take(struct claim *claim);
/* The claim's run is over and its files are collected: the next may begin. The
 * listing is -1 when it is what it was. */
void session_release(struct claim *claim, int listing);
/* Its client is gone. */
void session_give_up(struct claim *claim);
/* It broke: a run in it failed by our fault. */
void session_end(struct session *session, const char *why);
/* Somebody, or its time, ended it: so is a run in it. */
void session_end_by_wish(struct session *session, const char *why);
/* Between two runs: gives what is there the session's name, or drops the one of that
 * name; and returns to a checkpoint, with its files. The asker is told. */
void session_name(struct session *session, bool drop);
void session_return(struct session *session, enum checkpoint_choice choice);
/* Once a second: those whose time is over. */
void sessions_expire(struct warden *warden);
/* How its cell fares. */
void session_cell_parked(struct cell *cell);
void session_cell_lost(struct cell *cell);
void session_message(struct cell *cell, const struct frame *frame, int *fds, size_t count);
void session_run_begins(struct cell *cell);
/* What the end of a run says of its session. */
void session_put_end(struct session *session, struct bytes *frame);
/* Instead of a kill: the cell returns to its checkpoint, or its session ends when that
 * was too often. False when the cell is to be killed as any other. */
bool session_survives(struct cell *cell, enum ending ending, uint64_t reason);

/* Between two runs again: whoever waits gets it. */
void session_go_on(struct session *session);

/* session_ask.c */
/* As in an answer; whole: with what engines keep there. */
void session_put(struct session *session, bool whole, struct bytes *frame);
int session_act(struct client *client, const struct frame *frame, struct error *err);
int session_list(struct client *client, const struct frame *frame, struct error *err);
/* What the asker, if there still is one, gets. */
void session_answer(struct session *session);
void session_answer_failed(struct session *session, int number, const char *why);
/* The judge's answer to CHECKPOINT. Its runner may have ended meanwhile, and the session be
 * on its way back. */
void session_named(struct session *session, const struct frame *frame);
/* The client is gone: what it asked needs no answer. */
void session_forget_asker(struct client *client);

/* What was asked while it returned by itself, if anything was. */
void session_ask_again(struct session *session);

/* usage.c: what the kernel says of a cell, by cgroup or by sampling. */
void usage_read(struct cell *cell);
void usage_baseline(struct cell *cell); /* once, when it is parked */
/* What was used until now was not by the run that begins. */
void usage_begin_run(struct cell *cell);
/* What is used from now on, after what was read last, is used between runs. */
void usage_end_run(struct cell *cell);
/* Adds what was read last to the cell's notes: time, CPU, memory. */
void usage_sample(struct cell *cell);
/* Whether no process of the cell is left but init and `others` more. */
bool usage_alone(struct cell *cell, unsigned others);
bool usage_disk_full(const struct cell *cell);
/* Proportional bytes of the children of a process; 0 when they cannot be told. */
uint64_t usage_of_children(pid_t pid);

/* watch.c: what the watch of a cell reports. */
int watch_begin(struct cell *cell, int listener, struct error *err);

/* report.c */
void report_write(struct warden *warden, struct bytes *frame);

#endif
