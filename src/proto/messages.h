/* SPDX-License-Identifier: Apache-2.0 */
/* messages: every message between our processes, and its fields.
 *
 * One table a channel, in the manner of OpenSSH's monitor: each row says in
 * which states a message may come. Anything else ends the peer. Documented
 * for people in docs/protocol.md. */
#ifndef EXECPY_PROTO_MESSAGES_H
#define EXECPY_PROTO_MESSAGES_H

#include <stdint.h>

/* The MIME type of what a figure shows as data, beside its picture (guest/charts.py). */
#define CHART_MIME "application/vnd.execpy.chart+json"

enum message {
	/* engine → warden. The frame's id is the run's. */
	MESSAGE_ACQUIRE = 1, /* limits, modules or name; more: 1 for the engine's only run */
	MESSAGE_START,       /* request, or + fd: a memfd of it; may come before CELL */
	MESSAGE_KILL,        /* reason */
	MESSAGE_REPORT,      /* asks a daemon how it is; the answer has the same type */
	MESSAGE_RELEASE,     /* of a session's run: the next may begin; + fd: the listing */
	MESSAGE_OPEN_SESSION,
	MESSAGE_ACT,      /* session, action, name: on a session that is idle, or to end it */
	MESSAGE_SESSIONS, /* asks for them all, or one */

	/* owner → warden, before anything else: what makes it a daemon's. */
	MESSAGE_TEMPLATE, /* name, modules, code: the warm-up, pool's least and most */
	MESSAGE_SERVE,    /* bounds + fd: the listening socket */
	MESSAGE_DRAIN,    /* accept nobody any more; end when the last run has */

	/* warden → engine */
	MESSAGE_READY = 32, /* the warden is up; cgroup mode and notes */
	MESSAGE_CELL,       /* + fds: see enum cell_fd; warm, wait, template; perhaps the ending */
	MESSAGE_ENDED,      /* ending, wait status, usage: nothing of it can act any more */
	MESSAGE_FAILED,     /* text, errno: never the code's; EINVAL: the request is wrong */
	MESSAGE_SERVING,    /* to the owner: every template stands */
	MESSAGE_SESSION,    /* answers OPEN_SESSION, ACT and SESSIONS */

	/* warden ↔ keeper. The id is the cell's. */
	MESSAGE_MAKE_INIT = 64, /* limits, pid + fd: init's socket */
	MESSAGE_INIT_MADE,      /* + fds: init's pidfd, namespaces, workspace, tmp */
	MESSAGE_INIT_FAILED,    /* text */
	MESSAGE_MAKE_TEMPLATE,  /* + fds: guest program, template's socket, log */
	MESSAGE_TEMPLATE_ENDED, /* wait status */
	MESSAGE_CHILD_ENDED,    /* pid as the template knows it, wait status */

	/* init → warden */
	MESSAGE_ORPHANS_ENDED = 80, /* init has no child left */

	/* warden ↔ template */
	MESSAGE_PRELOAD = 96, /* modules, code: the warm-up, name */
	MESSAGE_LOADED,       /* milliseconds, text of what failed */
	MESSAGE_FORK_CELL,    /* + fds: see enum fork_fd */
	MESSAGE_FORKED,       /* pid, or text */

	/* cell → warden, and the word to go */
	MESSAGE_PARKED = 112, /* or MESSAGE_FAILED with step and text */
	MESSAGE_GO,           /* in a session once for each run, + fd: its stdin */

	/* warden ↔ judge of a session (guest/session.c) */
	MESSAGE_TURN = 120, /* a run is over, or the runner ended: status, more: 1 when it ended */
	MESSAGE_CLEAR,      /* kill all but the checkpoints */
	MESSAGE_CLEARED,    /* count of processes that were killed beside the runner */
	MESSAGE_RESUME,     /* a checkpoint; more: 1 with its files */
	MESSAGE_RESUMED,    /* notes of what is lost + fd: the new runner's pidfd */
	MESSAGE_CHECKPOINT, /* judge → runner + fd: make one; warden → judge: name it */
	MESSAGE_ACTED,      /* or MESSAGE_FAILED */
	MESSAGE_PREPARE,    /* judge → runner: the code is being verified, GO may follow */
	MESSAGE_BRANCH,     /* + fds: give, or take over, a branch; without: can there be one? */
	MESSAGE_BRANCHED,   /* or, with text, why not */

