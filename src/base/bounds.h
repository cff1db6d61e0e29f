/* SPDX-License-Identifier: Apache-2.0 */
/* bounds: every bound that a client or a guest can reach, beside the limits of
 * a run (policy/limits.h). This header is the one place for such numbers. */
#ifndef EXECPY_BASE_BOUNDS_H
#define EXECPY_BASE_BOUNDS_H

#include <stdint.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* A request. */
#define CODE_BYTES_MAX         (1 * MIB)   /* the verifier needs 0.5 KB a byte in the worst case */
#define BATCH_CODES_MAX        1000        /* one cell checks, with the bytes of one code at most */
#define BATCH_CELLS_MAX        8           /* of one batch, at one moment */
#define BATCH_SHARE_BYTES      (128 * KIB) /* for less a further cell is not worth while */
#define ARGUMENT_COUNT_MAX     256
#define ARGUMENT_BYTES_MAX     (64 * KIB) /* all arguments together */
#define ENVIRONMENT_COUNT_MAX  256
#define ENVIRONMENT_BYTES_MAX  (64 * KIB)
#define REQUEST_IN_MESSAGE_MAX (32 * KIB) /* larger ones go in memory of their own */
#define INPUT_FILES_MAX        1024
#define FILE_NAME_BYTES_MAX    4096 /* PATH_MAX: a path inside the workspace */
#define FILE_DEPTH_MAX         32

/* A result. */
#define RESPONSE_BYTES_MAX     (32 * MIB) /* values, displays, error of one run */
#define BUNDLE_TYPES_MAX       64         /* MIME types of one value or display */
#define VERDICT_BYTES_MAX      (1 * MIB)  /* 200 findings of at most 900 bytes */
#define VERDICTS_BYTES_MAX     (4 * MIB)  /* of all codes that one cell judges */
#define DISPLAY_COUNT_MAX      256        /* the last says that there were more */
#define DISPLAY_DEPTH_MAX      8          /* displays inside of an object's representation */
#define DATUM_TEXT_BYTES_MAX   (4 * MIB)  /* of one HTML, SVG, JSON … of a bundle */
#define DATUM_BINARY_BYTES_MAX (8 * MIB)  /* of one picture of a bundle */
#define TRACEBACK_FRAMES_MAX   64
#define REPR_CHARACTERS_MAX    (64 * KIB) /* text/plain of a value; longer is shortened */
#define COLLECT_ENTRIES_MAX    10000      /* directory entries looked at */
#define COLLECT_FILES_MAX      1000       /* files listed */
#define COLLECT_TIME_MS        2000
#define COLLECT_HERE_MS        5     /* what takes longer does not hold up the loop of many */
#define ASIDE_THREADS_MAX      64    /* of an engine: what is done beside its loop */
#define HOLD_TIME_MS           60000 /* to put something into a workspace, or to take it out */

#define JSON_PART_BYTES (64 * KIB) /* a text of it that is converted as it is sent */
#define SHOW_MS         20         /* between looks for what a run shows */

/* A daemon's configuration. */
#define CONFIG_FILE_BYTES_MAX   (256 * KIB)
#define TEMPLATES_MAX           32
#define TEMPLATE_NAME_BYTES_MAX 31
#define MODULE_COUNT_MAX        64 /* of one template */
#define MODULE_NAME_BYTES_MAX   100
#define WARM_UP_BYTES_MAX       (64 * KIB)
#define POOL_CELLS_MAX          4096 /* parked cells of one template */
#define CGROUP_SPARES_MAX       16   /* cgroups that wait for another cell */
#define POOL_MIN_BARE           4    /* unless the configuration says otherwise */
#define POOL_MAX_BARE           32
#define POOL_MIN_DEFAULT        2
#define POOL_MAX_DEFAULT        8
#define POOL_MAKING_MAX         32 /* cells that are made at one moment */

