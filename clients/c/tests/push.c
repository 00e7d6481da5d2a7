// SPDX-License-Identifier: Apache-2.0 OR MIT
/* push NODE: what the library says and hears, against a node with a push half. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onym/push.h>

enum { PATIENCE = 30000, LONG = 100000 };

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static void identifiers(void)
{
	static const uint8_t sensors[] = { 0x7c, 0x87, 0x4d, 0x9a, 0x34, 0x05, 0xa0, 0xf8 };
	static const char *const wrong[] = { "", "1/2", "//", "/1/", "/==x", "/*", "/a\x01", "/a\xc2\x80" };
	struct onym_push_id id;
	char text[65 + 1 + 1];

	CHECK(onym_push_id("/sensors/1", &id) == 0 && id.len == 16 && !memcmp(id.v, sensors, 8));
	CHECK(id.v[15] == 1 && !*id.word);
	CHECK(onym_push_id("/=cafe", &id) == 0 && id.len == 8 && !strcmp(id.word, "cafe"));
	CHECK(onym_push_id("/", &id) == 0 && id.len == 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(onym_push_id(wrong[i], &id) == -EINVAL);
	memset(text, 'x', sizeof(text));
	text[0] = '/';
	text[66] = 0;
	CHECK(onym_push_id(text, &id) == -EINVAL);
	text[65] = 0;
	CHECK(onym_push_id(text, &id) == 0);
}

static void routes(void)
{
	struct onym_push_route route;
	char digits[257];

	memset(digits, '0', 256);
	digits[256] = 0;
	digits[255] = digits[0] = '1';
	CHECK(onym_push_route(3, digits, &route) == 0 && route.len == 34);
	CHECK(route.octets[0] == 1 && route.octets[1] == 3 && route.octets[2] == 1 && route.octets[33] == 0x80);
	CHECK(onym_push_route(256, digits, &route) == -EINVAL);
	digits[9] = '2';
	CHECK(onym_push_route(0, digits, &route) == -EINVAL);
}

/* The next event, which is of this kind. */
static struct onym_push_event next(struct onym_push *app, enum onym_push_event_kind kind)
{
	struct onym_push_event event;

	CHECK(onym_push_event(app, &event, PATIENCE) == 1);
	CHECK(event.kind == kind);
	return event;
}

static void long_publications(const char *node)
{
	struct onym_push *giver = onym_push_open(node, "giver"), *taker = onym_push_open(node, "taker");
	struct onym_push_id scope, item;
	uint8_t *payload = malloc(LONG);
	struct onym_push_publication p = { .id = &item, .strategy = ONYM_NODE_LOCAL, .payload = payload, .len = LONG };
	struct onym_push_event event;
	struct onym_push_sent sent;

	CHECK(giver && taker && payload && onym_push_length_max(giver) >= LONG);
	for (size_t i = 0; i < LONG; i++)
		payload[i] = (uint8_t)(i * 7 >> 3);
	CHECK(!onym_push_id("/library", &scope) && !onym_push_id("/library/long", &item));
	CHECK(onym_push_ask(giver, ONYM_PUBLISH_ITEM, &item, ONYM_NODE_LOCAL) == 4);
	CHECK(!onym_push_ask(giver, ONYM_PUBLISH_SCOPE, &scope, ONYM_NODE_LOCAL));
	CHECK(!onym_push_ask(giver, ONYM_PUBLISH_ITEM, &item, ONYM_NODE_LOCAL));
	/* Nobody subscribed: who waits hears it as the status, who does not as an event. */
	CHECK(onym_push_publish(giver, &p, &sent) == 16);
	CHECK(!onym_push_publish(giver, &p, NULL));
	event = next(giver, ONYM_REFUSED);
	CHECK(event.status == 16 && event.id.len == item.len && !memcmp(event.id.v, item.v, item.len));
	CHECK(onym_push_event(taker, &event, 0) == 0);
	CHECK(!onym_push_ask(taker, ONYM_SUBSCRIBE_ITEM, &item, ONYM_NODE_LOCAL));
	next(giver, ONYM_START_PUBLISH);
	for (int i = 0; i < 20; i++)
		CHECK(!onym_push_publish(giver, &p, i % 2 ? NULL : &sent) && (i % 2 || sent.local == 1));
	p.len = 0;
	CHECK(!onym_push_publish(giver, &p, &sent));
	/* While an answer is waited for, what comes waits. */
	CHECK(onym_push_ask(taker, ONYM_SUBSCRIBE_ITEM, &item, ONYM_NODE_LOCAL) == 3);
	for (int i = 0; i < 20; i++) {
		event = next(taker, ONYM_DATA);
		CHECK(event.came_by == -1 && event.len == LONG && !memcmp(event.payload, payload, LONG));
	}
	CHECK(next(taker, ONYM_DATA).len == 0);
	/* One that is kept comes to who subscribes later. */
	p.len = 5;
	CHECK(!onym_push_retain(giver, &item, 1) && !onym_push_publish(giver, &p, NULL));
	onym_push_close(taker);
	taker = onym_push_open(node, "late");
	CHECK(taker && !onym_push_ask(taker, ONYM_SUBSCRIBE_ITEM, &item, ONYM_NODE_LOCAL));
	CHECK(next(taker, ONYM_DATA).len == 5);
	onym_push_close(taker);
	onym_push_close(giver);
	free(payload);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("push NODE\n", stderr);
		return 2;
	}
	identifiers();
	routes();
	CHECK(!onym_push_open("/nonexistent/onym.sock", "x") && errno == ENOENT);
	long_publications(argv[1]);
	puts("ok");
	return 0;
}
