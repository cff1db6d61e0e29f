/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: the file system that guests see.
 *
 * Theory of operation. The root is a small tmpfs into which the table below is
 * bound. Each bind is made with open_tree() as a detached copy, gets its flags
 * with mount_setattr() while nobody can see it, and only then moves into
 * place: no mount is ever visible before it is read-only. All copies are taken
 * before the new root hides the old one, then the old root is pivoted out and
 * detached. Small files are copied into the root instead: every mount is made once
 * more for each cell, and taken down with it.
 *
 * Should: name every host path that a guest can read, with its reason.
 * Mustn't: bind anything writable, or follow a path that a guest could have
 * made (no guest has run yet, and the table holds host paths only). */
#include "jail/mounts.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of one copied file. */
#define COPY_BYTES_MAX (2 * MIB)

enum mount_kind {
	BIND_DIRECTORY, /* required */
	BIND_OPTIONAL,  /* a file or directory, if the host has it */
	BIND_DEVICE,    /* a device node, required */
	COPY,           /* small files that the host may have: one, or those of a directory */
	LINK,           /* `source` is the link's text; skipped when the target exists */
	DIRECTORY,      /* a mount point or an empty place */
	TEXT,           /* a file with `source` as its content */
};

struct mount_entry {
	enum mount_kind kind;
	const char *target; /* relative to the root */
	const char *source;
};

/* Order matters: parents first. */
static const struct mount_entry entries[] = {
	/* The interpreter, its libraries, data and the programs that scripts call. */
	{BIND_DIRECTORY, "usr", "/usr"},
	{LINK, "bin", "usr/bin"},
	{LINK, "sbin", "usr/sbin"},
	{LINK, "lib", "usr/lib"},
	{LINK, "lib32", "usr/lib32"},
	{LINK, "lib64", "usr/lib64"},
	{DIRECTORY, "etc", NULL},
	/* One user, no host names, no name services but files. */
	{TEXT, "etc/passwd", "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"},
	{TEXT, "etc/group", "sandbox:x:1000:\n"},
	{TEXT, "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
	{TEXT, "etc/hostname", "sandbox\n"},
	{TEXT, "etc/nsswitch.conf",
	 "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"},
	{TEXT, "etc/resolv.conf", ""},
	{TEXT, "etc/timezone", "Etc/UTC\n"},
	{LINK, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC"},
	/* How the dynamic linker finds libraries: the cache, and Debian's
	 * alternatives (libblas.so.3 is a link through /etc/alternatives). */
	{COPY, "etc/ld.so.cache", "/etc/ld.so.cache"},
	{COPY, "etc/ld.so.conf", "/etc/ld.so.conf"},
	{COPY, "etc/ld.so.conf.d", "/etc/ld.so.conf.d"},
	{BIND_OPTIONAL, "etc/alternatives", "/etc/alternatives"},
	/* Certificates (no private keys: those are in /etc/ssl/private). */
	{DIRECTORY, "etc/ssl", NULL},
	{BIND_OPTIONAL, "etc/ssl/certs", "/etc/ssl/certs"},
	{COPY, "etc/ssl/openssl.cnf", "/etc/ssl/openssl.cnf"},
	{DIRECTORY, "etc/pki", NULL},
	{BIND_OPTIONAL, "etc/pki/tls", "/etc/pki/tls/certs"},
	/* Tables that libraries read. */
	{BIND_OPTIONAL, "etc/fonts", "/etc/fonts"},
	{COPY, "etc/mime.types", "/etc/mime.types"},
	{COPY, "etc/services", "/etc/services"},
	{COPY, "etc/protocols", "/etc/protocols"},
	{COPY, "etc/magic", "/etc/magic"},
	{COPY, "etc/matplotlibrc", "/etc/matplotlibrc"},
	{COPY, "etc/python3", "/etc/python3"},
	{COPY, "etc/python3.11", "/etc/python3.11"},
	{COPY, "etc/debian_version", "/etc/debian_version"},
	{LINK, "etc/os-release", "../usr/lib/os-release"},
	{BIND_OPTIONAL, "etc/dictionaries-common", "/etc/dictionaries-common"},
	/* Places that get a mount of their own later. */
	{DIRECTORY, "proc", NULL},
	{DIRECTORY, "tmp", NULL},
	{DIRECTORY, "workspace", NULL},
	{DIRECTORY, "var", NULL},
	{DIRECTORY, "var/cache", NULL},
	{DIRECTORY, "var/cache/fontconfig", NULL},
	{BIND_OPTIONAL, "var/cache/fontconfig", "/var/cache/fontconfig"},
	{DIRECTORY, "var/cache/execpy", NULL},
	{DIRECTORY, "var/cache/matplotlib", NULL},
	{LINK, "var/tmp", "../tmp"},
	{DIRECTORY, "run", NULL},
	/* What glibc looks at before it uses huge pages. */
	{DIRECTORY, "sys", NULL},
	{DIRECTORY, "sys/kernel", NULL},
	{DIRECTORY, "sys/kernel/mm", NULL},
	{COPY, "sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/transparent_hugepage"},
	/* Devices without memory of who used them. */
	{DIRECTORY, "dev", NULL},
	{BIND_DEVICE, "dev/null", "/dev/null"},
	{BIND_DEVICE, "dev/zero", "/dev/zero"},
	{BIND_DEVICE, "dev/full", "/dev/full"},
	{BIND_DEVICE, "dev/random", "/dev/random"},
	{BIND_DEVICE, "dev/urandom", "/dev/urandom"},
	{DIRECTORY, "dev/shm", NULL},
	{LINK, "dev/fd", "/proc/self/fd"},
	{LINK, "dev/stdin", "/proc/self/fd/0"},
	{LINK, "dev/stdout", "/proc/self/fd/1"},
	{LINK, "dev/stderr", "/proc/self/fd/2"},
};

#ifdef UNSAFE_WITHOUT_MOUNTS
#define READ_ONLY 0
#else
#define READ_ONLY MOUNT_ATTR_RDONLY
#endif

/* A detached copy of a host path, read-only from its first moment. */
static int copy_tree(const char *source, bool device, struct error *err)
{
	struct mount_attr attributes = {
		.attr_set = READ_ONLY | MOUNT_ATTR_NOSUID |
			    (device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV),
		.propagation = MS_PRIVATE,
	};
	autofd tree =
		open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return fail(err, errno, "mounts: open_tree %s", source);
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) <
	    0)
		return fail(err, errno, "mounts: make %s read-only", source);
	return take_fd(&tree);
}

