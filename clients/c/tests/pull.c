// SPDX-License-Identifier: Apache-2.0 OR MIT
/* pull NODE: fetches and answers over a played node that loses, damages and lies, and over a real one. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pull.h"
#include "check.h"

enum { PATIENCE = 30000, SEGMENTS = 100, LENGTH = SEGMENTS * ONYM_SEGMENT - 5 };

static uint8_t content[LENGTH];
static struct onym_name base, version;
static char folder[] = "/tmp/onym-pull-XXXXXX";

// A played node: `answer` is called for each Interest, the `count`th.
struct node {
	struct sockaddr_un where;
	int listener, fd;
	unsigned int count;
	void (*answer)(struct node *node, const struct onym_element *interest);
	pthread_t thread;
};

static void say(struct node *node, const void *octets, size_t len)
{
	// Who has heard enough may be gone.
	if (send(node->fd, octets, len, MSG_NOSIGNAL) < 0)
		CHECK(errno == EPIPE || errno == ECONNRESET);
}

static void *play(void *arg)
{
	struct node *node = arg;
	uint8_t in[65536];
	size_t len = 0;
	ssize_t got;

	node->fd = accept(node->listener, NULL, NULL);
	CHECK(node->fd >= 0);
	while ((got = read(node->fd, in + len, sizeof(in) - len)) > 0) {
		const uint8_t *at = in;
		struct onym_element e;

		len += (size_t)got;
		while (!onym_next(&at, in + len, &e)) {
			node->count++;
			node->answer(node, &e);
		}
		len -= (size_t)(e.at - in);
		memmove(in, e.at, len);
	}
	close(node->fd);
	return NULL;
}

static struct onym_pull *started(struct node *node, void (*answer)(struct node *, const struct onym_element *))
{
	struct onym_pull *app;

	*node = (struct node){ .where.sun_family = AF_UNIX, .answer = answer };
	snprintf(node->where.sun_path, sizeof(node->where.sun_path), "%s/node.sock", folder);
	node->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(node->listener >= 0 && !bind(node->listener, (struct sockaddr *)&node->where, sizeof(node->where)));
	CHECK(!listen(node->listener, 1) && !pthread_create(&node->thread, NULL, play, node));
	app = onym_pull_open(node->where.sun_path);
	CHECK(app);
	return app;
}

static void ended(struct node *node, struct onym_pull *app)
{
	onym_pull_close(app);
	CHECK(!pthread_join(node->thread, NULL));
	close(node->listener);
	unlink(node->where.sun_path);
}

static void name_of(const struct onym_element *interest, struct onym_name *name)
{
	const uint8_t *at = interest->value;
	struct onym_element e;

	CHECK(interest->type == TLV_INTEREST && !onym_next(&at, interest->end, &e) && e.type == TLV_NAME);
	name->len = (size_t)(e.end - e.value);
	memcpy(name->v, e.value, name->len);
}

static ssize_t served(const struct onym_element *interest, uint8_t *data, size_t size)
{
	const struct onym_pull_object object = { .name = version, .content = content, .len = LENGTH };
	struct onym_pull_interest asked = { 0 };

	name_of(interest, &asked.name);
	return onym_pull_segment(&object, &asked, data, size);
}

static int compare(void *ctx, uint64_t segment, const uint8_t *octets, size_t len)
{
	size_t at = (size_t)segment * ONYM_SEGMENT;

	(void)ctx;
	CHECK(at + len <= LENGTH && !memcmp(content + at, octets, len));
	return 0;
}

static int64_t fetched(struct onym_pull *app, uint64_t size_max)
{
	return onym_pull_fetch(app, &base, &(struct onym_pull_how){ .sink = compare, .size_max = size_max });
}

// Loses, damages, refuses and turns around; what is asked for again comes.
static void bad_network(struct node *node, const struct onym_element *interest)
{
	static uint8_t held[ONYM_PACKET_MAX];
	static size_t held_len;
	uint8_t data[ONYM_PACKET_MAX], nack[ONYM_PACKET_MAX], *p = nack;
	ssize_t len = served(interest, data, sizeof(data));
	size_t size = (size_t)(interest->end - interest->at);

	CHECK(len > 0);
	switch (node->count < 90 ? node->count % 30 : 0) {
	case 7:
		return;
	case 11:
		data[len / 2] ^= 1;
		break;
	case 13:
		p = onym_put_tl(p, 100, 4 + onym_tl_size(80, size));
		p = onym_put_tl(p, 800, 0);
		p = onym_put_tl(p, 80, size);
		memcpy(p, interest->at, size);
		say(node, nack, (size_t)(p - nack) + size);
		return;
	case 17:
		memcpy(held, data, (size_t)len);
		held_len = (size_t)len;
		return;
	case 19:
		// One that is late, and once more.
		say(node, held, held_len);
		say(node, held, held_len);
		break;
	}
	say(node, data, (size_t)len);
}

/* An object comes whole, and no longer than was allowed. */
static void whole_again(void)
{
	struct node node;
	struct onym_pull *app = started(&node, bad_network);

	CHECK(fetched(app, 0) == LENGTH);
	CHECK(node.count > SEGMENTS + 6);
	CHECK(fetched(app, LENGTH - 1) == -EFBIG);
	ended(&node, app);
}

