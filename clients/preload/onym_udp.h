// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the files of this library share. Nothing of it is visible to the program: only the functions of
// the C library that are replaced are.

#ifndef ONYM_UDP_H
#define ONYM_UDP_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

enum {
	FDS_MAX = 1024,      // descriptors beyond are left alone
	PEERS_MAX = 256,     // of one socket; the one that was used longest ago makes room
	WAITING_MAX = 64,    // datagrams that wait for the way to a peer; further ones are dropped
	PAYLOAD_MAX = 8192,  // octets of a datagram
	MESSAGE_MAX = 8800,
	OUTGOING_MAX = PAYLOAD_MAX + 96,
	INCOMING_MAX = 65536, // octets that are looked at, and taken, at once
	OBEY_MS = 5,         // how often a socket that only sends hears what the node said
	LINGER_MS = 2000,    // how long a closed socket waits for the way to a peer
	LABEL = 8,
	ID_MAX = 3 * LABEL,
};

enum kind {
	PUBLISH_SCOPE = 0,
	PUBLISH_ITEM = 1,
	UNPUBLISH_SCOPE = 2,
	UNPUBLISH_ITEM = 3,
	SUBSCRIBE_SCOPE = 4,
	SUBSCRIBE_ITEM = 5,
	UNSUBSCRIBE_SCOPE = 6,
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

enum field { F_ID = 1, F_PREFIX = 3, F_STRATEGY = 5, F_STATUS = 7, F_LENGTH = 65, F_PAYLOAD = 71, F_TEXT = 96 };

// Root scopes of addresses of IPv4 and of IPv6.
static const uint8_t ROOTS[2][LABEL] = { { 'U', 'D', 'P' }, { 'U', 'D', 'P', '6' } };

struct waiting {
	struct waiting *next;
	size_t len;
	uint8_t payload[];
};

// A way to send, and the address that it has for the program.
struct peer {
	struct sockaddr_in6 address;
	uint8_t out[ID_MAX], in[ID_MAX];  // items that we publish and that we get
	bool is_used, is_client, is_started;
	uint64_t last_use;
	unsigned waiting_count;
	struct waiting *waiting, **waiting_end;
};

// What came from the node: `octets` from `at` to `taken` are messages that were taken off the connection,
// what is behind them, to `seen`, was only looked at.
struct incoming {
	size_t at, taken, seen;
	uint8_t octets[INCOMING_MAX];
};

struct sock {
	pthread_mutex_t lock;
	struct incoming in;
	struct timespec obeyed;
	int domain;  // AF_INET or AF_INET6, of the program's socket
	bool is_6_only;
	struct sockaddr_in6 bound;
	struct peer *connected;
	struct peer peers[PEERS_MAX];
	uint64_t uses;
};

struct message {
	enum kind kind;
	uint8_t status;
	uint32_t tag;
	const uint8_t *id, *payload;
	size_t id_len, payload_len;
};

struct outgoing {
	enum kind kind;
	uint32_t tag;
	const uint8_t *id;
	unsigned labels;
	const void *payload;
	size_t len;
};

#define REAL(name) \
	static __typeof__(&name) real_##name; \
	if (!real_##name) \
		real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// connection.c: messages to and from the node (spec/push.md, section 8).
size_t compose(const struct outgoing *m, uint8_t room[OUTGOING_MAX], uint8_t **start);
int open_node(const char *path, const char *name, struct incoming *in);
int say(int fd, enum kind kind, const uint8_t *id, unsigned labels, const void *payload, size_t len);
ssize_t look(int fd, struct incoming *in, struct message *m);
bool pass(int fd, struct incoming *in);
int sys_socket(int domain, int type, int protocol);
int sys_connect(int fd, const struct sockaddr *address, socklen_t len);
ssize_t sys_recv(int fd, void *octets, size_t len, int flags);
ssize_t sys_send(int fd, const void *octets, size_t len, int flags);
int sys_close(int fd);

// sha256.c: the label of the way back.
void sha256_label(const uint8_t *octets, size_t len, uint8_t label[LABEL]);

// addresses.c: what stands for an address.
bool is_ipv4(const struct sockaddr_in6 *at);
bool place_of(const struct sockaddr *given, socklen_t len, int domain, struct sockaddr_in6 *at);
void show_place(const struct sockaddr_in6 *at, int domain, struct sockaddr *out, socklen_t *len);
bool is_same_place(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b);
unsigned places_of(const struct sockaddr_in6 *at, bool is_6_only, const char *hosts, struct sockaddr_in6 places[2]);
void scope_of(const struct sockaddr_in6 *at, const uint8_t roots[2][LABEL], uint8_t id[ID_MAX]);
void client_place(const uint8_t id[ID_MAX], const uint8_t roots[2][LABEL], struct sockaddr_in6 *at);

// peers.c: whom a socket talks to.
void publish_scopes(int fd, const uint8_t *id);
void forget_waiting(struct peer *p);
struct peer *peer_at(int fd, struct sock *s, const struct sockaddr_in6 *address);
struct peer *peer_from(int fd, struct sock *s, const uint8_t *id);
void deliver(int fd, struct sock *s, struct peer *p, const void *payload, size_t len);
void event(int fd, struct sock *s, const struct message *m);
void obey(int fd, struct sock *s);
bool must_obey(const struct sock *s, const struct peer *p);

// life.c: the sockets that there are.
struct sock *find(int fd);

#pragma GCC visibility pop

#endif
