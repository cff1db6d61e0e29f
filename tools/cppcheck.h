/* SPDX-License-Identifier: Apache-2.0 */
/* cppcheck: for cppcheck only, the macros of <sys/queue.h> that it cannot expand. */
#define TAILQ_HEAD(name, type) \
	struct name {          \
		struct type *first; \
	}
#define TAILQ_ENTRY(type) \
	struct {          \
		struct type *next; \
	}
#define TAILQ_FOREACH(at, head, field) for (at = (head)->first; at; at = at->field.next)
