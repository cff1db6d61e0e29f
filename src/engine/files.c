/* SPDX-License-Identifier: Apache-2.0 */
/* files: what comes back from a workspace, by descriptor.
 *
 * The collector opens each regular file beneath the workspace; here it is read
 * within its size, hashed, compared with what was put in under that
 * name (by content: times can be set by the code), and written out where the
 * client wants it, beneath a directory descriptor. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *suffix, *type;
} media_types[] = {
	{".csv", "text/csv"},
	{".txt", "text/plain"},
	{".md", "text/markdown"},
	{".html", "text/html"},
	{".json", "application/json"},
	{".py", "text/x-python"},
	{".png", "image/png"},
	{".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},
	{".gif", "image/gif"},
	{".svg", "image/svg+xml"},
	{".pdf", "application/pdf"},
	{".xml", "application/xml"},
	{".zip", "application/zip"},
	{".gz", "application/gzip"},
	{".tsv", "text/tab-separated-values"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".sqlite", "application/vnd.sqlite3"},
	{".db", "application/vnd.sqlite3"},
	{".parquet", "application/vnd.apache.parquet"},
};

const char *files_media_type(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_LENGTH(media_types); i++)
		if (strcasecmp(dot, media_types[i].suffix) == 0)
			return media_types[i].type;
	return "application/octet-stream";
}

static void to_hex(const uint8_t digest[SHA256_DIGEST_SIZE], char hex[65])
{
	for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Reads at most `size` bytes with pread, until the deadline (NULL: without end); each piece
 * goes to the hash, to `to` (or -1) and to `content` (or NULL). */
static int read_through(int fd, uint64_t size, const struct deadline *deadline, char hex[65],
			int to, struct bytes *content, struct error *err)
{
	uint8_t piece[64 * 1024];
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;
	uint64_t done = 0;

	sha256_init(&sha);
	while (done < size) {
		size_t wanted = size - done < sizeof piece ? (size_t)(size - done) : sizeof piece;
		ssize_t r = pread(fd, piece, wanted, (off_t)done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return fail(err, errno, "read");
		if (r == 0)
			break;
		if (deadline_is_over(deadline))
			return refuse(err, ETIME, "takes too long to read");
		sha256_update(&sha, (size_t)r, piece);
		for (ssize_t written = 0; to >= 0 && written < r;) {
			ssize_t w = write(to, piece + written, (size_t)(r - written));

			if (w < 0 && errno == EINTR)
				continue;
			if (w < 0)
				return fail(err, errno, "write");
			written += w;
		}
		if (content && bytes_append(content, piece, (size_t)r) < 0)
			return fail(err, -content->failed, "keep");
		done += (uint64_t)r;
	}
	sha256_digest(&sha, sizeof digest, digest);
	to_hex(digest, hex);
	return 0;
}

int files_hash(int fd, char ret_hex[65], struct error *err)
{
	struct stat info;

	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		return refuse(err, EINVAL, "not a regular file");
	return read_through(fd, (uint64_t)info.st_size, NULL, ret_hex, -1, NULL, err);
}

void files_hash_bytes(struct span data, char ret_hex[65])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, data.length, data.data);
	sha256_digest(&sha, sizeof digest, digest);
	to_hex(digest, ret_hex);
}

/* A file on its way into the client's directory: written under a temporary name
 * beside its own, then renamed over whatever is there, a link included: nothing
 * is ever written through a link, and nobody sees half a file. */
struct arrival {
	int directory, fd;
	char temporary[40];
	char name[FILE_NAME_BYTES_MAX + 1];
};

static void arrival_end(struct arrival *arrival)
{
	if (arrival->fd >= 0)
		unlinkat(arrival->directory, arrival->temporary, 0);
	close_fd(&arrival->fd);
	close_fd(&arrival->directory);
}

