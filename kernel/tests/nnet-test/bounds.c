// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a stranger can cost others: each command is one law of the security page. */
#include "nnet-test.h"
#include "internal.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/wait.h>

enum { SAMPLES = 31 };

static int later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The median of what it takes the kernel to take an Interest for a name, or for names under it. */
static uint64_t taken_ns(int fd, const struct onym_name *name, uint32_t flags, int under)
{
	static uint32_t number;
	uint64_t t[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		struct onym_name n = *name;
		uint64_t begun;

		CHECK(!under || !onym_name_segment(&n, number++));
		begun = now_ns();
		want(fd, &n, flags, 1);
		t[i] = now_ns() - begun;
	}
	qsort(t, SAMPLES, sizeof(*t), later);
	return t[SAMPLES / 2];
}

static int store_all(int control, uint8_t policy)
{
	return onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_UNSOLICITED, &policy, (size_t)1, 0);
}

static void fill(int fd, const char *prefix, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct onym_name n = name_of(prefix);

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + i));
		offer(fd, &n, "x", 0);
	}
}

/* What answers an Interest, by the end of its URI. */
static int answers(int fd, const char *asked, uint32_t flags, const char *uri)
{
	struct onym_name n = name_of(asked), want = name_of(uri);
	struct onym_packet p = { .content = content, .size = sizeof(content) };

	CHECK(!onym_send_interest(fd, &n, flags, 0));
	return onym_recv(fd, &p, 0) >= 0 && p.type == NNET_DATA && p.name.len == want.len &&
	       !memcmp(p.name.v, want.v, want.len);
}

/*
 * cached-prefix: an Interest for a prefix costs the same however much of it is
 * cached, and gets the first in canonical order.
 */
int cached_prefix(int argc, char **argv)
{
	static const char *const uris[] = { "/order/c", "/order/aa", "/order/b/x", "/order/b", "/order/z/a" };
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0);
	struct onym_name prefix = name_of("/stale");
	uint64_t few = 0, many;

	CHECK(!store_all(control, NNET_UNSOLICITED_ALL));
	patience(c, 20);
	fill(fd, "/stale", 0, 2000);
	few = taken_ns(fd, &prefix, NNET_CAN_BE_PREFIX | NNET_MUST_BE_FRESH, 0);
	fill(fd, "/stale", 2000, 40000);
	many = taken_ns(fd, &prefix, NNET_CAN_BE_PREFIX | NNET_MUST_BE_FRESH, 0);
	printf("a stale prefix: %llu ns among 2000, %llu ns among 40000\n", (unsigned long long)few,
	       (unsigned long long)many);
	for (int i = 0; i < 5; i++) {
		struct onym_name n = name_of(uris[i]);

		offer(fd, &n, "x", 10000);
	}
	CHECK(answers(c, "/order", NNET_CAN_BE_PREFIX, "/order/b"));
	CHECK(answers(c, "/order/b", NNET_CAN_BE_PREFIX, "/order/b"));
	CHECK(answers(c, "/order/z", NNET_CAN_BE_PREFIX, "/order/z/a"));
	CHECK(answers(c, "/order/c", 0, "/order/c"));
	/* Those that are stale are passed over, among many second components. */
	for (int i = 0; i < 28; i++) {
		static const char *const fresh[] = { "/mixed/bb", "/mixed/ba/x" };
		char uri[16];

		snprintf(uri, sizeof(uri), "/mixed/a%c", 'a' + i);
		struct onym_name n = name_of(i < 26 ? uri : fresh[i - 26]);

		offer(fd, &n, "x", i < 26 ? 0 : 60000);
	}
	CHECK(answers(c, "/mixed", NNET_CAN_BE_PREFIX | NNET_MUST_BE_FRESH, "/mixed/ba/x"));
	CHECK(answers(c, "/mixed", NNET_CAN_BE_PREFIX, "/mixed/aa"));
	CHECK(alike(few, many));
	CHECK(!store_all(control, NNET_UNSOLICITED_DROP));
	return 0;
}

