/* SPDX-License-Identifier: Apache-2.0 */
/* filter_compile: see filter_compile.h.
 *
 * Theory of operation. libseccomp is asked for numbers only. Its rules know no
 * order and no "otherwise": "this errno unless the argument is one of three"
 * cannot be written in it when the filter's default is another errno, and its
 * programs are three times as long, which is paid for in each cell.
 *
 * A program is built from its end to its start, so that every jump's target is
 * there when the jump is written. A place is counted from the end. No
 * instruction but a load ever falls through to the next one, so a return or a
 * long jump may be put between any two, wherever a target is out of the reach
 * of a conditional jump (255 instructions). */
#include "jail/filter_compile.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REACH            250  /* 255, less what is put in between */
#define NUMBERS_MAX      1024 /* no call is known by a number above */
#define SINGLES_TEMPLATE 3    /* this many single numbers are compared one by one */
#define SINGLES_CELL     24   /* few numbers are of interest there: one by one is shortest */
#define NO_ARGUMENT      UINT32_MAX

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half of an argument is first");

/* A piece of code that works on an argument under a mask. It begins at
 * `loaded_at` for those that have just loaded the same; the load is written
 * when somebody comes who has not. */
struct entry {
	size_t loaded_at, at;    /* at: 0 as long as there is no load */
	uint32_t argument, mask; /* argument NO_ARGUMENT: needs no load */
};

/* Where a call number leads to. */
struct leaf {
	bool has_rules;
	uint32_t verdict; /* a SECCOMP_RET_* value, when there are no rules */
	size_t at;        /* when there are */
};

struct span_of_numbers {
	uint32_t first; /* up to the next span's first */
	struct leaf leaf;
};

struct builder {
	struct sock_filter code[FILTER_INSTRUCTIONS_MAX]; /* from the end */
	size_t length;
	struct span_of_numbers spans[NUMBERS_MAX];
	size_t span_count, singles_max;
};

static _Noreturn void give_up(const char *reason, const char *subject)
{
	fprintf(stderr, "filter_build: %s: %s\n", subject, reason);
	exit(EXIT_FAILURE);
}

static size_t emit(struct builder *builder, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (builder->length == FILTER_INSTRUCTIONS_MAX)
		give_up("the program is too long", "filter");
	builder->code[builder->length] = (struct sock_filter){code, jt, jf, k};
	return builder->length++;
}

/* A return of the verdict that a conditional jump can reach from here. */
static size_t emit_return(struct builder *builder, uint32_t verdict)
{
	for (size_t back = 1; back <= builder->length && back <= REACH; back++) {
		const struct sock_filter *at = &builder->code[builder->length - back];

		if (at->code == (BPF_RET | BPF_K) && at->k == verdict)
			return builder->length - back;
	}
	return emit(builder, BPF_RET | BPF_K, 0, 0, verdict);
}

static size_t reachable(struct builder *builder, size_t target)
{
	if (builder->length - target <= REACH)
		return target;
	return emit(builder, BPF_JMP | BPF_JA, 0, 0, (uint32_t)(builder->length - target - 1));
}

static size_t emit_jump(struct builder *builder, uint16_t test, uint32_t k, size_t then,
			size_t otherwise)
{
	size_t far;

	then = reachable(builder, then);
	otherwise = reachable(builder, otherwise);
	far = builder->length - (then < otherwise ? then : otherwise) - 1;
	if (far > UINT8_MAX)
		give_up("a jump is too long", "filter");
	return emit(builder, BPF_JMP | test | BPF_K, (uint8_t)(builder->length - then - 1),
		    (uint8_t)(builder->length - otherwise - 1), k);
}