	/* daemon ↔ its HTTP server (server/link.h), which also sends SERVING and FAILED */
	MESSAGE_SETTING = 200, /* name, text, number, + fd */
	MESSAGE_APPLY,         /* the settings before it are all there are */
	MESSAGE_DIAL,          /* asks for a connection to the warden; the answer: + fd */

	/* in the mailbox: engine → cell, cell → engine */
	MESSAGE_REQUEST = 128,
	MESSAGE_DISPLAY, /* one MIME bundle: FIELD_MIME, FIELD_DATA, … */
	MESSAGE_VALUE,   /* the same */
	MESSAGE_ERROR,   /* type, text, traceback, errno, FRAME… */
	MESSAGE_DONE,    /* the cell came to its end by itself */
	MESSAGE_RECORD,  /* of a probe: event, detail, line */
	MESSAGE_FRAMES,  /* where the code stood at a limit */
	MESSAGE_VERDICT, /* before anything runs: findings, microseconds */
	MESSAGE_ANOMALY, /* the audit hook ended the run: event, detail, line */
};

enum field_name {
	FIELD_TEXT = 1, /* UTF-8 for a person */
	FIELD_NUMBER,
	FIELD_NAME, /* of a file: raw bytes, relative, no leading slash */
	FIELD_SIZE,
	FIELD_REASON,
	FIELD_MODULE, /* repeated */
	FIELD_LIMITS, /* struct limits in the table's order, eight bytes each */
	FIELD_STATUS, /* a wait status as wait(2) gives it */
	FIELD_PID,
	FIELD_MORE,
	FIELD_CODE,
	FIELD_ARGUMENT,    /* repeated */
	FIELD_ENVIRONMENT, /* repeated: NAME=VALUE */
	FIELD_MIME,        /* followed by its FIELD_DATA */
	FIELD_DATA,
	FIELD_TYPE,
	FIELD_TRACEBACK,
	FIELD_ERRNO,
	FIELD_FRAME, /* a nested body of the fields below */
	FIELD_FILE,
	FIELD_LINE,
	FIELD_COLUMN,
	FIELD_END_LINE,
	FIELD_END_COLUMN,
	FIELD_FUNCTION,
	FIELD_SOURCE,
	FIELD_ENDING, /* enum ending */
	FIELD_WALL_US,
	FIELD_CPU_US,
	FIELD_MEMORY_PEAK,
	FIELD_PROCESSES_PEAK,
	FIELD_DISK_FULL,
	FIELD_WARM,
	FIELD_WAIT_US,
	FIELD_CGROUP, /* text: "v1", "v2", "none" */
	FIELD_EXIT_CODE,
	FIELD_NOTE,
	FIELD_TRUNCATED,
	FIELD_RUN,   /* the name of the code: main.py, or <run 3> */
	FIELD_WATCH, /* enum watch_mode */
	FIELD_EVENT,
	FIELD_DETAIL,   /* of an anomaly */
	FIELD_FINDINGS, /* policy/finding.h */
	FIELD_POLICY,
	FIELD_VERIFY_US,
	FIELD_SAMPLED, /* no cgroup counts memory: the code may see MemoryError */
	FIELD_STDIN,   /* whether there is something to read */
	FIELD_CHECK,   /* verify only */
	FIELD_PROBE,   /* record what the code does */
	FIELD_SAMPLE,  /* three numbers: microseconds, CPU microseconds, bytes */
	FIELD_REQUEST, /* one whole MESSAGE_REQUEST, for the mailbox */
	FIELD_POOL_MIN,
	FIELD_POOL_MAX,
	FIELD_ROTATE_CELLS, /* a template is replaced after so many cells */
	FIELD_ROTATE_MS,    /* and after so long */
	FIELD_IDLE_MS,      /* a template that nobody used is dropped */
	FIELD_QUEUE,        /* requests that may wait */
	FIELD_QUEUE_MS,     /* how long each may */
	FIELD_RUNS,         /* cells that may run at one moment */
	FIELD_TEMPLATE,     /* in a report: a nested body for each */
	FIELD_COUNT,
	FIELD_POOL_TARGET,
	FIELD_PARKED,
	FIELD_HITS,
	FIELD_MISSES,
	FIELD_REFUSED,
	FIELD_CLIENTS,
	FIELD_SESSION,    /* its id; in MESSAGE_SESSION a nested body for each */
	FIELD_ACTION,     /* enum session_action */
	FIELD_RESTORED,   /* the session goes on from a checkpoint */
	FIELD_LIFE_MS,    /* a session ends after it */
	FIELD_SESSIONS,   /* how many there may be; or are, of a report */
	FIELD_CHECKPOINT, /* repeated: the name of one that is kept */
	FIELD_BUSY,
	FIELD_LOST, /* text: by a return to a checkpoint */
	FIELD_IDLE_SESSION_MS,
	FIELD_BRANCH,         /* of FORK_CELL: 1 for a session's that takes over another */
	FIELD_PICTURE_PIXELS, /* of the longer side of a picture that is shown */
};

