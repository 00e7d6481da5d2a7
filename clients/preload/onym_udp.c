// SPDX-License-Identifier: Apache-2.0 OR MIT
// Datagram sockets of unmodified programs over a push network (Blackadder, section V.B.4), by LD_PRELOAD.
//
// A UDP socket of the program becomes its connection to the node's Unix socket, so that select, poll
// and epoll work by themselves: readable means that the node said something. Exactly one message is
// taken off the connection at a time, and a datagram only when the program receives it.
//
// README.md says what is here and what is not; formats are those of spec/push.md, section 8.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	FDS_MAX = 1024,      // descriptors beyond are left alone
	PEERS_MAX = 256,     // of one socket; the one that was used longest ago makes room
	WAITING_MAX = 64,    // datagrams that wait for the way to a peer; further ones are dropped
	PAYLOAD_MAX = 8192,  // octets of a datagram
	MESSAGE_MAX = 8800,
	LINGER_MS = 2000,    // how long a closed socket waits for the way to a peer
	LABEL = 8,
	ID_MAX = 3 * LABEL,
};

enum kind {
	PUBLISH_SCOPE = 0,
	PUBLISH_ITEM = 1,
	UNPUBLISH_ITEM = 3,
	SUBSCRIBE_SCOPE = 4,
	SUBSCRIBE_ITEM = 5,
	UNSUBSCRIBE_ITEM = 7,
	PUBLISH = 8,
	REGISTER = 9,
	START_PUBLISH = 100,
	STOP_PUBLISH = 101,
	DATA = 104,
	STATUS = 106,
	REGISTERED = 110,
};

// Tag of the request by which we learn that all before it was done.
enum { LAST = 2 };

enum field { F_ID = 1, F_PREFIX = 3, F_STRATEGY = 5, F_PAYLOAD = 71, F_TEXT = 96 };

static const uint8_t ROOT[LABEL] = { 'U', 'D', 'P' };
static const uint8_t DOMAIN_LOCAL = 2;

struct waiting {
	struct waiting *next;
	size_t len;
	uint8_t payload[];
};

// A way to send, and the address that it has for the program.
struct peer {
	struct sockaddr_in address;
	uint8_t out[ID_MAX], in[ID_MAX];  // items that we publish and that we get
	bool is_used, is_client, is_started;
	uint64_t last_use;
	unsigned waiting_count;
	struct waiting *waiting, **waiting_end;
};

struct sock {
	pthread_mutex_t lock;
	struct sockaddr_in bound;
	struct peer *connected;
	struct peer peers[PEERS_MAX];
	uint64_t uses;
};

