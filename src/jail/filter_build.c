/* SPDX-License-Identifier: Apache-2.0 */
/* filter_build: makes the seccomp programs and their document from the table.
 * Runs at build time only.
 *
 *   filter_build filters x86_64|aarch64 OUTPUT.c
 *   filter_build document OUTPUT.md
 *   filter_build check DOCUMENT.md     exit status 1 when it is out of date
 *
 * Before anything is written both programs are run in a simulator for every
 * call number and for the edges of every argument rule; one difference from
 * syscall_verdict(), or an instruction that is never reached, fails the build. */
#include "jail/filter_compile.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX             1024
#define CELL_INSTRUCTIONS_MAX 40 /* each costs a microsecond in every cell */

struct architecture {
	const char *name;
	uint32_t audit;
	uint32_t library; /* SCMP_ARCH_* */
};

static const struct architecture architectures[] = {
	{"x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64},
	{"aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64},
};

/* Calls newer than the oldest libseccomp that we build with. Since 424 a call
 * has one number on all architectures. */
static const struct {
	const char *call;
	int number;
} newer_calls[] = {
	{"statmount", 457},         {"listmount", 458},        {"lsm_get_self_attr", 459},
	{"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
	{"setxattrat", 463},        {"getxattrat", 464},       {"listxattrat", 465},
	{"removexattrat", 466},     {"open_tree_attr", 467},   {"file_getattr", 468},
	{"file_setattr", 469},      {"listns", 470},
};

static _Noreturn void give_up(const char *reason, const char *subject)
{
	fprintf(stderr, "filter_build: %s: %s\n", subject, reason);
	exit(EXIT_FAILURE);
}

static int call_number(const struct architecture *architecture, const char *call)
{
	int number = seccomp_syscall_resolve_name_arch(architecture->library, call);

	if (number >= 0)
		return number;
	for (size_t i = 0; i < ARRAY_LENGTH(newer_calls); i++)
		if (strcmp(newer_calls[i].call, call) == 0)
			return newer_calls[i].number;
	return -1;
}

/* Fails for a call that neither architecture has (a typing error), and for one
 * that this architecture has and the table forgot. */
static void resolve_numbers(const struct architecture *architecture, int *ret_numbers)
{
	int highest = 0;

	if (syscall_rule_count > RULES_MAX)
		give_up("too many rules", "table");
	for (size_t i = 0; i < syscall_rule_count; i++) {
		const char *call = syscall_rules[i].call;
		bool known = false;

		for (size_t a = 0; a < ARRAY_LENGTH(architectures); a++)
			known |= call_number(&architectures[a], call) >= 0;
		if (!known)
			give_up("no architecture has such a call", call);
		ret_numbers[i] = call_number(architecture, call);
		if (ret_numbers[i] > highest)
			highest = ret_numbers[i];
	}
	for (int number = 0; number <= highest; number++) {
		char *call = seccomp_syscall_resolve_num_arch(architecture->library, number);
		bool named = !call || strcmp(call, "uretprobe") == 0 || strcmp(call, "uprobe") == 0;

		for (size_t i = 0; i < syscall_rule_count && !named; i++)
			named = ret_numbers[i] == number;
		if (!named)
			give_up("the table has no rule for it", call);
		free(call);
	}
}

/* Proof of the programs. */

static uint32_t as_return_value(int verdict)
{
	return verdict ? SECCOMP_RET_ERRNO | (uint32_t)verdict : SECCOMP_RET_ALLOW;
}

/* What the kernel makes of two filters; the newer one is asked first. */
static uint32_t stricter(uint32_t newer, uint32_t older)
{
	return (int32_t)(older & SECCOMP_RET_ACTION_FULL) <
			       (int32_t)(newer & SECCOMP_RET_ACTION_FULL)
		       ? older
		       : newer;
}

static void prove_call(const int numbers[], struct filter *template, struct filter *cell,
		       const struct seccomp_data *data)
{
	uint64_t arguments[6];
	uint32_t older = filter_simulate(template, data);
	uint32_t newer = filter_simulate(cell, data);
	int in_template, in_cell;

	memcpy(arguments, data->args, sizeof arguments);
	in_template = syscall_verdict(numbers, FILTER_TEMPLATE, data->nr, arguments);
	in_cell = syscall_verdict(numbers, FILTER_CELL, data->nr, arguments);
	if (older == as_return_value(in_template) &&
	    stricter(newer, older) == as_return_value(in_cell))
		return;
	fprintf(stderr,
		"filter_build: call %d (%#llx, %#llx, %#llx): template %d, filter %#x; "
		"cell %d, both filters %#x\n",
		data->nr, (unsigned long long)arguments[0], (unsigned long long)arguments[1],
		(unsigned long long)arguments[2], in_template, older, in_cell,
		stricter(newer, older));
	exit(EXIT_FAILURE);
}

static void prove_number(const int numbers[], struct filter *template, struct filter *cell,
			 struct seccomp_data data)
{
	static uint64_t samples[3][FILTER_SAMPLES_MAX];
	size_t counts[3];

	for (unsigned int a = 0; a < 3; a++)
		counts[a] = filter_argument_samples(numbers, data.nr, a, samples[a]);
	for (size_t i = 0; i < counts[0]; i++) {
		for (size_t j = 0; j < counts[1]; j++) {
			for (size_t k = 0; k < counts[2]; k++) {
				data.args[0] = samples[0][i];
				data.args[1] = samples[1][j];
				data.args[2] = samples[2][k];
				prove_call(numbers, template, cell, &data);
			}
		}
	}
}

static void prove_all_visited(const struct filter *filter)
{
	for (size_t i = 0; i < filter->length; i++) {
		if (filter->visited[i])
			continue;
		fprintf(stderr, "filter_build: instruction %zu of %zu is never reached\n", i,
			filter->length);
		exit(EXIT_FAILURE);
	}
}

static void prove_filters(const struct architecture *architecture, const int numbers[],
			  struct filter *template, struct filter *cell)
{
	static const uint32_t beyond[] = {0x3fffffff, 0x40000000, 0x40000001, 0x40000208,
					  0x7fffffff, 0x80000000, 0xffffffff};
	struct seccomp_data data = {.arch = architecture->audit};

	for (size_t i = 0; i < syscall_rule_count; i++)
		for (size_t c = 0; c < RULE_CONDITIONS_MAX; c++)
			if (syscall_rules[i].conditions[c].argument > 2)
				give_up("the proof looks at three arguments",
					syscall_rules[i].call);
	for (data.nr = 0; data.nr < 2048; data.nr++)
		prove_number(numbers, template, cell, data);
	for (size_t i = 0; i < ARRAY_LENGTH(beyond); i++) {
		data.nr = (int)beyond[i];
		prove_number(numbers, template, cell, data);
	}
	for (size_t a = 0; a < ARRAY_LENGTH(architectures); a++) {
		data = (struct seccomp_data){.arch = architectures[a].audit & ~__AUDIT_ARCH_64BIT};
		if (filter_simulate(template, &data) != SECCOMP_RET_KILL_PROCESS ||
		    filter_simulate(cell, &data) != SECCOMP_RET_KILL_PROCESS)
			give_up("another architecture gets through", architecture->name);
	}
	prove_all_visited(template);
	prove_all_visited(cell);
	if (cell->length > CELL_INSTRUCTIONS_MAX) {
		fprintf(stderr,
			"filter_build: the cell's filter has %zu instructions, %d are wanted\n",
			cell->length, CELL_INSTRUCTIONS_MAX);
		exit(EXIT_FAILURE);
	}
}

/* Output. */

static void write_filter(FILE *output, const char *name, const struct filter *filter)
{
	fprintf(output, "\nconst size_t %s_length = %zu;\nconst struct sock_filter %s[] = {\n",
		name, filter->length, name);
	for (size_t i = 0; i < filter->length; i++)
		fprintf(output, "\t{%#06x, %u, %u, %#x},\n", filter->code[i].code,
			filter->code[i].jt, filter->code[i].jf, filter->code[i].k);
	fprintf(output, "};\n");
}

static void write_filters(FILE *output, const struct architecture *architecture)
{
	static struct filter template, cell;
	static int numbers[RULES_MAX];

	resolve_numbers(architecture, numbers);
	filter_compile(FILTER_TEMPLATE, numbers, architecture->audit, &template);
	filter_compile(FILTER_CELL, numbers, architecture->audit, &cell);
	prove_filters(architecture, numbers, &template, &cell);
	fprintf(output, "/* Made by filter_build from syscalls.def for %s. */\n",
		architecture->name);
	fprintf(output, "#include \"jail/syscalls.h\"\n\n#include <linux/filter.h>\n");
	write_filter(output, "filter_template", &template);
	write_filter(output, "filter_cell", &cell);
	fprintf(output, "\nconst int syscall_rule_numbers[] = {\n");
	for (size_t i = 0; i < syscall_rule_count; i++)
		fprintf(output, "\t%d, /* %s */\n", numbers[i], syscall_rules[i].call);
	fprintf(output, "};\n");
}

static void write_condition(FILE *output, const struct argument_condition *condition)
{
	static const char *const words[] = {
		[ARGUMENT_IN] = "is", [ARGUMENT_NOT_IN] = "is not", [ARGUMENT_BETWEEN] = "is"};

	fprintf(output, "%s", condition->argument_name);
	if (condition->mask != UINT32_MAX)
		fprintf(output, " & %s", condition->mask_text);
	fprintf(output, " %s%s%s", words[condition->operation],
		condition->value_count > 1 && condition->operation != ARGUMENT_BETWEEN ? " one of "
										       : " ",
		condition->values_text);
}

static void write_verdict(FILE *output, int verdict)
{
	fprintf(output, "%s", verdict ? strerrorname_np(verdict) : "allowed");
}

/* Both stages of a call that only the template may make go on one line. */
static bool is_other_stage(const struct syscall_rule *rule, const struct syscall_rule *next)
{
	return strcmp(rule->call, next->call) == 0 && rule->stages == FILTER_TEMPLATE &&
	       next->stages == FILTER_CELL && !rule->conditions[0].operation &&
	       !next->conditions[0].operation;
}

static const char *only_on(const char *call)
{
	bool first = call_number(&architectures[0], call) >= 0;
	bool second = call_number(&architectures[1], call) >= 0;

	return first && second ? "" : first ? " (x86-64)" : " (arm64)";
}

static void write_document(FILE *output)
{
	static const char head[] =
		"<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
		"<!-- Made by `filter_build document` from src/jail/syscalls.def; do not edit. "
		"-->\n"
		"# System calls\n\n"
		"What a template (while cells are made) and a cell (user code) may ask of the "
		"kernel. The rules of one call are tried from top to bottom. A call that is not "
		"listed gets ENOSYS, as from a kernel that does not have it; x32 numbers do too. "
		"A call for another architecture (`int 0x80`) ends the process. A dash means that "
		"the rule is not looked at in that stage.\n\n"
		"| call | when | template | cell | why |\n|---|---|---|---|---|\n";

	fputs(head, output);
	for (size_t i = 0; i < syscall_rule_count; i++) {
		const struct syscall_rule *rule = &syscall_rules[i], *cell = rule;

		if (i + 1 < syscall_rule_count && is_other_stage(rule, rule + 1))
			cell = &syscall_rules[++i];
		fprintf(output, "| `%s`%s | ", rule->call, only_on(rule->call));
		for (size_t c = 0; c < RULE_CONDITIONS_MAX; c++) {
			if (!rule->conditions[c].operation)
				continue;
			fputs(c > 0 ? ", " : "", output);
			write_condition(output, &rule->conditions[c]);
		}
		fputs(" | ", output);
		if (rule->stages & FILTER_TEMPLATE)
			write_verdict(output, rule->verdict);
		else
			fputs("-", output);
		fputs(" | ", output);
		if (cell->stages & FILTER_CELL)
			write_verdict(output, cell->verdict);
		else
			fputs("-", output);
		fprintf(output, " | %s |\n", rule->reason);
	}
}

static int check_document(const char *path)
{
	autofree char *wanted = NULL;
	autofree char *found = NULL;
	size_t wanted_size, found_size;
	autofile *file = fopen(path, "r");
	FILE *memory = open_memstream(&wanted, &wanted_size);

	if (!file || !memory)
		give_up(strerror(errno), path);
	write_document(memory);
	fclose(memory);
	found = malloc(wanted_size + 1);
	if (!found)
		give_up(strerror(errno), path);
	found_size = fread(found, 1, wanted_size + 1, file);
	if (found_size == wanted_size && memcmp(found, wanted, wanted_size) == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "filter_build: %s is out of date; run: filter_build document %s\n", path,
		path);
	return EXIT_FAILURE;
}

static FILE *open_output(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		give_up(strerror(errno), path);
	return file;
}

static int close_output(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if (fclose(file) != 0 || failed)
		give_up("cannot be written", path);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "filters") == 0) {
		for (size_t i = 0; i < ARRAY_LENGTH(architectures); i++) {
			if (strcmp(architectures[i].name, argv[2]) == 0) {
				FILE *output = open_output(argv[3]);

				write_filters(output, &architectures[i]);
				return close_output(output, argv[3]);
			}
		}
		give_up("the architecture is not supported", argv[2]);
	}
	if (argc == 3 && strcmp(argv[1], "document") == 0) {
		FILE *output = open_output(argv[2]);

		write_document(output);
		return close_output(output, argv[2]);
	}
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check_document(argv[2]);
	fprintf(stderr, "usage: filter_build filters x86_64|aarch64 OUTPUT.c\n"
			"       filter_build document OUTPUT.md\n"
			"       filter_build check DOCUMENT.md\n");
	return 2;
}
