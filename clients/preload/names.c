// SPDX-License-Identifier: Apache-2.0 OR MIT
// Addresses and options: bind, connect, getsockname and their like.

#include "onym_udp.h"
#include "stream.h"

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sock *s = find(fd);
	struct sockaddr_in6 at, places[2];
	uint8_t id[ID_MAX];
	int result;

	if (!s) {
		REAL(bind);
		return stream_bind(fd, address, len, &result) ? result : real_bind(fd, address, len);
	}
	if (!place_of(address, len, s->domain, &at))
		return -1;
	pthread_mutex_lock(&s->lock);
	for (unsigned n = places_of(&at, s->is_6_only, getenv("ONYM_UDP_HOST"), places); n--;) {
		s->bound = places[n];
		if (!at.sin6_port)
			continue;
		scope_of(&places[n], ROOTS, id);
		publish_scopes(fd, id);
		(void)say(fd, SUBSCRIBE_SCOPE, id, 2, NULL, 0);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sock *s = find(fd);
	struct sockaddr_in6 to;
	int result;

	if (!s)
		return stream_connect(fd, address, len, &result) ? result : sys_connect(fd, address, len);
	if (address->sa_family == AF_UNSPEC) {
		s->connected = NULL;
		return 0;
	}
	if (!place_of(address, len, s->domain, &to))
		return -1;
	pthread_mutex_lock(&s->lock);
	s->connected = peer_at(fd, s, &to);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int getsockname(int fd, struct sockaddr *address, socklen_t *len)
{
	struct sock *s = find(fd);

	if (!s) {
		REAL(getsockname);
		return stream_sockname(fd, address, len) ? 0 : real_getsockname(fd, address, len);
	}
	show_place(&s->bound, s->domain, address, len);
	return 0;
}

int getpeername(int fd, struct sockaddr *address, socklen_t *len)
{
	struct sock *s = find(fd);

	if (!s) {
		REAL(getpeername);
		return stream_peername(fd, address, len) ? 0 : real_getpeername(fd, address, len);
	}
	if (!s->connected) {
		errno = ENOTCONN;
		return -1;
	}
	show_place(&s->connected->address, s->domain, address, len);
	return 0;
}

// The whole number that an option of this socket has, or -1: it is the connection's.
static int option(const struct sock *s, int level, int name)
{
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
		return s->is_6_only;
	if (level != SOL_SOCKET)
		return -1;
	return name == SO_TYPE ? SOCK_DGRAM : name == SO_DOMAIN ? s->domain : name == SO_PROTOCOL ? IPPROTO_UDP : -1;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct sock *s = find(fd);
	int flag = 0;

	REAL(setsockopt);
	if (!s && stream_setsockopt(fd, level, name, value, len))
		return 0;
	// Options of IP have no meaning here and are agreed to; times out and buffers are the socket's.
	if (!s || (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)))
		return real_setsockopt(fd, level, name, value, len);
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && len >= sizeof(flag)) {
		memcpy(&flag, value, sizeof(flag));
		s->is_6_only = flag;
	}
	return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	const struct sock *s = find(fd);
	int own = s ? option(s, level, name) : -1;
	bool is_own = s ? own >= 0 : stream_getsockopt(fd, level, name, &own);

	REAL(getsockopt);
	if (!is_own || *len < sizeof(own))
		return real_getsockopt(fd, level, name, value, len);
	memcpy(value, &own, sizeof(own));
	*len = sizeof(own);
	return 0;
}
