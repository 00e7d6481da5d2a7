// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * nfd_bridge [PATH]: lets unmodified NFD clients use the kernel stack. Each
 * connection to the Unix socket at PATH (/run/nfd/nfd.sock) becomes a RAW socket
 * of the kernel; rib/register becomes a binding, and a route of the prefix to
 * the applications of this host, which needs CAP_NET_ADMIN. Command signatures
 * are not looked at: whoever may open the Unix socket may register. NFD's datasets of
 * faces, FIB, RIB, content store and status show the kernel's tables (nfd_view.h);
 * other commands are not here, and Interests for them come back as Nacks.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <onym/nnet.h>
#include "internal.h"

static int control;

#include "nfd_view.h"

enum { CLIENTS = 256, ROOM = 2 * ONYM_PACKET_MAX };

struct client {
	int unix_fd, kernel_fd;
	size_t have;
	uint8_t in[ROOM];
};

static struct client *clients[CLIENTS];

static void drop(int i)
{
	close(clients[i]->unix_fd);
	close(clients[i]->kernel_fd);
	free(clients[i]);
	clients[i] = NULL;
}

static int take(int listener)
{
	int fd = accept(listener, NULL, NULL), one = 1, i = 0;
	struct client *c;

	while (i < CLIENTS && clients[i])
		i++;
	c = fd >= 0 && i < CLIENTS ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return -1;
	}
	c->unix_fd = fd;
	c->kernel_fd = onym_socket(SOCK_RAW, 0);
	setsockopt(c->kernel_fd, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one));
	setsockopt(c->kernel_fd, SOL_NNET, NNET_LP, &one, sizeof(one));
	clients[i] = c;
	return 0;
}

/* The packet in a frame: what a link header wraps, or the frame. */
static const uint8_t *packet_of(const uint8_t *frame, size_t len, size_t *packet_len,
				const uint8_t **token, size_t *token_len)
{
	const uint8_t *p = frame, *end = frame + len, *found = NULL;
	uint64_t type, n;

	*token = NULL;
	*packet_len = len;
	if (onym_get_tl(&p, end, &type, &n) || type != 100)
		return frame;
	while (p < end && !onym_get_tl(&p, end, &type, &n)) {
		if (type == 80) {
			found = p;
			*packet_len = n;
		} else if (type == 98) {
			*token = p;
			*token_len = n;
		}
		p += n;
	}
	return found;
}

static int component_is(const uint8_t **p, const uint8_t *end, const char *word)
{
	uint64_t type, n;

	if (onym_get_tl(p, end, &type, &n))
		return 0;
	*p += n;
	return type == 8 && n == strlen(word) && !memcmp(*p - n, word, n);
}

/* The prefix that ControlParameters name. */
static int prefix_of(const uint8_t *p, const uint8_t *end, struct onym_name *prefix)
{
	uint64_t type, n;

	if (onym_get_tl(&p, end, &type, &n) || type != 8)
		return -EINVAL;
	end = p + n;
	if (onym_get_tl(&p, end, &type, &n) || type != 104)
		return -EINVAL;
	end = p + n;
	if (onym_get_tl(&p, end, &type, &n) || type != 7 || n > sizeof(prefix->v))
		return -EINVAL;
	memcpy(prefix->v, p, n);
	prefix->len = n;
	return 0;
}

/* Sends a Data to a client, with the token of its Interest. */
static void answer(struct client *c, const uint8_t *data, size_t len, const uint8_t *token, size_t token_len)
{
	uint8_t frame[ONYM_PACKET_MAX + 64], *p = frame;

	if (token) {
		p = onym_put_tl(p, 100, onym_tl_size(98, token_len) + onym_tl_size(80, len));
		p = onym_put_tl(p, 98, token_len);
		memcpy(p, token, token_len);
		p = onym_put_tl(p + token_len, 80, len);
	}
	memcpy(p, data, len);
	send(c->unix_fd, frame, p + len - frame, MSG_NOSIGNAL);
}

/* An Interest for a dataset, answered here. Returns whether it was one. */
static int view(struct client *c, const struct onym_name *name, const uint8_t *token, size_t token_len)
{
	static const char *const known[][2] = { { "faces", "list" }, { "fib", "list" }, { "rib", "list" },
						{ "cs", "info" }, { "status", "general" } };
	uint8_t data[ONYM_PACKET_MAX];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const uint8_t *p = name->v, *end = name->v + name->len;
		ssize_t len;

		if (!component_is(&p, end, "localhost") || !component_is(&p, end, "nfd") ||
		    !component_is(&p, end, known[i][0]) || !component_is(&p, end, known[i][1]))
			continue;
		len = view_answer(name, known[i][0], known[i][1], p - name->v, data, sizeof(data));
		if (len > 0)
			answer(c, data, len, token, token_len);
		return 1;
	}
	return 0;
}