static int new_file_system(const char *type, const char *const options[][2],
			   unsigned int mount_attributes, struct error *err)
{
	autofd context = fsopen(type, FSOPEN_CLOEXEC);
	int mount;

	if (context < 0)
		return fail(err, errno, "mounts: fsopen %s", type);
	for (size_t i = 0; options[i][0]; i++)
		if (fsconfig(context, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return fail(err, errno, "mounts: %s option %s=%s", type, options[i][0],
				    options[i][1]);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(err, errno, "mounts: create %s", type);
	mount = fsmount(context, FSMOUNT_CLOEXEC, mount_attributes);
	if (mount < 0)
		return fail(err, errno, "mounts: fsmount %s", type);
	return mount;
}

static int attach(int mount, int directory, const char *target, struct error *err)
{
	if (move_mount(mount, "", directory, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(err, errno, "mounts: attach %s", target[0] ? target : "the root");
	return 0;
}

static int write_text(int root, const char *target, const char *text, struct error *err)
{
	size_t length = strlen(text);
	autofd fd = openat(root, target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0)
		return fail(err, errno, "mounts: create %s", target);
	if (write(fd, text, length) != (ssize_t)length)
		return fail(err, errno, "mounts: write %s", target);
	return 0;
}

static int copy_file(int directory, int from, const char *name, struct error *err)
{
	autofd to = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	off_t offset = 0;
	ssize_t r;

	if (to < 0)
		return fail(err, errno, "mounts: create %s", name);
	while ((r = sendfile(to, from, &offset, 1 << 20)) > 0)
		;
	return r < 0 ? fail(err, errno, "mounts: copy %s", name) : 0;
}

/* A regular file below a directory of the host, at the same name below one of the
 * root's; what is anything else, too large or not for everybody is left out. */
static int copy_at(int from_directory, const char *from, int to_directory, const char *to,
		   struct error *err)
{
	autofd fd = openat(from_directory, from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat info;

	if (fd < 0)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : fail(err, errno, "mounts: open %s to copy it", from);
	if (fstat(fd, &info) < 0)
		return fail(err, errno, "mounts: stat %s", from);
	if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > COPY_BYTES_MAX ||
	    !(info.st_mode & 0004))
		return 0;
	return copy_file(to_directory, fd, to, err);
}

/* One file, or the files of one directory. */
static int copy_entry(int root, const struct mount_entry *entry, struct error *err)
{
	DIR *directory = opendir(entry->source);
	struct dirent *file;
	autofd target = -1;
	int r = 0;

	if (!directory && errno == ENOTDIR)
		return copy_at(AT_FDCWD, entry->source, root, entry->target, err);
	if (!directory)
		return errno == ENOENT || errno == EACCES
			       ? 0
			       : fail(err, errno, "mounts: open %s", entry->source);
	if (mkdirat(root, entry->target, 0755) < 0)
		r = fail(err, errno, "mounts: mkdir %s", entry->target);
	if (r == 0) {
		target = openat(root, entry->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (target < 0)
			r = fail(err, errno, "mounts: open %s", entry->target);
	}
	while (r == 0 && (file = readdir(directory)))
		if (file->d_name[0] != '.')
			r = copy_at(dirfd(directory), file->d_name, target, file->d_name, err);
	closedir(directory);
	return r;
}

/* The mount point for a bind: a directory or an empty file, as the source is. */
static int make_target(int root, const char *target, int tree, struct error *err)
{
	struct stat info;

	if (fstat(tree, &info) < 0)
		return fail(err, errno, "mounts: stat the source of %s", target);
	if (S_ISDIR(info.st_mode)) {
		if (mkdirat(root, target, 0755) < 0 && errno != EEXIST)
			return fail(err, errno, "mounts: mkdir %s", target);
		return 0;
	}
	return write_text(root, target, "", err);
}

static int add_entry(int root, const struct mount_entry *entry, int tree, struct error *err)
{
	int r;

	switch (entry->kind) {
	case DIRECTORY:
		if (mkdirat(root, entry->target, 0755) < 0 && errno != EEXIST)
			return fail(err, errno, "mounts: mkdir %s", entry->target);
		return 0;
	case LINK:
		if (symlinkat(entry->source, root, entry->target) < 0 && errno != EEXIST)
			return fail(err, errno, "mounts: link %s", entry->target);
		return 0;
	case TEXT:
		return write_text(root, entry->target, entry->source, err);
	case COPY:
		return copy_entry(root, entry, err);
	case BIND_DIRECTORY:
	case BIND_OPTIONAL:
	case BIND_DEVICE:
		if (tree < 0)
			return 0;
		r = make_target(root, entry->target, tree, err);
		return r < 0 ? r : attach(tree, root, entry->target, err);
	}
	return refuse(err, EINVAL, "mounts: bad table");
}

/* The new root must hang somewhere before things can be moved into it. The
 * place is hidden from then on, in this namespace alone. */
static int attach_root(int root, struct error *err)
{
	static const char *const places[] = {"/tmp", "/run", "/mnt", "/var", "/srv"};

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		if (move_mount(root, "", AT_FDCWD, places[i], MOVE_MOUNT_F_EMPTY_PATH) == 0)
			return 0;
	return fail(err, errno, "mounts: attach the root");
}

static int verify_root(struct error *err)
{
	struct statvfs info;

	if (access("/etc/shadow", F_OK) == 0 || access("/root", F_OK) == 0)
		return refuse(err, EPROTO, "mounts: the host's files are still there");
	if (READ_ONLY == 0)
		return 0;
	if (statvfs("/", &info) < 0 || !(info.f_flag & ST_RDONLY))
		return refuse(err, EPROTO, "mounts: the root is not read-only");
	if (statvfs("/usr", &info) < 0 || !(info.f_flag & ST_RDONLY) || !(info.f_flag & ST_NOSUID))
		return refuse(err, EPROTO, "mounts: /usr is not read-only and nosuid");
	return 0;
}

int mounts_build_root(int font_list, const char *font_list_name, struct error *err)
{
	static const char *const root_options[][2] = {
		{"size", "16M"}, {"nr_inodes", "1024"}, {"mode", "0755"}, {NULL, NULL}};
	static const char *const proc_options[][2] = {{NULL, NULL}};
	/* The template's own, for what imports want to write; cells get theirs
	 * mounted over them. */
	static const char *const scratch[] = {"tmp", "var/cache/matplotlib"};
	struct mount_attr read_only = {.attr_set = READ_ONLY};
	int trees[ARRAY_LENGTH(entries)];
	int r = 0;
	autofd root = -1;
	autofd proc = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(err, errno, "mounts: make the tree private");

	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		bool bind = entries[i].kind == BIND_DIRECTORY || entries[i].kind == BIND_OPTIONAL ||
			    entries[i].kind == BIND_DEVICE;

		trees[i] = -1;
		if (!bind)
			continue;
		trees[i] = copy_tree(entries[i].source, entries[i].kind == BIND_DEVICE, err);
		if (trees[i] < 0 && (entries[i].kind != BIND_OPTIONAL || trees[i] != -ENOENT))
			return trees[i];
	}
	/* Needs the host's /proc in sight, and is itself what allows cells to
	 * mount theirs. */
	proc = new_file_system("proc", proc_options,
			       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	if (proc < 0)
		return proc;
	root = new_file_system("tmpfs", root_options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (root < 0)
		return root;
	r = attach_root(root, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		r = add_entry(root, &entries[i], trees[i], err);
		if (r < 0)
			return r;
		if (trees[i] >= 0)
			close(trees[i]);
	}
	if (font_list >= 0) {
		char target[128];

		snprintf(target, sizeof target, "var/cache/execpy/%s", font_list_name);
		r = copy_file(root, font_list, target, err);
		if (r < 0)
			return r;
	}
	r = attach(proc, root, "proc", err);
	if (r < 0)
		return r;
	/* Copies of the root's own directories, taken before it becomes read-only:
	 * cheaper than file systems of their own. */
	for (size_t i = 0; i < ARRAY_LENGTH(scratch); i++) {
		autofd place = open_tree(root, scratch[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

		if (place < 0)
			return fail(err, errno, "mounts: open_tree %s", scratch[i]);
		r = attach(place, root, scratch[i], err);
		if (r < 0)
			return r;
	}
	if (mount_setattr(root, "", AT_EMPTY_PATH, &read_only, sizeof read_only) < 0)
		return fail(err, errno, "mounts: make the root read-only");
	if (fchdir(root) < 0)
		return fail(err, errno, "mounts: enter the root");
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return fail(err, errno, "mounts: pivot_root");
	if (umount2(".", MNT_DETACH) < 0)
		return fail(err, errno, "mounts: detach the old root");
	if (chdir("/") < 0)
		return fail(err, errno, "mounts: chdir /");
	return verify_root(err);
}

uint64_t mounts_inode_limit(uint64_t disk_bytes)
{
	uint64_t inodes = disk_bytes / (4 * KIB);

	if (inodes < 64)
		return 64;
	return inodes > 65536 ? 65536 : inodes;
}

int mounts_build_cell(uint64_t disk_bytes, int *ret_workspace, struct error *err)
{
	static const char *const directories[] = {"workspace", "shm", "matplotlib", "tmp"};
	/* The tmpfs itself hangs at /tmp until its own "tmp" covers it. */
	static const char *const targets[] = {"/workspace", "/dev/shm", "/var/cache/matplotlib",
					      "/tmp"};
	static const char *const proc_options[][2] = {
		{"subset", "pid"}, {"hidepid", "ptraceable"}, {NULL, NULL}};
	char size[32], inodes[32];
	const char *const options[][2] = {
		{"size", size}, {"nr_inodes", inodes}, {"mode", "0755"}, {NULL, NULL}};
	int trees[ARRAY_LENGTH(directories)];
	autofd disk = -1;
	autofd proc = -1;
	autofd workspace = -1;
	int r;

	snprintf(size, sizeof size, "%" PRIu64, disk_bytes);
	snprintf(inodes, sizeof inodes, "%" PRIu64, mounts_inode_limit(disk_bytes));
	disk = new_file_system("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (disk < 0)
		return disk;
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
		if (mkdirat(disk, directories[i], 0700) < 0)
			return fail(err, errno, "mounts: mkdir %s", targets[i]);
	r = attach(disk, AT_FDCWD, "/tmp", err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		trees[i] = open_tree(disk, directories[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (trees[i] < 0)
			return fail(err, errno, "mounts: open_tree %s", targets[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
		r = attach(trees[i], AT_FDCWD, targets[i], err);
		close(trees[i]);
		if (r < 0)
			return r;
	}
	proc = new_file_system("proc", proc_options,
			       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
	if (proc < 0)
		return proc;
	r = attach(proc, AT_FDCWD, "/proc", err);
	if (r < 0)
		return r;
	workspace = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (workspace < 0)
		return fail(err, errno, "mounts: open /workspace");
	if (access("/proc/sys", F_OK) == 0)
		return refuse(err, EPROTO, "mounts: /proc shows more than processes");
	*ret_workspace = take_fd(&workspace);
	return 0;
}
