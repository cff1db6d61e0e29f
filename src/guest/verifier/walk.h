/* SPDX-License-Identifier: Apache-2.0 */
/* walk: what the verifier's files share.
 *
 * Theory of operation. CPython parses the source (source.c); tree.c copies its
 * AST into plain C nodes. scope.c makes the symbol table. Then every statement
 * is visited twice (statement.c, expression.c): the first time silently, to
 * learn what each name may hold, the second time to report. A visit of an
 * expression returns what a reader would know of its value:
 *
 *   a constant, also one put together (fold.c); a reference, which is the
 *   dotted name under which the thing is known, however it was reached; a
 *   container of such; one of several; or nothing.
 *
 * References are judged where they are mentioned, calls by their arguments
 * (check.c), both after the tables of src/policy. Memory is an arena that is
 * dropped as a whole. Work is linear in the source: each node is visited twice,
 * and everything that could multiply (folding, strings that are code) has a
 * budget in this header. Running out of a budget makes values unknown, and what
 * must be known to be harmless is then refused. */
#ifndef EXECPY_GUEST_VERIFIER_WALK_H
#define EXECPY_GUEST_VERIFIER_WALK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "guest/verifier/verify.h"

#include <setjmp.h>
#include <string.h>

#define DEPTH_MAX           2000                   /* nested nodes that are visited */
#define ALTERNATIVES_MAX    8                      /* values that one name may hold */
#define ELEMENTS_MAX        1024                   /* of a container that is remembered */
#define CONSTANT_BYTES_MAX  ((Py_ssize_t)64 << 10) /* of a folded constant */
#define FOLD_BYTES_BUDGET   ((size_t)8 << 20)      /* of all folded constants */
#define FOLD_STEP_BUDGET    20000u                 /* of comprehensions that are unrolled */
#define STRING_CODE_DEPTH   3                      /* code in strings in code in strings */
#define STRING_CODE_BUDGET  ((size_t)1 << 20)
#define STRING_PARSES_MAX   200
#define SUGGESTIONS_MAX     16 /* names for which a near one is sought */
#define REFERENCE_DEPTH_MAX 16 /* dots in a name that is remembered */
#define CALL_ARGUMENTS_MAX  64

/* --- arena --------------------------------------------------------------- */

struct arena {
	struct arena_block *blocks;
	uint8_t *at;
	size_t left;
	jmp_buf *out; /* longjmp(out, ENOMEM) when memory is out */
};

void *arena_take(struct arena *arena, size_t size); /* zeroed, never NULL */
void arena_free(struct arena *arena);

/* --- tree ---------------------------------------------------------------- */

enum node_kind {
	NODE_NONE,
#define NODE(node) NODE_##node,
#define FIELD(node, field)
#define END(node)
#include "guest/verifier/ast.def"
	NODE_KIND_COUNT,
};

#define NODE(node)         enum {
#define FIELD(node, field) node##_##field,
#define END(node)     \
	node##_FIELDS \
	}             \
	;
#include "guest/verifier/ast.def"

enum slot_kind { SLOT_EMPTY, SLOT_NODE, SLOT_LIST, SLOT_OBJECT };

struct slot {
	enum slot_kind kind;
	union {
		struct node *node;
		struct list *list;
		PyObject *object; /* borrowed: the AST keeps it */
	};
};

struct list {
	size_t count;
	struct slot items[];
};

struct node {
	enum node_kind kind;
	uint32_t slot_count;
	PyObject *origin;    /* for its position; borrowed */
	struct scope *scope; /* of a function, class, lambda or comprehension */
	struct slot slots[];
};

int tree_init(struct error *err); /* once, in verifier_init() */
/* The C tree of an AST. Returns NULL when it is nested too deeply. */
struct node *tree_of(struct arena *arena, PyObject *ast);
/* A node's position as CPython gives it: lines from 1, columns in bytes from 0.
 * false for nodes that have none. */
bool node_position(const struct node *node, long ret_position[4]);

static inline struct node *child(const struct node *node, int field)
{
	return node->slots[field].kind == SLOT_NODE ? node->slots[field].node : NULL;
}

