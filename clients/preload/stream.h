// SPDX-License-Identifier: Apache-2.0 OR MIT
// Streams: what the files for TCP sockets share. README.md says how they work.

#ifndef ONYM_STREAM_H
#define ONYM_STREAM_H

#include "onym_udp.h"

#pragma GCC visibility push(hidden)

enum {
	STREAMS_MAX = 256,     // of one process, with those that come to be
	ANSWERING_MAX = 64,    // of those: asked for by a client that has not confirmed yet
	REFUSALS_MAX = 32,     // of those: they only wait to tell a peer that there is none
	LISTENERS_MAX = 16,
	WINDOW = 32,           // segments of one way that are under way, and that wait at their receiver
	SEGMENT_MAX = 8000,    // octets of the program in a segment
	SEGMENT_HEAD = 16,
	OUT_MAX = 1 << 20,     // octets for the node that wait
	OUT_DATA_MAX = OUT_MAX / 2,  // of them segments; the rest is for requests
	CONNECT_MS = 10000,    // until both ends know each other
	NOBODY_MS = 1000,      // for the way to a listener, once the rendezvous knows the item
	GONE_MS = 1000,        // a way that ended comes back within it, or the peer is gone
	SILENT_MS = 15000,     // nothing comes though something was sent
	ANSWER_MS = 3000,      // for the way to a client that asks, or to who is told that there is none
	ORPHAN_MS = 10000,     // the program has closed, the peer has not
	EXIT_MS = 2000,        // at the end of the program, for what was written
	LISTEN_MS = 5000,      // for the answers to listen
	AGAIN_MS = 500,        // a node that went is looked for
	RTO_FIRST_MS = 300,
	RTO_MIN_MS = 100,
	RTO_MAX_MS = 2000,
};

enum segment_kind { OPEN = 0, OCTETS = 1, END = 2, ACKNOWLEDGE = 3, RESET = 4 };

// Why a stream is reset: the number of the segment that says so.
enum reason { REFUSED = 0, UNKNOWN = 1, CLOSED = 2, SILENT = 3 };

// spec/registry.md, Streams over push.
struct segment {
	enum segment_kind kind;
	unsigned window;
	uint32_t number, acknowledged, came;
	const uint8_t *octets;
	size_t len;
};

// A segment that was sent and not acknowledged, or that came and was not taken by the program.
struct held {
	uint8_t *octets;
	size_t len;
	enum segment_kind kind;
	bool is_there;    // came, or is known to have come at the peer
	unsigned tries;
	int64_t sent_at;
};

enum stream_state {
	FREE = 0,
	CALLING,    // connect: until the peer has opened its way
	ANSWERING,  // a client asks: until it has acknowledged
	RUNNING,
	REFUSING,   // there is no stream: until the peer can be told
};

// What a socket of the program is, as the name of its Unix socket or of its other end says: so that descriptors
// may be copied and handed on.
struct tag {
	char mark[8];
	uint8_t life[8];  // of the pump
	uint8_t role;     // 'L' listens, 'C' has called; the pump's end: 'A' is answered
	uint8_t slot;
	uint16_t domain;
	uint32_t generation;
	struct sockaddr_in6 own, peer;
	uint8_t draw[8];  // nobody takes the name before
};

struct listener {
	bool is_used, is_told;  // subscribed; the rendezvous has answered
	bool is_doubtful;       // the program may have closed it
	bool is_over;           // withdrawn, but has streams
	int error;
	unsigned count, answers, streams;
	uint8_t there[2][ID_MAX], back[2][ID_MAX];
	struct sockaddr_in6 place[2], own;
	struct sockaddr_un name;
	socklen_t name_len;
	int domain;
};

