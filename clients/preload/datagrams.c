// SPDX-License-Identifier: Apache-2.0 OR MIT
// Datagrams: every way in which a program sends and receives them. Exactly one message is taken off the
// connection at a time, and a datagram only when the program receives it.

#include "onym_udp.h"

ssize_t sendto(int fd, const void *payload, size_t len, int flags, const struct sockaddr *address, socklen_t alen)
{
	struct sock *s = find(fd);
	struct peer *p;
	struct sockaddr_in to;

	if (!s) {
		REAL(sendto);
		return real_sendto(fd, payload, len, flags, address, alen);
	}
	if (len > PAYLOAD_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	pthread_mutex_lock(&s->lock);
	obey(fd, s);
	p = s->connected;
	if (address && alen >= sizeof(to)) {
		memcpy(&to, address, sizeof(to));
		p = peer_at(fd, s, &to);
	}
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
	return find(fd) ? sendto(fd, payload, len, flags, NULL, 0) : sys_send(fd, payload, len, flags);
}

ssize_t write(int fd, const void *payload, size_t len)
{
	REAL(write);
	return find(fd) ? sendto(fd, payload, len, 0, NULL, 0) : real_write(fd, payload, len);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	uint8_t payload[PAYLOAD_MAX];
	size_t len = 0;

	if (!find(fd)) {
		REAL(sendmsg);
		return real_sendmsg(fd, msg, flags);
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

// Receives a datagram into `iov`; its whole length and whether it was cut come with it.
static ssize_t receive(int fd, struct sock *s, const struct iovec *iov, size_t count, int flags,
		       struct sockaddr *address, socklen_t *alen, size_t *whole)
{
	uint8_t octets[MESSAGE_MAX];
	struct message m;
	size_t at = 0;

	for (;;) {
		struct peer *p = NULL;
		ssize_t len = peek(fd, flags & MSG_DONTWAIT, octets, &m);

		if (len == 0)
			errno = ENETDOWN;
		if (len <= 0)
			return -1;
		pthread_mutex_lock(&s->lock);
		if (m.kind == DATA && m.id_len == ID_MAX)
			p = peer_from(fd, s, m.id);
		if (p && s->connected && s->connected != p)
			p = NULL;
		// A program that only looks gets a copy of the whole message; it stays where it is.
		if (p && flags & MSG_PEEK ? sys_recv(fd, octets, (size_t)len, MSG_PEEK | MSG_WAITALL) < len
					  : !take(fd, octets, (size_t)len)) {
			pthread_mutex_unlock(&s->lock);
			errno = ENETDOWN;
			return -1;
		}
		if (p) {
			p->last_use = ++s->uses;
			if (address && alen) {
				memcpy(address, &p->address, *alen < sizeof(p->address) ? *alen : sizeof(p->address));
				*alen = sizeof(p->address);
			}
		} else {
			event(fd, s, &m);
		}
		pthread_mutex_unlock(&s->lock);
		if (!p)
			continue;
		for (size_t i = 0; i < count && at < m.payload_len; i++) {
			size_t n = m.payload_len - at < iov[i].iov_len ? m.payload_len - at : iov[i].iov_len;

			memcpy(iov[i].iov_base, m.payload + at, n);
			at += n;
		}
		*whole = m.payload_len;
		return (ssize_t)at;
	}
}

ssize_t recvfrom(int fd, void *buffer, size_t len, int flags, struct sockaddr *address, socklen_t *alen)
{
	struct sock *s = find(fd);
	struct iovec iov = { buffer, len };
	size_t whole = 0;
	ssize_t got;

	if (!s) {
		REAL(recvfrom);
		return real_recvfrom(fd, buffer, len, flags, address, alen);
	}
	got = receive(fd, s, &iov, 1, flags, address, alen, &whole);
	return got >= 0 && (flags & MSG_TRUNC) ? (ssize_t)whole : got;
}

ssize_t recv(int fd, void *buffer, size_t len, int flags)
{
	return find(fd) ? recvfrom(fd, buffer, len, flags, NULL, NULL) : sys_recv(fd, buffer, len, flags);
}

ssize_t read(int fd, void *buffer, size_t len)
{
	REAL(read);
	return find(fd) ? recvfrom(fd, buffer, len, 0, NULL, NULL) : real_read(fd, buffer, len);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *s = find(fd);
	size_t whole = 0;
	ssize_t got;

	if (!s) {
		REAL(recvmsg);
		return real_recvmsg(fd, msg, flags);
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