static inline PyObject *leaf(const struct node *node, int field)
{
	return node->slots[field].kind == SLOT_OBJECT ? node->slots[field].object : NULL;
}

static inline const struct list *children(const struct node *node, int field)
{
	static const struct list none = {0};

	return node->slots[field].kind == SLOT_LIST ? node->slots[field].list : &none;
}

static inline enum node_kind kind_of(const struct node *node)
{
	return node ? node->kind : NODE_NONE;
}

/* Is this name the ASCII text? In line: asked of every name there is. */
static inline bool name_is(PyObject *name, const char *expected)
{
	size_t length = strlen(expected);

	if (!PyUnicode_IS_COMPACT_ASCII(name))
		return false;
	return (size_t)PyUnicode_GET_LENGTH(name) == length &&
	       memcmp(PyUnicode_1BYTE_DATA(name), expected, length) == 0;
}

/* --- values -------------------------------------------------------------- */

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_CONSTANT,
	VALUE_REFERENCE,
	VALUE_SEQUENCE,
	VALUE_DICT, /* items: key, value, key, value; a key may be NULL */
	VALUE_UNION,
	VALUE_METHOD,    /* `name` of the value `self` */
	VALUE_FUNCTION,  /* of this source */
	VALUE_CLASS,     /* of this source */
	VALUE_NAMESPACE, /* vars(self), or globals() when self is NULL */
};

enum value_flag {
	VALUE_PREFIX = 1,   /* a constant of which only the beginning is known */
	VALUE_PATH = 2,     /* a constant string that is a pathlib path */
	VALUE_COMPUTED = 4, /* unknown, and made by a computation */
	VALUE_DEFAULT = 8,  /* a parameter's default, which no call here confirms */
	VALUE_SET = 16,
};

struct value {
	enum value_kind kind;
	uint32_t flags;
	uint32_t count;
	union {
		PyObject *object; /* CONSTANT; METHOD: the name */
		struct reference *reference;
		struct value **items;
		struct scope *scope; /* FUNCTION, CLASS */
	};
	struct value *self;
};

/* A dotted name, made once for each walk. */
struct reference {
	struct reference *parent;
	PyObject *name;         /* interned; NULL at a root */
	struct reference *next; /* in its hash slot */
	uintptr_t hash;
	/* What the name really stands for: itself, or what it is another name of.
	 * Known once it was reached as a child. */
	struct reference *meant;
	const char *path;
	size_t path_length;
	unsigned depth;
	bool call;         /* some part is a call's result */
	bool root_unknown; /* begins with "?" */
	/* What the tables say; see reference_judge(). */
	enum judgement {
		JUDGED_NOTHING, /* nobody says anything about it */
		JUDGED_FINE,
		JUDGED_MODULE, /* a listed module itself */
		JUDGED_CALL,
		JUDGED_BAD,
		JUDGED_REFUSED, /* below a listed module and not harmless */
	} judgement;
	const struct name_info *entry;  /* of just this path, or NULL */
	const struct name_info *info;   /* the entry that decided */
	const struct name_info *module; /* the listed module it lies in, or NULL */
	/* How its calls are looked at; see manner_of(). */
	enum manner {
		MANNER_KNOWN = 1,   /* the other bits are settled */
		MANNER_PEOPLE = 2,  /* its arguments are for people, or only looked at */
		MANNER_ASKS = 4,    /* it may be given a module, since it only asks */
		MANNER_CALLS = 8,   /* it calls its first argument */
		MANNER_DUMPS = 16,  /* it writes pickles */
		MANNER_TESTS = 32,  /* it runs doctests */
		MANNER_CREATES = 64 /* it writes files whose names are not known */
	} manner;
	const struct folder *folder; /* settled with the manner */
	bool forced;                 /* by the policy file, with `severity` */
	enum severity severity;
};

/* --- scopes -------------------------------------------------------------- */

enum scope_kind { SCOPE_MODULE, SCOPE_FUNCTION, SCOPE_CLASS, SCOPE_COMPREHENSION };

struct binding {
	PyObject *name;    /* interned */
	struct value *all; /* whatever it may hold; NULL: not yet known */
	struct value *now; /* what it holds here, in straight code of its scope */
	bool global;       /* declared so here: lives in the module */
	bool nonlocal;
	bool parameter;
	bool loaded; /* mentioned outside of the function that it names */
};

