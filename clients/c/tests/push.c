// SPDX-License-Identifier: Apache-2.0 OR MIT
/* push NODE: what the library says and hears, against a node with a push half. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <onym/push.h>

#include "check.h"

enum { PATIENCE = 30000, LONG = 100000 };

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

/* What may be chosen of what is retained, and what is beyond. */
static void terms(struct onym_push *giver, struct onym_push *taker, const struct onym_push_id *item)
{
	struct onym_push_terms terms = { .count = 2, .lifetime_ms = 1000, .deadline_ms = 60000, .priority = 7, .waits = true };
	struct onym_push_publication p = { .id = item, .strategy = ONYM_NODE_LOCAL, .payload = "on", .len = 2 };

	CHECK(!onym_push_retain_as(giver, item, &terms) && !onym_push_publish(giver, &p, NULL));
	CHECK(next(taker, ONYM_DATA).len == 2);
	terms.priority = 8;
	CHECK(onym_push_retain_as(giver, item, &terms) == 12);
	terms = (struct onym_push_terms){ .count = 2, .lifetime_ms = 3600001 };
	CHECK(onym_push_retain_as(giver, item, &terms) == 12);
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
	terms(giver, taker, &item);
	onym_push_close(taker);
	onym_push_close(giver);
	free(payload);
}

/* A node that grants any length, and then says `said`. */
struct hostile {
	int fd;
	const uint8_t *said;
	size_t len;
};

static void *play(void *arg)
{
	static const uint8_t granted[] = { 0xf2, 16, 1, 110, 0, 0, 0, 1, 65, 8, 255, 255, 255, 255, 255, 255, 255, 255 };
	const struct hostile *node = arg;
	uint8_t octets[512];
	int fd = accept(node->fd, NULL, NULL);

	CHECK(fd >= 0 && read(fd, octets, sizeof(octets)) > 0);
	CHECK(write(fd, granted, sizeof(granted)) == sizeof(granted));
	CHECK(write(fd, node->said, node->len) == (ssize_t)node->len);
	while (read(fd, octets, sizeof(octets)) > 0)
		;
	close(fd);
	return NULL;
}

/* What a node says that it never should ends the connection, and takes no memory that it claims. */
static void hostile_nodes(void)
{
	static const uint8_t huge[] = {
		0xf2, 32, 1, 104, 0, 0, 0, 0, 65, 8, 255, 255, 255, 255, 255, 255, 255, 128, 67, 1, 0, 71, 11,
		'o', 'n', 'y', 'm', ' ', 'p', 'a', 'y', 'l', 'o', 'a',
	};
	static const uint8_t behind[] = { 0xf2, 15, 1, 104, 0, 0, 0, 0, 65, 1, 9, 67, 1, 4, 71, 1, 'x' };
	static const uint8_t beyond[] = { 0xf2, 17, 1, 104, 0, 0, 0, 0, 65, 1, 2, 67, 1, 0, 71, 3, 'x', 'y', 'z' };
	static const uint8_t id[] = { 0xf2, 11, 1, 104, 0, 0, 0, 0, 1, 3, 7, 7, 7 };
	static const uint8_t field[] = { 0xf2, 9, 1, 100, 0, 0, 0, 0, 1, 8, 7 };
	static const uint8_t number[] = { 0xf2, 11, 1, 109, 0, 0, 0, 0, 25, 3, 1, 2, 3 };
	static const uint8_t empty[] = { 0xf2, 0 };
	static const uint8_t version[] = { 0xf2, 6, 9, 104, 0, 0, 0, 0 };
	static const uint8_t endless[] = { 0xf2, 254, 255, 255, 255, 255 };
	static const struct hostile all[] = {
		{ 0, huge, sizeof(huge) }, { 0, behind, sizeof(behind) }, { 0, beyond, sizeof(beyond) },
		{ 0, id, sizeof(id) }, { 0, field, sizeof(field) }, { 0, number, sizeof(number) },
		{ 0, empty, sizeof(empty) }, { 0, version, sizeof(version) }, { 0, endless, sizeof(endless) },
	};
	char folder[] = "/tmp/onym-push-XXXXXX";
	struct sockaddr_un where = { .sun_family = AF_UNIX };

	CHECK(mkdtemp(folder));
	snprintf(where.sun_path, sizeof(where.sun_path), "%s/node.sock", folder);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct hostile node = all[i];
		struct onym_push *app;
		struct onym_push_event event;
		pthread_t thread;
		int got;

		node.fd = socket(AF_UNIX, SOCK_STREAM, 0);
		CHECK(node.fd >= 0 && !bind(node.fd, (struct sockaddr *)&where, sizeof(where)) && !listen(node.fd, 1));
		CHECK(!pthread_create(&thread, NULL, play, &node));
		app = onym_push_open(where.sun_path, "x");
		/* It may come with the grant, or behind it. */
		got = app ? onym_push_event(app, &event, node.said == endless ? 50 : PATIENCE) : -errno;
		CHECK(!app || onym_push_length_max(app) <= 1 << 30);
		if (got != (node.said == endless ? 0 : -EPROTO)) {
			fprintf(stderr, "hostile node %zu: %d\n", i, got);
			exit(1);
		}
		onym_push_close(app);
		CHECK(!pthread_join(thread, NULL));
		close(node.fd);
		unlink(where.sun_path);
	}
	rmdir(folder);
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
	hostile_nodes();
	long_publications(argv[1]);
	puts("ok");
	return 0;
}
