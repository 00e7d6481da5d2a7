/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef ONYM_PULL_INTERNAL_H
#define ONYM_PULL_INTERNAL_H

#include <onym/pull.h>
#include "stream.h"

enum {
	TLV_INTEREST = 5, TLV_DATA = 6, TLV_NAME = 7, TLV_NONCE = 10, TLV_LIFETIME = 12, TLV_MUST_BE_FRESH = 18,
	TLV_META = 20, TLV_CONTENT = 21, TLV_CONTENT_TYPE = 24, TLV_FRESHNESS = 25, TLV_FINAL = 26,
	TLV_CAN_BE_PREFIX = 33, TLV_PARAMETERS = 36,
	TLV_DIGEST = 1, TLV_PARAMETERS_DIGEST = 2, TLV_GENERIC = 8, TLV_KEYWORD = 32, TLV_SEGMENT = 50,
	TLV_VERSION = 54,
};

/* A Data, or the name of an Interest that came back with a Nack. */
struct onym_answer {
	struct onym_pull_data data;
	const uint8_t *nacked;
	size_t nacked_len;
};

struct onym_pull {
	struct onym_stream stream;
	uint64_t nonces;
	/* Who waits for Data; a negative errno ends the connection. */
	int (*answered)(void *ctx, const struct onym_answer *answer);
	void *ctx;
	uint8_t kept[ONYM_PACKET_MAX];  /* the Data that a get returned */
	size_t waiting;
	uint8_t interests[65536];       /* that wait: a head, and the Interest as it came */
};

int onym_pull_send(struct onym_pull *app, const struct onym_name *name, unsigned int flags, int lifetime_ms);
/* The fields of a Data; onym_data_parse: and its digest fits, if it is signed by one. -EBADMSG. */
int onym_data_fields(const struct onym_element *element, struct onym_pull_data *data);
int onym_data_parse(const struct onym_element *element, struct onym_pull_data *data);
/* The element at `*at`, which is moved behind it. -EBADMSG. */
int onym_next(const uint8_t **at, const uint8_t *end, struct onym_element *element);

#endif
