// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

int64_t onym_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int onym_stream_open(struct onym_stream *s, const char *path)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	int error;

	s->fd = -1;
	if (!path)
		path = getenv("NDN_CLIENT_TRANSPORT") ?: "/run/nfd/nfd.sock";
	if (!strncmp(path, "unix://", 7))
		path += 7;
	if (strlen(path) >= sizeof(where.sun_path))
		return -ENAMETOOLONG;
	strcpy(where.sun_path, path);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd >= 0 && !connect(s->fd, (struct sockaddr *)&where, sizeof(where)))
		return 0;
	error = -errno;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	return error;
}

// Obeys the whole elements that are there; the begin of one more stays.
static int obey_all(struct onym_stream *s)
{
	const uint8_t *at = s->in, *end = s->in + s->len;

	while (at < end) {
		struct onym_element element = { .at = at, .value = at };
		uint64_t len;
		int error;

		if (onym_get_tl(&element.value, end, &element.type, &len)) {
			// A whole one has room, so this is either its begin or too long.
			if (end - at >= ONYM_PACKET_MAX)
				return -EPROTO;
			break;
		}
		element.end = element.value + len;
		if (element.end - at > ONYM_PACKET_MAX)
			return -EPROTO;
		error = s->obey(s->ctx, &element);
		if (error)
			return error;
		at = element.end;
	}
	s->len = (size_t)(end - at);
	memmove(s->in, at, s->len);
	return 0;
}

static int take(struct onym_stream *s)
{
	ssize_t got = recv(s->fd, s->in + s->len, sizeof(s->in) - s->len, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got == 0)
		return -ECONNRESET;
	s->len += (size_t)got;
	return obey_all(s);
}

int onym_stream_turn(struct onym_stream *s, short events, int64_t until)
{
	int64_t left = until < 0 ? -1 : until - onym_now_ms();
	struct pollfd p = { .fd = s->fd, .events = events };
	int got = poll(&p, 1, until < 0 ? -1 : left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left);

	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	if (p.revents & (POLLIN | POLLHUP | POLLERR))
		return take(s) ?: 1;
	return got;
}

// The node may want to be read from before it reads, so nothing waits for writing alone.
int onym_stream_send(struct onym_stream *s, const uint8_t *v, size_t len)
{
	while (len) {
		ssize_t sent = send(s->fd, v, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		int error = 0;

		if (sent >= 0) {
			v += sent;
			len -= (size_t)sent;
		} else if (errno == EAGAIN || errno == EINTR) {
			error = onym_stream_turn(s, POLLIN | POLLOUT, -1);
		} else {
			error = errno == EPIPE ? -ECONNRESET : -errno;
		}
		if (error < 0)
			return error;
	}
	return 0;
}
