/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Elements over a node's Unix socket. */
#ifndef ONYM_STREAM_H
#define ONYM_STREAM_H

#include "internal.h"

/* A whole element: [at, end), its value from `value` on. */
struct onym_element {
	uint64_t type;
	const uint8_t *at, *value, *end;
};

struct onym_stream {
	int fd;
	/* Obeys an element; a negative errno ends the connection. */
	int (*obey)(void *ctx, const struct onym_element *element);
	void *ctx;
	size_t len;
	uint8_t in[65536];
};

/* Milliseconds of a clock that does not jump. */
int64_t onym_now_ms(void);
/* Connects to a path or unix:// URI; NULL: where $NDN_CLIENT_TRANSPORT says, else /run/nfd/nfd.sock. */
int onym_stream_open(struct onym_stream *s, const char *path);
/*
 * Waits until something came, which is obeyed, or until `events` hold, at most until that time (-1: as
 * long as it takes): 1, and 0 when the time is over.
 */
int onym_stream_turn(struct onym_stream *s, short events, int64_t until);
/* Writes all; meanwhile what comes is obeyed. */
int onym_stream_send(struct onym_stream *s, const uint8_t *v, size_t len);

#endif