/* A session. */
#define SESSION_NAME_BYTES_MAX       63 /* of a checkpoint */
#define SESSION_CHECKPOINTS_MAX      8  /* that have a name */
#define SESSION_PROCESSES            24 /* of ours, beside the code's: judge, checkpoints, helpers */
#define SESSION_NAMES_MAX            4096 /* variables that the verifier is told of */
#define SESSION_NAMES_BYTES_MAX      (64 * KIB)
#define SESSION_SOURCES_MAX          1000      /* runs whose lines tracebacks can show */
#define SESSION_OUTPUTS_MAX          16        /* values that Out keeps */
#define SESSION_SNAPSHOT_BYTES       (8 * MIB) /* of a workspace that is kept for undo */
#define SESSION_SNAPSHOT_ENTRIES     512
#define SESSION_SNAPSHOT_ENTRIES_MAX 10000 /* of one that is kept by name */
#define SESSION_LISTING_BYTES_MAX    (8 * MIB)
#define SESSION_READS_MAX            64    /* of 64 KiB of output, when a run is over */
#define SESSION_ENDED_MAX            256   /* ended sessions that are remembered */
#define SESSION_KNOWN_MAX            1024  /* of which an engine remembers limits and policy */
#define SESSION_TABLES_KIB           1024  /* page tables of 512 MiB: a fork waits for a pause */
#define SESSION_CHECKPOINT_SHARE     10    /* of, or for runs that took, ten times what it takes */
#define SESSION_CHEAP_US             2000  /* such a fork waits for no pause, whatever it copies */
#define SESSION_BREATH_US            300   /* between the end of a run and its checkpoint */
#define SESSION_HURRY_US             5000  /* between runs: then it is made without that */
#define SESSION_CHECKPOINT_MS        5000  /* for one to be there: hooks of the code's may hang */
#define SESSION_FORK_WAIT_MS         5000  /* for what was killed to be dead */
#define SESSION_RETURNS_MAX          20    /* to a checkpoint, with no run between them */
#define SESSION_SNAPSHOTS_SHARE      4     /* what is kept by name: of the memory, one in so many */
#define SESSION_INTERRUPT_MS         500   /* for KeyboardInterrupt to be heeded */
#define SESSION_ACT_MS               10000 /* for what the judge is asked to do */
#define SESSION_BUSY_CPU_MS          5000  /* between runs, by threads that were left */
#define PREPARED_BYTES_MAX           4096  /* of code that is compiled while it is verified */
#define SESSION_LOST_MAX             160   /* of a line that tells what a return cost */
#define STANDBY_RUNS                 16 /* behind a crash, for which a runner waits ahead of need */
#define STANDBY_PAUSE_US             3000 /* behind a checkpoint, before it is made */

/* Pages that each of a session's runs writes to, and that are copied ahead of it. */
#define HOT_PAGES_MAX         1024
#define HOT_RANGES_MAX        512
#define HOT_FAULTS            48          /* at which a run may stop before they are learnt anew */
#define HOT_PATIENCE_MAX      64          /* runs that stop often, before that is done once more */
#define HOT_MAPPING_BYTES_MAX (64 * MIB)  /* larger ones are not looked at */
#define HOT_LOOK_BYTES_MAX    (256 * MIB) /* in all */

/* A session that is branched. */
#define BRANCHES_MAX            128                  /* of one call */
#define BRANCHES_AT_ONCE        4                    /* cells on their way */
#define BRANCH_MAPPINGS_MAX     8192                 /* of the memory that is carried over */
#define BRANCH_TEXTS_BYTES_MAX  (512 * KIB)          /* names of the files that are mapped */
#define BRANCH_DESCRIPTORS_MAX  1024                 /* what a process may have */
#define BRANCH_PAGES_MAX        (UINT64_C(16) << 20) /* of addresses that are in use */
#define BRANCH_ORIGIN_PAGES_MAX (UINT64_C(1) << 20)  /* of a template's own memory */
#define BRANCH_RANGES_MAX       4096                 /* of it, that a fresh cell has changed */
#define BRANCH_MS               8000                 /* for the memory of one */
#define BRANCH_TAKE_MS          20000                /* for one to stand, its files included */
#define BRANCH_GIVE_MS          30000 /* for the session's judge to have done with it */