/* cached-name: packets of one name do not add up, and the newest of them answers. */
int cached_name(int argc, char **argv)
{
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0);
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	struct onym_name n = name_of("/one/name");
	long packets;
	char text[16];
	FILE *f;

	CHECK(!store_all(control, NNET_UNSOLICITED_ALL));
	patience(c, 20);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		offer(fd, &n, text, 0);
	}
	f = fopen("/proc/net/nnet/cs", "r");
	CHECK(f && fgets(text, sizeof(text), f));
	while (fgetc(f) != '\n')
		;
	CHECK(fscanf(f, "%ld", &packets) == 1);
	fclose(f);
	printf("1000 packets of one name: %ld are kept\n", packets);
	CHECK(packets <= 16);
	CHECK(!onym_send_interest(c, &n, 0, 0));
	CHECK(onym_recv(c, &p, 0) == 3 && !memcmp(content, "999", 3));
	CHECK(!store_all(control, NNET_UNSOLICITED_DROP));
	return 0;
}

/* forged: Data is taken only from who was asked. */
static int forge(void *arg)
{
	int fd = onym_socket(SOCK_RAW, 0);
	struct onym_name n = name_of("/bank/balance");

	offer(fd, &n, "forged", 10000);
	close(fd);
	return 0;
}

int forged(int argc, char **argv)
{
	struct onym_name prefix = name_of("/bank"), n = name_of("/bank/balance");
	struct onym_data d = { .name = &n, .content = "true", .len = 4 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int control = onym_ctl_open(), bank = bound("/bank", 0), c = onym_socket(SOCK_DGRAM, 0),
	    second = onym_socket(SOCK_DGRAM, 0), teller = onym_socket(SOCK_RAW, 0);

	CHECK(!onym_ctl_route(control, &prefix, 1, 0));
	patience(c, 20);
	patience(bank, 20);
	patience(second, 20);
	CHECK(!onym_send_interest(c, &n, 0, 30000));
	CHECK(onym_recv(bank, &p, 0) >= 0 && p.type == NNET_INTEREST);
	CHECK(!as_user(65534, 0, forge, NULL));
	CHECK(onym_recv(c, &p, MSG_DONTWAIT) == -EAGAIN);
	CHECK(!onym_send_data(bank, &d));
	CHECK(onym_recv(c, &p, 0) == 4 && !memcmp(content, "true", 4));
	/* Nor is it cached. */
	CHECK(!onym_send_interest(second, &n, NNET_MUST_BE_FRESH, 30000));
	CHECK(onym_recv(bank, &p, 0) >= 0 && p.type == NNET_INTEREST);
	CHECK(!onym_send_data(bank, &d));
	CHECK(onym_recv(second, &p, 0) == 4 && !memcmp(content, "true", 4));
	/* By policy it may be cached, and answers nobody who waits. */
	CHECK(!store_all(control, NNET_UNSOLICITED_LOCAL));
	n = name_of("/bank/other");
	CHECK(!onym_send_interest(c, &n, 0, 30000));
	CHECK(onym_recv(bank, &p, 0) >= 0 && p.type == NNET_INTEREST);
	offer(teller, &n, "kept", 10000);
	CHECK(onym_recv(c, &p, MSG_DONTWAIT) == -EAGAIN);
	CHECK(!store_all(control, NNET_UNSOLICITED_DROP));
	return 0;
}

/* A dump by a socket whose buffer is small. Return: rows; *longest the octets of the longest name. */
static int dumped(uint8_t command, size_t room, size_t *longest, uint64_t *lifetime)
{
	struct { struct nlmsghdr h; struct genlmsghdr g; } r = { 0 };
	int fd = onym_ctl_open(), rows = 0;
	uint8_t *buf = malloc(room);
	ssize_t n;

	*longest = 0;
	r.h.nlmsg_len = sizeof(r);
	r.h.nlmsg_type = onym_ctl_family(fd);
	r.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	r.h.nlmsg_seq = 77;
	r.g.cmd = command;
	r.g.version = 1;
	/* A buffer larger than this would have the kernel make larger ones. */
	close(fd);
	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	for (;;) {
		struct nlmsghdr *h = (void *)buf;

		n = recv(fd, buf, room, MSG_TRUNC);
		CHECK(n > 0 && n <= (ssize_t)room);
		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct nlattr *a = (void *)((char *)h + NLMSG_LENGTH(GENL_HDRLEN));
			char *end = (char *)h + h->nlmsg_len;

			if (h->nlmsg_type == NLMSG_DONE) {
				int err = *(int *)NLMSG_DATA(h);

				close(fd);
				free(buf);
				return err ?: rows;
			}
			if (h->nlmsg_type == NLMSG_ERROR) {
				close(fd);
				free(buf);
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			}
			rows++;
			for (; (char *)a + NLA_HDRLEN <= end; a = (void *)((char *)a + NLA_ALIGN(a->nla_len))) {
				if (a->nla_type == NNET_A_NAME && a->nla_len - NLA_HDRLEN > *longest)
					*longest = a->nla_len - NLA_HDRLEN;
				if (lifetime && a->nla_type == NNET_A_LIFETIME)
					*lifetime = *(uint32_t *)((char *)a + NLA_HDRLEN);
			}
		}
	}
}

