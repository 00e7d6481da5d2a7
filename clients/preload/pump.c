// SPDX-License-Identifier: Apache-2.0 OR MIT
// The thread that moves octets between stream sockets of the program and their items: one for a process, with one
// connection to the node. What it shares with the program's threads is locked.

#include "stream.h"

#include <signal.h>
#include <sys/eventfd.h>

struct pump pump = { .lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER };
pid_t pump_process;
static struct incoming incoming;

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void pump_wake(void)
{
	uint64_t one = 1;
	REAL(write);

	if (real_write(pump.wake, &one, sizeof(one)) < 0)
		return;  // it is awake
}

static bool enqueue(const struct outgoing *m, size_t bound)
{
	uint8_t room[OUTGOING_MAX], *at;
	size_t len = compose(m, room, &at);

	if (pump.is_lost || pump.out_end - pump.out_at + len > bound)
		return false;
	if (pump.out_end + len > sizeof(pump.out)) {
		memmove(pump.out, pump.out + pump.out_at, pump.out_end - pump.out_at);
		pump.out_end -= pump.out_at;
		pump.out_at = 0;
	}
	memcpy(pump.out + pump.out_end, at, len);
	pump.out_end += len;
	return true;
}

bool pump_ask(enum kind kind, uint32_t tag, const uint8_t *id, unsigned labels)
{
	return enqueue(&(struct outgoing){ .kind = kind, .tag = tag, .id = id, .labels = labels }, sizeof(pump.out));
}

bool pump_publish(const uint8_t *id, const uint8_t *octets, size_t len)
{
	struct outgoing m = { .kind = PUBLISH, .id = id, .labels = 3, .payload = octets, .len = len };

	return enqueue(&m, OUT_DATA_MAX + OUTGOING_MAX);
}

struct stream *pump_place(enum stream_state state, int64_t now)
{
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++) {
		if (s->state)
			continue;
		s->state = state;
		s->slot = (uint8_t)(s - pump.streams);
		s->generation = ++pump.generations;
		s->fd = -1;
		s->deadline = now + CONNECT_MS;
		s->edge = 1;
		s->share = 8;
		s->threshold = WINDOW;
		s->rto = RTO_FIRST_MS;
		s->told = WINDOW;
		return s;
	}
	return NULL;
}

