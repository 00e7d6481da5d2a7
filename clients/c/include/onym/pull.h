/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Interests and Data over a node's Unix socket, without the kernel module
 * (NDN Packet Format 0.3; NDNLPv2 for tokens and Nacks).
 *
 * A connection is one application; it is not for several threads at once.
 * Calls return a count or 0, and a negative errno when they fail: -ETIMEDOUT
 * when nobody answered in time, -EHOSTUNREACH for a Nack, -ECONNRESET when the
 * node closed the connection, -EPROTO when it sent what is no packet.
 */
#ifndef ONYM_PULL_H
#define ONYM_PULL_H

#include <onym/nnet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Octets of content of a segment. */
#define ONYM_SEGMENT 8000

struct onym_pull;

/*
 * Connects to the Unix socket `path` (unix:///run/nfd/nfd.sock, or without the scheme; NULL:
 * $NDN_CLIENT_TRANSPORT, else /run/nfd/nfd.sock). NULL with errno.
 */
struct onym_pull *onym_pull_open(const char *path);
void onym_pull_close(struct onym_pull *app);
/* For poll; readable means that onym_pull_interest(app, interest, 0) may have something. */
int onym_pull_fd(const struct onym_pull *app);

/* A Data. A digest signature fits; another one was not looked at. */
struct onym_pull_data {
	const uint8_t *wire;	/* the whole packet, for onym_data_verify */
	size_t wire_len;
	const uint8_t *name;	/* value of its Name */
	size_t name_len;
	const uint8_t *content;
	size_t len;
	uint32_t freshness, content_type;
	int64_t last_segment;	/* FinalBlockId as a segment's number, or -1 */
};

enum onym_pull_flags {
	ONYM_CAN_BE_PREFIX = 1,
	ONYM_MUST_BE_FRESH = 2,
};

/* The Data of a name, or of its implicit digest; what it points to holds until the next call. */
int onym_pull_get(struct onym_pull *app, const struct onym_name *name, unsigned int flags, int lifetime_ms,
		  struct onym_pull_data *data);

/* 0 takes the Data, a negative errno ends the fetch with it. */
typedef int (*onym_check)(void *ctx, const struct onym_pull_data *data);

struct onym_pull_how {
	onym_sink sink;		/* gets the segments in order */
	onym_check check;	/* NULL: digests show damage, and nobody is believed to be anybody */
	void *ctx;		/* of both */
	uint64_t size_max;	/* -EFBIG beyond; 0: 1 GiB */
};

/*
 * All segments of an object: of the version that the name ends with, or of the newest one by its
 * metadata. Octets that came. At most 256 segments are asked for at a time; a loss halves that. Sink
 * and check leave the connection alone.
 */
int64_t onym_pull_fetch(struct onym_pull *app, const struct onym_name *name, const struct onym_pull_how *how);

struct onym_pull_interest {
	struct onym_name name;	/* without the digest of the parameters */
	unsigned int flags;
	uint32_t lifetime_ms;
	uint8_t token[32];	/* PitToken */
	size_t token_len;
};

/* Asks the node for the Interests under a prefix. -EACCES when it refuses. */
int onym_pull_register(struct onym_pull *app, const struct onym_name *prefix);
/*
 * 1: an Interest; 0: none within so many milliseconds (-1: as long as it takes). 64 KiB of Interests
 * wait while another call does; those beyond are dropped, as a network may.
 */
int onym_pull_interest(struct onym_pull *app, struct onym_pull_interest *interest, int timeout_ms);
/* Answers with the octets of a Data (onym_data_make). */
int onym_pull_answer(struct onym_pull *app, const struct onym_pull_interest *interest, const uint8_t *data,
		     size_t len);

struct onym_pull_object {
	struct onym_name name;	/* with its version: onym_name_version */
	const uint8_t *content;
	size_t len;
	const struct onym_key *key;	/* NULL: DigestSha256 */
};

/* Writes the segment or the metadata of an object that an Interest asks for: its length, 0 for neither. */
ssize_t onym_pull_segment(const struct onym_pull_object *object, const struct onym_pull_interest *interest,
			  uint8_t *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
