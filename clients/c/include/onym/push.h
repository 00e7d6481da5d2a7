/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Publish and subscribe over a node (spec/push.md, section 8).
 *
 * A connection is one application; it is not for several threads at once.
 * Calls return a status of the node, a count or 0, and a negative errno when
 * they fail: -ECONNRESET when the node closed the connection, -EPROTO when it
 * sent what is no message, -ETIMEDOUT when it does not answer.
 */
#ifndef ONYM_PUSH_H
#define ONYM_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ONYM_PUSH_DEPTH_MAX 255
#define ONYM_PUSH_LABEL 8

/* An identifier: labels of 8 octets, and the word of the last one, if it was written as one. */
struct onym_push_id {
	size_t len;
	uint8_t v[ONYM_PUSH_DEPTH_MAX * ONYM_PUSH_LABEL];
	char word[65];
};

enum onym_push_strategy {
	ONYM_NODE_LOCAL = 0,
	ONYM_LINK_LOCAL = 1,
	ONYM_DOMAIN_LOCAL = 2,
	ONYM_IMPLICIT = 3,
	ONYM_BROADCAST = 4,
	ONYM_ALGORITHMIC_LOCAL = 5,
	ONYM_ALGORITHMIC_DOMAIN = 6,
	ONYM_INTER_DOMAIN = 7,
};

enum onym_push_request {
	ONYM_PUBLISH_SCOPE = 0,
	ONYM_PUBLISH_ITEM = 1,
	ONYM_UNPUBLISH_SCOPE = 2,
	ONYM_UNPUBLISH_ITEM = 3,
	ONYM_SUBSCRIBE_SCOPE = 4,
	ONYM_SUBSCRIBE_ITEM = 5,
	ONYM_UNSUBSCRIBE_SCOPE = 6,
	ONYM_UNSUBSCRIBE_ITEM = 7,
};

enum onym_push_event_kind {
	ONYM_START_PUBLISH = 100,    /* the item `id` has subscribers: publish */
	ONYM_STOP_PUBLISH = 101,     /* it has none any more */
	ONYM_SCOPE_PUBLISHED = 102,  /* a scope came into being beneath one that is subscribed */
	ONYM_SCOPE_UNPUBLISHED = 103,
	ONYM_DATA = 104,
	ONYM_REFUSED = 106,          /* `status`: a publication of `id` that nobody waited for */
	ONYM_MISSED = 109,           /* `count` publications, for want of room; with status 14: lost on the way */
};

/* A forwarding part (spec/push.md, section 2): of `implicit`. */
struct onym_push_route {
	uint8_t octets[34];
	size_t len;
};

struct onym_push_publication {
	const struct onym_push_id *id;
	enum onym_push_strategy strategy;
	const void *payload;
	size_t len;
	const struct onym_push_route *route;  /* implicit */
	const uint8_t *node;                  /* link-local: the label of a neighbour */
	const struct onym_push_id *about;     /* algorithmic: the item whose subscribers are meant */
	uint64_t lifetime_ms;                 /* how long caches may answer with it */
};

/* How an item is retained; what is 0 is not chosen. */
struct onym_push_terms {
	uint64_t count;        /* of its last publications, 65535 at most; 0: no more */
	uint64_t lifetime_ms;  /* after which each is forgotten, an hour at most */
	uint32_t deadline_ms;  /* within which the next one follows, an hour at most */
	uint8_t priority;      /* what who is behind in several items is told first, to 7 */
	bool waits;            /* the publisher waits for applications of its node that are behind, push.hold_ms
				  at a stretch, before the oldest is lost to them; for others never */
};

struct onym_push_sent {
	uint64_t local;   /* applications of this node that got it */
	uint64_t frames;  /* frames that left for other nodes */
};

struct onym_push_event {
	enum onym_push_event_kind kind;
	struct onym_push_id id;
	int status;
	int came_by;  /* strategy without rendezvous that data came by, or -1: that of the scope */
	uint64_t count;
	const uint8_t *payload;  /* until the next call with this connection */
	size_t len;
};

struct onym_push;

/* /1/2, /sensors/roof, /=cafe (P-72). -EINVAL, -ENAMETOOLONG. */
int onym_push_id(const char *text, struct onym_push_id *id);
/* Table and filter as `onym topology tree` prints them: 256 binary digits, bit 255 first. -EINVAL. */
int onym_push_route(unsigned table, const char *filter, struct onym_push_route *route);

/*
 * Connects to the Unix socket `path` (unix:///run/nfd/nfd.sock, or without the scheme; NULL:
 * $NDN_CLIENT_TRANSPORT, else /run/nfd/nfd.sock) and registers. NULL with errno; EACCES when the node
 * refuses.
 */
struct onym_push *onym_push_open(const char *path, const char *name);
void onym_push_close(struct onym_push *app);
/* For poll; readable means that onym_push_event(app, event, 0) may have something. */
int onym_push_fd(const struct onym_push *app);
/* Most octets of a publication, as the node said. */
uint64_t onym_push_length_max(const struct onym_push *app);

/* Waits for the status; 0 is ok. Events that come meanwhile wait for onym_push_event. */
int onym_push_ask(struct onym_push *app, enum onym_push_request request, const struct onym_push_id *id,
		  enum onym_push_strategy strategy);
/* The node keeps the last `count` publications of the item for who subscribes later; 0: no more. */
int onym_push_retain(struct onym_push *app, const struct onym_push_id *id, uint64_t count);
/* A node of an earlier version skips what it does not know of the terms. */
int onym_push_retain_as(struct onym_push *app, const struct onym_push_id *id, const struct onym_push_terms *terms);
/* With `sent` waits for what became of it, and returns its status; without, a refusal is an event. */
int onym_push_publish(struct onym_push *app, const struct onym_push_publication *publication,
		      struct onym_push_sent *sent);
/* 1: an event; 0: none within so many milliseconds (-1: as long as it takes). */
int onym_push_event(struct onym_push *app, struct onym_push_event *event, int timeout_ms);

/* What a status says. */
const char *onym_push_status(int status);

#ifdef __cplusplus
}
#endif

#endif