static int refuse(void *ctx, const struct onym_pull_data *data)
{
	(void)ctx;
	return data->last_segment == SEGMENTS - 1 && !onym_data_verify(data->wire, data->wire_len, NULL) ? -EKEYREJECTED : 0;
}

/* What the application does not believe ends the fetch. */
static void nobody_believed(void)
{
	struct node node;
	struct onym_pull *app = started(&node, bad_network);

	CHECK(onym_pull_fetch(app, &base, &(struct onym_pull_how){ .sink = compare, .check = refuse }) == -EKEYREJECTED);
	ended(&node, app);
}

static void say_data(struct node *node, const struct onym_name *name, const void *octets, size_t len, uint64_t last)
{
	uint8_t data[ONYM_PACKET_MAX], final[12];
	struct onym_data d = { .name = name, .content = octets, .len = len, .final = final };
	ssize_t made;

	d.final_len = (size_t)(onym_put_nni(final, TLV_SEGMENT, last) - final);
	made = onym_data_make(&d, NULL, data, sizeof(data));
	CHECK(made > 0);
	say(node, data, (size_t)made);
}

static int is_metadata(const struct onym_name *name)
{
	return name->len >= 10 && !memcmp(name->v + name->len - 8, "metadata", 8);
}

static void leads_elsewhere(struct node *node, const struct onym_element *interest)
{
	struct onym_name name;

	name_of(interest, &name);
	say_data(node, &name, "\x07\x03\x08\x01x", 5, 0);
}

static void never_ends(struct node *node, const struct onym_element *interest)
{
	struct onym_name name;
	uint8_t data[ONYM_PACKET_MAX];

	name_of(interest, &name);
	if (is_metadata(&name))
		say(node, data, (size_t)served(interest, data, sizeof(data)));
	else
		say_data(node, &name, "", 0, INT64_MAX);
}

static void too_long(struct node *node, const struct onym_element *interest)
{
	static const uint8_t head[] = { 6, 253, 0x40, 0 };
	static uint8_t octets[0x4000];

	(void)interest;
	say(node, head, sizeof(head));
	say(node, octets, sizeof(octets));
}

static void hangs_up(struct node *node, const struct onym_element *interest)
{
	(void)interest;
	shutdown(node->fd, SHUT_RDWR);
}

static void another(struct node *node, const struct onym_element *interest)
{
	static const uint8_t cut[] = { 6, 4, 7, 9, 8, 1 };
	struct onym_name name = { 0 };

	(void)interest;
	say_data(node, &name, "x", 1, 0);
	CHECK(!onym_name("/b/c/d", &name));
	say_data(node, &name, "x", 1, 0);
	say(node, cut, sizeof(cut));
}

static void refuses(struct node *node, const struct onym_element *interest)
{
	struct onym_name name;

	name_of(interest, &name);
	say_data(node, &name, "\x65\x07\x66\x02\x01\x93\x67\x01x", 9, 0);
}

/* What a node or a producer says that it never should is an error, takes no memory, and never loops. */
static void hostile(void)
{
	static const struct {
		void (*answer)(struct node *, const struct onym_element *);
		int64_t error;
	} all[] = {
		{ leads_elsewhere, -EPROTO }, { never_ends, -EPROTO }, { too_long, -EPROTO }, { hangs_up, -ECONNRESET },
	};
	struct onym_pull_data data;
	struct onym_pull *app;
	struct node node;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int64_t got;

		app = started(&node, all[i].answer);
		got = fetched(app, 0);
		if (got != all[i].error) {
			fprintf(stderr, "hostile node %zu: %lld\n", i, (long long)got);
			exit(1);
		}
		ended(&node, app);
	}
	app = started(&node, another);
	CHECK(onym_pull_get(app, &base, 0, 100, &data) == -ETIMEDOUT);
	ended(&node, app);
	app = started(&node, refuses);
	CHECK(onym_pull_register(app, &base) == -EACCES);
	ended(&node, app);
	CHECK(!onym_pull_open("/nonexistent/onym.sock") && errno == ENOENT);
}

