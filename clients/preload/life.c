// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sockets come and go: socket, close, shutdown.
//
// A UDP socket of the program becomes its connection to the node's Unix socket, so that select, poll
// and epoll work by themselves: readable means that the node said something.

#include "onym_udp.h"
#include "stream.h"

static struct sock *socks[FDS_MAX];
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

struct sock *find(int fd)
{
	return fd >= 0 && fd < FDS_MAX ? __atomic_load_n(&socks[fd], __ATOMIC_ACQUIRE) : NULL;
}

static int open_sock(struct sock *s, int type)
{
	int fd = open_node(getenv("ONYM_UDP_NODE"), "udp", &s->in);

	if (fd >= FDS_MAX) {
		sys_close(fd);
		errno = ENETDOWN;
		return -1;
	}
	if (fd >= 0 && !(type & SOCK_CLOEXEC))
		fcntl(fd, F_SETFD, 0);
	if (fd >= 0 && (type & SOCK_NONBLOCK))
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	struct sock *s;
	int fd;

	if ((domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP) && streams_are_on())
		return stream_socket(domain, type);
	if ((domain != AF_INET && domain != AF_INET6) || (type & 0xf) != SOCK_DGRAM || !getenv("ONYM_UDP_NODE"))
		return sys_socket(domain, type, protocol);
	s = calloc(1, sizeof(*s));
	fd = s ? open_sock(s, type) : -1;
	if (fd < 0) {
		free(s);
		return -1;
	}
	s->domain = domain;
	s->bound.sin6_family = AF_INET6;
	if (domain == AF_INET)
		memset(s->bound.sin6_addr.s6_addr + 10, 0xFF, 2);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_lock(&table);
	__atomic_store_n(&socks[fd], s, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&table);
	return fd;
}

static bool has_waiting(const struct sock *s)
{
	for (const struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++)
		if (p->waiting)
			return true;
	return false;
}

// What was sent has left when the node answers a request that came after it, and datagrams that were
// sent before there was a way leave when there is one, for up to a while: UDP too
// sends what was sent before the end of the program. A program whose socket is not over still wants what comes:
// that stays.
static void settle(int fd, struct sock *s, bool is_over)
{
	struct timespec now, end;
	struct message m;

	bool is_done = !s->uses || say(fd, PUBLISH_SCOPE, ROOTS[0], 1, NULL, LAST);

	clock_gettime(CLOCK_MONOTONIC, &end);
	while (!is_done || has_waiting(s)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long left;
		ssize_t len;

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = LINGER_MS - (now.tv_sec - end.tv_sec) * 1000 - (now.tv_nsec - end.tv_nsec) / 1000000;
		if (left <= 0)
			return;
		// A signal, such as the end of a child, is no reason to give up.
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return;
		len = look(fd, &s->in, &m);
		if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
			return;
		if (len > 0 && !is_over && m.kind == DATA)
			return;
		if (len > 0) {
			bool was_waiting = has_waiting(s);

			is_done |= m.kind == STATUS && m.tag == LAST;
			event(fd, s, &m);
			if (!pass(fd, &s->in))
				return;
			// What leaves only now has to be done as well.
			if (was_waiting && !has_waiting(s))
				is_done = say(fd, PUBLISH_SCOPE, ROOTS[0], 1, NULL, LAST) != 0;
		}
	}
}

__attribute__((destructor)) static void settle_all(void)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (socks[fd])
			settle(fd, socks[fd], true);
}

int close(int fd)
{
	struct sock *s = find(fd);

	if (s) {
		settle(fd, s, true);
		pthread_mutex_lock(&table);
		__atomic_store_n(&socks[fd], NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&table);
		for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++)
			if (p->is_used)
				forget_waiting(p);
		free(s);
	} else if (stream_closing(fd)) {
		int result = sys_close(fd);

		stream_closed();
		return result;
	}
	return sys_close(fd);
}

// A datagram socket has nothing to end; ending the connection would take everything back.
int shutdown(int fd, int how)
{
	struct sock *s = find(fd);

	if (!s) {
		REAL(shutdown);
		return real_shutdown(fd, how);
	}
	settle(fd, s, false);
	return 0;
}
