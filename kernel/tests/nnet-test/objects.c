// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Providers and consumers, of single Data and of objects. */
#include "nnet-test.h"

/* serve URI COUNT SIZE [FRESHNESS]: answers COUNT Interests. "ready" when bound. */
int serve(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	int count = atoi(argv[1]), size = atoi(argv[2]), fd = onym_socket(SOCK_DGRAM, 0);
	uint32_t freshness = argc > 3 ? atoi(argv[3]) : 10000;

	CHECK(fd >= 0);
	CHECK(!onym_bind(fd, &n, 0));
	patience(fd, 60);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < size; i++)
		content[i] = i * 7;
	while (count--) {
		struct onym_packet p = { 0 };
		struct onym_data d = { .name = &p.name, .content = content, .len = size, .freshness = freshness };

		CHECK(onym_recv(fd, &p, 0) >= 0);
		CHECK(p.type == NNET_INTEREST);
		CHECK(!onym_send_data(fd, &d));
	}
	return 0;
}

static void fetch_one(int fd, const char *uri, int i, int size, uint32_t flags)
{
	struct onym_name n = name_of(uri);
	struct onym_packet p = { .content = content, .size = sizeof(content) };

	CHECK(!onym_name_segment(&n, i));
	CHECK(!onym_send_interest(fd, &n, flags, 20000));
	CHECK(onym_recv(fd, &p, 0) == size);
	CHECK(p.type == NNET_DATA);
	CHECK(p.name.len == n.len && !memcmp(p.name.v, n.v, n.len));
	for (int k = 0; k < size; k++)
		CHECK(content[k] == (uint8_t)(k * 7));
}

/* fetch URI COUNT SIZE: one after the other, by segment. */
int fetch(int argc, char **argv)
{
	int count = atoi(argv[1]), size = atoi(argv[2]), fd = onym_socket(SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	patience(fd, 60);
	for (int i = 0; i < count; i++)
		fetch_one(fd, argv[0], i, size, 0);
	printf("fetched %d\n", count);
	return 0;
}

struct sum {
	uint64_t next, octets;
};

static int add_up(void *ctx, uint64_t segment, const uint8_t *v, size_t len)
{
	struct sum *s = ctx;

	CHECK(segment == s->next++);
	for (size_t i = 0; i < len; i++)
		CHECK(v[i] == (uint8_t)((s->octets + i) * 31 >> 3));
	s->octets += len;
	return 0;
}

/* pump URI OCTETS SEGMENT SECONDS: serves an object for so long. */
int pump(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	size_t len = atol(argv[1]);
	int fd = onym_socket(SOCK_RAW, 0), buffer = 64 << 20;
	uint8_t *v = malloc(len);

	for (size_t i = 0; i < len; i++)
		v[i] = i * 31 >> 3;
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)));
	CHECK(!onym_bind(fd, &n, 0));
	CHECK(!onym_pump(fd, &n, v, len, atoi(argv[2]), NULL));
	printf("ready\n");
	fflush(stdout);
	sleep(atoi(argv[3]));
	return 0;
}

/* request URI OCTETS: fetches and checks an object over SEQPACKET. */
int request(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	struct sum s = { 0 };
	struct onym_meta m;
	uint64_t begun;
	int64_t got;
	int err;

	/* A datagram may be lost on the way. */
	for (int tries = 0; tries < 8; tries++) {
		err = onym_touch(&n, &m, 3000);
		if (err != -ETIMEDOUT)
			break;
	}
	if (err)
		printf("touch: %s\n", strerror(-err));
	CHECK(!err && m.size == (uint64_t)atol(argv[1]));
	begun = now_ns();
	got = onym_request(&n, add_up, &s, 30000);
	if (got < 0)
		printf("request: %s after %llu segments\n", strerror(-got), (unsigned long long)s.next);
	CHECK(got == atol(argv[1]) && s.next == m.last + 1);
	begun = now_ns() - begun;
	printf("requested %lld octets, %llu segments\n", (long long)got, (unsigned long long)s.next);
	row_of("goodput_bps", got * 8e9 / begun, "bit/s", "names=without");
	/* A segment's component is two octets and its number, of one to four octets here: two are counted. */
	row_of("goodput_bps", (got + s.next * (n.len + 4.0)) * 8e9 / begun, "bit/s", "names=with");
	row("exchanges_per_second", s.next * 1e9 / begun, "1/s");
	return 0;
}

/* probe URI: any Data below a name. */
int probe(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_DGRAM, 0);
	char uri[512];

	patience(fd, 20);
	CHECK(!onym_send_interest(fd, &n, NNET_CAN_BE_PREFIX | NNET_MUST_BE_FRESH, 10000));
	CHECK(onym_recv(fd, &p, 0) >= 0);
	CHECK(p.type == NNET_DATA);
	onym_name_show(p.name.v, p.name.len, uri, sizeof(uri));
	printf("%s, %zu octets\n", uri, p.len);
	return 0;
}
