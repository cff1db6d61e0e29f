/* SPDX-License-Identifier: Apache-2.0 */
/* fold: what fold.c (operators, strings in parts, sequences) and fold_calls.c
 * (methods, functions) share. */
#ifndef EXECPY_GUEST_VERIFIER_FOLD_H
#define EXECPY_GUEST_VERIFIER_FOLD_H

#include "guest/verifier/walk.h"

bool is_bytes(const struct value *value);
bool is_number(const struct value *value);
Py_ssize_t length_of(const struct value *value); /* of a string or bytes; -1: neither */
bool small_number(const struct value *value, long *ret_number);
struct value *looked_at(struct walk *walk, struct value *value, struct node *node);

PyObject *text_of(struct value *value);
/* A string that grows at its end until something is not known. */
struct builder {
	PyObject *text; /* NULL: empty */
	bool partial;   /* nothing more is added */
};
void builder_add(struct walk *walk, struct builder *builder, PyObject *more);
struct value *builder_value(struct walk *walk, struct builder *builder);
struct value *fold_format_method(struct walk *walk, struct value *self, const struct call *call);

PyObject *list_of(struct walk *walk, struct value *value);
struct value *sequence_of(struct walk *walk, PyObject *list); /* takes the list */
struct value *fold_join(struct walk *walk, struct value *self, struct value *items);

#endif
