// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the program does with its stream sockets. Each is a Unix socket: who calls is connected to the thread of
// pump.c, who listens is connected to by it; so waiting, copies of descriptors and readiness are the system's.

#include "stream.h"

#include <netinet/tcp.h>

// A socket between socket() and connect() or listen().
static struct fresh {
	bool is_used, is_6_only, has_called, is_listening;
	int domain;
	struct sockaddr_in6 bound;
} fresh[FDS_MAX];

bool streams_are_on(void)
{
	return getenv("ONYM_TCP_NODE") != NULL;
}

static struct fresh *fresh_of(int fd)
{
	return fd >= 0 && fd < FDS_MAX && fresh[fd].is_used ? &fresh[fd] : NULL;
}

int stream_socket(int domain, int type)
{
	int fd = sys_socket(AF_UNIX, type, 0);

	if (fd >= FDS_MAX) {
		sys_close(fd);
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0) {
		memset(&fresh[fd], 0, sizeof(fresh[fd]));
		fresh[fd].domain = domain;
		fresh[fd].bound.sin6_family = AF_INET6;
		if (domain == AF_INET)
			memset(fresh[fd].bound.sin6_addr.s6_addr + 10, 0xFF, 2);
		fresh[fd].is_used = true;
	}
	return fd;
}

static bool is_loopback(const struct sockaddr_in6 *at)
{
	return is_ipv4(at) ? at->sin6_addr.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&at->sin6_addr);
}

// What is said to this machine alone stays in it: the descriptor becomes a socket of the system.
static int stay_here(int fd)
{
	int domain = fresh[fd].domain, only = fresh[fd].is_6_only, reuse = 0;
	int own = sys_socket(domain, SOCK_STREAM, 0);
	int cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC;
	socklen_t len = sizeof(reuse);
	REAL(getsockopt);
	REAL(setsockopt);

	if (own < 0)
		return -1;
	(void)real_getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, &len);
	(void)real_setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
	if (domain == AF_INET6)
		(void)real_setsockopt(own, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	(void)fcntl(own, F_SETFL, fcntl(fd, F_GETFL));
	fresh[fd].is_used = false;
	fd = dup3(own, fd, cloexec ? O_CLOEXEC : 0);
	sys_close(own);
	return fd < 0 ? -1 : 0;
}

static in_port_t draw_port(void)
{
	uint16_t drawn = 0;

	(void)!getrandom(&drawn, sizeof(drawn), GRND_NONBLOCK);
	return htons((uint16_t)(32768 + drawn % 28232));
}

// False: it is none of ours, or not any more.
bool stream_bind(int fd, const struct sockaddr *address, socklen_t len, int *result)
{
	struct fresh *f = fresh_of(fd);
	struct sockaddr_in6 at;

	if (!f)
		return false;
	*result = -1;
	if (!place_of(address, len, f->domain, &at))
		return true;
	if (is_loopback(&at))
		return stay_here(fd) != 0;
	if (f->bound.sin6_port) {
		errno = EINVAL;
		return true;
	}
	f->bound = at;
	if (!at.sin6_port)
		f->bound.sin6_port = draw_port();
	*result = 0;
	return true;
}

static bool name_it(int fd, struct tag *t, struct sockaddr_un *name, socklen_t *len)
{
	REAL(bind);

	*len = tag_name(t, name);
	return !real_bind(fd, (struct sockaddr *)name, *len);
}

// A listener for these places; one that is over and has the same ones comes to life again. NULL with errno.
static struct listener *place_listener(const struct sockaddr_in6 *places, unsigned count)
{
	struct listener *free_one = NULL, *again = NULL;

	for (struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++) {
		bool is_same = l->is_used && l->count == count, meets = false;

		for (unsigned n = 0; n < l->count; n++) {
			is_same &= n < count && is_same_place(&l->place[n], &places[n]);
			for (unsigned k = 0; k < count; k++)
				meets |= is_same_place(&l->place[n], &places[k]);
		}
		if (meets && !l->is_over)
			listener_look(l);
		// What was withdrawn now may have gone, for it had no streams.
		if (!l->is_used)
			free_one = free_one ? free_one : l;
		else if (meets && l->is_over && is_same)
			again = l;
		else if (meets) {
			errno = EADDRINUSE;
			return NULL;
		}
	}
	errno = ENOBUFS;
	return again ? again : free_one;
}

