/* SPDX-License-Identifier: Apache-2.0 */
/* policy: see policy.h. Policy files are read in policy_file.c. */
#include "policy/policy.h"
#include "policy/policies.h"

#include "base/cleanup.h"
#include "proto/frame.h"

#include <errno.h>
#include <string.h>

struct policy policy_profile(enum profile profile)
{
	struct policy policy = {.profile = profile};

	strncpy(policy.name, profile_names[profile], POLICY_NAME_BYTES_MAX);
	for (size_t i = 0; i < RULE_COUNT; i++)
		policy.severity[i] = rule_infos[i].severity[profile];
	return policy;
}

int policy_find_profile(const char *name, struct policy *ret_policy)
{
	for (size_t i = 0; i < PROFILE_COUNT; i++) {
		if (strcmp(profile_names[i], name) == 0) {
			*ret_policy = policy_profile((enum profile)i);
			return 0;
		}
	}
	return -ENOENT;
}

int policy_find(const char *name, struct policy *ret_policy)
{
	return policy_find_profile(name, ret_policy) == 0 ? 0 : policies_find(name, ret_policy);
}

void policy_free(struct policy *policy)
{
	for (size_t i = 0; i < policy->name_count; i++)
		free(policy->names[i].name);
	for (size_t i = 0; i < policy->path_count; i++)
		free(policy->paths[i].path);
	free(policy->names);
	free(policy->paths);
	policy->names = NULL;
	policy->paths = NULL;
	policy->name_count = policy->path_count = 0;
}

enum policy_field {
	POLICY_NAME = 1,
	POLICY_PROFILE,
	POLICY_SEVERITIES, /* one byte a rule */
	POLICY_ENTRY,      /* severity, module, then the name */
	POLICY_PATH,       /* write, then the path */
};

void policy_encode(const struct policy *policy, struct bytes *out)
{
	uint8_t severities[RULE_COUNT], entry[2 + POLICY_ENTRY_BYTES_MAX];

	for (size_t i = 0; i < RULE_COUNT; i++)
		severities[i] = (uint8_t)policy->severity[i];
	frame_put_text(out, POLICY_NAME, policy->name);
	frame_put_number(out, POLICY_PROFILE, policy->profile);
	frame_put(out, POLICY_SEVERITIES, severities, sizeof severities);
	for (size_t i = 0; i < policy->name_count; i++) {
		size_t length = strlen(policy->names[i].name);

		entry[0] = (uint8_t)policy->names[i].severity;
		entry[1] = policy->names[i].module;
		memcpy(entry + 2, policy->names[i].name, length);
		frame_put(out, POLICY_ENTRY, entry, 2 + length);
	}
	for (size_t i = 0; i < policy->path_count; i++) {
		size_t length = strlen(policy->paths[i].path);

		entry[0] = policy->paths[i].write;
		memcpy(entry + 1, policy->paths[i].path, length);
		frame_put(out, POLICY_PATH, entry, 1 + length);
	}
}