/* Why an engine asks to kill: FIELD_REASON of MESSAGE_KILL. */
enum kill_reason {
	KILL_CANCELLED = 1, /* in a session KeyboardInterrupt comes first */
	KILL_OUTPUT,
};

/* What may be done with a session beside running code in it. */
enum session_action {
	SESSION_END = 1,
	SESSION_CHECKPOINT, /* name */
	SESSION_ROLLBACK,   /* name */
	SESSION_UNDO,       /* to before the last run */
	SESSION_DROP,       /* a named checkpoint */
	SESSION_INTERRUPT,  /* the run that goes on */
	SESSION_FORK,       /* count; more: 1 with the same random state */
	SESSION_ACTIONS,
};

/* Which checkpoint MESSAGE_RESUME means: FIELD_NUMBER. */
enum checkpoint_choice {
	CHECKPOINT_LATEST,
	CHECKPOINT_PREVIOUS,
	CHECKPOINT_NAMED,
};

/* Descriptors that come with MESSAGE_BRANCH to a judge: pipes, to write to in the
 * session that is branched, to read from in its branch. */
enum branch_fd {
	BRANCH_FD_FILES,  /* from judge to judge */
	BRANCH_FD_MEMORY, /* into the process that takes over */
	BRANCH_FD_COUNT,
};

/* How a run ended, by the warden's evidence. */
enum ending {
	ENDING_EXITED = 1, /* the main process ended by itself: see its status */
	ENDING_TIME,
	ENDING_CPU,
	ENDING_MEMORY,
	ENDING_KILLED,  /* the engine asked for it */
	ENDING_FAILED,  /* ours */
	ENDING_ANOMALY, /* the watch saw what must never happen */
};

/* What is done about what the watch sees (jail/watch.h). */
enum watch_mode {
	WATCH_REPORT,   /* open: noted in the result, the call fails */
	WATCH_STANDARD, /* the run is ended, but programs may be started */
	WATCH_STRICT,   /* the run is ended */
};

/* Descriptors that come with MESSAGE_FORK_CELL, in this order. After them
 * come the cgroup descriptors: v1 one open `tasks` file a hierarchy, v2 the
 * directory. */
enum fork_fd {
	FORK_FD_USER,
	FORK_FD_PID,
	FORK_FD_MOUNT,
	FORK_FD_IPC,
	FORK_FD_UTS,
	FORK_FD_STDIN,
	FORK_FD_STDOUT,
	FORK_FD_STDERR,
	FORK_FD_CONTROL,
	FORK_FD_MAILBOX,
	FORK_FD_VERDICT,
	FORK_FD_CGROUP,
};

/* Descriptors that come with MESSAGE_INIT_MADE. */
enum init_fd {
	INIT_FD_PIDFD,
	INIT_FD_USER,
	INIT_FD_PID,
	INIT_FD_MOUNT,
	INIT_FD_IPC,
	INIT_FD_UTS,
	INIT_FD_WORKSPACE,
	INIT_FD_COUNT,
};

/* Descriptors that come with MESSAGE_CELL. */
enum cell_fd {
	CELL_FD_MAILBOX,
	CELL_FD_VERDICT,
	CELL_FD_STDIN,
	CELL_FD_STDOUT,
	CELL_FD_STDERR,
	CELL_FD_WORKSPACE, /* a directory of the cell's own tmpfs */
	CELL_FD_COUNT,
	CELL_FD_LISTING = CELL_FD_COUNT, /* a session's, if there is one: see RELEASE */
};

#endif