static int publish_listener(int fd, const struct fresh *f, int backlog)
{
	struct tag t = { .role = 'L', .domain = (uint16_t)f->domain, .generation = ++pump.generations, .own = f->bound };
	struct sockaddr_in6 places[2];
	unsigned count = places_of(&f->bound, f->is_6_only, getenv("ONYM_TCP_HOST"), places);
	struct listener *l = place_listener(places, count);
	struct sockaddr_un name;
	struct timespec end;
	socklen_t len;
	int failed;
	REAL(listen);

	if (!l)
		return -1;
	memcpy(t.life, pump.life, sizeof(t.life));
	if (!name_it(fd, &t, &name, &len) || real_listen(fd, backlog))
		return -1;
	l->is_used = true;
	l->count = count;
	l->domain = f->domain;
	l->own = f->bound;
	l->name = name;
	l->name_len = len;
	for (unsigned n = 0; n < count; n++) {
		l->place[n] = places[n];
		scope_of(&places[n], THERE, l->there[n]);
		scope_of(&places[n], BACK, l->back[n]);
	}
	listener_publish(l);
	if (pump.is_lost) {
		l->error = ENETDOWN;
		l->is_told = true;
	}
	pump_wake();
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LISTEN_MS / 1000;
	while (!l->is_told && pthread_cond_timedwait(&pump.told, &pump.lock, &end) == 0)
		;
	if (l->is_told && !l->error)
		return 0;
	failed = l->is_told ? l->error : ENETDOWN;
	listener_withdraw(l);
	pump_wake();
	errno = failed;
	return -1;
}

int listen(int fd, int backlog)
{
	struct fresh *f = fresh_of(fd);
	int result = -1;
	REAL(listen);

	if (!f || f->is_listening)
		return real_listen(fd, backlog);
	if (f->has_called) {
		errno = EINVAL;
		return -1;
	}
	if (!f->bound.sin6_port)
		f->bound.sin6_port = draw_port();
	pthread_mutex_lock(&pump.lock);
	if (pump_start())
		result = publish_listener(fd, f, backlog);
	f->is_listening = result == 0;
	pthread_mutex_unlock(&pump.lock);
	return result;
}

