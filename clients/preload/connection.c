// SPDX-License-Identifier: Apache-2.0 OR MIT
// The connection to the node: messages in and out, as spec/push.md, section 8, has them.

#include "onym_udp.h"

static const uint8_t DOMAIN_LOCAL = 2;

int sys_socket(int d, int t, int p) { REAL(socket); return real_socket(d, t, p); }
int sys_connect(int f, const struct sockaddr *a, socklen_t l) { REAL(connect); return real_connect(f, a, l); }
ssize_t sys_recv(int f, void *b, size_t n, int g) { REAL(recv); return real_recv(f, b, n, g); }
ssize_t sys_send(int f, const void *b, size_t n, int g) { REAL(send); return real_send(f, b, n, g); }
int sys_close(int f) { REAL(close); return real_close(f); }

static size_t put_head(uint8_t *out, unsigned typ, size_t len)
{
	out[0] = (uint8_t)typ;
	if (len < 253) {
		out[1] = (uint8_t)len;
		return 2;
	}
	out[1] = 253;
	out[2] = (uint8_t)(len >> 8);
	out[3] = (uint8_t)len;
	return 4;
}

static size_t put(uint8_t *out, unsigned typ, const void *value, size_t len)
{
	size_t head = put_head(out, typ, len);

	if (len)
		memcpy(out + head, value, len);
	return head + len;
}

// Waits for a moment in which `events` hold; the program may have made the socket non-blocking, but a
// message that was begun must be ended.
static void await(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	(void)poll(&p, 1, -1);
}

static int send_all(int fd, const uint8_t *octets, size_t len)
{
	while (len) {
		ssize_t sent = sys_send(fd, octets, len, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
			await(fd, POLLOUT);
			continue;
		}
		if (sent < 0)
			return -1;
		octets += sent;
		len -= (size_t)sent;
	}
	return 0;
}

// Sends a message. `id` has `labels` labels; a request gets its last one as Id, the others as Prefix, and
// has no payload: `len` is its tag, if not 0.
int say(int fd, enum kind kind, const uint8_t *id, unsigned labels, const void *payload, size_t len)
{
	uint8_t message[4 + 6 + 64 + 4 + PAYLOAD_MAX], *value = message + 4;
	size_t at = 6, head;
	bool is_request = kind < PUBLISH;

	memset(value, 0, 6);
	value[0] = 1;
	value[1] = (uint8_t)kind;
	// Requests are not waited for, but bear a tag so that they are not taken for data.
	value[5] = kind == PUBLISH ? 0 : is_request && len ? (uint8_t)len : 1;
	if (is_request) {
		at += put(value + at, F_ID, id + (labels - 1) * LABEL, LABEL);
		if (labels > 1)
			at += put(value + at, F_PREFIX, id, (labels - 1) * LABEL);
	} else if (labels) {
		at += put(value + at, F_ID, id, labels * LABEL);
	}
	if (kind <= PUBLISH)
		at += put(value + at, F_STRATEGY, &DOMAIN_LOCAL, 1);
	if (kind == REGISTER)
		at += put(value + at, F_TEXT, payload, len);
	if (kind == PUBLISH)
		at += put(value + at, F_PAYLOAD, payload, len);
	// The head goes right before the value.
	head = at < 253 ? 2 : 4;
	put_head(value - head, 0xF2, at);
	return send_all(fd, value - head, at + head);
}

// A TLV number at `*at`; false where octets are missing.
static bool number(const uint8_t *octets, size_t len, size_t *at, size_t *n)
{
	size_t size, i;

	if (*at >= len)
		return false;
	*n = octets[(*at)++];
	if (*n < 253)
		return true;
	size = (size_t)1 << (*n - 252);
	if (size > len - *at)
		return false;
	for (*n = 0, i = 0; i < size; i++)
		*n = *n << 8 | octets[(*at)++];
	return true;
}

// Looks at the message at the head of the connection: its octets, 0 at the end of the connection, -1
// with errno. A payload is not looked at, and so not copied: `m->payload` is where take() will put it.
// Only datagrams in one piece are understood; others are 'no message'.
ssize_t peek(int fd, int flags, uint8_t *octets, struct message *m)
{
	size_t at, typ, len, whole, there;
	ssize_t got = sys_recv(fd, octets, HEAD_MAX, MSG_PEEK | flags);

	while (got > 0) {
		at = 0;
		if (number(octets, (size_t)got, &at, &typ) && number(octets, (size_t)got, &at, &len)) {
			if (typ == 0 || len > MESSAGE_MAX - at) {
				errno = EPROTO;
				return -1;
			}
			whole = at + len;
			if (whole <= (size_t)got || got == HEAD_MAX)
				break;
		} else {
			whole = (size_t)got + 1;
		}
		// It is on its way.
		got = sys_recv(fd, octets, whole < HEAD_MAX ? whole : HEAD_MAX, MSG_PEEK | MSG_WAITALL);
	}
	if (got <= 0)
		return got;
	memset(m, 0, sizeof(*m));
	m->kind = 255;
	there = whole < (size_t)got ? whole : (size_t)got;
	if (typ != 0xF2 || len < 6 || octets[at] != 1)
		return (ssize_t)whole;
	m->kind = octets[at + 1];
	m->tag = octets[at + 5];
	for (at += 6; at < there;) {
		size_t field, n;

		if (!number(octets, there, &at, &field) || !number(octets, there, &at, &n) || n > whole - at) {
			errno = EPROTO;
			return -1;
		}
		if (field == F_ID && n <= there - at) {
			m->id = octets + at;
			m->id_len = n;
		} else if (field == F_PAYLOAD) {
			m->payload = octets + at;
			m->payload_len = n;
		}
		at += n;
	}
	return (ssize_t)whole;
}

// Takes the message that was looked at off the connection, into the same octets; false when the
// connection ended in it. What was begun is waited for, though the program does not want to wait.
bool take(int fd, uint8_t *octets, size_t len)
{
	while (len) {
		ssize_t got = sys_recv(fd, octets, len, MSG_WAITALL);

		if (got < 0 && errno == EAGAIN) {
			await(fd, POLLIN);
			continue;
		}
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		if (got > 0) {
			octets += got;
			len -= (size_t)got;
		}
	}
	return true;
}
