/* SPDX-License-Identifier: Apache-2.0 */
/* paths: see paths.h. */
#include "policy/paths.h"

#include "base/cleanup.h"

#include <string.h>

static const char workspace[] = "/workspace";

/* The longest match decides. A name ending in "*" matches as a beginning,
 * others with everything below. */
static const struct {
	const char *path;
	enum path_place place;
} places[] = {
	{"/workspace", PATH_INSIDE},
	{"/tmp", PATH_INSIDE},
	{"/dev/shm", PATH_INSIDE},
	{"/dev/null", PATH_INSIDE},
	{"/dev/zero", PATH_INSIDE},
	{"/dev/full", PATH_INSIDE},
	{"/dev/random", PATH_INSIDE},
	{"/dev/urandom", PATH_INSIDE},
	{"/dev/stdin", PATH_INSIDE},
	{"/dev/stdout", PATH_INSIDE},
	{"/dev/stderr", PATH_INSIDE},
	{"/dev/fd", PATH_SYSTEM},
	{"/dev/fd/0", PATH_INSIDE},
	{"/dev/fd/1", PATH_INSIDE},
	{"/dev/fd/2", PATH_INSIDE},
	{"/dev", PATH_SYSTEM},
	{"/dev/mem", PATH_SECRET},
	{"/dev/kmem", PATH_SECRET},
	{"/etc", PATH_SYSTEM},
	{"/etc/localtime", PATH_SHARED},
	{"/etc/timezone", PATH_SHARED},
	{"/etc/mime.types", PATH_SHARED},
	{"/etc/shadow", PATH_SECRET},
	{"/etc/gshadow", PATH_SECRET},
	{"/etc/sudoers", PATH_SECRET},
	{"/etc/ssh", PATH_SECRET},
	{"/etc/ssl/private", PATH_SECRET},
	{"/proc", PATH_SYSTEM},
	{"/proc/kcore", PATH_SECRET},
	{"/proc/cpuinfo", PATH_SHARED},
	{"/proc/meminfo", PATH_SHARED},
	{"/sys", PATH_SYSTEM},
	{"/boot", PATH_SYSTEM},
	{"/root", PATH_SYSTEM},
	{"/var", PATH_SYSTEM},
	{"/var/run/secrets", PATH_SECRET},
	{"/run", PATH_SYSTEM},
	{"/run/secrets", PATH_SECRET},
	{"/usr", PATH_SYSTEM},
	{"/usr/share", PATH_SHARED},
	{"/usr/lib/python3", PATH_SHARED},
	{"/lib", PATH_SYSTEM},
	{"/lib64", PATH_SYSTEM},
	{"/bin", PATH_SYSTEM},
	{"/sbin", PATH_SYSTEM},
	{"/lost+found", PATH_SYSTEM},
};

/* Components that hold secrets wherever they stand outside the workspace. */
static const char *const secret_components[] = {
	".ssh",    ".aws",       ".gnupg",           ".netrc",        ".pgpass",
	".docker", ".kube",      ".git-credentials", ".bash_history", ".pypirc",
	"id_rsa",  "id_ed25519", "environ",          "mem",           ".config",
};

bool path_normalize(struct span path, bool prefix, char ret_path[PATH_TEXT_MAX])
{
	const char *at = (const char *)path.data;
	size_t left = path.length, used = 0;

	if (left >= 7 && memcmp(at, "file://", 7) == 0)
		at += 7, left -= 7;
	else if (left >= 5 && memcmp(at, "file:", 5) == 0)
		at += 5, left -= 5;
	if (left >= PATH_TEXT_MAX / 2 || memchr(at, '\0', left))
		return false;
	if (!left || *at != '/') {
		memcpy(ret_path, workspace, sizeof workspace - 1);
		used = sizeof workspace - 1;
	}
	while (left) {
		const char *end = memchr(at, '/', left);
		size_t length = end ? (size_t)(end - at) : left;

		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (used && ret_path[--used] != '/')
				;
		} else if (length && !(length == 1 && at[0] == '.')) {
			ret_path[used++] = '/';
			memcpy(ret_path + used, at, length);
			used += length;
		}
		at += length;
		left -= length;
		if (left) {
			at++;
			left--;
			if (!left && prefix)
				ret_path[used++] = '/';
		}
	}
	if (!used)
		ret_path[used++] = '/';
	ret_path[used] = '\0';
	return true;
}

static bool has_secret_component(const char *path)
{
	while (*path) {
		size_t length;

		path += strspn(path, "/");
		length = strcspn(path, "/");
		for (size_t i = 0; i < ARRAY_LENGTH(secret_components); i++)
			if (strlen(secret_components[i]) == length &&
			    memcmp(path, secret_components[i], length) == 0)
				return true;
		path += length;
	}
	return false;
}

enum path_place path_place(struct span path, bool prefix)
{
	char text[PATH_TEXT_MAX];
	enum path_place place = PATH_OUTSIDE;
	size_t length, best = 0;

	if (!path.length)
		return prefix ? PATH_UNKNOWN : PATH_INSIDE;
	if (!path_normalize(path, prefix, text))
		return PATH_UNKNOWN;
	length = strlen(text);
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		size_t known = strlen(places[i].path);

		/* What is known so far may still become a place inside. */
		if (prefix && places[i].place == PATH_INSIDE && known >= length &&
		    memcmp(places[i].path, text, length) == 0)
			return PATH_UNKNOWN;
		if (length >= known && known > best && memcmp(text, places[i].path, known) == 0 &&
		    (text[known] == '\0' || text[known] == '/')) {
			best = known;
			place = places[i].place;
		}
	}
	/* "/usr/lib/python3" stands for every version. */
	if (strncmp(text, "/usr/lib/python3", 16) == 0)
		place = PATH_SHARED;
	if (place != PATH_INSIDE && place != PATH_SHARED && has_secret_component(text))
		place = PATH_SECRET;
	return place;
}