static int decode_entry(struct span value, struct policy *policy)
{
	struct policy_name *grown;
	char *name;

	if (value.length < 3 || value.length > 2 + POLICY_ENTRY_BYTES_MAX ||
	    value.data[0] > SEVERITY_BLOCK || policy->name_count >= POLICY_ENTRIES_MAX)
		return -EBADMSG;
	grown = realloc(policy->names, (policy->name_count + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	policy->names = grown;
	name = span_to_string((struct span){value.data + 2, value.length - 2});
	if (!name)
		return -ENOMEM;
	grown[policy->name_count++] =
		(struct policy_name){name, value.data[1], (enum severity)value.data[0]};
	return 0;
}

static int decode_path(struct span value, struct policy *policy)
{
	struct policy_path *grown;
	char *path;

	if (value.length < 2 || value.length > 1 + POLICY_ENTRY_BYTES_MAX ||
	    policy->path_count >= POLICY_ENTRIES_MAX)
		return -EBADMSG;
	grown = realloc(policy->paths, (policy->path_count + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	policy->paths = grown;
	path = span_to_string((struct span){value.data + 1, value.length - 1});
	if (!path)
		return -ENOMEM;
	grown[policy->path_count++] = (struct policy_path){path, value.data[0]};
	return 0;
}

static int decode_field(const struct field *field, struct policy *policy)
{
	uint64_t number;
	int r;

	switch (field->name) {
	case POLICY_NAME:
		if (field->value.length > POLICY_NAME_BYTES_MAX)
			return -EBADMSG;
		memset(policy->name, 0, sizeof policy->name);
		memcpy(policy->name, field->value.data, field->value.length);
		return 0;
	case POLICY_PROFILE:
		r = field_number(field, &number);
		if (r < 0 || number >= PROFILE_COUNT)
			return -EBADMSG;
		policy->profile = (enum profile)number;
		return 0;
	case POLICY_SEVERITIES:
		if (field->value.length != RULE_COUNT)
			return -EBADMSG;
		for (size_t i = 0; i < RULE_COUNT; i++) {
			if (field->value.data[i] > SEVERITY_BLOCK)
				return -EBADMSG;
			policy->severity[i] = (enum severity)field->value.data[i];
		}
		return 0;
	case POLICY_ENTRY:
		return decode_entry(field->value, policy);
	case POLICY_PATH:
		return decode_path(field->value, policy);
	default:
		return -EBADMSG;
	}
}

int policy_decode(struct span encoded, struct policy *ret_policy, struct error *err)
{
	autopolicy policy = policy_profile(PROFILE_STRICT);
	struct reader reader = reader_of(encoded);
	struct field field;
	bool complete = false;
	int r;

	while ((r = frame_next_field(&reader, &field)) > 0) {
		r = decode_field(&field, &policy);
		if (r < 0)
			return fail(err, -r, "cannot read field %u of a policy", field.name);
		complete |= field.name == POLICY_SEVERITIES;
	}
	if (r < 0 || !complete)
		return fail(err, EBADMSG, "cannot read a policy");
	*ret_policy = policy;
	policy = (struct policy){0};
	return 0;
}

bool policy_name(const struct policy *policy, const char *name, enum severity *ret_severity)
{
	size_t best = 0;

	for (size_t i = 0; i < policy->name_count; i++) {
		const struct policy_name *entry = &policy->names[i];
		size_t length = strlen(entry->name);

		if (length < best || strncmp(name, entry->name, length) != 0)
			continue;
		if (name[length] == '\0' || (entry->module && name[length] == '.')) {
			best = length;
			*ret_severity = entry->severity;
		}
	}
	return best > 0;
}

static bool is_network(enum rule rule)
{
	return rule == RULE_NETWORK || rule == RULE_DOWNLOAD || rule == RULE_SERVER;
}

enum severity policy_module_severity(const struct policy *policy, const char *module,
				     bool network_allowed, enum rule *ret_rule)
{
	char name[POLICY_ENTRY_BYTES_MAX + 1];
	enum severity severity = SEVERITY_OFF;
	size_t length = strlen(module);

	if (policy_name(policy, module, &severity)) {
		if (ret_rule)
			*ret_rule = RULE_MODULE;
		return severity;
	}
	if (length >= sizeof name)
		return SEVERITY_OFF;
	memcpy(name, module, length + 1);
	/* The module itself, then each package above it. */
	for (;;) {
		const struct name_info *info = name_find(name);
		char *dot = strrchr(name, '.');

		if (info && info->kind != NAME_HARD && info->kind != NAME_ALIAS)
			return SEVERITY_OFF;
		if (info && info->kind == NAME_HARD) {
			if (network_allowed && is_network(info->rule))
				return SEVERITY_OFF;
			if (ret_rule)
				*ret_rule = info->rule;
			return policy->severity[info->rule];
		}
		if (!dot)
			return SEVERITY_OFF;
		*dot = '\0';
	}
}

/* Events of PEP 578; a "*" at the end matches any. Events that libraries cause
 * for themselves in honest work are not here (corpus facts in docs/rules.md). */
static const struct {
	const char *event;
	enum rule rule;
} events[] = {
	{"os.system", RULE_PROCESS},
	{"os.exec", RULE_PROCESS},
	{"os.fork", RULE_PROCESS},
	{"os.forkpty", RULE_PROCESS},
	{"os.posix_spawn", RULE_PROCESS},
	{"os.spawn", RULE_PROCESS},
	{"os.startfile*", RULE_PROCESS},
	{"os.kill", RULE_PROCESS},
	{"os.killpg", RULE_PROCESS},
	{"pty.spawn", RULE_PROCESS},
	{"subprocess.Popen", RULE_PROCESS},
	{"webbrowser.open", RULE_PROCESS},
	{"socket.bind", RULE_SERVER},
	{"socket.connect", RULE_NETWORK},
	{"socket.sendto", RULE_NETWORK},
	{"socket.sendmsg", RULE_NETWORK},
	{"socket.getaddrinfo", RULE_NETWORK},
	{"socket.gethostby*", RULE_NETWORK},
	{"socket.getnameinfo", RULE_NETWORK},
	{"urllib.Request", RULE_NETWORK},
	{"http.client.connect", RULE_NETWORK},
	{"ftplib.connect", RULE_NETWORK},
	{"smtplib.connect", RULE_NETWORK},
	{"imaplib.open", RULE_NETWORK},
	{"poplib.connect", RULE_NETWORK},
	{"nntplib.connect", RULE_NETWORK},
	{"telnetlib.Telnet.open", RULE_NETWORK},
	{"ctypes.dlopen", RULE_NATIVE},
	{"ctypes.dlsym*", RULE_NATIVE},
	{"ctypes.call_function", RULE_NATIVE},
	{"ctypes.cdata*", RULE_NATIVE_MEMORY},
	{"ctypes.string_at", RULE_NATIVE_MEMORY},
	{"ctypes.wstring_at", RULE_NATIVE_MEMORY},
	{"sqlite3.enable_load_extension", RULE_NATIVE},
	{"sqlite3.load_extension", RULE_NATIVE},
	{"gc.get_objects", RULE_INTERNALS},
	{"gc.get_referrers", RULE_INTERNALS},
	{"gc.get_referents", RULE_INTERNALS},
	{"sys._getframe", RULE_INTERNALS},
	{"sys._current_frames", RULE_INTERNALS},
	{"sys.settrace", RULE_HOOKS},
	{"sys.setprofile", RULE_HOOKS},
	{"sys.addaudithook", RULE_HOOKS},
	{"builtins.breakpoint", RULE_DYNAMIC_CODE},
	{"function.__new__", RULE_CODE_OBJECT},
	{"marshal.loads", RULE_CODE_OBJECT},
	{"marshal.load", RULE_CODE_OBJECT},
	{"cpython.run_*", RULE_CODE_OBJECT},
	{"resource.setrlimit", RULE_LIMITS},
	{"resource.prlimit", RULE_LIMITS},
	{"signal.pthread_kill", RULE_SIGNALS},
	{"syslog.*", RULE_MODULE},
};

enum severity policy_event_severity(const struct policy *policy, const char *event,
				    bool network_allowed, enum rule *ret_rule)
{
	for (size_t i = 0; i < ARRAY_LENGTH(events); i++) {
		size_t length = strlen(events[i].event);
		bool open_end = events[i].event[length - 1] == '*';

		if (strncmp(event, events[i].event, length - open_end) != 0 ||
		    (!open_end && event[length] != '\0'))
			continue;
		if (network_allowed && is_network(events[i].rule))
			return SEVERITY_OFF;
		if (ret_rule)
			*ret_rule = events[i].rule;
		return policy->severity[events[i].rule];
	}
	return SEVERITY_OFF;
}

static bool path_is_added(const struct policy *policy, const char *text, bool write)
{
	for (size_t i = 0; i < policy->path_count; i++) {
		const struct policy_path *entry = &policy->paths[i];
		size_t length = strlen(entry->path);

		if ((entry->write || !write) && strncmp(text, entry->path, length) == 0 &&
		    (text[length] == '\0' || text[length] == '/'))
			return true;
	}
	return false;
}

enum severity policy_path_severity(const struct policy *policy, struct span path, bool prefix,
				   bool write, enum rule *ret_rule)
{
	enum path_place place = path_place(path, prefix);
	enum rule rule = RULE_COUNT;
	char text[PATH_TEXT_MAX];

	switch (place) {
	case PATH_INSIDE:
	case PATH_UNKNOWN:
		break;
	case PATH_OUTSIDE:
		rule = write ? RULE_WRITE_OUTSIDE : RULE_COUNT;
		break;
	case PATH_SHARED:
		rule = write ? RULE_WRITE_SYSTEM : RULE_COUNT;
		break;
	case PATH_SYSTEM:
		rule = write ? RULE_WRITE_SYSTEM : RULE_READ_SYSTEM;
		break;
	case PATH_SECRET:
		rule = write ? RULE_WRITE_SYSTEM : RULE_READ_SECRET;
		break;
	}
	if (rule == RULE_COUNT ||
	    (path_normalize(path, prefix, text) && path_is_added(policy, text, write)))
		return SEVERITY_OFF;
	if (ret_rule)
		*ret_rule = rule;
	return policy->severity[rule];
}