struct scope {
	enum scope_kind kind;
	struct scope *parent;
	struct node *node;
	struct binding *slots; /* a hash by name */
	size_t slot_count, used;
	bool star;   /* from x import * */
	bool called; /* a call in this source was seen */
	bool queued;
	unsigned branch; /* conditional blocks around the statement that is visited */
};

/* --- the walk ------------------------------------------------------------ */

struct hard_import {
	const struct name_info *info;
	const struct node *node;
	bool harmless_use;
	struct hard_import *next;
};

struct walk {
	struct arena arena;
	jmp_buf out;
	const struct policy *policy;
	const struct verify_context *context;
	struct verdict *verdict;
	struct span source;
	uint32_t *line_starts; /* byte offsets, of lines from 1 */
	size_t line_count;
	uint32_t line_offset; /* lines before the source: a Markdown fence */

	struct scope *module, *scope;
	PyObject *keep;                /* a list that owns what folding made */
	struct reference **references; /* a hash that grows */
	size_t reference_slots, reference_count;
	struct binding *attribute_slots;
	size_t attribute_slot_count, attribute_used;

	/* The listed module whose function is judged by its arguments, and the call. */
	const struct reference *checked;
	const struct node *checked_at;

	bool report;         /* second visit */
	unsigned muted;      /* > 0: findings are dropped */
	unsigned quiet_text; /* > 0: strings here are for people */
	unsigned depth;
	unsigned tries;               /* inside a try that catches OSError or all */
	unsigned tries_name;          /* ... NameError */
	unsigned tries_import;        /* ... ImportError */
	unsigned no_names;            /* > 0: undefined names are not told */
	unsigned quoted;              /* > 0: inside code in a string */
	const struct node *quoted_at; /* the string's node */
	bool quoted_refused;
	const char *quoted_name;
	unsigned parses;
	size_t fold_bytes, string_bytes;
	unsigned fold_steps, suggestions;
	bool future_annotations;

	struct hard_import *hard;
	PyObject *created;    /* set of constant paths that the code writes */
	PyObject *mentioned;  /* set of constant strings given to other calls */
	PyObject *undefined;  /* set of names that were told */
	bool creates_unknown; /* the code writes files whose names are not known */
	bool dumps_pickles;
	bool runs_doctests;
	bool reflects;      /* the code looks at its own names: anything may be called */
	PyObject *doctests; /* list of docstrings with examples */

	struct node **queue; /* function bodies yet to be visited */
	size_t queue_length, queue_capacity;
	const char *function_name;
	uint64_t *reported; /* hash of (rule, line, column) that were told */
	size_t reported_count;
};

/* value.c */
extern struct value value_unknown, value_computed;
struct value *value_new(struct walk *walk, enum value_kind kind);
/* Takes the reference to `object` (new); NULL gives the unknown value and
 * clears the Python error. */
struct value *value_constant(struct walk *walk, PyObject *object, uint32_t flags);
struct value *value_borrowed(struct walk *walk, PyObject *object, uint32_t flags);
struct value *value_reference(struct walk *walk, struct reference *reference);
struct value *value_either(struct walk *walk, struct value *left, struct value *right);
/* The alternatives of a value: itself, or the members of a union. */
size_t value_alternatives(struct value *value, struct value *ret_values[ALTERNATIVES_MAX]);
struct value *value_elements(struct walk *walk, struct value *value);
struct value *value_plain(struct value *value); /* a union's first constant or reference */
bool value_text(struct value *value, struct span *ret_text); /* constant str or bytes */
bool is_text(const struct value *value);                     /* a constant str */
bool is_whole_text(const struct value *value);               /* ... that is known to its end */
struct reference *reference_root(struct walk *walk, const char *name);
struct reference *reference_path(struct walk *walk, const char *dotted);
struct reference *reference_child(struct walk *walk, struct reference *parent, PyObject *name);
struct reference *reference_call(struct walk *walk, struct reference *parent);
struct reference *reference_unknown(struct walk *walk, PyObject *name);