// A Data, with octets changed by a generator that starts with the count.
static void noise(struct node *node, const struct onym_element *interest)
{
	uint8_t data[ONYM_PACKET_MAX], frame[ONYM_PACKET_MAX + 16], *p = frame;
	ssize_t len = served(interest, data, sizeof(data));
	uint32_t random = node->count * 2654435761u + 1;

	CHECK(len > 0);
	// The head of the frame holds, so that what is in it is looked at.
	for (int i = 0; i < 4; i++) {
		random = random * 1664525 + 1013904223;
		data[4 + random % 60 % (size_t)(len - 4)] = (uint8_t)(random >> 24);
	}
	if (node->count % 2) {
		p = onym_put_tl(p, 100, onym_tl_size(80, (size_t)len));
		p = onym_put_tl(p, 80, (size_t)len);
		frame[4 + random % 3] ^= (uint8_t)(random >> 16);
	}
	memcpy(p, data, (size_t)len);
	say(node, frame, (size_t)(p - frame) + (size_t)len);
}

/* What is damaged is not taken, and ends nothing. */
static void noisy(void)
{
	struct onym_pull_data data;
	struct onym_name name = version;
	struct node node;
	struct onym_pull *app = started(&node, noise);
	int got;

	CHECK(!onym_name_segment(&name, 3));
	for (int i = 0; i < 500; i++) {
		got = onym_pull_get(app, &name, ONYM_CAN_BE_PREFIX, 1, &data);
		CHECK(got == -ETIMEDOUT);
	}
	ended(&node, app);
}

// As many Interests as a node has, while the application waits for a Data.
static void flood(struct node *node, const struct onym_element *interest)
{
	static const uint8_t named[] = {
		100, 48, 98, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		80, 11, 5, 9, 7, 3, 8, 1, 'a', 12, 2, 1, 0,
	};
	static const uint8_t good[] = { 100, 17, 98, 2, 1, 2, 80, 11, 5, 9, 7, 3, 8, 1, 'a', 12, 2, 1, 0 };
	struct onym_name name;

	name_of(interest, &name);
	say(node, named, sizeof(named));
	for (int i = 0; i < 10000; i++)
		say(node, good, sizeof(good));
	say_data(node, &name, "x", 1, 0);
}

/* Interests that come meanwhile wait, up to the bound; those with a token that is too long are dropped. */
static void interests_wait(void)
{
	struct onym_pull_interest interest;
	struct onym_pull_data data;
	struct node node;
	struct onym_pull *app = started(&node, flood);
	int kept = 0;

	CHECK(!onym_pull_get(app, &base, 0, PATIENCE, &data) && data.len == 1 && *data.content == 'x');
	while (onym_pull_interest(app, &interest, 0) == 1) {
		CHECK(interest.lifetime_ms == 256 && interest.token_len == 2 && interest.token[1] == 2);
		CHECK(interest.name.len == 3 && !interest.flags);
		kept++;
	}
	CHECK(kept == (65536 - 50) / 19);
	ended(&node, app);
}

/* Over a node: registered, asked, answered; by its digest; the newest version. */
static void over_a_node(const char *path)
{
	struct onym_pull *giver = onym_pull_open(path), *taker = onym_pull_open(path);
	uint8_t data[ONYM_PACKET_MAX], digest[32];
	struct onym_pull_interest interest;
	struct onym_pull_data got;
	struct onym_name name = version;
	ssize_t len;

	CHECK(giver && taker && !onym_pull_register(giver, &base) && !onym_name_segment(&name, 3));
	CHECK(!onym_pull_send(taker, &name, 0, PATIENCE) && onym_pull_interest(giver, &interest, PATIENCE) == 1);
	CHECK(interest.name.len == name.len && !memcmp(interest.name.v, name.v, name.len));
	len = onym_pull_segment(&(struct onym_pull_object){ .name = version, .content = content, .len = LENGTH },
				&interest, data, sizeof(data));
	CHECK(len > 0 && !onym_pull_answer(giver, &interest, data, (size_t)len));
	onym_sha256(data, (size_t)len, digest);
	CHECK(!onym_pull_get(taker, &name, 0, PATIENCE, &got) && got.wire_len == (size_t)len && !memcmp(got.wire, data, got.wire_len));
	CHECK(got.last_segment == SEGMENTS - 1 && got.freshness == 1000);
	CHECK(!onym_name_append(&name, TLV_DIGEST, digest, 32) && !onym_pull_get(taker, &name, 0, PATIENCE, &got));
	// Nobody else may have it.
	CHECK(!onym_name("/localhost/nfd", &name) && onym_pull_register(giver, &name) == -EACCES);
	CHECK(!onym_name("/nobody", &name) && onym_pull_get(taker, &name, 0, 100, &got) == -EHOSTUNREACH);
	onym_pull_close(taker);
	onym_pull_close(giver);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("pull NODE\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < LENGTH; i++)
		content[i] = (uint8_t)(i * 31 + i / 251);
	CHECK(mkdtemp(folder) && !onym_name("/a/b", &base));
	version = base;
	CHECK(!onym_name_version(&version, 7));
	whole_again();
	nobody_believed();
	hostile();
	noisy();
	interests_wait();
	rmdir(folder);
	over_a_node(argv[1]);
	puts("ok");
	return 0;
}