static size_t long_name(uint8_t *v, size_t len, char last)
{
	uint8_t *p = onym_put_tl(v, 8, len - 8);

	memset(p, 'l', len - 8);
	p += len - 8;
	*p++ = 8;
	*p++ = 1;
	*p++ = last;
	return p - v;
}

int pit_row_lifetime(size_t *longest, uint64_t *lifetime)
{
	return dumped(NNET_CMD_PIT_GET, 32768, longest, lifetime);
}

/* dumps: every row is told, whatever its name and the reader's buffer. */
int dumps(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = bound("/dump", 0), fd = onym_socket(SOCK_RAW, 0), one = 1;
	struct onym_name route = name_of("/dump");
	uint32_t local = 1;
	uint8_t name[8192];
	size_t longest, len;
	char last = 'a';

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	for (int i = 0; i < 4; i++, last++) {
		struct ask a = { .name = name, .lifetime = 60000, .nonce = i + 1 };
		uint8_t packet[ONYM_PACKET_MAX];

		memcpy(name, route.v, route.len);
		a.name_len = len = route.len + long_name(name + route.len, 8000, last);
		CHECK(!onym_ctl_call(control, NNET_CMD_FIB_ADD, NULL, 0, NNET_A_NAME, name, len, NNET_A_FACE_ID,
				     &local, sizeof(local), 0));
		CHECK(send(fd, packet, ask_make(&a, packet), 0) > 0);
	}
	CHECK(dumped(NNET_CMD_FIB_GET, 32768, &longest, NULL) == 5 && longest == len);
	CHECK(dumped(NNET_CMD_FIB_GET, 16384, &longest, NULL) == 5 && longest == len);
	CHECK(dumped(NNET_CMD_PIT_GET, 16384, &longest, NULL) == 4 && longest == len);
	close(provider);
	/* A binding of a long name. */
	provider = onym_socket(SOCK_DGRAM, 0);
	CHECK(!setsockopt(provider, SOL_NNET, NNET_NAME, name, len));
	{
		struct sockaddr_nnet a = { .snn_family = onym_family(), .snn_flags = NNET_ADDR_EXTERNAL };

		CHECK(!bind(provider, (void *)&a, sizeof(a)));
	}
	CHECK(!setsockopt(provider, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
	CHECK(dumped(NNET_CMD_BPT_GET, 16384, &longest, NULL) == 1 && longest == len);
	return 0;
}

/* What an exchange of a large Data costs, of another name each time. */
static uint64_t exchange_ns(int fd, int provider, uint32_t *number)
{
	struct onym_name n;
	uint8_t packet[ONYM_PACKET_MAX], in[ONYM_PACKET_MAX];
	uint64_t t[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		struct onym_data d = { .name = &n, .content = content, .len = 8000 };
		uint64_t begun;
		ssize_t len;

		n = name_of("/digest/of");
		CHECK(!onym_name_segment(&n, (*number)++));
		len = onym_data_make(&d, NULL, packet, sizeof(packet));
		want(fd, &n, 0, 0);
		CHECK(recv(provider, in, sizeof(in), 0) > 0);
		begun = now_ns();
		CHECK(send(provider, packet, len, 0) == len);
		t[i] = now_ns() - begun;
		CHECK(recv(fd, in, sizeof(in), 0) == len);
	}
	qsort(t, SAMPLES, sizeof(*t), later);
	return t[SAMPLES / 2];
}

/* digest: Data is hashed for those who asked for its digest, and for nobody else. */
int digest(int argc, char **argv)
{
	struct onym_name route = name_of("/digest"), other = name_of("/digest/other"), n;
	struct onym_data d = { .name = &other, .content = "here", .len = 4 };
	int control = onym_ctl_open(), provider = onym_socket(SOCK_RAW, 0), fd = onym_socket(SOCK_RAW, 0),
	    c = onym_socket(SOCK_RAW, 0);
	uint8_t hash[32] = { 1, 2, 3 }, data[ONYM_PACKET_MAX], in[ONYM_PACKET_MAX];
	uint32_t number = NUMBER_FIRST;
	uint64_t without, with;
	ssize_t len;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	CHECK(!onym_bind(provider, &route, 0));
	patience(provider, 20);
	patience(fd, 20);
	patience(c, 20);
	without = exchange_ns(fd, provider, &number);
	n = other;
	CHECK(!onym_name_append(&n, 1, hash, 32));
	want(c, &n, 0, 60000);
	CHECK(recv(provider, in, sizeof(in), 0) > 0);
	with = exchange_ns(fd, provider, &number);
	printf("a Data of 8000 octets: %llu ns, and %llu ns where a digest is waited for\n",
	       (unsigned long long)without, (unsigned long long)with);
	/* The one that is asked for is found, and another of the name is not taken for it. */
	len = onym_data_make(&d, NULL, data, sizeof(data));
	onym_sha256(data, len, hash);
	n = other;
	CHECK(!onym_name_append(&n, 1, hash, 32));
	want(c, &n, 0, 60000);
	CHECK(recv(provider, in, sizeof(in), 0) > 0);
	CHECK(send(provider, data, len, 0) == len);
	CHECK(recv(c, in, sizeof(in), 0) == len && !memcmp(in, data, len));
	CHECK(recv(c, in, sizeof(in), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK(with < without + without / 2 || (alike(without, with) && !without));
	return 0;
}

/* publications: an Interest for a prefix costs the same however much is published under it. */
int publications(int argc, char **argv)
{
	struct onym_name route = name_of("/many"), none = name_of("/many/zzz"), n;
	struct onym_data d = { .name = &n, .content = "x", .len = 1 };
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_RAW, 0),
	    asks = onym_socket(SOCK_DGRAM, 0), room = 256 << 20;
	uint64_t few = 0, many;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)));
	CHECK(!onym_bind(fd, &route, 0));
	patience(asks, 20);
	for (uint32_t i = 0; i < 30000; i++) {
		n = route;
		CHECK(!onym_name_segment(&n, NUMBER_FIRST + (i * 7919) % 30000));
		CHECK(!onym_publish(fd, &d, NULL));
		if (i == 2000)
			few = taken_ns(c, &none, NNET_CAN_BE_PREFIX, 1);
	}
	many = taken_ns(c, &none, NNET_CAN_BE_PREFIX, 1);
	printf("a prefix: %llu ns among 2000 publications, %llu ns among 30000\n", (unsigned long long)few,
	       (unsigned long long)many);
	CHECK(alike(few, many));
	n = name_of("/many/50=%00%01%00%00");
	CHECK(answers(asks, "/many", NNET_CAN_BE_PREFIX, "/many/50=%00%01%00%00"));
	CHECK(!onym_unpublish(fd, &route));
	CHECK(onym_unpublish(fd, &route) == -ENOENT);
	return 0;
}