/* scope.c */
void scopes_build(struct walk *walk, struct node *root, struct scope *scope);
struct scope *scope_new(struct walk *walk, enum scope_kind kind, struct scope *parent,
			struct node *node);
struct binding *scope_bind(struct walk *walk, struct scope *scope, PyObject *name);
struct binding *scope_own(const struct scope *scope, PyObject *name);
/* Where a use of the name in `scope` finds it, or NULL. */
struct binding *scope_lookup(const struct walk *walk, const struct scope *scope, PyObject *name,
			     struct scope **ret_scope);
void binding_set(struct walk *walk, struct scope *scope, struct binding *binding,
		 struct value *value);
struct value *attribute_value(struct walk *walk, PyObject *name);
void attribute_remember(struct walk *walk, PyObject *name, struct value *value);
/* Does the code define an attribute or a method of this name itself? */
bool attribute_defined(const struct walk *walk, PyObject *name);

/* names.c */
struct value *visit_attribute(struct walk *walk, struct node *node, unsigned flags);
struct value *visit_subscript(struct walk *walk, struct node *node, unsigned flags);

/* expression.c */
enum visit_flag {
	VISIT_BASE = 1,   /* the parent says what is done with it: no use by itself */
	VISIT_CALLED = 2, /* it is called */
};
struct value *visit(struct walk *walk, struct node *node, unsigned flags);
struct value *attribute_of(struct walk *walk, struct value *base, PyObject *name, struct node *node,
			   unsigned flags);
void assign(struct walk *walk, struct node *target, struct value *value);
void use(struct walk *walk, struct value *value, const struct node *node, unsigned flags);
/* The function of the module that is visited, when nothing here calls it; else
 * NULL. Its parameters come from whoever runs more code later. */
const char *uncalled_function(const struct walk *walk);
struct value *lookup_name(struct walk *walk, PyObject *name, struct node *node);
struct value *element_of(struct walk *walk, struct value *base, struct value *key,
			 struct node *node);
void check_attribute_name(struct walk *walk, PyObject *name, const struct node *node,
			  struct value *base);

/* statement.c */
void visit_body(struct walk *walk, const struct list *body);
void visit_functions(struct walk *walk); /* the bodies that were put off */
void queue_function(struct walk *walk, struct node *node, struct scope *scope);
void bind_arguments(struct walk *walk, struct scope *function, struct value **positional,
		    size_t count, PyObject **names, struct value **named, size_t named_count);

/* call.c */
struct call {
	struct node *node;
	size_t count, named_count;
	struct value *values[CALL_ARGUMENTS_MAX];
	struct node *nodes[CALL_ARGUMENTS_MAX];
	PyObject *names[CALL_ARGUMENTS_MAX];
	struct value *named[CALL_ARGUMENTS_MAX];
	struct node *named_nodes[CALL_ARGUMENTS_MAX];
	bool open_ended; /* *args or **kwargs */
};
struct value *visit_call(struct walk *walk, struct node *node);
struct value *call_value(struct walk *walk, struct value *callee, struct call *call);
struct value *call_argument(const struct call *call, size_t position, const char *name,
			    struct node **ret_node);

/* fold.c */
struct value *fold_binary(struct walk *walk, enum node_kind operation, struct value *left,
			  struct value *right);
struct value *fold_unary(struct walk *walk, enum node_kind operation, struct value *operand);
struct value *fold_joined(struct walk *walk, struct node *node);
struct value *fold_method(struct walk *walk, struct value *self, PyObject *name,
			  const struct call *call);
/* A function whose calls with constants are put together: NULL when not known. */
struct folder {
	const char *path;
	struct value *(*fold)(struct walk *walk, const struct call *call,
			      const struct folder *folder);
	const char *module, *function; /* of a decoder */
};
const struct folder *folder_find(const char *path);
struct value *fold_index(struct walk *walk, struct value *base, struct value *key);
struct value *fold_slice(struct walk *walk, struct value *base, struct value *const bounds[3]);
struct value *path_join(struct walk *walk, struct value *left, struct value *right, bool path);
bool fold_afford(struct walk *walk, Py_ssize_t length);

/* check.c */
void check_call(struct walk *walk, const struct reference *reference, const struct name_info *info,
		struct value *self, struct call *call, struct value **ret_value);