// The program's end cannot be written to until the thread has taken these octets from it: as one that is being
// connected. Their number.
static size_t cork(int fd)
{
	static const uint8_t none[16384];
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	size_t count = 0;

	for (int i = 0; i < 256 && poll(&p, 1, 0) > 0; i++) {
		ssize_t sent = sys_send(fd, none, sizeof(none), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		count += (size_t)sent;
	}
	return count;
}

static bool is_own_process(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	REAL(getsockopt);

	return !real_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid == getpid();
}

// The end of whoever has knocked at the thread's door, if it was this process; others of this machine are let go.
static int answer_door(void)
{
	REAL(accept4);

	for (int i = 0; i < 2 * STREAMS_MAX; i++) {
		int got = real_accept4(pump.door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (got < 0 || is_own_process(got))
			return got;
		sys_close(got);
	}
	return -1;
}

// Connects the program's socket to the thread; the other end, or -1. It must not wait, however many others knock.
static int pair(int fd)
{
	int flags = fcntl(fd, F_GETFL), failed, got = -1;

	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	for (int i = 0; i < STREAMS_MAX && got < 0; i++) {
		failed = sys_connect(fd, (struct sockaddr *)&pump.door_name, pump.door_len);
		if (failed && errno != EAGAIN)
			break;
		got = answer_door();
	}
	(void)fcntl(fd, F_SETFL, flags);
	return got;
}

static int call(int fd, struct fresh *f, const struct sockaddr_in6 *to)
{
	struct tag t = { .role = 'C', .domain = (uint16_t)f->domain, .peer = *to };
	struct stream *s = pump_start() && !pump.is_lost ? pump_place(CALLING, now_ms()) : NULL;
	struct sockaddr_un name;
	socklen_t len;
	bool is_drawn;

	if (!s) {
		errno = pump.is_running && !pump.is_lost ? EADDRNOTAVAIL : ENETDOWN;
		return -1;
	}
	scope_of(to, THERE, s->out);
	scope_of(to, BACK, s->in);
	is_drawn = getrandom(s->out + 2 * LABEL, LABEL, 0) == LABEL;
	memcpy(s->in + 2 * LABEL, s->out + 2 * LABEL, LABEL);
	client_place(s->out, THERE, &t.own);
	s->own = t.own;
	s->peer = *to;
	t.slot = s->slot;
	t.generation = s->generation;
	memcpy(t.life, pump.life, sizeof(t.life));
	s->fd = is_drawn && name_it(fd, &t, &name, &len) ? pair(fd) : -1;
	if (s->fd < 0) {
		memset(s, 0, sizeof(*s));
		errno = ENETDOWN;
		return -1;
	}
	f->has_called = true;
	pump_tell(s, 0);
	s->cork = cork(fd);
	stream_put(s, OPEN, NULL, 0, now_ms());
	stream_call(s);
	pump_wake();
	return 0;
}

// What connect() says of a stream that was called: none where it does not know yet.
static int call_result(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	struct tag t;
	int ready = poll(&p, 1, timeout), error;

	if (ready <= 0)
		return ready < 0 ? EINTR : EALREADY;
	if (!(p.revents & (POLLHUP | POLLERR)))
		return 0;
	error = tag_of(fd, &t) ? pump_told(&t) : 0;
	return error ? error : ECONNABORTED;
}

bool stream_connect(int fd, const struct sockaddr *address, socklen_t len, int *result)
{
	struct fresh *f = fresh_of(fd);
	struct sockaddr_in6 to;
	int error = 0;

	if (!f)
		return false;
	*result = -1;
	if (!place_of(address, len, f->domain, &to))
		return true;
	if (f->is_listening || f->has_called) {
		error = f->is_listening ? EISCONN : call_result(fd, 0);
		errno = error ? error : EISCONN;
		return true;
	}
	if (is_loopback(&to))
		return stay_here(fd) != 0;
	if (!to.sin6_port) {
		errno = ECONNREFUSED;
		return true;
	}
	pthread_mutex_lock(&pump.lock);
	*result = call(fd, f, &to);
	pthread_mutex_unlock(&pump.lock);
	if (*result)
		return true;
	error = fcntl(fd, F_GETFL) & O_NONBLOCK ? EINPROGRESS : call_result(fd, -1);
	if (error) {
		errno = error;
		*result = -1;
	}
	return true;
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	struct tag t;
	int got;
	REAL(accept4);

	if (!streams_are_on() || !tag_of(fd, &t) || t.role != 'L')
		return real_accept4(fd, address, len, flags);
	// Others of this machine may knock, too; they are let go.
	while ((got = real_accept4(fd, NULL, NULL, flags)) >= 0 && !(tag_of(got, &t) && t.role == 'A'))
		sys_close(got);
	stream_forget(got);
	if (got >= 0 && address && len)
		show_place(&t.peer, t.domain, address, len);
	return got;
}

int accept(int fd, struct sockaddr *address, socklen_t *len)
{
	return accept4(fd, address, len, 0);
}

static bool has_tag(int fd, struct tag *t)
{
	return streams_are_on() && tag_of(fd, t);
}

bool is_stream(int fd)
{
	struct tag t;

	return has_tag(fd, &t);
}

bool stream_sockname(int fd, struct sockaddr *address, socklen_t *len)
{
	const struct fresh *f = fresh_of(fd);
	struct tag t;

	if (has_tag(fd, &t))
		show_place(&t.own, t.domain, address, len);
	else if (f)
		show_place(&f->bound, f->domain, address, len);
	else
		return false;
	return true;
}

// False: not connected, or not ours.
bool stream_peername(int fd, struct sockaddr *address, socklen_t *len)
{
	struct tag t;

	if (!has_tag(fd, &t) || t.role == 'L')
		return false;
	show_place(&t.peer, t.domain, address, len);
	return true;
}

// Options of IP and TCP have no meaning here and are agreed to, as those of SOL_SOCKET are that Unix sockets do
// not know.
bool stream_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct fresh *f = fresh_of(fd);
	struct tag t;
	int flag;

	if (level == SOL_SOCKET && name != SO_REUSEPORT && name != SO_BINDTODEVICE)
		return false;
	if (!f && !has_tag(fd, &t))
		return false;
	if (f && level == IPPROTO_IPV6 && name == IPV6_V6ONLY && len >= sizeof(flag)) {
		memcpy(&flag, value, sizeof(flag));
		f->is_6_only = flag;
	}
	return true;
}

bool stream_getsockopt(int fd, int level, int name, int *value)
{
	const struct fresh *f = fresh_of(fd);
	struct tag t = { .domain = f ? (uint16_t)f->domain : 0 };
	bool is_called = has_tag(fd, &t);
	socklen_t len = sizeof(*value);
	int error;
	REAL(getsockopt);

	if ((!f && !is_called) || (level == SOL_SOCKET && name != SO_ERROR && name != SO_DOMAIN && name != SO_PROTOCOL))
		return false;
	*value = 0;
	if (level == SOL_SOCKET && name == SO_ERROR) {
		// That of the system is taken, too.
		(void)real_getsockopt(fd, level, name, value, &len);
		error = is_called ? pump_told(&t) : 0;
		*value = error ? error : *value;
	}
	if (level == SOL_SOCKET && name != SO_ERROR)
		*value = name == SO_DOMAIN ? t.domain : IPPROTO_TCP;
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && f)
		*value = f->is_6_only;
	return true;
}

void stream_forget(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		fresh[fd].is_used = false;
}

// The program is about to close a descriptor: whether it was one that listens. A child of vfork() has its parent's
// memory and no say in it.
bool stream_closing(int fd)
{
	const struct fresh *f = fresh_of(fd);
	bool was_listening = f && f->is_listening;

	if (!f || getpid() != pump_process)
		return false;
	stream_forget(fd);
	return was_listening;
}

// One that listened was closed; others of the same socket may be there.
void stream_closed(void)
{
	pthread_mutex_lock(&pump.lock);
	for (struct listener *l = pump.listeners; pump.is_running && l < pump.listeners + LISTENERS_MAX; l++)
		l->is_doubtful = l->is_used && !l->is_over;
	if (pump.is_running)
		pump_wake();
	pthread_mutex_unlock(&pump.lock);
}

// What a call on `fd` came to, where the thread knows better than the system: an end that was none.
ssize_t stream_result(int fd, ssize_t got, size_t asked)
{
	struct tag t;
	int error;

	if ((got > 0 || !asked) || (got < 0 && errno != EPIPE && errno != ECONNRESET) || !has_tag(fd, &t))
		return got;
	error = pump_told(&t);
	if (!error)
		return got;
	errno = error;
	return -1;
}
