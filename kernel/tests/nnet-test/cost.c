// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What an exchange, a cache hit and a publication cost. Under -icount shift=1 the
 * clock counts instructions, 2 ns each, those of this program among them.
 */
#include "nnet-test.h"

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The median, as instructions: what interrupts add is left out. */
static void median(const char *what, uint64_t *t, int n)
{
	qsort(t, n, sizeof(*t), by_time);
	printf("%s: %llu instructions\n", what, (unsigned long long)t[n / 2] / 2);
	row_of("instructions", t[n / 2] / 2, "1", "what=%s", what);
}

static struct onym_name numbered(const char *uri, int i)
{
	struct onym_name n = name_of(uri);

	CHECK(!onym_name_segment(&n, NUMBER_FIRST + i));
	return n;
}

static void ask(int fd, const struct onym_name *n)
{
	struct onym_packet p = { .content = content, .size = sizeof(content) };

	CHECK(!onym_send_interest(fd, n, 0, 4000));
	if (onym_recv(fd, &p, 0) != 1024 || p.type != NNET_DATA)
		CHECK(!"an answer of 1024 octets");
}

/* Publishes a packet that is made already: without the digest of onym_publish(). */
static ssize_t keep(int fd, uint8_t *packet, size_t len)
{
	union {
		struct cmsghdr h;
		uint8_t room[CMSG_SPACE(4)];
	} c = { .h = { .cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_NNET, .cmsg_type = NNET_CM_PUBLISH } };
	struct iovec iov = { packet, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };

	return sendmsg(fd, &m, 0);
}

/* A consumer and a provider of one host, of this process. */
static void exchange(uint64_t *t, int count, int consumer, int provider)
{
	struct onym_packet p = { 0 };

	for (int i = 0; i < count; i++) {
		struct onym_name n = numbered("/cost/exchange", i);
		struct onym_data d = { .name = &n, .content = content, .len = 1024, .freshness = 60000 };
		struct onym_packet got = { .content = content, .size = sizeof(content) };
		uint64_t begun = now_ns();

		CHECK(!onym_send_interest(consumer, &n, 0, 4000));
		CHECK(onym_recv(provider, &p, 0) >= 0 && p.type == NNET_INTEREST);
		CHECK(!onym_send_data(provider, &d));
		CHECK(onym_recv(consumer, &got, 0) == 1024);
		t[i] = now_ns() - begun;
	}
	median("exchange", t, count);
}

int cost(int argc, char **argv)
{
	int count = atoi(argv[0]), control = onym_ctl_open(), consumer = onym_socket(SOCK_DGRAM, 0);
	int provider = bound("/cost/exchange", 0), raw = onym_socket(SOCK_RAW, 0), buffer = 64 << 20;
	struct onym_name root = name_of("/cost"), prefix = name_of("/cost/published");
	uint64_t *t = calloc(count, sizeof(*t));
	uint8_t packet[ONYM_PACKET_MAX];

	CHECK(provider >= 0 && !onym_ctl_route(control, &root, 1, 0));
	CHECK(!setsockopt(raw, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)));
	CHECK(!onym_bind(raw, &prefix, 0));
	patience(consumer, 20);
	patience(provider, 20);
	exchange(t, count, consumer, provider);
	for (int i = 0; i < count; i++) {
		struct onym_name n = numbered("/cost/exchange", i);
		uint64_t begun = now_ns();

		ask(consumer, &n);
		t[i] = now_ns() - begun;
	}
	median("hit", t, count);
	for (int i = 0; i < count; i++) {
		struct onym_name n = numbered("/cost/published", i);
		struct onym_data d = { .name = &n, .content = content, .len = 1024, .freshness = 60000 };
		ssize_t len = onym_data_make(&d, NULL, packet, sizeof(packet));
		uint64_t begun = now_ns();

		CHECK(keep(raw, packet, len) == len);
		t[i] = now_ns() - begun;
	}
	median("publish", t, count);
	for (int i = 0; i < count; i++) {
		struct onym_name n = numbered("/cost/published", i);
		uint64_t begun = now_ns();

		ask(consumer, &n);
		t[i] = now_ns() - begun;
	}
	median("served", t, count);
	return 0;
}

/* The least time that a socket with a face takes to close. */
static uint64_t least_close(void)
{
	uint64_t least = UINT64_MAX, begun;
	int err;

	for (int i = 0; i < 30; i++) {
		struct onym_name n = name_of("/nobody");
		int fd = onym_socket(SOCK_DGRAM, 0);

		err = onym_send_interest(fd, &n, 0, 100);
		CHECK(fd >= 0 && !err);
		begun = now_ns();
		close(fd);
		begun = now_ns() - begun;
		least = begun < least ? begun : least;
	}
	return least;
}

/* What closes does not look through the routes of others: those who do it hold up everybody. */
int closes(int argc, char **argv)
{
	int control = onym_ctl_open();
	uint64_t before = least_close(), after;

	for (int i = 0; i < 20000; i++) {
		struct onym_name n = name_of("/routes");

		CHECK(!onym_name_segment(&n, i) && !onym_ctl_route(control, &n, 1, 0));
	}
	after = least_close();
	printf("a close takes %llu us, with 20000 routes %llu us\n", (unsigned long long)before / 1000,
	       (unsigned long long)after / 1000);
	CHECK(alike(before, after));
	return 0;
}
