// SPDX-License-Identifier: Apache-2.0 OR MIT
// Addresses and options: bind, connect, getsockname and their like.

#include "onym_udp.h"

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sock *s = find(fd);
	const char *host = getenv("ONYM_UDP_HOST");
	uint8_t id[ID_MAX];

	if (!s) {
		REAL(bind);
		return real_bind(fd, address, len);
	}
	if (len < sizeof(s->bound) || address->sa_family != AF_INET) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&s->lock);
	memcpy(&s->bound, address, sizeof(s->bound));
	if (s->bound.sin_addr.s_addr == htonl(INADDR_ANY) && host)
		inet_pton(AF_INET, host, &s->bound.sin_addr);
	if (s->bound.sin_port) {
		scope_of(&s->bound, id);
		publish_scopes(fd, id);
		(void)say(fd, SUBSCRIBE_SCOPE, id, 2, NULL, 0);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sock *s = find(fd);
	struct sockaddr_in to;

	if (!s)
		return sys_connect(fd, address, len);
	if (address->sa_family == AF_UNSPEC) {
		s->connected = NULL;
		return 0;
	}
	if (len < sizeof(to) || address->sa_family != AF_INET) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	memcpy(&to, address, sizeof(to));
	pthread_mutex_lock(&s->lock);
	s->connected = peer_at(fd, s, &to);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int getsockname(int fd, struct sockaddr *address, socklen_t *len)
{
	struct sock *s = find(fd);
	struct sockaddr_in own;

	if (!s) {
		REAL(getsockname);
		return real_getsockname(fd, address, len);
	}
	own = s->bound;
	own.sin_family = AF_INET;
	memcpy(address, &own, *len < sizeof(own) ? *len : sizeof(own));
	*len = sizeof(own);
	return 0;
}

int getpeername(int fd, struct sockaddr *address, socklen_t *len)
{
	struct sock *s = find(fd);

	if (!s) {
		REAL(getpeername);
		return real_getpeername(fd, address, len);
	}
	if (!s->connected) {
		errno = ENOTCONN;
		return -1;
	}
	memcpy(address, &s->connected->address, *len < sizeof(struct sockaddr_in) ? *len : sizeof(struct sockaddr_in));
	*len = sizeof(struct sockaddr_in);
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	REAL(setsockopt);
	// Options of IP have no meaning here and are agreed to; times out and buffers are the socket's.
	if (find(fd) && (level != SOL_SOCKET || (name != SO_RCVTIMEO && name != SO_SNDTIMEO)))
		return 0;
	return real_setsockopt(fd, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	REAL(getsockopt);
	if (find(fd) && level == SOL_SOCKET && name == SO_TYPE && *len >= sizeof(int)) {
		int type = SOCK_DGRAM;

		memcpy(value, &type, sizeof(type));
		*len = sizeof(type);
		return 0;
	}
	return real_getsockopt(fd, level, name, value, len);
}