/* What root's warden and HTTP server become: this and a pid. Above all ranges that
 * systemd's documentation hands out to users, services and containers. */
#define IDENTITY_BASE 1900000000

/* A daemon's own life. */
#define DAEMON_DRAIN_MS     10000 /* for runs that go on when it ends */
#define SERVER_FLUSH_MS     2000  /* and then for their answers to go out */
#define DAEMON_AGAIN_MS     50    /* before a warden that ended twice is started again */
#define DAEMON_AGAIN_MAX_MS 1000
#define DAEMON_CALM_MS      10000 /* a warden that served so long was none that fails */

/* A client that speaks HTTP. Its patience is configured (policy/http_config.h). */
#define HTTP_LINE_BYTES_MAX      (8 * KIB) /* the request line */
#define HTTP_HEAD_BYTES_MAX      (32 * KIB)
#define HTTP_FIELDS_MAX          100
#define HTTP_QUERY_MAX           32 /* parameters */
#define HTTP_CHUNK_DIGITS_MAX    8
#define HTTP_CHUNK_OVERHEAD_MAX  (4 * KIB)   /* extensions of all chunks of a body */
#define HTTP_AHEAD_BYTES         (64 * KIB)  /* that a client may send ahead */
#define HTTP_FILE_STEP_BYTES     (64 * KIB)  /* of a file, read at once */
#define HTTP_LINGER_MS           1000        /* for what a refused client still sends */
#define HTTP_ACCEPT_AGAIN_MS     200         /* after a descriptor was not to be had for a client */
#define HTTP_PEER_FIRST_MS       1           /* a client nearby has told by then */
#define HTTP_PEER_LOOK_MS        20          /* between looks whether half an end is a whole one */
#define EXCHANGE_HIGH_BYTES      (256 * KIB) /* unsent: whoever writes pauses */
#define EXCHANGE_LOW_BYTES       (64 * KIB)  /* and goes on */
#define RESPONSE_FIELD_BYTES_MAX (4 * KIB)
#define SETTING_BYTES_MAX        4096 /* a text of the configuration */
#define SETTING_LIST_MAX         64
#define TLS_FILE_BYTES_MAX       (256 * KIB)
#define KEYS_FILE_BYTES_MAX      (1 * MIB)
#define TENANTS_MAX              1024

/* A client that speaks MCP. */
#define MCP_LINE_BYTES_MAX     (8 * MIB)  /* of one message, its files included */
#define MCP_CALLS_MAX          32         /* under way at one moment */
#define MCP_UNSENT_BYTES       (16 * MIB) /* with more to be taken nothing is read */
#define MCP_FILES_MAX          64         /* of one call */
#define MCP_SESSIONS_MAX       64         /* that one server has opened */
#define MCP_BRANCHES_MAX       16         /* of one call */
#define MCP_TEXT_BYTES         (48 * KIB) /* of a result, as a model reads it */
#define MCP_PICTURE_BYTES_MAX  (5 * MIB)  /* in base64, as clients take them */
#define MCP_PICTURES_MAX       16
#define MCP_PICTURE_PIXELS_MAX 2000 /* a side */
#define MCP_RESOURCE_BYTES_MAX (8 * MIB)
#define MCP_RESOURCES_MAX      1000
#define MCP_PROGRESS_TOKEN_MAX 1024 /* bytes; with a longer one no progress is told */
#define MCP_PROGRESS_MS        1000
#define MCP_PROBE_MS           15000 /* to find out what is installed */
#define MCP_FLUSH_MS           1000  /* for a client that has closed its end to read the rest */

/* MCP over HTTP. */
#define MCP_HTTP_SESSIONS_MAX 1000    /* MCP's own, of one tenant */
#define MCP_HTTP_IDLE_MS      3600000 /* until one that nobody uses ends */
#define MCP_KEEP_ALIVE_MS     15000   /* between signs of life in a response */

/* What a call over MCP may ask for, where the command line does not say. */
#define MCP_TIME_MS_MAX      120000 /* and of processor time */
#define MCP_MEMORY_BYTES_MAX (2 * GIB)
#define MCP_PROCESSES_MAX    256
#define MCP_OUTPUT_BYTES_MAX (16 * MIB)
#define MCP_DISK_BYTES_MAX   (1 * GIB)