static int compare_values(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Compares what is loaded with a list of values, smallest first; three or more
 * neighbours are compared as one range. */
static size_t emit_among(struct builder *builder, const struct argument_condition *condition,
			 size_t among, size_t not_among)
{
	uint32_t values[ARGUMENT_VALUES_MAX];
	unsigned int count = condition->value_count;
	size_t next = not_among;

	if (condition->operation == ARGUMENT_BETWEEN) {
		next = emit_jump(builder, BPF_JGT, condition->values[1], not_among, among);
		return emit_jump(builder, BPF_JGE, condition->values[0], next, not_among);
	}
	if (count == 1 && condition->values[0] == 0)
		return emit_jump(builder, BPF_JSET, condition->mask, not_among, among);
	memcpy(values, condition->values, count * sizeof values[0]);
	qsort(values, count, sizeof values[0], compare_values);
	while (count > 0) {
		unsigned int run = 1;

		while (run < count && values[count - run - 1] == values[count - 1] - run)
			run++;
		if (run > 2) {
			size_t upper = emit_jump(builder, BPF_JGT, values[count - 1], next, among);

			next = emit_jump(builder, BPF_JGE, values[count - run], upper, not_among);
			count -= run;
		} else {
			next = emit_jump(builder, BPF_JEQ, values[--count], among, next);
		}
	}
	return next;
}

/* A test that compares with zero needs no masking first, see JSET above. */
static bool needs_mask(const struct argument_condition *condition)
{
	return condition->mask != UINT32_MAX &&
	       !(condition->value_count == 1 && condition->values[0] == 0);
}

/* Goes on right behind the newest instruction, as a load does. */
static void fall_through_to(struct builder *builder, size_t target)
{
	if (target != builder->length - 1)
		emit(builder, BPF_JMP | BPF_JA, 0, 0, (uint32_t)(builder->length - target - 1));
}

static size_t way_into(struct builder *builder, struct entry *entry)
{
	if (entry->argument == NO_ARGUMENT)
		return entry->loaded_at;
	if (entry->at)
		return entry->at;
	fall_through_to(builder, entry->loaded_at);
	if (entry->mask != UINT32_MAX)
		emit(builder, BPF_ALU | BPF_AND | BPF_K, 0, 0, entry->mask);
	entry->at = emit(builder, BPF_LD | BPF_W | BPF_ABS, 0, 0,
			 (uint32_t)(offsetof(struct seccomp_data, args) + 8 * entry->argument));
	return entry->at;
}

static size_t way_into_from(struct builder *builder, struct entry *entry, uint32_t argument,
			    uint32_t mask)
{
	return entry->argument == argument && entry->mask == mask ? entry->loaded_at
								  : way_into(builder, entry);
}

/* "If the condition holds go to `then`, else to `otherwise`". */
static struct entry emit_condition(struct builder *builder,
				   const struct argument_condition *condition, struct entry *then,
				   struct entry *otherwise)
{
	struct entry entry = {
		.argument = condition->argument,
		.mask = needs_mask(condition) ? condition->mask : UINT32_MAX,
	};
	size_t yes = way_into_from(builder, then, entry.argument, entry.mask);
	size_t no = way_into_from(builder, otherwise, entry.argument, entry.mask);

	if (condition->operation == ARGUMENT_NOT_IN)
		entry.loaded_at = emit_among(builder, condition, no, yes);
	else
		entry.loaded_at = emit_among(builder, condition, yes, no);
	return entry;
}

static uint32_t verdict_value(int verdict)
{
	return verdict ? SECCOMP_RET_ERRNO | (uint32_t)verdict : SECCOMP_RET_ALLOW;
}

/* The rules of one call in one stage, last to first. */
static struct leaf compile_rules(struct builder *builder, enum filter_stage stage, size_t first,
				 size_t count)
{
	struct entry otherwise = {.argument = NO_ARGUMENT};
	struct leaf leaf = {.has_rules = false};
	bool closed = false;

	for (size_t i = count; i-- > 0;) {
		const struct syscall_rule *rule = &syscall_rules[first + i];
		struct entry then = {.argument = NO_ARGUMENT};

		if (!(rule->stages & stage))
			continue;
		if (!rule->conditions[0].operation) {
			if (closed)
				give_up("a rule stands behind an unconditional one", rule->call);
			closed = true;
			leaf.verdict = verdict_value(rule->verdict);
			continue;
		}
		if (!closed)
			give_up("has no unconditional last rule", rule->call);
		if (!leaf.has_rules)
			otherwise.loaded_at = emit_return(builder, leaf.verdict);
		leaf.has_rules = true;
		then.loaded_at = emit_return(builder, verdict_value(rule->verdict));
		for (size_t c = RULE_CONDITIONS_MAX; c-- > 0;)
			if (rule->conditions[c].operation)
				then = emit_condition(builder, &rule->conditions[c], &then,
						      &otherwise);
		otherwise = then;
	}
	if (!closed)
		give_up("has no rule for one stage", syscall_rules[first].call);
	leaf.at = way_into(builder, &otherwise);
	return leaf;
}

static bool same_leaf(const struct leaf *a, const struct leaf *b)
{
	if (a->has_rules != b->has_rules)
		return false;
	return a->has_rules ? a->at == b->at : a->verdict == b->verdict;
}

static size_t leaf_place(struct builder *builder, const struct leaf *leaf)
{
	return leaf->has_rules ? leaf->at : emit_return(builder, leaf->verdict);
}

/* True when the spans are one background with single numbers in it. */
static bool is_background_with_singles(const struct builder *builder, size_t first, size_t count)
{
	size_t singles = 0;

	for (size_t i = first; i < first + count; i++) {
		if (same_leaf(&builder->spans[i].leaf, &builder->spans[first].leaf))
			continue;
		if (i + 1 == first + count)
			return false;
		singles += builder->spans[i + 1].first - builder->spans[i].first;
	}
	return singles <= builder->singles_max;
}

/* A search tree over the call numbers; the number is loaded. */
static size_t emit_numbers(struct builder *builder, size_t first, size_t count)
{
	const struct span_of_numbers *spans = builder->spans;
	size_t half = count / 2, left, right;

	if (count == 1)
		return leaf_place(builder, &spans[first].leaf);
	if (is_background_with_singles(builder, first, count)) {
		size_t next = leaf_place(builder, &spans[first].leaf);

		for (size_t i = first + count - 1; i-- > first;) {
			if (same_leaf(&spans[i].leaf, &spans[first].leaf))
				continue;
			for (uint32_t number = spans[i + 1].first; number-- > spans[i].first;)
				next = emit_jump(builder, BPF_JEQ, number,
						 leaf_place(builder, &spans[i].leaf), next);
		}
		return next;
	}
	right = emit_numbers(builder, first + half, count - half);
	left = emit_numbers(builder, first, half);
	return emit_jump(builder, BPF_JGE, spans[first + half].first, right, left);
}

static void add_span(struct builder *builder, uint32_t first, const struct leaf *leaf)
{
	size_t count = builder->span_count;

	if (count > 0 && same_leaf(&builder->spans[count - 1].leaf, leaf))
		return;
	if (count == ARRAY_LENGTH(builder->spans))
		give_up("too many calls", "filter");
	builder->spans[builder->span_count++] = (struct span_of_numbers){first, *leaf};
}

/* How many rules the call of this rule has; they stand together. */
static size_t rules_of_call(size_t first)
{
	size_t count = 1;

	while (first + count < syscall_rule_count &&
	       strcmp(syscall_rules[first].call, syscall_rules[first + count].call) == 0)
		count++;
	return count;
}

static void compile_calls(struct builder *builder, enum filter_stage stage, const int numbers[])
{
	static struct leaf leaves[NUMBERS_MAX];
	const struct leaf unnamed = {
		.verdict = verdict_value(stage == FILTER_TEMPLATE ? ENOSYS : 0),
	};
	static bool named[NUMBERS_MAX];

	memset(named, 0, sizeof named);
	for (size_t i = 0; i < NUMBERS_MAX; i++)
		leaves[i] = unnamed;
	for (size_t first = 0, count; first < syscall_rule_count; first += count) {
		bool differs = stage == FILTER_TEMPLATE;

		count = rules_of_call(first);
		for (size_t i = 0; i < count; i++)
			differs |=
				syscall_rules[first + i].stages != (FILTER_TEMPLATE | FILTER_CELL);
		if (numbers[first] < 0)
			continue;
		if (numbers[first] >= NUMBERS_MAX - 1 || named[numbers[first]])
			give_up("number out of range, or rules that do not stand together",
				syscall_rules[first].call);
		named[numbers[first]] = true;
		if (differs)
			leaves[numbers[first]] = compile_rules(builder, stage, first, count);
	}
	/* The last one is never named and stands for all above. */
	for (uint32_t number = 0; number < NUMBERS_MAX; number++)
		add_span(builder, number, &leaves[number]);
}

void filter_compile(enum filter_stage stage, const int numbers[], uint32_t architecture,
		    struct filter *ret_filter)
{
	static struct builder builder;
	size_t tree, kill;

	builder = (struct builder){
		.singles_max = stage == FILTER_CELL ? SINGLES_CELL : SINGLES_TEMPLATE,
	};
	compile_calls(&builder, stage, numbers);
	tree = emit_numbers(&builder, 0, builder.span_count);
	fall_through_to(&builder, tree);
	tree = emit(&builder, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	kill = emit_return(&builder, SECCOMP_RET_KILL_PROCESS);
	emit_jump(&builder, BPF_JEQ, architecture, tree, kill);
	emit(&builder, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	*ret_filter = (struct filter){.length = builder.length};
	for (size_t i = 0; i < builder.length; i++)
		ret_filter->code[i] = builder.code[builder.length - 1 - i];
}

uint32_t filter_simulate(struct filter *filter, const struct seccomp_data *data)
{
	uint32_t loaded = 0;

	for (size_t at = 0; at < filter->length; at++) {
		const struct sock_filter *step = &filter->code[at];
		bool holds;

		filter->visited[at] = true;
		switch (step->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (step->k % 4 || step->k > sizeof *data - 4)
				give_up("a load outside of the data", "simulator");
			memcpy(&loaded, (const char *)data + step->k, sizeof loaded);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			loaded &= step->k;
			continue;
		case BPF_RET | BPF_K:
			return step->k;
		case BPF_JMP | BPF_JA:
			at += step->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			holds = loaded == step->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			holds = loaded >= step->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			holds = loaded > step->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			holds = loaded & step->k;
			break;
		default:
			give_up("an instruction that is never written", "simulator");
		}
		at += holds ? step->jt : step->jf;
	}
	give_up("the program runs past its end", "simulator");
}

static void add_sample(uint64_t *samples, size_t *count, uint64_t value)
{
	if (*count == FILTER_SAMPLES_MAX)
		give_up("too many samples", "samples");
	samples[(*count)++] = value;
}

size_t filter_argument_samples(const int numbers[], int number, unsigned int argument,
			       uint64_t ret_samples[FILTER_SAMPLES_MAX])
{
	size_t count = 0;
	bool tested = false;

	add_sample(ret_samples, &count, 0);
	for (size_t i = 0; i < syscall_rule_count; i++) {
		for (size_t c = 0; numbers[i] == number && c < RULE_CONDITIONS_MAX; c++) {
			const struct argument_condition *condition =
				&syscall_rules[i].conditions[c];

			if (!condition->operation || condition->argument != argument)
				continue;
			tested = true;
			for (unsigned int v = 0; v < condition->value_count; v++) {
				uint64_t value = condition->values[v];

				add_sample(ret_samples, &count, value);
				add_sample(ret_samples, &count, value - 1);
				add_sample(ret_samples, &count, value + 1);
				add_sample(ret_samples, &count, value | UINT64_C(1) << 32);
				add_sample(ret_samples, &count, value | ~(uint64_t)condition->mask);
			}
		}
	}
	for (unsigned int bit = 0; tested && bit < 64; bit++)
		add_sample(ret_samples, &count, UINT64_C(1) << bit);
	add_sample(ret_samples, &count, UINT64_MAX);
	return count;
}