static void respond(struct client *c, const struct onym_name *command, const struct onym_name *prefix, int err,
		    const uint8_t *token, size_t token_len)
{
	uint8_t body[2048], response[2200], data[ONYM_PACKET_MAX], *p = body;
	struct onym_data d = { .name = command, .content = response, .freshness = 1000 };
	uint32_t face = 0;
	socklen_t size = sizeof(face);
	ssize_t len;

	getsockopt(c->kernel_fd, SOL_NNET, NNET_FACE, &face, &size);
	p = onym_put_tl(p, 7, prefix->len);
	memcpy(p, prefix->v, prefix->len);
	p += prefix->len;
	p = onym_put_nni(p, 105, face);
	p = onym_put_nni(p, 111, 0);
	p = onym_put_nni(p, 106, 0);
	p = onym_put_nni(p, 108, 1);
	size = p - body;
	p = response;
	/* The value of a ControlResponse is in TLV 101, which is the content. */
	{
		uint8_t inner[2100], *q = inner;
		const char *text = err ? strerror(-err) : "OK";

		q = onym_put_nni(q, 102, err ? err == -EACCES ? 403 : 409 : 200);
		q = onym_put_tl(q, 103, strlen(text));
		memcpy(q, text, strlen(text));
		q += strlen(text);
		q = onym_put_tl(q, 104, size);
		memcpy(q, body, size);
		q += size;
		p = onym_put_tl(p, 101, q - inner);
		memcpy(p, inner, q - inner);
		d.len = p + (q - inner) - response;
	}
	len = onym_data_make(&d, NULL, data, sizeof(data));
	if (len > 0)
		answer(c, data, len, token, token_len);
}

/* A command to the RIB, answered here. Returns whether it was one. */
static int command(struct client *c, const uint8_t *frame, size_t frame_len)
{
	size_t len, token_len = 0;
	const uint8_t *token, *packet = packet_of(frame, frame_len, &len, &token, &token_len), *p = packet, *end, *at;
	struct onym_name prefix = { 0 }, name;
	uint64_t type, n;
	int add, err;

	if (!packet || onym_get_tl(&p, packet + len, &type, &n) || type != 5 ||
	    onym_get_tl(&p, packet + len, &type, &n) || type != 7 || n > sizeof(name.v))
		return 0;
	memcpy(name.v, p, n);
	name.len = n;
	end = p + n;
	if (view(c, &name, token, token_len))
		return 1;
	if (!component_is(&p, end, "localhost") || !component_is(&p, end, "nfd") || !component_is(&p, end, "rib"))
		return 0;
	at = p;
	add = component_is(&p, end, "register");
	p = add ? p : at;
	if (!add && !component_is(&p, end, "unregister"))
		return 0;
	err = prefix_of(p, end, &prefix);
	if (!err && add) {
		err = onym_bind(c->kernel_fd, &prefix, 0);
		if (!err)
			err = onym_ctl_route(control, &prefix, 1, 0);
	} else if (!err) {
		err = setsockopt(c->kernel_fd, SOL_NNET, NNET_UNBIND, prefix.v, prefix.len) ? -errno : 0;
	}
	respond(c, &name, &prefix, err, token, token_len);
	return 1;
}

/* Whole elements from a client go to the kernel. */
static int from_client(struct client *c)
{
	ssize_t n = recv(c->unix_fd, c->in + c->have, ROOM - c->have, 0);
	size_t at = 0;

	if (n <= 0)
		return -1;
	c->have += n;
	while (at < c->have) {
		const uint8_t *p = c->in + at, *end = c->in + c->have;
		uint64_t type, len;

		if (onym_get_tl(&p, end, &type, &len)) {
			if (c->have - at > ONYM_PACKET_MAX + 64)
				return -1;
			break;
		}
		len += p - (c->in + at);
		if (!command(c, c->in + at, len))
			send(c->kernel_fd, c->in + at, len, 0);
		at += len;
	}
	memmove(c->in, c->in + at, c->have - at);
	c->have -= at;
	return 0;
}

static int from_kernel(struct client *c)
{
	uint8_t frame[ONYM_PACKET_MAX + 128];
	ssize_t n = recv(c->kernel_fd, frame, sizeof(frame), MSG_DONTWAIT);

	return n > 0 ? send(c->unix_fd, frame, n, MSG_NOSIGNAL) == n ? 0 : -1 : 0;
}

static void turn(int listener)
{
	struct pollfd fds[1 + 2 * CLIENTS] = { { .fd = listener, .events = POLLIN } };

	for (int i = 0; i < CLIENTS; i++) {
		fds[1 + 2 * i].fd = clients[i] ? clients[i]->unix_fd : -1;
		fds[2 + 2 * i].fd = clients[i] ? clients[i]->kernel_fd : -1;
		fds[1 + 2 * i].events = fds[2 + 2 * i].events = POLLIN;
	}
	if (poll(fds, 1 + 2 * CLIENTS, -1) < 0)
		return;
	for (int i = 0; i < CLIENTS; i++) {
		if ((fds[2 + 2 * i].revents && from_kernel(clients[i])) ||
		    (fds[1 + 2 * i].revents && from_client(clients[i])))
			drop(i);
	}
	if (fds[0].revents)
		take(listener);
}

int main(int argc, char **argv)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", argc > 1 ? argv[1] : "/run/nfd/nfd.sock");
	started_ms = now_ms();
	control = onym_ctl_open();
	if (control < 0) {
		fprintf(stderr, "no AF_NNET here: %s\n", strerror(-control));
		return 3;
	}
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 64)) {
		fprintf(stderr, "%s: %s\n", a.sun_path, strerror(errno));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	for (;;)
		turn(listener);
}