/* The REST API. */
#define REST_BODY_BYTES_MAX   (64 * MIB) /* of a run or a batch, files included */
#define REST_CODE_BODY_BYTES  (8 * MIB)  /* of a check: code, and what JSON makes of it */
#define REST_SMALL_BODY_BYTES (64 * KIB)
#define JSON_VALUES_MAX       200000    /* of a request: each takes a hundred times its bytes */
#define HTTP_BODIES_TENANTS   4         /* one key's part of all bodies: one in so many */
#define TAR_BYTES_MAX         (1 * GIB) /* of the files of an archive, holes included */
#define REST_FILE_BYTES_MAX   (1 * GIB) /* that is put into a session, or an archive */
#define REST_ARCHIVES_MAX     4         /* of one tenant, being made or sent at one moment */
#define REST_FILES_MAX        256       /* of one run: each takes a descriptor */
#define REST_BATCH_RUNS_MAX   1000
#define REST_BATCH_CELLS      8          /* of one batch, at one moment */
#define REST_KEPT_MAX         256        /* detached runs of one tenant */
#define REST_KEPT_BYTES       (64 * MIB) /* of their results together */
#define REST_KEPT_MS          600000     /* that a result is kept */
#define REST_IDLE_MS_MAX      604800000  /* that a session may ask for */
#define REST_ALIVE_MS         10000      /* between comments of a stream of events */
#define REST_SURVEY_MS        15000      /* to find out what is installed */

/* What a run over REST may ask for, where its key does not say. */
#define REST_TIME_MS_MAX      3600000 /* and of processor time */
#define REST_MEMORY_BYTES_MAX (16 * GIB)
#define REST_PROCESSES_MAX    1024
#define REST_OUTPUT_BYTES_MAX (256 * MIB)
#define REST_DISK_BYTES_MAX   (4 * GIB)

/* The APIs of others. */
#define COMPAT_CWD_BYTES_MAX  256   /* a context's working directory */
#define COMPAT_CONTEXTS_MAX   256   /* of one tenant: the one used longest ago goes */
#define COMPAT_FUSION_TIME_MS 10000 /* of a run that names none, as those servers have it */
#define COMPAT_PISTON_TIME_MS 3000

/* A dry run (execpy check --probe). The time and memory are the issue's own:
 * enough to see what code is about, too little to do it. */
#define PROBE_TIME_MS      1000
#define PROBE_MEMORY_BYTES (50 * MIB)
#define PROBE_RECORDS_MAX  500
#define PROBE_SAMPLES_MAX  64
#define PROBE_SAMPLE_MS    20

/* A run's life, in milliseconds. */
#define TEMPLATE_START_MS  60000 /* imports included */
#define WARDEN_TAKES_MS    10000 /* a message, while it is busy */
#define CELL_START_MS      10000
#define OUTPUT_PATIENCE_MS 2          /* before output is looked for */
#define OFFER_DELAY_MS     2          /* before a client needs a cell that runs already */
#define OUTPUT_REST_MS     1          /* between reads of little each */
#define OUTPUT_REST_BYTES  (16 * KIB) /* what is not little */
#define DRAIN_MS           100        /* children of a main process that ended */
#define FRAMES_WAIT_MS     250        /* for the frames at a time limit, on a busy machine */
#define USAGE_POLL_MS      5          /* the finest step of CPU accounting */
#define CELL_NICE          10         /* only where no cgroup shares out the processors */
#define USAGE_POLL_SLOW_MS 50         /* how late an OOM kill of a child may be seen */
#define USAGE_POLL_SHARE   16  /* … in a long run, as a part of its time so far: one by this */
#define USAGE_POLL_MOST_MS 500 /* … in any run */

/* How long what was killed may take to die, in milliseconds. */
#define SWEEP_OTHERS_MS 100  /* at a start, of what dead wardens left */
#define SWEEP_OWN_MS    5000 /* at the end, of a warden's own */

#endif
