/* SPDX-License-Identifier: Apache-2.0 */
/* kept: see kept.h. */
#include "guest/kept.h"

#include "guest/processes.h"
#include "guest/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The latest, the one before it, and one that is just coming in. */
#define CHECKPOINTS_MAX (SESSION_CHECKPOINTS_MAX + 3)

static struct {
	struct checkpoint checkpoints[CHECKPOINTS_MAX];
	size_t count;
	struct snapshot *files; /* of the workspace, when it was last looked at */
	int workspace;
	uint64_t memory_bytes; /* the session's limit */
} kept = {.workspace = -1};

int kept_open(uint64_t memory_bytes, struct error *err)
{
	kept.memory_bytes = memory_bytes;
	kept.workspace = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return kept.workspace < 0 ? fail(err, errno, "session: open the workspace") : 0;
}

size_t kept_count(void)
{
	return kept.count;
}

bool kept_is_full(void)
{
	return kept.count == CHECKPOINTS_MAX;
}

struct checkpoint *kept_find(enum checkpoint_choice choice, const char *name)
{
	for (size_t i = 0; i < kept.count; i++) {
		struct checkpoint *checkpoint = &kept.checkpoints[i];

		if ((choice == CHECKPOINT_LATEST && checkpoint->latest) ||
		    (choice == CHECKPOINT_PREVIOUS && checkpoint->previous) ||
		    (choice == CHECKPOINT_NAMED && name[0] && strcmp(checkpoint->name, name) == 0))
			return checkpoint;
	}
	return NULL;
}

bool kept_has(pid_t pid)
{
	for (size_t i = 0; i < kept.count; i++)
		if (kept.checkpoints[i].process.pid == pid)
			return true;
	return false;
}

static void forget(size_t index)
{
	struct checkpoint *checkpoint = &kept.checkpoints[index];

	process_kill(&checkpoint->process);
	snapshot_release(checkpoint->files);
	kept.checkpoints[index] = kept.checkpoints[--kept.count];
}

void kept_forget_unused(void)
{
	for (size_t i = kept.count; i-- > 0;)
		if (!kept.checkpoints[i].latest && !kept.checkpoints[i].previous &&
		    !kept.checkpoints[i].name[0])
			forget(i);
}

void kept_reaped(pid_t pid)
{
	for (size_t i = kept.count; i-- > 0;)
		if (kept.checkpoints[i].process.pid == pid)
			forget(i);
}

/* What the files of a named checkpoint may take: they are memory of the session that
 * nothing but dropping gives back. */
static uint64_t room_for_files(void)
{
	uint64_t all = kept.memory_bytes / SESSION_SNAPSHOTS_SHARE, used = 0;

	for (size_t i = 0; i < kept.count; i++)
		if (kept.checkpoints[i].name[0])
			used += snapshot_bytes(kept.checkpoints[i].files);
	return used < all ? all - used : 0;
}

/* The workspace as it is, if it is small; kept files are shared by all checkpoints
 * between which nothing changed. */
static struct snapshot *take_files(pid_t runner, bool by_name, const char **ret_refused)
{
	const struct snapshot_bounds bounds = {
		.bytes = by_name ? room_for_files() : SESSION_SNAPSHOT_BYTES,
		.entries = by_name ? SESSION_SNAPSHOT_ENTRIES_MAX : SESSION_SNAPSHOT_ENTRIES,
	};
	/* What is written through a map of a file changes no time of it. */
	struct snapshot *before = process_maps_files(runner) ? NULL : kept.files;
	struct snapshot *taken = snapshot_take(kept.workspace, &bounds, before, ret_refused);

	snapshot_release(kept.files);
	kept.files = snapshot_share(taken);
	return taken;
}

void kept_look_at_files(pid_t runner)
{
	const char *refused;

	snapshot_release(take_files(runner, false, &refused));
}

struct checkpoint *kept_add(struct process *process)
{
	struct checkpoint *added = &kept.checkpoints[kept.count];

	for (size_t i = 0; i < kept.count; i++) {
		kept.checkpoints[i].previous = kept.checkpoints[i].latest;
		kept.checkpoints[i].latest = false;
	}
	*added = (struct checkpoint){
		.process = *process,
		.files = snapshot_share(kept.files),
		.latest = true,
	};
	kept.count++;
	*process = (struct process){.pidfd = -1, .socket = -1};
	process_protect(added->process.pid);
	return added;
}

int kept_restore_files(const struct checkpoint *checkpoint, struct error *err)
{
	return checkpoint->files ? snapshot_restore(kept.workspace, checkpoint->files, err) : 0;
}

void kept_return_to(const struct checkpoint *checkpoint, bool asked)
{
	for (size_t i = 0; i < kept.count; i++) {
		if (asked)
			kept.checkpoints[i].previous = false;
		kept.checkpoints[i].latest = &kept.checkpoints[i] == checkpoint;
	}
}

const char *kept_drop_name(const char *name)
{
	struct checkpoint *named = kept_find(CHECKPOINT_NAMED, name);

	if (!named)
		return "there is no checkpoint of this name";
	named->name[0] = '\0';
	kept_forget_unused();
	return NULL;
}

const char *kept_name(struct checkpoint *latest, const char *name, pid_t runner)
{
	static char too_many[80];
	struct checkpoint *before = kept_find(CHECKPOINT_NAMED, name);
	const char *refused = NULL;
	struct snapshot *files;
	size_t named = 0;

	for (size_t i = 0; i < kept.count; i++)
		named += kept.checkpoints[i].name[0] != '\0' && &kept.checkpoints[i] != before;
	if (named == SESSION_CHECKPOINTS_MAX) {
		snprintf(too_many, sizeof too_many,
			 "%d checkpoints are kept already: drop one first",
			 SESSION_CHECKPOINTS_MAX);
		return too_many;
	}
	/* One process may stand for several names: they are one state. */
	if (latest->name[0] && latest != before)
		return "this very state is kept under another name already";
	files = take_files(runner, true, &refused);
	if (!files)
		return refused;
	snapshot_release(latest->files);
	latest->files = files;
	if (before && before != latest)
		before->name[0] = '\0';
	snprintf(latest->name, sizeof latest->name, "%s", name);
	kept_forget_unused();
	return NULL;
}

void kept_put_names(struct bytes *frame)
{
	for (size_t i = 0; i < kept.count; i++)
		if (kept.checkpoints[i].name[0])
			frame_put_text(frame, FIELD_CHECKPOINT, kept.checkpoints[i].name);
}
