/* SPDX-License-Identifier: Apache-2.0 */
/* test_files: what the engine does with the files that the warden passes on. */
#include "unit.h"

#include "base/cleanup.h"
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SHA_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA_OF_ABC     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char out_path[] = "/tmp/execpy-files-XXXXXX";
static int out = -1;

static int start(void **state)
{
	if (!mkdtemp(out_path))
		return -1;
	out = open(out_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return out < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
	return remove(path);
}

static int finish(void **state)
{
	close(out);
	return nftw(out_path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int file_of(const char *text)
{
	int fd = memfd_create("content", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

struct fixture {
	struct execpy_request request;
	struct execpy_result *result;
	struct run run;
};

static void begin(struct fixture *fixture)
{
	*fixture = (struct fixture){.request = {.out_directory = -1}};
	fixture->result = calloc(1, sizeof *fixture->result);
	assert_non_null(fixture->result);
	fixture->run.request = &fixture->request;
	fixture->run.result = fixture->result;
	deadline_set(&fixture->run.deadline, 60000);
}

/* Hands over one file; -1 for `fd` means none. Returns what was kept, or NULL. */
static const struct collected_file *add(struct fixture *fixture, struct span name, uint64_t size,
					int fd, const char *reason)
{
	size_t count = fixture->result->file_count;
	char path[FILE_NAME_BYTES_MAX + 1];

	assert_true(name.length < sizeof path);
	memcpy(path, name.data, name.length);
	path[name.length] = '\0';
	files_add(&fixture->run, path, size, fd, reason);
	if (fixture->result->file_count == count)
		return NULL;
	assert_int_equal(fixture->result->file_count, count + 1);
	return &fixture->result->files[count];
}

static void media_types(void **state)
{
	static const struct {
		const char *path, *type;
	} cases[] = {
		{"a.csv", "text/csv"},
		{"A.CSV", "text/csv"},
		{"a.tar.gz", "application/gzip"},
		{"dir.csv/a", "application/octet-stream"},
		{"a.png", "image/png"},
		{".png", "image/png"},
		{"a", "application/octet-stream"},
		{"", "application/octet-stream"},
		{".", "application/octet-stream"},
		{"a.csv.", "application/octet-stream"},
		{"a.csv ", "application/octet-stream"},
		{"a.csvx", "application/octet-stream"},
		{"a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		assert_string_equal(files_media_type(cases[i].path), cases[i].type);
}

static void hashes(void **state)
{
	autofd abc = file_of("abc");
	autofd directory = open("/", O_RDONLY | O_CLOEXEC);
	int pipes[2];
	struct error err = {0};
	char hex[65];

	files_hash_bytes(text_of(""), hex);
	assert_string_equal(hex, SHA_OF_NOTHING);
	files_hash_bytes(text_of("abc"), hex);
	assert_string_equal(hex, SHA_OF_ABC);
	/* From the start, wherever the caller's offset is. */
	assert_int_equal(files_hash(abc, hex, &err), 0);
	assert_string_equal(hex, SHA_OF_ABC);
	assert_int_equal(files_hash(directory, hex, &err), -EINVAL);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(files_hash(pipes[0], hex, &err), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	assert_true(files_hash(-1, hex, &err) < 0);
}

static void odd_names_are_shown_escaped(void **state)
{
	static const struct {
		const char *name;
		size_t length;
		const char *shown;
	} cases[] = {
		{"plain.txt", 9, "plain.txt"},
		{"new\nline", 8, "new\\x0aline"},
		{"\x1b[31mred", 8, "\\x1b[31mred"},
		{"del\x7f", 4, "del\\x7f"},
		{"caf\xc3\xa9", 5, "caf\xc3\xa9"},
		{"bad\xff\xfe", 5, "bad\\xff\\xfe"},
		{"cut\xe2\x82", 5, "cut\\xe2\\x82"},
		{"sur\xed\xa0\x80", 6, "sur\\xed\\xa0\\x80"},
		{"", 0, ""},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct fixture fixture;
		const struct collected_file *file;
		autofd fd = file_of("abc");

		begin(&fixture);
		file = add(&fixture, span_of(cases[i].name, cases[i].length), 3, fd, NULL);
		assert_non_null(file);
		assert_string_equal(file->path, cases[i].shown);
		execpy_result_free(fixture.result);
	}
}

static void changes_are_told_by_content(void **state)
{
	struct fixture fixture;
	struct input input = {.name = (char *)"in.txt"};
	autofd same = file_of("abc");
	autofd other = file_of("abd");
	const struct collected_file *file;

	begin(&fixture);
	memcpy(input.sha256, SHA_OF_ABC, sizeof input.sha256);
	fixture.run.inputs = &input;
	fixture.run.input_count = 1;
	assert_null(add(&fixture, text_of("in.txt"), 3, same, NULL));
	file = add(&fixture, text_of("in.txt"), 3, other, NULL);
	assert_non_null(file);
	assert_null(file->refused);
	file = add(&fixture, text_of("copy.txt"), 3, same, NULL);
	assert_non_null(file);
	assert_string_equal(file->sha256, SHA_OF_ABC);
	assert_int_equal(file->size, 3);
	execpy_result_free(fixture.result);
}

static void reading_stops_at_the_announced_size(void **state)
{
	struct fixture fixture;
	autofd fd = file_of("abcdefgh");
	const struct collected_file *file;

	begin(&fixture);
	fixture.request.return_files = true;
	file = add(&fixture, text_of("grown"), 3, fd, NULL);
	assert_non_null(file);
	assert_string_equal(file->sha256, SHA_OF_ABC);
	assert_bytes(&file->content, "abc");
	/* Shorter than announced: what is there, and no wait. */
	file = add(&fixture, text_of("shrunk"), 1000, fd, NULL);
	assert_non_null(file);
	assert_bytes(&file->content, "abcdefgh");
	execpy_result_free(fixture.result);
}

/* What was not finished is begun anew: nothing of it is told twice. */
static void what_is_forgotten_was_never_there(void **state)
{
	struct fixture fixture;
	autofd fd = file_of("abc");

	begin(&fixture);
	fixture.request.return_files = true;
	assert_non_null(add(&fixture, text_of("a"), 3, fd, NULL));
	assert_non_null(add(&fixture, text_of("b"), 0, -1, "is a symbolic link"));
	assert_int_equal(fixture.run.returned_bytes, 3);
	files_forget(&fixture.run);
	assert_int_equal(fixture.run.returned_bytes, 0);
	assert_int_equal(fixture.result->file_count, 0);
	assert_string_equal(add(&fixture, text_of("a"), 3, fd, NULL)->sha256, SHA_OF_ABC);
	execpy_result_free(fixture.result);
}

static void a_deadline_that_is_stopped_stays_over(void **state)
{
	struct fixture fixture;
	autofd fd = file_of("abc");
	const struct collected_file *file;

	begin(&fixture);
	assert_false(deadline_is_over(&fixture.run.deadline));
	deadline_stop(&fixture.run.deadline);
	deadline_set(&fixture.run.deadline, 60000);
	assert_true(deadline_is_over(&fixture.run.deadline));
	file = add(&fixture, text_of("a"), 3, fd, NULL);
	assert_non_null(file);
	assert_string_equal(file->refused, "takes too long to read");
	execpy_result_free(fixture.result);
}

static void refusals_carry_no_content(void **state)
{
	struct fixture fixture;
	autofd fd = file_of("abc");
	const struct collected_file *file;

	begin(&fixture);
	fixture.request.return_files = true;
	file = add(&fixture, text_of("link"), 0, -1, "is a symbolic link");
	assert_non_null(file);
	assert_string_equal(file->refused, "is a symbolic link");
	file = add(&fixture, text_of("both"), 3, fd, "is a symbolic link");
	assert_non_null(file);
	assert_int_equal(file->content.length, 0);
	assert_string_equal(file->sha256, "");
	execpy_result_free(fixture.result);
}

static void expect_content(const char *path, const char *wanted)
{
	autofd fd = openat(out, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[16] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) >= 0);
	assert_string_equal(text, wanted);
}

#define TARGET "/tmp/execpy-files-target"

static void writes_out_beneath_and_through_no_link(void **state)
{
	struct fixture fixture;
	autofd first = file_of("first");
	autofd second = file_of("second");
	autofd target = open(TARGET, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const struct collected_file *file;
	struct stat info;
	unsigned before;
	DIR *left;

	assert_true(target >= 0);
	begin(&fixture);
	fixture.request.out_directory = out;
	before = open_descriptors();
	file = add(&fixture, text_of("a/b/c.txt"), 5, first, NULL);
	assert_null(file->refused);
	expect_content("a/b/c.txt", "first");
	/* What is there already is replaced: a file, and a link itself. */
	file = add(&fixture, text_of("a/b/c.txt"), 6, second, NULL);
	assert_null(file->refused);
	expect_content("a/b/c.txt", "second");
	assert_int_equal(symlinkat(TARGET, out, "link"), 0);
	file = add(&fixture, text_of("link"), 5, first, NULL);
	assert_null(file->refused);
	expect_content("link", "first");
	assert_int_equal(fstat(target, &info), 0);
	assert_int_equal(info.st_size, 0);
	/* But no link on the way is followed, and a directory is not replaced. */
	assert_int_equal(symlinkat("/tmp", out, "away"), 0);
	file = add(&fixture, text_of("away/execpy-files-target"), 5, first, NULL);
	assert_non_null(file->refused);
	file = add(&fixture, text_of("a/b"), 5, first, NULL);
	assert_non_null(file->refused);
	assert_int_equal(fstat(target, &info), 0);
	assert_int_equal(info.st_size, 0);
	/* No set-id or execute bit comes out, no temporary name is left. */
	assert_int_equal(fstatat(out, "a/b/c.txt", &info, 0), 0);
	assert_int_equal(info.st_mode & 07111, 0);
	assert_int_equal(open_descriptors(), before);
	left = fdopendir(openat(out, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_non_null(left);
	for (struct dirent *entry; (entry = readdir(left));)
		assert_true(entry->d_name[0] == '.' ? entry->d_name[1] != 'e'
						    : entry->d_name[0] == 'b');
	closedir(left);
	unlink(TARGET);
	execpy_result_free(fixture.result);
}

/* The engine trusts no name to have come from a directory listing. */
static void names_cannot_leave_the_directory(void **state)
{
	static const char *const names[] = {"../escaped", "a/../../escaped", "/tmp/execpy-escaped",
					    "..", "."};
	struct fixture fixture;
	autofd fd = file_of("abc");
	char path[100];

	begin(&fixture);
	fixture.request.out_directory = out;
	snprintf(path, sizeof path, "%s/../escaped", out_path);
	unlink(path);
	unlink("/tmp/execpy-escaped");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const struct collected_file *file = add(&fixture, text_of(names[i]), 3, fd, NULL);

		if (!file->refused)
			fail_msg("%s was written", names[i]);
	}
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access("/tmp/execpy-escaped", F_OK), -1);
	execpy_result_free(fixture.result);
}

static void more_than_can_be_returned_is_refused(void **state)
{
	struct fixture fixture;
	autofd fd = memfd_create("large", MFD_CLOEXEC);
	const struct collected_file *file;

	assert_int_equal(ftruncate(fd, (off_t)RESPONSE_BYTES_MAX + 1), 0);
	begin(&fixture);
	fixture.request.return_files = true;
	file = add(&fixture, text_of("large"), RESPONSE_BYTES_MAX + 1, fd, NULL);
	assert_non_null(file);
	assert_non_null(file->refused);
	assert_null(file->content.data);
	execpy_result_free(fixture.result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(media_types),
		cmocka_unit_test(hashes),
		cmocka_unit_test(odd_names_are_shown_escaped),
		cmocka_unit_test(changes_are_told_by_content),
		cmocka_unit_test(reading_stops_at_the_announced_size),
		cmocka_unit_test(what_is_forgotten_was_never_there),
		cmocka_unit_test(a_deadline_that_is_stopped_stays_over),
		cmocka_unit_test(refusals_carry_no_content),
		cmocka_unit_test(writes_out_beneath_and_through_no_link),
		cmocka_unit_test(names_cannot_leave_the_directory),
		cmocka_unit_test(more_than_can_be_returned_is_refused),
	};

	return cmocka_run_group_tests_name("files", tests, start, finish);
}