bool created_here(struct walk *walk, struct span path); /* does the code write it? */
/* contents.c */
void check_sql(struct walk *walk, struct value *value, const struct node *node);
void check_pickle(struct walk *walk, struct value *value, const struct node *node,
		  const char *name);
bool identifier_letter(uint8_t letter);
void check_text(struct walk *walk, PyObject *text, const struct node *node);
void check_bytes(struct walk *walk, PyObject *bytes, const struct node *node);

/* quoted.c */
/* The code argument of eval and its kin; `how` is its letter in names.def. */
void check_code_argument(struct walk *walk, struct value *value, const struct node *node, char how,
			 const char *name, bool must_be_known);
void check_string_argument(struct walk *walk, struct value *value, const struct node *node);
enum string_code { STRING_STATEMENTS, STRING_EXPRESSION, STRING_PANDAS, STRING_DOCTEST };
/* Verifies a string as code; false when it does not parse. */
bool check_code(struct walk *walk, struct value *value, const struct node *node,
		enum string_code kind, bool in_scope);
void import_module(struct walk *walk, const char *name, const struct node *node, bool dynamic);
void report_import(struct walk *walk, struct reference *reference, const struct node *node);

/* lint.c */
void lint_loop(struct walk *walk, struct node *node);
void lint_missing_module(struct walk *walk, const char *name, const struct node *node);
void lint_missing_file(struct walk *walk, struct value *value, const struct node *node);
void lint_undefined(struct walk *walk, PyObject *name, const struct node *node);

/* report.c */
void report(struct walk *walk, enum rule rule, const struct node *node, const char *name,
	    const char *hint);
/* Of an argument of walk->checked: a use of its module, if it lies in a listed one. */
void report_argument(struct walk *walk, enum rule rule, const struct node *node, const char *name);
void report_with(struct walk *walk, enum rule rule, enum severity severity, const struct node *node,
		 const char *message, const char *hint);
void report_reference(struct walk *walk, const struct reference *reference,
		      const struct node *node);
bool rule_applies(const struct walk *walk, enum rule rule);
void position_of(const struct walk *walk, const struct node *node, uint32_t ret_range[4]);
void lines_index(struct walk *walk);

/* source.c */
/* A finding with the severity of the policy; without a hint it gets the rule's. */
void source_add(struct walk *walk, enum rule rule, const uint32_t range[4], const char *message,
		const char *hint);
/* The range of `length` bytes at an offset, in lines and columns. */
void source_range(const struct walk *walk, size_t offset, size_t length, uint32_t ret_range[4]);
/* False when a line says that the source has another encoding. */
bool source_check_cookie(struct walk *walk);
/* True when the source may be parsed; otherwise the verdict says why not. */
bool source_check(struct walk *walk);
/* The AST (new reference), or NULL with the verdict filled. */
PyObject *source_parse(struct walk *walk);
/* False when the compiler refuses what was parsed; the verdict then says why. */
bool source_compile(struct walk *walk, PyObject *ast);

/* magics.c */
/* Takes what only notebooks understand out of a source that is no Python: true
 * when there was any; then the source, its lines and the verdict are new. No
 * Python exception is set before or after. */
bool magics_take_out(struct walk *walk);
/* installs.c */
/* Judges `pip install NAME…` and its like, the lines behind it included: false
 * when the command is none of them. */
bool installs_judge(struct walk *walk, struct span command);
/* Takes the next word off a command line; false when there is none. */
bool command_word(struct span *rest, struct span *ret_word);

/* compiler.c */
bool compiler_may_refuse(const struct node *root, struct span source);

/* modules.c */
int modules_init(struct error *err);
bool module_exists(const char *name);
/* Is this package there, by the name under which it is installed? `ret_version` is
 * empty where none is known. */
#define PACKAGE_VERSION_MAX 32
bool package_exists(const char *name, char ret_version[PACKAGE_VERSION_MAX]);
/* What to import instead: static or in `buffer`, or NULL. */
const char *module_instead(const char *name, char buffer[FINDING_TEXT_BYTES_MAX + 1]);
bool is_builtin_name(PyObject *name);

#endif
