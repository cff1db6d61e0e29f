/* SPDX-License-Identifier: Apache-2.0 */
/* listing: what a session's workspace held, from one run to the next.
 *
 * It is written into a memfd that the warden keeps and never reads, and hands to
 * the engine of the next run. Only engines write it, but it is read as anything
 * else that comes from another process. Sorted by name. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const struct listed *one = a, *other = b;

	return strcmp(one->name, other->name);
}

struct listed *listing_find(const struct listing *listing, const char *name)
{
	const struct listed key = {.name = (char *)name};

	if (listing->count == 0)
		return NULL;
	return bsearch(&key, listing->files, listing->count, sizeof key, by_name);
}

bool listing_is(const struct listing *listing, const struct listing *other)
{
	if (listing->count != other->count)
		return false;
	for (size_t i = 0; i < listing->count; i++) {
		const struct listed *one = &listing->files[i];
		const struct listed *same = listing_find(other, one->name);

		if (!same || same->inode != one->inode || same->size != one->size ||
		    same->changed_ns != one->changed_ns || strcmp(same->sha256, one->sha256) != 0)
			return false;
	}
	return true;
}

void listing_add(struct listing *listing, const char *name, const struct stat *info,
		 const char *sha256)
{
	struct listed *grown =
		realloc(listing->files, (listing->count + 1) * sizeof *listing->files);
	struct listed *listed;

	if (!grown)
		return;
	listing->files = grown;
	listed = &grown[listing->count];
	*listed = (struct listed){.name = strdup(name)};
	if (!listed->name)
		return;
	if (info) {
		listed->size = (uint64_t)info->st_size;
		listed->inode = info->st_ino;
		listed->changed_ns =
			(int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec;
	}
	snprintf(listed->sha256, sizeof listed->sha256, "%s", sha256);
	listing->count++;
}

void listing_free(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->files[i].name);
	free(listing->files);
	*listing = (struct listing){0};
}

int listing_write(const struct listing *listing, struct error *err)
{
	autobytes out = {.ceiling = SESSION_LISTING_BYTES_MAX};

	for (size_t i = 0; i < listing->count; i++) {
		const struct listed *listed = &listing->files[i];
		autobytes body = {0};

		frame_put_text(&body, FIELD_NAME, listed->name);
		frame_put_number(&body, FIELD_SIZE, listed->size);
		frame_put_number(&body, FIELD_NUMBER, listed->inode);
		frame_put_number(&body, FIELD_WALL_US, (uint64_t)listed->changed_ns);
		frame_put_text(&body, FIELD_DATA, listed->sha256);
		frame_put(&out, FIELD_FILE, body.data, body.length);
	}
	if (out.failed)
		return fail(err, -out.failed, "listing");
	return memfile_write("listing", bytes_span(&out), err);
}

static int take_one(struct listing *listing, struct span body)
{
	struct reader fields = reader_of(body);
	struct listed listed = {0};
	struct field field;
	struct listed *grown;
	uint64_t changed = 0;
	int r;

	while ((r = frame_next_field(&fields, &field)) == 1) {
		if (field.name == FIELD_NAME && !listed.name) {
			if (memchr(field.value.data, 0, field.value.length))
				r = -EBADMSG;
			else
				listed.name = span_to_string(field.value);
		} else if (field.name == FIELD_SIZE) {
			r = field_number(&field, &listed.size);
		} else if (field.name == FIELD_NUMBER) {
			r = field_number(&field, &listed.inode);
		} else if (field.name == FIELD_WALL_US) {
			r = field_number(&field, &changed);
		} else if (field.name == FIELD_DATA && field.value.length < sizeof listed.sha256) {
			memcpy(listed.sha256, field.value.data, field.value.length);
		}
		if (r < 0)
			break;
	}
	listed.changed_ns = (int64_t)changed;
	grown = listed.name && r >= 0
			? realloc(listing->files, (listing->count + 1) * sizeof *grown)
			: NULL;
	if (!grown) {
		free(listed.name);
		return -EBADMSG;
	}
	listing->files = grown;
	listing->files[listing->count++] = listed;
	return 0;
}

int listing_read(int fd, struct listing *ret_listing, struct error *err)
{
	struct listing listing = {0};
	autobytes bytes = {0};
	struct reader fields;
	struct field field;
	int r = memfile_read(fd, "listing", SESSION_LISTING_BYTES_MAX, &bytes, err);

	if (r < 0)
		return r;
	fields = reader_of(bytes_span(&bytes));
	while ((r = frame_next_field(&fields, &field)) == 1)
		if (field.name != FIELD_FILE || take_one(&listing, field.value) < 0) {
			r = -EBADMSG;
			break;
		}
	if (r < 0) {
		listing_free(&listing);
		return refuse(err, EBADMSG, "listing: it cannot be read");
	}
	if (listing.count > 1)
		qsort(listing.files, listing.count, sizeof *listing.files, by_name);
	*ret_listing = listing;
	return 0;
}
