/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: the table of system calls, and what it means. */
#include "jail/syscalls.h"

#include "base/cleanup.h"

#include <asm/termbits.h> /* termios2; the C library's own header hides it */
#include <errno.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The table's words. */
#define ALLOWED  0
#define BOTH     (FILTER_TEMPLATE | FILTER_CELL)
#define TEMPLATE FILTER_TEMPLATE
#define CELL     FILTER_CELL
#define ANY_BIT  0xffffffff
#define CLONE_NAMESPACES                                                               \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

#define VALUE_COUNT(...) (sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define CONDITION(operation, argument, name, mask, mask_text, values_text, ...)           \
	{                                                                                 \
		operation, argument, mask, VALUE_COUNT(__VA_ARGS__), {__VA_ARGS__}, name, \
			mask_text, values_text                                            \
	}
#define IN(argument, name, mask, ...) \
	CONDITION(ARGUMENT_IN, argument, #name, mask, #mask, #__VA_ARGS__, __VA_ARGS__)
#define NOT_IN(argument, name, mask, ...) \
	CONDITION(ARGUMENT_NOT_IN, argument, #name, mask, #mask, #__VA_ARGS__, __VA_ARGS__)
#define BETWEEN(argument, name, least, most)                                                  \
	CONDITION(ARGUMENT_BETWEEN, argument, #name, ANY_BIT, "ANY_BIT", #least " to " #most, \
		  least, most)
#define WHEN(...)           \
	{                   \
		__VA_ARGS__ \
	}
#define ALWAYS WHEN({0})

#define RULE(stages, call, conditions, verdict, reason) \
	{#call, stages, conditions, verdict, reason},
#define ALLOW(call, reason)         RULE(BOTH, call, ALWAYS, ALLOWED, reason)
#define DENY(call, verdict, reason) RULE(BOTH, call, ALWAYS, verdict, reason)
#define TEMPLATE_ONLY(call, verdict, reason)          \
	RULE(TEMPLATE, call, ALWAYS, ALLOWED, reason) \
	RULE(CELL, call, ALWAYS, verdict, reason)

const struct syscall_rule syscall_rules[] = {
#include "jail/syscalls.def"
};

const size_t syscall_rule_count = ARRAY_LENGTH(syscall_rules);

static bool condition_holds(const struct argument_condition *condition, uint64_t argument)
{
	uint32_t value = (uint32_t)argument & condition->mask;
	bool among = false;

	if (condition->operation == ARGUMENT_BETWEEN)
		return value >= condition->values[0] && value <= condition->values[1];
	for (unsigned int i = 0; i < condition->value_count; i++)
		among |= value == condition->values[i];
	return among == (condition->operation == ARGUMENT_IN);
}

static bool rule_applies(const struct syscall_rule *rule, const uint64_t arguments[6])
{
	for (size_t i = 0; i < RULE_CONDITIONS_MAX; i++) {
		const struct argument_condition *condition = &rule->conditions[i];

		if (condition->operation &&
		    !condition_holds(condition, arguments[condition->argument]))
			return false;
	}
	return true;
}

const struct syscall_rule *syscall_rule_for(const int numbers[], enum filter_stage stage,
					    int number, const uint64_t arguments[6])
{
	for (size_t i = 0; number >= 0 && i < syscall_rule_count; i++) {
		const struct syscall_rule *rule = &syscall_rules[i];

		if (numbers[i] == number && rule->stages & stage && rule_applies(rule, arguments))
			return rule;
	}
	return NULL;
}

int syscall_verdict(const int numbers[], enum filter_stage stage, int number,
		    const uint64_t arguments[6])
{
	const struct syscall_rule *rule = syscall_rule_for(numbers, stage, number, arguments);

	return rule ? rule->verdict : ENOSYS;
}
