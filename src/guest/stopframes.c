/* SPDX-License-Identifier: Apache-2.0 */
/* stopframes: where the code stands when its time is up.
 *
 * Theory of operation. At a time limit the warden sends STOP_SIGNAL, waits a
 * moment, and kills. The handler walks the main thread's interpreter frames
 * and writes them into the mailbox; it also works while one long C call runs,
 * because it needs no bytecode to be executed. The signal is glibc's own
 * SIGSETXID: sigprocmask(), pthread_sigmask(), signal() and their Python
 * wrappers leave it alone. Code that blocks it by a raw system call gets no
 * frames; it is killed all the same.
 *
 * The walker does what faulthandler does: it reads the interpreter's own
 * structures, allocates nothing and takes no lock. What it writes is the
 * cell's word, read by the engine as such. These structures are CPython's
 * internals, so each version has its lines below. */
#define Py_BUILD_CORE_MODULE 1
#include "guest/guest.h"

#include <internal/pycore_frame.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static PyThreadState *main_state;
static pid_t owner;

/* A frame encoder for a signal handler: proto/frame.h without allocation. */
struct scribe {
	uint8_t *at, *end;
};

static void scribe_number(struct scribe *scribe, uint64_t value, size_t width)
{
	if ((size_t)(scribe->end - scribe->at) < width) {
		scribe->end = scribe->at;
		return;
	}
	for (size_t i = 0; i < width; i++)
		*scribe->at++ = (uint8_t)(value >> (8 * i));
}

static void scribe_bytes(struct scribe *scribe, const void *data, size_t length)
{
	if ((size_t)(scribe->end - scribe->at) < length) {
		scribe->end = scribe->at;
		return;
	}
	memcpy(scribe->at, data, length);
	scribe->at += length;
}

static void scribe_field_number(struct scribe *scribe, enum field_name name, uint64_t value)
{
	scribe_number(scribe, name, 2);
	scribe_number(scribe, 8, 4);
	scribe_number(scribe, value, 8);
}

/* A str as UTF-8, from whichever width it is stored in, at most 500 bytes. */
static void scribe_text(struct scribe *scribe, enum field_name name, PyObject *text)
{
	uint8_t utf8[512];
	size_t length = 0;

	if (!text || !PyUnicode_Check(text) || !PyUnicode_IS_READY(text))
		return;
	for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text) && length < 500; i++) {
		Py_UCS4 c = PyUnicode_READ_CHAR(text, i);

		if (c < 0x80) {
			utf8[length++] = (uint8_t)c;
		} else if (c < 0x800) {
			utf8[length++] = (uint8_t)(0xc0 | c >> 6);
			utf8[length++] = (uint8_t)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			utf8[length++] = (uint8_t)(0xe0 | c >> 12);
			utf8[length++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
			utf8[length++] = (uint8_t)(0x80 | (c & 0x3f));
		} else {
			utf8[length++] = (uint8_t)(0xf0 | c >> 18);
			utf8[length++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
			utf8[length++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
			utf8[length++] = (uint8_t)(0x80 | (c & 0x3f));
		}
	}
	scribe_number(scribe, name, 2);
	scribe_number(scribe, length, 4);
	scribe_bytes(scribe, utf8, length);
}

static _PyInterpreterFrame *top_frame(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030d0000
	return state->current_frame;
#else
	return state->cframe ? state->cframe->current_frame : NULL;
#endif
}

static PyCodeObject *frame_code(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
	PyObject *code = frame->f_executable;
	return code && PyCode_Check(code) ? (PyCodeObject *)code : NULL;
#else
	return frame->f_code;
#endif
}

/* Innermost first; the engine turns the order round. */
static void scribe_frame(struct scribe *scribe, _PyInterpreterFrame *frame, PyCodeObject *code)
{
	int line = 0, column = -1, end_line = 0, end_column = -1;
	int offset = (int)((char *)frame->prev_instr - (char *)_PyCode_CODE(code));
	uint8_t *length_at, *body;
	size_t length;

	if (!PyCode_Addr2Location(code, offset, &line, &column, &end_line, &end_column))
		line = code->co_firstlineno;
	scribe_number(scribe, FIELD_FRAME, 2);
	length_at = scribe->at;
	scribe_number(scribe, 0, 4);
	body = scribe->at;
	scribe_text(scribe, FIELD_FILE, code->co_filename);
	scribe_text(scribe, FIELD_FUNCTION, code->co_qualname);
	scribe_field_number(scribe, FIELD_LINE, (uint64_t)(line > 0 ? line : 0));
	if (column >= 0)
		scribe_field_number(scribe, FIELD_COLUMN, (uint64_t)column);
	if (end_line > 0)
		scribe_field_number(scribe, FIELD_END_LINE, (uint64_t)end_line);
	if (end_column >= 0)
		scribe_field_number(scribe, FIELD_END_COLUMN, (uint64_t)end_column);
	length = (size_t)(scribe->at - body);
	if (scribe->at < scribe->end)
		for (size_t i = 0; i < 4; i++)
			length_at[i] = (uint8_t)(length >> (8 * i));
}

static void write_frames(int number)
{
	int saved_errno = errno;
	size_t size, length, count = 0;
	uint8_t *start = outbox_frames_area(&size);
	struct scribe scribe = {start, start + size};

	if (!start || !main_state || getpid() != owner)
		return;
	scribe_number(&scribe, FRAME_MAGIC, 2);
	scribe_number(&scribe, MESSAGE_FRAMES, 2);
	scribe_number(&scribe, 0, 4);
	scribe_number(&scribe, 0, 8);
	for (_PyInterpreterFrame *frame = top_frame(main_state);
	     frame && count < TRACEBACK_FRAMES_MAX; frame = frame->previous) {
		PyCodeObject *code = frame_code(frame);

		if (!code || _PyFrame_IsIncomplete(frame))
			continue;
		scribe_frame(&scribe, frame, code);
		count++;
	}
	length = (size_t)(scribe.at - start) - FRAME_HEADER_BYTES;
	for (size_t i = 0; i < 4; i++)
		start[4 + i] = (uint8_t)(length >> (8 * i));
	outbox_frames_publish((size_t)(scribe.at - start));
	errno = saved_errno;
}

static void *nothing(void *argument)
{
	return argument;
}

/* glibc's wrapper refuses this number; the kernel's call does not. The layout
 * is the kernel's own. */
struct kernel_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#if defined(__x86_64__)
#define KERNEL_SA_RESTORER 0x04000000
void execpy_return_from_signal(void);
__asm__(".text\n"
	".globl execpy_return_from_signal\n"
	".hidden execpy_return_from_signal\n"
	"execpy_return_from_signal:\n"
	"\tmovl $15, %eax\n" /* SYS_rt_sigreturn */
	"\tsyscall\n");
#endif

int stopframes_prepare(struct error *err)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return refuse(err, EAGAIN, "guest: cannot make a thread");
	return 0;
}

int stopframes_install(struct error *err)
{
	struct kernel_sigaction action = {
		.handler = write_frames,
		.flags = SA_RESTART | SA_ONSTACK,
	};

#if defined(__x86_64__)
	action.flags |= KERNEL_SA_RESTORER;
	action.restorer = execpy_return_from_signal;
#endif
	main_state = PyThreadState_Get();
	owner = getpid();
	if (syscall(SYS_rt_sigaction, STOP_SIGNAL, &action, NULL, sizeof action.mask) < 0)
		return fail(err, errno, "cell: install the stop signal");
	return 0;
}