static struct sock *socks[FDS_MAX];
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) \
	static __typeof__(&name) real_##name; \
	if (!real_##name) \
		real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int sys_socket(int d, int t, int p) { REAL(socket); return real_socket(d, t, p); }
static int sys_connect(int f, const struct sockaddr *a, socklen_t l) { REAL(connect); return real_connect(f, a, l); }
static ssize_t sys_recv(int f, void *b, size_t n, int g) { REAL(recv); return real_recv(f, b, n, g); }
static ssize_t sys_send(int f, const void *b, size_t n, int g) { REAL(send); return real_send(f, b, n, g); }
static int sys_close(int f) { REAL(close); return real_close(f); }

static struct sock *find(int fd)
{
	return fd >= 0 && fd < FDS_MAX ? __atomic_load_n(&socks[fd], __ATOMIC_ACQUIRE) : NULL;
}

// --- messages -----------------------------------------------------------------------------------

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
static int say(int fd, enum kind kind, const uint8_t *id, unsigned labels, const void *payload, size_t len)
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

struct message {
	enum kind kind;
	uint8_t tag;  // the lowest octet
	const uint8_t *id, *payload;
	size_t id_len, payload_len;
};

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
// with errno. Only datagrams in one piece are understood; others are 'no message'.
static ssize_t peek(int fd, int flags, uint8_t *octets, struct message *m)
{
	size_t at, typ, len, whole;
	ssize_t got = sys_recv(fd, octets, MESSAGE_MAX, MSG_PEEK | flags);

	while (got > 0) {
		at = 0;
		if (number(octets, (size_t)got, &at, &typ) && number(octets, (size_t)got, &at, &len)) {
			if (typ == 0 || len > MESSAGE_MAX - at) {
				errno = EPROTO;
				return -1;
			}
			whole = at + len;
			if (whole <= (size_t)got)
				break;
		} else {
			whole = (size_t)got + 1;
		}
		// It is on its way.
		got = sys_recv(fd, octets, whole, MSG_PEEK | MSG_WAITALL);
	}
	if (got <= 0)
		return got;
	memset(m, 0, sizeof(*m));
	m->kind = 255;
	if (typ != 0xF2 || len < 6 || octets[at] != 1)
		return (ssize_t)whole;
	m->kind = octets[at + 1];
	m->tag = octets[at + 5];
	for (at += 6; at < whole;) {
		size_t field, n;

		if (!number(octets, whole, &at, &field) || !number(octets, whole, &at, &n) || n > whole - at) {
			errno = EPROTO;
			return -1;
		}
		if (field == F_ID) {
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

static void consume(int fd, size_t len)
{
	uint8_t octets[MESSAGE_MAX];

	while (len) {
		ssize_t got = sys_recv(fd, octets, len, 0);

		if (got <= 0 && errno != EINTR)
			return;
		if (got > 0)
			len -= (size_t)got;
	}
}

// --- SHA-256, of identifiers: at most 55 octets, one block --------------------------------------

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

// The first n primes' roots are computed and not listed: `power` 2 for square, 3 for cube roots.
static uint32_t root_fraction(uint32_t prime, int power)
{
	// floor(root(prime) * 2^32) by bisection in 128-bit arithmetic, less its whole part.
	unsigned __int128 low = 0, high = (unsigned __int128)1 << 37;

	while (high - low > 1) {
		unsigned __int128 mid = (low + high) / 2;
		// For cube roots compare mid^3 with prime * 2^96: mid is below 2^36, so that fits 128 bits.
		bool is_below = power == 2 ? mid * mid <= (unsigned __int128)prime << 64
					   : mid * mid * mid <= (unsigned __int128)prime << 96;
		if (is_below)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
}

static uint32_t sha_h[8], sha_k[64];
static pthread_once_t sha_once = PTHREAD_ONCE_INIT;

static void sha_constants(void)
{
	uint32_t candidate = 2;

	for (int found = 0; found < 64; candidate++) {
		bool is_prime = true;

		for (uint32_t d = 2; d * d <= candidate; d++)
			is_prime = is_prime && candidate % d;
		if (!is_prime)
			continue;
		if (found < 8)
			sha_h[found] = root_fraction(candidate, 2);
		sha_k[found++] = root_fraction(candidate, 3);
	}
}

// The first 8 octets of the digest.
static void sha256_label(const uint8_t *octets, size_t len, uint8_t label[LABEL])
{
	uint8_t block[64] = { 0 };
	uint32_t w[64], s[8];

	pthread_once(&sha_once, sha_constants);
	memcpy(block, octets, len);
	block[len] = 0x80;
	block[62] = (uint8_t)(len >> 5);
	block[63] = (uint8_t)(len << 3);
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(s, sha_h, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t e = rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25);
		uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[i] + w[i];
		uint32_t a = rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22);
		uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < LABEL; i++)
		label[i] = (uint8_t)((s[i / 4] + sha_h[i / 4]) >> (24 - 8 * (i % 4)));
}

// --- peers --------------------------------------------------------------------------------------

static void scope_of(const struct sockaddr_in *address, uint8_t id[ID_MAX])
{
	memset(id, 0, ID_MAX);
	memcpy(id, ROOT, LABEL);
	memcpy(id + LABEL, &address->sin_addr, 4);
	memcpy(id + LABEL + 4, &address->sin_port, 2);
}

static void publish_scopes(int fd, const uint8_t *id)
{
	(void)say(fd, PUBLISH_SCOPE, id, 1, NULL, 0);
	(void)say(fd, PUBLISH_SCOPE, id, 2, NULL, 0);
}

static void forget_waiting(struct peer *p)
{
	while (p->waiting) {
		struct waiting *w = p->waiting;

		p->waiting = w->next;
		free(w);
	}
	p->waiting_count = 0;
	p->waiting_end = &p->waiting;
}

static void forget(int fd, struct sock *s, struct peer *p)
{
	forget_waiting(p);
	(void)say(fd, UNPUBLISH_ITEM, p->out, 3, NULL, 0);
	if (p->is_client)
		(void)say(fd, UNSUBSCRIBE_ITEM, p->in, 3, NULL, 0);
	if (s->connected == p)
		s->connected = NULL;
	memset(p, 0, sizeof(*p));
}

// A place for a new peer; the one that was used longest ago makes room.
static struct peer *place(int fd, struct sock *s)
{
	struct peer *oldest = NULL;

	for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++) {
		if (!p->is_used)
			return p;
		if (p != s->connected && (!oldest || p->last_use < oldest->last_use))
			oldest = p;
	}
	forget(fd, s, oldest);
	return oldest;
}

// The peer that the program means by `address`; a new one is a server that we are a client of.
static struct peer *peer_at(int fd, struct sock *s, const struct sockaddr_in *address)
{
	struct peer *p;

	for (p = s->peers; p < s->peers + PEERS_MAX; p++)
		if (p->is_used && p->address.sin_addr.s_addr == address->sin_addr.s_addr &&
		    p->address.sin_port == address->sin_port)
			return p;
	p = place(fd, s);
	p->is_used = p->is_client = true;
	p->waiting_end = &p->waiting;
	p->address = *address;
	p->address.sin_family = AF_INET;
	scope_of(address, p->out);
	memcpy(p->in, p->out, ID_MAX);
	if (getrandom(p->out + 2 * LABEL, LABEL, 0) != LABEL)
		return NULL;
	sha256_label(p->out, ID_MAX, p->in + 2 * LABEL);
	publish_scopes(fd, p->out);
	(void)say(fd, SUBSCRIBE_ITEM, p->in, 3, NULL, 0);
	(void)say(fd, PUBLISH_ITEM, p->out, 3, NULL, 0);
	return p;
}

// The peer that sent what came under `id`; a new one is a client of ours.
static struct peer *peer_from(int fd, struct sock *s, const uint8_t *id)
{
	struct peer *p;

	for (p = s->peers; p < s->peers + PEERS_MAX; p++)
		if (p->is_used && !memcmp(p->in, id, ID_MAX))
			return p;
	if (!s->bound.sin_port)
		return NULL;
	p = place(fd, s);
	p->is_used = true;
	p->waiting_end = &p->waiting;
	memcpy(p->in, id, ID_MAX);
	memcpy(p->out, id, ID_MAX);
	sha256_label(id, ID_MAX, p->out + 2 * LABEL);
	// An address that nobody has (class E), made of the client's label.
	p->address.sin_family = AF_INET;
	p->address.sin_addr.s_addr = htonl(0xF0000000u | (uint32_t)id[16] << 16 | (uint32_t)id[17] << 8 | id[18]);
	p->address.sin_port = htons((uint16_t)(1024 + (((unsigned)id[19] << 8 | id[20]) % 60000)));
	(void)say(fd, PUBLISH_ITEM, p->out, 3, NULL, 0);
	return p;
}

static void deliver(int fd, struct sock *s, struct peer *p, const void *payload, size_t len)
{
	struct waiting *w;

	p->last_use = ++s->uses;
	if (p->is_started) {
		(void)say(fd, PUBLISH, p->out, 3, payload, len);
		return;
	}
	if (p->waiting_count >= WAITING_MAX)
		return;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return;
	w->next = NULL;
	w->len = len;
	memcpy(w->payload, payload, len);
	*p->waiting_end = w;
	p->waiting_end = &w->next;
	p->waiting_count++;
}

static void event(int fd, struct sock *s, const struct message *m)
{
	bool is_start = m->kind == START_PUBLISH;

	if ((!is_start && m->kind != STOP_PUBLISH) || m->id_len != ID_MAX)
		return;
	for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++) {
		if (!p->is_used || memcmp(p->out, m->id, ID_MAX))
			continue;
		p->is_started = is_start;
		if (is_start) {
			for (struct waiting *w = p->waiting; w; w = w->next)
				(void)say(fd, PUBLISH, p->out, 3, w->payload, w->len);
			forget_waiting(p);
		} else if (!p->is_client) {
			forget(fd, s, p);
		}
		return;
	}
}

// Obeys what the node said before the next datagram, without waiting.
static void obey(int fd, struct sock *s)
{
	uint8_t octets[MESSAGE_MAX];
	struct message m;
	ssize_t len;

	while ((len = peek(fd, MSG_DONTWAIT, octets, &m)) > 0 && m.kind != DATA) {
		consume(fd, (size_t)len);
		event(fd, s, &m);
	}
}

// --- what the program calls ---------------------------------------------------------------------

static int open_node(int type)
{
	const char *path = getenv("ONYM_UDP_NODE");
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	uint8_t octets[MESSAGE_MAX];
	struct message m;
	ssize_t len;
	int fd;

	if (!path || strlen(path) >= sizeof(where.sun_path))
		return -1;
	strcpy(where.sun_path, path);
	fd = sys_socket(AF_UNIX, SOCK_STREAM | (type & SOCK_CLOEXEC), 0);
	if (fd < 0)
		return -1;
	if (fd >= FDS_MAX || sys_connect(fd, (struct sockaddr *)&where, sizeof(where)) ||
	    say(fd, REGISTER, NULL, 0, "udp", 3) || (len = peek(fd, 0, octets, &m)) <= 0 || m.kind != REGISTERED) {
		sys_close(fd);
		errno = ENETDOWN;
		return -1;
	}
	consume(fd, (size_t)len);
	if (type & SOCK_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	struct sock *s;
	int fd;

	if (domain != AF_INET || (type & 0xf) != SOCK_DGRAM || !getenv("ONYM_UDP_NODE"))
		return sys_socket(domain, type, protocol);
	s = calloc(1, sizeof(*s));
	fd = s ? open_node(type) : -1;
	if (fd < 0) {
		free(s);
		return -1;
	}
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
// sends what was sent before the end of the program.
static void settle(int fd, struct sock *s)
{
	struct timespec now, end;
	uint8_t octets[MESSAGE_MAX];
	struct message m;

	bool is_done = !s->uses || say(fd, PUBLISH_SCOPE, ROOT, 1, NULL, LAST);

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
		len = peek(fd, MSG_DONTWAIT, octets, &m);
		if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
			return;
		if (len > 0) {
			bool was_waiting = has_waiting(s);

			consume(fd, (size_t)len);
			is_done |= m.kind == STATUS && m.tag == LAST;
			event(fd, s, &m);
			// What leaves only now has to be done as well.
			if (was_waiting && !has_waiting(s))
				is_done = say(fd, PUBLISH_SCOPE, ROOT, 1, NULL, LAST) != 0;
		}
	}
}

__attribute__((destructor)) static void settle_all(void)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (socks[fd])
			settle(fd, socks[fd]);
}

int close(int fd)
{
	struct sock *s = find(fd);

	if (s) {
		settle(fd, s);
		pthread_mutex_lock(&table);
		__atomic_store_n(&socks[fd], NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&table);
		for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++)
			if (p->is_used)
				forget_waiting(p);
		free(s);
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
	settle(fd, s);
	return 0;
}

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
		if (!p || !(flags & MSG_PEEK))
			consume(fd, (size_t)len);
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