struct stream {
	enum stream_state state;
	uint8_t slot;
	uint32_t generation;
	int fd;                     // the pump's end, or -1
	bool is_started, is_known;  // there is a way; the rendezvous knows the item
	uint8_t out[ID_MAX], in[ID_MAX];
	struct listener *listener;  // of whom is called
	struct sockaddr_in6 own, peer;
	int64_t deadline, stopped_at, heard_at;
	// What we send.
	struct held sent[WINDOW];
	uint32_t una, next, edge, recover;
	unsigned share, threshold, grown;  // segments that may be under way, as far as the network says
	int64_t rtt, deviation, rto, again_at;
	size_t cork;                // octets that the program did not write
	bool has_ended, is_closed;  // the program's side: nothing more, and nobody there
	// What we get.
	struct held got[WINDOW];
	uint32_t base, expected, end, told;
	size_t taken;               // octets of the one at `base`
	bool is_opened, has_end, must_acknowledge, is_blocked;
	enum reason reason;
};

// segment.c: the format.
bool segment_parse(const uint8_t *octets, size_t len, struct segment *s);
size_t segment_write(const struct segment *s, uint8_t out[SEGMENT_HEAD]);

// Root scopes of the way to who listens and of the way back, each of IPv4 and of IPv6.
static const uint8_t THERE[2][LABEL] = { { 'T', 'C', 'P' }, { 'T', 'C', 'P', '6' } };
static const uint8_t BACK[2][LABEL] = { { 'T', 'C', 'R' }, { 'T', 'C', 'R', '6' } };

// carry.c: numbers, windows, repetition. `now` in milliseconds.
void stream_put(struct stream *s, enum segment_kind kind, uint8_t *octets, size_t len, int64_t now);
bool stream_has_room(const struct stream *s);
bool stream_is_idle(const struct stream *s);
void stream_hear(struct stream *s, const struct segment *in, int64_t now);
void stream_send(struct stream *s, int64_t now);
void stream_confirm(struct stream *s);
void stream_reset(struct stream *s, enum reason reason);
void stream_clear(struct stream *s);

// meeting.c: how streams begin and end.
void streams_hear(const struct message *m, int64_t now);
void stream_call(struct stream *s);
void listener_withdraw(struct listener *l);
void stream_step(struct stream *s, int64_t now);
int64_t stream_due(const struct stream *s);
void stream_fail(struct stream *s, int error);
void listener_publish(struct listener *l);
void listener_look(struct listener *l);

// pump.c: the thread that moves octets between the program's sockets and the node.
extern struct pump {
	pthread_mutex_t lock;
	pthread_cond_t told;  // a listener was answered, or a stream has sent all
	bool is_running, is_leaving, is_lost;
	int node, wake, door;  // the node; what wakes the thread; where sockets of the program are connected to
	struct sockaddr_un door_name;
	socklen_t door_len;
	uint8_t life[8];
	uint32_t generations;
	struct stream streams[STREAMS_MAX];
	struct listener listeners[LISTENERS_MAX];
	size_t out_at, out_end;
	uint8_t out[OUT_MAX];
} pump;
extern pid_t pump_process;
bool pump_start(void);
void pump_wake(void);
bool pump_ask(enum kind kind, uint32_t tag, const uint8_t *id, unsigned labels);
bool pump_publish(const uint8_t *id, const uint8_t *octets, size_t len);
struct stream *pump_place(enum stream_state state, int64_t now);
int64_t now_ms(void);

// tags.c: what a descriptor is, and what became of it.
bool fates_begin(const uint8_t life[8]);
void fates_forked(void);
socklen_t tag_name(struct tag *t, struct sockaddr_un *name);
bool tag_of(int fd, struct tag *t);
void pump_tell(const struct stream *s, int error);
int pump_told(const struct tag *t);

// doors.c: what the program does with its stream sockets. Each says whether it was one.
bool streams_are_on(void);
int stream_socket(int domain, int type);
bool stream_bind(int fd, const struct sockaddr *address, socklen_t len, int *result);
bool stream_connect(int fd, const struct sockaddr *address, socklen_t len, int *result);
bool stream_sockname(int fd, struct sockaddr *address, socklen_t *len);
bool stream_peername(int fd, struct sockaddr *address, socklen_t *len);
bool stream_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
bool stream_getsockopt(int fd, int level, int name, int *value);
bool is_stream(int fd);
void stream_forget(int fd);
bool stream_closing(int fd);
void stream_closed(void);
ssize_t stream_result(int fd, ssize_t got, size_t asked);

#pragma GCC visibility pop

#endif
