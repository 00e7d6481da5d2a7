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

// Writes a message to somewhere in `room`, from `*at` on; its length. A request gets the last label as Id and
// the others as Prefix, and has no payload.
size_t compose(const struct outgoing *m, uint8_t room[OUTGOING_MAX], uint8_t **start)
{
	uint8_t *value = room + 4;
	size_t at = 6, head;
	bool is_request = m->kind < PUBLISH;

	value[0] = 1;
	value[1] = (uint8_t)m->kind;
	for (int i = 0; i < 4; i++)
		value[2 + i] = (uint8_t)(m->tag >> (24 - 8 * i));
	if (is_request) {
		at += put(value + at, F_ID, m->id + (m->labels - 1) * LABEL, LABEL);
		if (m->labels > 1)
			at += put(value + at, F_PREFIX, m->id, (m->labels - 1) * LABEL);
	} else if (m->labels) {
		at += put(value + at, F_ID, m->id, m->labels * LABEL);
	}
	if (m->kind <= PUBLISH)
		at += put(value + at, F_STRATEGY, &DOMAIN_LOCAL, 1);
	if (m->kind == REGISTER)
		at += put(value + at, F_TEXT, m->payload, m->len);
	if (m->kind == PUBLISH)
		at += put(value + at, F_PAYLOAD, m->payload, m->len);
	// The head goes right before the value.
	head = at < 253 ? 2 : 4;
	*start = value - head;
	put_head(*start, 0xF2, at);
	return at + head;
}

// Sends a message, which has no payload where it is a request: `len` is its tag then, if not 0.
int say(int fd, enum kind kind, const uint8_t *id, unsigned labels, const void *payload, size_t len)
{
	// Requests are not waited for, but bear a tag so that they are not taken for data.
	uint32_t tag = kind == PUBLISH ? 0 : kind < PUBLISH && len ? (uint32_t)len : 1;
	struct outgoing m = { kind, tag, id, labels, payload, len };
	uint8_t room[OUTGOING_MAX], *at;

	len = compose(&m, room, &at);
	return send_all(fd, at, len);
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

// Reads what `octets`, `len` of them, begin with; its whole length, 0 where that is not seen yet, or -1
// with errno. `m` is set when all of it is there. Only datagrams in one piece are understood; others are
// 'no message'.
static ssize_t parse(const uint8_t *octets, size_t len, struct message *m)
{
	size_t at = 0, typ, n, end;

	if (!number(octets, len, &at, &typ) || !number(octets, len, &at, &n))
		return 0;
	if (typ == 0 || n > MESSAGE_MAX - at) {
		errno = EPROTO;
		return -1;
	}
	end = at + n;
	memset(m, 0, sizeof(*m));
	m->kind = 255;
	if (end > len || typ != 0xF2 || n < 6 || octets[at] != 1)
		return (ssize_t)end;
	m->kind = octets[at + 1];
	m->tag = (uint32_t)octets[at + 2] << 24 | (uint32_t)octets[at + 3] << 16 | (uint32_t)octets[at + 4] << 8 | octets[at + 5];
	for (at += 6; at < end;) {
		size_t field;

		if (!number(octets, end, &at, &field) || !number(octets, end, &at, &n) || n > end - at) {
			errno = EPROTO;
			return -1;
		}
		if (field == F_ID) {
			m->id = octets + at;
			m->id_len = n;
		} else if (field == F_STATUS && n) {
			m->status = octets[at + n - 1];
		} else if (field == F_LENGTH && m->kind == DATA) {
			m->kind = 255;
		} else if (field == F_PAYLOAD) {
			m->payload = octets + at;
			m->payload_len = n;
		}
		at += n;
	}
	return (ssize_t)end;
}

// Takes so many octets off the connection; false when it ended in them.
static bool take(int fd, uint8_t *octets, size_t len)
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

// Looks at the next message: its octets, 0 at the end of the connection, -1 with errno, EAGAIN when it is
// not there. What it says lies in `in` and is good until the next call.
ssize_t look(int fd, struct incoming *in, struct message *m)
{
	ssize_t len, got;

	if (in->at < in->taken)
		return parse(in->octets + in->at, in->taken - in->at, m);
	in->at = in->taken = in->seen = 0;
	got = sys_recv(fd, in->octets, sizeof(in->octets), MSG_PEEK | MSG_DONTWAIT);
	while (got > 0) {
		len = parse(in->octets, (size_t)got, m);
		if (len < 0)
			return -1;
		in->seen = (size_t)got;
		if (len > 0 && len <= got)
			return len;
		// Its rest is on its way: what was begun is waited for, though the program may not want to.
		got = sys_recv(fd, in->octets, len > got ? (size_t)len : (size_t)got + 1, MSG_PEEK | MSG_WAITALL);
	}
	return got;
}

// Lets the message that was looked at go; false when the connection ended. Further whole messages that were
// seen are taken off the connection with it, but for the last one: as long as there is one, the descriptor
// says that it is readable.
bool pass(int fd, struct incoming *in)
{
	struct message m;
	size_t last = 0, end = 0;
	ssize_t len;

	if (in->at >= in->taken) {
		while ((len = parse(in->octets + end, in->seen - end, &m)) > 0 && (size_t)len <= in->seen - end) {
			last = end;
			end += (size_t)len;
		}
		if (!take(fd, in->octets, last ? last : end))
			return false;
		in->taken = last ? last : end;
	}
	len = parse(in->octets + in->at, in->taken - in->at, &m);
	if (len > 0)
		in->at += (size_t)len;
	return len > 0;
}

// Connects to the node at `path` and registers; the descriptor, or -1 with errno.
int open_node(const char *path, const char *name, struct incoming *in)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	struct message m;
	uint8_t octet;
	int fd;

	errno = ENETDOWN;
	if (!path || strlen(path) >= sizeof(where.sun_path))
		return -1;
	strcpy(where.sun_path, path);
	fd = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	memset(in, 0, offsetof(struct incoming, octets));
	if (sys_connect(fd, (struct sockaddr *)&where, sizeof(where)) ||
	    say(fd, REGISTER, NULL, 0, name, strlen(name)) || sys_recv(fd, &octet, 1, MSG_PEEK) <= 0 ||
	    look(fd, in, &m) <= 0 || m.kind != REGISTERED || !pass(fd, in)) {
		sys_close(fd);
		errno = ENETDOWN;
		return -1;
	}
	return fd;
}
