// SPDX-License-Identifier: Apache-2.0 OR MIT
// Datagrams: every way in which a program sends and receives them. The last message that came stays on the
// connection until the program receives it, so that poll sees it.

#include "onym_udp.h"
#include "stream.h"

ssize_t sendto(int fd, const void *payload, size_t len, int flags, const struct sockaddr *address, socklen_t alen)
{
	struct sock *s = find(fd);
	struct peer *p;
	struct sockaddr_in6 to;

	if (!s) {
		REAL(sendto);
		if (address && is_stream(fd))
			address = NULL, alen = 0;
		return stream_result(fd, real_sendto(fd, payload, len, flags, address, alen), len);
	}
	if (!alen)
		address = NULL;
	if (address && !place_of(address, alen, s->domain, &to))
		return -1;
	if (len > PAYLOAD_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	pthread_mutex_lock(&s->lock);
	p = address ? peer_at(fd, s, &to) : s->connected;
	if (must_obey(s, p))
		obey(fd, s);
	if (p)
		deliver(fd, s, p, payload, len);
	pthread_mutex_unlock(&s->lock);
	if (!p) {
		errno = EDESTADDRREQ;
		return -1;
	}
	return (ssize_t)len;
}

ssize_t send(int fd, const void *payload, size_t len, int flags)
{
	return find(fd) ? sendto(fd, payload, len, flags, NULL, 0)
			: stream_result(fd, sys_send(fd, payload, len, flags), len);
}

ssize_t write(int fd, const void *payload, size_t len)
{
	REAL(write);
	return find(fd) ? sendto(fd, payload, len, 0, NULL, 0) : stream_result(fd, real_write(fd, payload, len), len);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	uint8_t payload[PAYLOAD_MAX];
	size_t len = 0;

	if (!find(fd)) {
		REAL(sendmsg);
		return stream_result(fd, real_sendmsg(fd, msg, flags), 1);
	}
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > sizeof(payload) - len) {
			errno = EMSGSIZE;
			return -1;
		}
		memcpy(payload + len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	return sendto(fd, payload, len, flags, msg->msg_name, msg->msg_namelen);
}

// The next datagram, which stays where it is, with `s` locked; NULL with errno when there is none. What else
// the node said before it is obeyed.
static struct peer *next(int fd, struct sock *s, struct message *m)
{
	ssize_t len;

	while ((len = look(fd, &s->in, m)) > 0) {
		struct peer *p = m->kind == DATA && m->id_len == ID_MAX ? peer_from(fd, s, m->id) : NULL;

		if (p && (!s->connected || s->connected == p))
			return p;
		event(fd, s, m);
		if (!pass(fd, &s->in))
			break;
	}
	if (len >= 0)
		errno = ENETDOWN;
	return NULL;
}

// Receives a datagram into `iov`; its whole length comes with it.
static ssize_t receive(int fd, struct sock *s, const struct iovec *iov, size_t count, int flags,
		       struct sockaddr *address, socklen_t *alen, size_t *whole)
{
	struct message m;
	struct peer *p;
	size_t at = 0;

	pthread_mutex_lock(&s->lock);
	while (!(p = next(fd, s, &m))) {
		uint8_t octet;
		ssize_t got = -1;

		pthread_mutex_unlock(&s->lock);
		// The descriptor knows whether and how long the program wants to wait.
		if (errno == EAGAIN && !(flags & MSG_DONTWAIT))
			got = sys_recv(fd, &octet, 1, MSG_PEEK);
		if (got == 0)
			errno = ENETDOWN;
		if (got <= 0)
			return -1;
		pthread_mutex_lock(&s->lock);
	}
	p->last_use = ++s->uses;
	if (address && alen)
		show_place(&p->address, s->domain, address, alen);
	for (size_t i = 0; i < count && at < m.payload_len; i++) {
		size_t n = m.payload_len - at < iov[i].iov_len ? m.payload_len - at : iov[i].iov_len;

		memcpy(iov[i].iov_base, m.payload + at, n);
		at += n;
	}
	*whole = m.payload_len;
	if (!(flags & MSG_PEEK) && !pass(fd, &s->in)) {
		pthread_mutex_unlock(&s->lock);
		errno = ENETDOWN;
		return -1;
	}
	pthread_mutex_unlock(&s->lock);
	return (ssize_t)at;
}

ssize_t recvfrom(int fd, void *buffer, size_t len, int flags, struct sockaddr *address, socklen_t *alen)
{
	struct sock *s = find(fd);
	struct iovec iov = { buffer, len };
	size_t whole = 0;
	ssize_t got;

	if (!s) {
		REAL(recvfrom);
		got = real_recvfrom(fd, buffer, len, flags, address, alen);
		// As with TCP: who sent is not told.
		if (got >= 0 && address && alen && is_stream(fd))
			*alen = 0;
		return stream_result(fd, got, len);
	}
	got = receive(fd, s, &iov, 1, flags, address, alen, &whole);
	return got >= 0 && (flags & MSG_TRUNC) ? (ssize_t)whole : got;
}

ssize_t recv(int fd, void *buffer, size_t len, int flags)
{
	return find(fd) ? recvfrom(fd, buffer, len, flags, NULL, NULL)
			: stream_result(fd, sys_recv(fd, buffer, len, flags), len);
}

ssize_t read(int fd, void *buffer, size_t len)
{
	REAL(read);
	return find(fd) ? recvfrom(fd, buffer, len, 0, NULL, NULL) : stream_result(fd, real_read(fd, buffer, len), len);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *s = find(fd);
	size_t whole = 0;
	ssize_t got;

	if (!s) {
		REAL(recvmsg);
		got = real_recvmsg(fd, msg, flags);
		if (got >= 0 && msg->msg_name && is_stream(fd))
			msg->msg_namelen = 0;
		return stream_result(fd, got, msg->msg_iovlen > 0);
	}
	msg->msg_controllen = 0;
	got = receive(fd, s, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, &msg->msg_namelen, &whole);
	if (got >= 0)
		msg->msg_flags = (size_t)got < whole ? MSG_TRUNC : 0;
	return got >= 0 && (flags & MSG_TRUNC) ? (ssize_t)whole : got;
}

// The checked forms that programs built with _FORTIFY_SOURCE call.
ssize_t __recvfrom_chk(int fd, void *b, size_t n, size_t room, int flags, struct sockaddr *a, socklen_t *l);
ssize_t __recvfrom_chk(int fd, void *b, size_t n, size_t room, int flags, struct sockaddr *a, socklen_t *l)
{
	return recvfrom(fd, b, n < room ? n : room, flags, a, l);
}

ssize_t __recv_chk(int fd, void *b, size_t n, size_t room, int flags);
ssize_t __recv_chk(int fd, void *b, size_t n, size_t room, int flags)
{
	return recv(fd, b, n < room ? n : room, flags);
}

ssize_t __read_chk(int fd, void *b, size_t n, size_t room);
ssize_t __read_chk(int fd, void *b, size_t n, size_t room)
{
	return read(fd, b, n < room ? n : room);
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = count > 0 ? (size_t)count : 0 };
	REAL(readv);

	return find(fd) ? recvmsg(fd, &msg, 0) : stream_result(fd, real_readv(fd, iov, count), msg.msg_iovlen);
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = count > 0 ? (size_t)count : 0 };
	REAL(writev);

	return find(fd) ? sendmsg(fd, &msg, 0) : stream_result(fd, real_writev(fd, iov, count), msg.msg_iovlen);
}