static bool plain_name(const char *name)
{
	return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Opens the temporary file beneath `directory`; directories on the way are made
 * or entered, never through a link. */
static int arrival_begin(struct arrival *arrival, int directory, const char *path,
			 struct error *err)
{
	char copy[FILE_NAME_BYTES_MAX + 1], *at = copy, *slash;
	uint64_t random = 0;

	arrival->fd = -1;
	arrival->directory = fcntl(directory, F_DUPFD_CLOEXEC, 3);
	if (arrival->directory < 0)
		return fail(err, errno, "open the output directory");
	snprintf(copy, sizeof copy, "%s", path);
	while ((slash = strchr(at, '/'))) {
		int next;

		*slash = '\0';
		if (!plain_name(at))
			return refuse(err, EINVAL, "its name would leave the output directory");
		if (mkdirat(arrival->directory, at, 0777) < 0 && errno != EEXIST)
			return fail(err, errno, "make directory %s", at);
		next = openat(arrival->directory, at,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return fail(err, errno, "enter directory %s", at);
		close(arrival->directory);
		arrival->directory = next;
		at = slash + 1;
	}
	if (!plain_name(at))
		return refuse(err, EINVAL, "its name would leave the output directory");
	snprintf(arrival->name, sizeof arrival->name, "%s", at);
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return fail(err, errno, "getrandom");
	snprintf(arrival->temporary, sizeof arrival->temporary, ".execpy-%016llx",
		 (unsigned long long)random);
	arrival->fd = openat(arrival->directory, arrival->temporary,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return arrival->fd < 0 ? fail(err, errno, "create") : 0;
}

static int arrival_finish(struct arrival *arrival, struct error *err)
{
	if (renameat(arrival->directory, arrival->temporary, arrival->directory, arrival->name) < 0)
		return fail(err, errno, "put in place");
	close_fd(&arrival->fd);
	return 0;
}

/* Printable: control characters and bytes that are not UTF-8 become \xNN. */
static char *printable(struct span name)
{
	struct bytes out = {0};

	while (name.length > 0) {
		size_t length = utf8_sequence(name);
		uint8_t c = name.data[0];

		if (length == 0 || c < ' ' || c == 0x7f) {
			bytes_append_format(&out, "\\x%02x", c);
			length = 1;
		} else {
			bytes_append(&out, name.data, length);
		}
		name.data += length;
		name.length -= length;
	}
	bytes_append(&out, "", 1);
	return (char *)out.data;
}

static bool unchanged(const struct run *run, const char *name, const char *sha256)
{
	for (size_t i = 0; i < run->input_count; i++)
		if (strcmp(run->inputs[i].name, name) == 0)
			return strcmp(run->inputs[i].sha256, sha256) == 0;
	return false;
}

static void keep(struct execpy_result *result, struct collected_file *file)
{
	struct collected_file *grown =
		realloc(result->files, (result->file_count + 1) * sizeof *grown);

	if (!grown)
		return;
	result->files = grown;
	result->files[result->file_count++] = *file;
}

/* Whether a session's file is as the run before left it; `file` gets its hash. */
static bool as_before(struct run *run, const char *name, int fd, struct collected_file *file,
		      int *ret_failed, struct error *err)
{
	struct listed *before = listing_find(&run->before, name);
	struct stat info;

	if (before)
		before->seen = file->changed = true;
	if (fd < 0 || fstat(fd, &info) < 0) {
		/* What is refused is told once. */
		listing_add(&run->after, name, NULL, "");
		return before && !before->sha256[0];
	}
	/* The time of change cannot be set: what has the same is the same. */
	if (before && before->sha256[0] && before->inode == info.st_ino &&
	    before->size == (uint64_t)info.st_size &&
	    before->changed_ns == (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec)
		memcpy(file->sha256, before->sha256, sizeof file->sha256);
	else
		*ret_failed =
			read_through(fd, file->size, &run->deadline, file->sha256, -1, NULL, err);
	if (*ret_failed < 0)
		return false;
	listing_add(&run->after, name, &info, file->sha256);
	return before && strcmp(before->sha256, file->sha256) == 0;
}

void files_add_deleted(struct run *run)
{
	struct execpy_result *result = run->result;

	result->deleted = calloc(run->before.count + 1, sizeof *result->deleted);
	for (size_t i = 0; i < run->before.count && result->deleted; i++) {
		const char *name = run->before.files[i].name;
		char *path;

		if (run->before.files[i].seen || !run->before.files[i].sha256[0])
			continue;
		path = printable((struct span){(const uint8_t *)name, strlen(name)});
		if (path)
			result->deleted[result->deleted_count++] = path;
	}
}

void files_add(struct run *run, const char *name, uint64_t size, int fd, const char *reason)
{
	const struct execpy_request *request = run->request;
	struct collected_file file = {
		.path = printable((struct span){(const uint8_t *)name, strlen(name)}),
		.size = size,
		.refused = reason ? strdup(reason) : NULL,
	};
	struct arrival arrival = {-1, -1, "", ""};
	struct error err = {0};
	int r = 0;

	if (!file.path)
		return;
	if (run->session && as_before(run, name, file.refused ? -1 : fd, &file, &r, &err)) {
		free(file.path);
		free(file.refused);
		return;
	}
	if (!file.refused && fd >= 0) {
		/* Hash first: an input that did not change is not written out. */
		if (!run->session)
			r = read_through(fd, file.size, &run->deadline, file.sha256, -1, NULL,
					 &err);
		if (r == 0 && unchanged(run, name, file.sha256)) {
			free(file.path);
			return;
		}
		/* One bound for all of a result. */
		if (r == 0 && request->return_files &&
		    file.size > RESPONSE_BYTES_MAX - run->returned_bytes)
			r = refuse(&err, E2BIG, "is too large to be returned with the others");
		if (r == 0 && request->out_directory >= 0)
			r = arrival_begin(&arrival, request->out_directory, name, &err);
		if (r == 0 && (arrival.fd >= 0 || request->return_files)) {
			file.content.ceiling = RESPONSE_BYTES_MAX;
			r = read_through(fd, file.size, &run->deadline, file.sha256, arrival.fd,
					 request->return_files ? &file.content : NULL, &err);
		}
		if (r == 0 && arrival.fd >= 0)
			r = arrival_finish(&arrival, &err);
		arrival_end(&arrival);
		if (r < 0) {
			bytes_free(&file.content);
			file.refused = strdup(err.text);
			file.failed = true;
		}
	}
	run->returned_bytes += file.content.length;
	file.media_type = files_media_type(name);
	keep(run->result, &file);
}

static int by_path(const void *a, const void *b)
{
	const struct collected_file *one = a, *other = b;

	return strcmp(one->path, other->path);
}

void files_free(struct execpy_result *result)
{
	for (size_t i = 0; i < result->file_count; i++) {
		free(result->files[i].path);
		free(result->files[i].refused);
		bytes_free(&result->files[i].content);
	}
	free(result->files);
	for (size_t i = 0; i < result->deleted_count; i++)
		free(result->deleted[i]);
	free(result->deleted);
	result->files = NULL;
	result->deleted = NULL;
	result->file_count = result->deleted_count = 0;
}

void files_forget(struct run *run)
{
	files_free(run->result);
	run->returned_bytes = 0;
	listing_free(&run->after);
	for (size_t i = 0; i < run->before.count; i++)
		run->before.files[i].seen = false;
}

void files_sort(struct execpy_result *result)
{
	if (result->file_count > 1)
		qsort(result->files, result->file_count, sizeof *result->files, by_path);
}