static bool flush(void)
{
	while (pump.out_at < pump.out_end) {
		ssize_t sent = sys_send(pump.node, pump.out + pump.out_at, pump.out_end - pump.out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return errno == EAGAIN;
		if (sent > 0)
			pump.out_at += (size_t)sent;
	}
	pump.out_at = pump.out_end = 0;
	return true;
}

static bool listen_to_node(int64_t now)
{
	struct message m;
	ssize_t len;

	while ((len = look(pump.node, &incoming, &m)) > 0) {
		streams_hear(&m, now);
		if (!pass(pump.node, &incoming))
			return false;
	}
	return len < 0 && (errno == EAGAIN || errno == EINTR);
}

// The node has gone: streams with it. Who listens is published again when there is one.
static void lose(void)
{
	pump.is_lost = true;
	pump.out_at = pump.out_end = 0;
	sys_close(pump.node);
	pump.node = -1;
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		if (s->state)
			stream_fail(s, s->state == CALLING ? ENETDOWN : ECONNRESET);
	for (struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++) {
		l->error = ENETDOWN;
		l->is_told = true;
	}
	pthread_cond_broadcast(&pump.told);
}

static void find_again(void)
{
	pump.node = open_node(getenv("ONYM_TCP_NODE"), "tcp", &incoming);
	if (pump.node < 0)
		return;
	pump.is_lost = false;
	for (struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++)
		if (l->is_used)
			listener_publish(l);
}

// What the end of a stream's socket is asked for; the poll says by itself when the program has closed it.
static short events_of(const struct stream *s)
{
	bool may_read = s->state == RUNNING && !s->has_ended && stream_has_room(s) &&
			pump.out_end - pump.out_at < OUT_DATA_MAX;

	return (short)((may_read ? POLLIN : 0) | (s->is_blocked ? POLLOUT : 0));
}

static void socket_says(struct stream *s, short events)
{
	if (events & POLLOUT)
		s->is_blocked = false;
	if (!(events & (POLLHUP | POLLERR)))
		return;
	if (s->state != RUNNING) {
		// It was closed before there was a stream, or by who would have accepted it.
		stream_reset(s, s->listener ? REFUSED : CLOSED);
		stream_fail(s, 0);
		return;
	}
	s->is_blocked = false;
	s->is_closed |= s->has_ended;
}

static int timeout_of(int64_t now)
{
	int64_t due = pump.is_lost ? now + AGAIN_MS : INT64_MAX;

	for (const struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		if (s->state && stream_due(s) < due)
			due = stream_due(s);
	for (const struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++)
		if (l->is_doubtful && now + AGAIN_MS < due)
			due = now + AGAIN_MS;
	return due == INT64_MAX ? -1 : due <= now ? 0 : (int)(due - now);
}

// One turn: waits, hears the node and the sockets, moves what may move.
static void turn(void)
{
	static struct pollfd at[STREAMS_MAX + 2];
	static struct stream *of[STREAMS_MAX];
	static unsigned first;
	uint64_t count;
	nfds_t n = 2;
	int64_t now = now_ms();
	int timeout = timeout_of(now);
	REAL(read);

	at[0] = (struct pollfd){ .fd = pump.wake, .events = POLLIN };
	at[1] = (struct pollfd){ .fd = pump.node, .events = (short)(POLLIN | (pump.out_at < pump.out_end ? POLLOUT : 0)) };
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++) {
		short events = events_of(s);

		// One that was closed, or whose end cannot be obeyed yet, would wake the thread for nothing.
		if (!s->state || s->fd < 0 || s->is_closed || (!events && s->state == RUNNING && !s->has_ended))
			continue;
		of[n - 2] = s;
		at[n++] = (struct pollfd){ .fd = s->fd, .events = events };
	}
	pthread_mutex_unlock(&pump.lock);
	(void)poll(at, n, timeout);
	pthread_mutex_lock(&pump.lock);
	now = now_ms();
	if (at[0].revents)
		(void)!real_read(pump.wake, &count, sizeof(count));
	for (nfds_t i = 2; i < n; i++)
		if (at[i].revents && of[i - 2]->fd == at[i].fd)
			socket_says(of[i - 2], at[i].revents);
	if (pump.is_lost)
		find_again();
	else if (at[1].revents & (POLLIN | POLLHUP | POLLERR) && !listen_to_node(now))
		lose();
	for (struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++)
		if (l->is_doubtful)
			listener_look(l);
	// Each time another one is first, so that none has all of the room.
	first++;
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		if (pump.streams[(first + i) % STREAMS_MAX].state)
			stream_step(&pump.streams[(first + i) % STREAMS_MAX], now);
	if (!pump.is_lost && !flush())
		lose();
	if (pump.is_leaving)
		pthread_cond_broadcast(&pump.told);
}

static void *run(void *nothing)
{
	(void)nothing;
	pthread_mutex_lock(&pump.lock);
	for (;;)
		turn();
	return NULL;
}

static int open_door(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	REAL(bind);
	REAL(listen);
	REAL(getsockname);

	pump.door_len = sizeof(pump.door_name);
	// The system finds a name.
	if (fd >= 0 && !real_bind(fd, (struct sockaddr *)&name, sizeof(sa_family_t)) && !real_listen(fd, STREAMS_MAX) &&
	    !real_getsockname(fd, (struct sockaddr *)&pump.door_name, &pump.door_len))
		return fd;
	if (fd >= 0)
		sys_close(fd);
	return -1;
}

// The thread's parts stay in the parent: a child that wants streams of its own begins anew. The ends of the
// parent's streams are closed, so that these end with the parent.
static void before_fork(void)
{
	pthread_mutex_lock(&pump.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&pump.lock);
}

static void in_child(void)
{
	for (struct stream *s = pump.streams; pump.is_running && s < pump.streams + STREAMS_MAX; s++) {
		if (s->state && s->fd >= 0)
			sys_close(s->fd);
		if (s->state)
			memset(s, 0, sizeof(*s));
	}
	if (pump.is_running) {
		sys_close(pump.node);
		sys_close(pump.wake);
		sys_close(pump.door);
		memset(pump.listeners, 0, sizeof(pump.listeners));
		pump.out_at = pump.out_end = 0;
		pump.is_running = pump.is_lost = false;
		fates_forked();
	}
	pump_process = getpid();
	pthread_cond_init(&pump.told, NULL);
	pthread_mutex_unlock(&pump.lock);
}

__attribute__((constructor)) static void prepare(void)
{
	pump_process = getpid();
	pthread_atfork(before_fork, after_fork, in_child);
}

// With the lock. False with errno where there is no node.
bool pump_start(void)
{
	sigset_t all, before;
	pthread_t thread;
	int failed;

	if (pump.is_running)
		return true;
	pump.node = open_node(getenv("ONYM_TCP_NODE"), "tcp", &incoming);
	if (pump.node < 0)
		return false;
	pump.door = open_door();
	pump.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pump.door < 0 || pump.wake < 0 || getrandom(pump.life, sizeof(pump.life), 0) != sizeof(pump.life) ||
		 !fates_begin(pump.life) || pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		sys_close(pump.node);
		sys_close(pump.door);
		sys_close(pump.wake);
		errno = ENETDOWN;
		return false;
	}
	pthread_detach(thread);
	pump.is_running = true;
	return true;
}

static bool has_sent_all(void)
{
	for (const struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		if (s->state == RUNNING && (!s->has_ended || !stream_is_idle(s)))
			return false;
	return pump.out_at == pump.out_end;
}

// What the program wrote before its end is sent, as the system does it, for up to a while.
__attribute__((destructor)) static void leave(void)
{
	struct timespec end;

	pthread_mutex_lock(&pump.lock);
	if (pump.is_running) {
		pump.is_leaving = true;
		pump_wake();
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += EXIT_MS / 1000;
		while (!has_sent_all() && pthread_cond_timedwait(&pump.told, &pump.lock, &end) == 0)
			;
	}
	pthread_mutex_unlock(&pump.lock);
}
