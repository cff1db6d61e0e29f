/* SPDX-License-Identifier: Apache-2.0 */
/* error: what failed, on what, and why, in one line for a person.
 *
 * The law: a function that can fail returns 0 (or a count) on success and a
 * negative errno on failure, and takes `struct error *err` as its last
 * parameter. Whoever notices the failure first calls fail(); callers that can
 * add what they were doing call fail_wrap(). Library code never prints.
 *
 * The object holds no pointers and is filled without allocation, so that it
 * may be used after fork and may cross a pipe as it is. */
#ifndef EXECPY_BASE_ERROR_H
#define EXECPY_BASE_ERROR_H

#include <stddef.h>

#define ERROR_TEXT_MAX 320

struct error {
	int number;                /* positive errno; 0 while nothing failed */
	char text[ERROR_TEXT_MAX]; /* one line, no newline, always terminated */
};

/* Records a failure: the formatted text, then ": " and the errno's own words
 * when number is not 0. Returns -number (or -EIO for 0). err may be NULL.
 * Async-signal-safe as far as vsnprintf is (no %f, no locale). */
int fail(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same without the errno's words: for refusals that say it all. */
int refuse(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there. Returns -err->number. */
int fail_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A short name such as "EPERM", or "errno 4095" in a static buffer. */
const char *errno_name(int number);

#endif
