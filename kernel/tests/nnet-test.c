// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The tests that run in the guest: nnet-test COMMAND ARGUMENT... Exit 0 when
 * the law holds; what did not hold is said.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <arpa/inet.h>

#include "onym/nnet.h"
#include "nnet_nl.h"

#define CHECK(law)                                                         \
	do {                                                               \
		if (!(law)) {                                              \
			printf("%s:%d: does not hold: %s (errno %d %s)\n", \
			       __func__, __LINE__, #law, errno,            \
			       strerror(errno));                           \
			fflush(stdout);                                    \
			exit(1);                                           \
		}                                                          \
	} while (0)

static struct onym_name name_of(const char *uri)
{
	struct onym_name n;

	CHECK(!onym_name(uri, &n));
	return n;
}

static void patience(int fd, int seconds)
{
	struct timeval t = { .tv_sec = seconds };

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
}

static int mac_of(const char *text, uint8_t mac[6])
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3,
		      mac + 4, mac + 5) == 6;
}

static uint8_t content[ONYM_PACKET_MAX];

/* ctl ether DEV MAC | ctl udp4 ADDRESS PORT | ctl route URI FACE [COST] | ... */
static int ctl(int argc, char **argv)
{
	int fd = onym_ctl_open(), err;
	uint32_t face = 0;

	CHECK(fd >= 0);
	if (!strcmp(argv[0], "ether")) {
		uint8_t mac[6];

		CHECK(mac_of(argv[2], mac));
		err = onym_ctl_ether(fd, argv[1], mac, argc > 3 ? atoi(argv[3]) : 0, &face);
		printf("%u\n", face);
	} else if (!strcmp(argv[0], "udp4")) {
		uint8_t a[16] = { [10] = 0xff, [11] = 0xff };

		CHECK(inet_pton(AF_INET, argv[1], a + 12) == 1);
		err = onym_ctl_udp(fd, a, atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0, &face);
		printf("%u\n", face);
	} else if (!strcmp(argv[0], "route")) {
		struct onym_name n = name_of(argv[1]);

		err = onym_ctl_route(fd, &n, atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0);
	} else if (!strcmp(argv[0], "del")) {
		err = onym_ctl_face_del(fd, atoi(argv[1]));
	} else if (!strcmp(argv[0], "dispatch")) {
		uint8_t mode = atoi(argv[1]), separate = argc > 2 ? atoi(argv[2]) : 0;

		err = onym_ctl_call(fd, NNET_CMD_DISPATCH_SET, NULL, 0, NNET_A_DISPATCH_MODE, &mode, (size_t)1,
				    NNET_A_DISPATCH_SEPARATE, &separate, (size_t)1, 0);
	} else if (!strcmp(argv[0], "auto")) {
		uint8_t on = atoi(argv[1]);
		uint16_t port = NNET_UDP_PORT;

		err = onym_ctl_call(fd, NNET_CMD_NET_SET, NULL, 0, NNET_A_AUTO_FACES, &on, (size_t)1,
				    NNET_A_PORT, &port, (size_t)2, 0);
	} else if (!strcmp(argv[0], "cs")) {
		uint32_t packets = atoi(argv[1]);

		err = onym_ctl_call(fd, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_CAPACITY, &packets, (size_t)4, 0);
	} else {
		err = -EINVAL;
	}
	if (err)
		printf("ctl %s: %s\n", argv[0], strerror(-err));
	return !!err;
}

/* serve URI COUNT SIZE: answers COUNT Interests. "ready" when bound. */
static int serve(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	int count = atoi(argv[1]), size = atoi(argv[2]), fd = onym_socket(SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	CHECK(!onym_bind(fd, &n, 0));
	patience(fd, 60);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < size; i++)
		content[i] = i * 7;
	while (count--) {
		struct onym_packet p = { 0 };
		struct onym_data d = { .name = &p.name, .content = content, .len = size, .freshness = 10000 };

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
static int fetch(int argc, char **argv)
{
	int count = atoi(argv[1]), size = atoi(argv[2]), fd = onym_socket(SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	patience(fd, 60);
	for (int i = 0; i < count; i++)
		fetch_one(fd, argv[0], i, size, 0);
	printf("fetched %d\n", count);
	return 0;
}

static int bound(const char *uri, int flags)
{
	struct onym_name n = name_of(uri);
	int fd = onym_socket(SOCK_DGRAM, 0), err;

	CHECK(fd >= 0);
	err = onym_bind(fd, &n, flags);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The two rules of binding, and the errors of the other calls. */
static int binding(int argc, char **argv)
{
	struct onym_name n, local = name_of("/net/app"), root = name_of("/net");
	struct sockaddr_nnet a = { .snn_family = onym_family() };
	struct nnet_sock_stats stats;
	int fd, other, control = onym_ctl_open(), one = 1;
	socklen_t len = sizeof(one);
	uint32_t v;

	CHECK(control >= 0);
	CHECK(!onym_ctl_route(control, &root, 1, 0));
	fd = bound("/net/app", 0);
	CHECK(fd >= 0);
	CHECK(bound("/net/app", 0) == -EADDRINUSE);
	CHECK(bound("/net/app/x", 0) == -EADDRINUSE);
	CHECK(bound("/net", 0) == -EADDRINUSE);
	other = bound("/net/apple", 0);
	CHECK(other >= 0);
	close(other);
	CHECK(bound("/elsewhere", NNET_ADDR_STRICT) == -EADDRNOTAVAIL);
	other = bound("/elsewhere", 0);
	CHECK(other >= 0);
	CHECK(!getsockopt(other, SOL_NNET, NNET_BIND_FLAGS, &v, &len) && v == NNET_BIND_NOROUTE);
	n = name_of("/second");
	CHECK(onym_bind(other, &n, 0) == -EISCONN);
	CHECK(!setsockopt(other, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
	CHECK(!onym_bind(other, &n, 0));
	CHECK(!setsockopt(other, SOL_NNET, NNET_UNBIND, n.v, n.len));
	close(other);
	/* Addresses: too short, of another family, with a malformed name. */
	other = onym_socket(SOCK_DGRAM, 0);
	CHECK(bind(other, (void *)&a, 4) && errno == EINVAL);
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_name_len = 117;
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_name_len = 3;
	memcpy(a.snn_name, "\x08\x7f\x00", 3);
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_family = AF_INET;
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EAFNOSUPPORT);
	/* A name beyond the address goes by option. */
	n.len = 0;
	for (int i = 0; i < 20; i++)
		CHECK(!onym_name_append(&n, 8, "twelveoctets", 12));
	CHECK(n.len > NNET_ADDR_NAME_MAX && !onym_bind(other, &n, 0));
	close(other);
	CHECK(onym_socket(SOCK_STREAM, 0) == -ESOCKTNOSUPPORT);
	CHECK(onym_socket(SOCK_DGRAM, 3) == -EPROTONOSUPPORT);
	len = sizeof(stats);
	CHECK(!getsockopt(fd, SOL_NNET, NNET_STATS, &stats, &len));
	CHECK(setsockopt(fd, SOL_NNET, 99, &one, sizeof(one)) && errno == ENOPROTOOPT);
	close(fd);
	fd = bound("/net/app", 0);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!onym_ctl_unroute(control, &local, 1) == 0);
	return 0;
}

/* Interests for what nobody serves come back as Nacks; sockets time out. */
static int refused(int argc, char **argv)
{
	struct onym_name n = name_of("/nowhere/1");
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	struct pollfd pfd = { .events = POLLIN };
	int fd = onym_socket(SOCK_DGRAM, 0);
	struct timeval t = { .tv_usec = 50000 };

	pfd.fd = fd;
	CHECK(!onym_send_interest(fd, &n, 0, 0));
	CHECK(poll(&pfd, 1, 10000) == 1 && pfd.revents & POLLIN);
	CHECK(onym_recv(fd, &p, 0) >= 0 && p.type == NNET_NACK && p.reason == 150);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	CHECK(onym_recv(fd, &p, 0) == -EAGAIN);
	CHECK(onym_recv(fd, &p, MSG_DONTWAIT) == -EAGAIN);
	n.len = 0;
	CHECK(onym_send_interest(fd, &n, 0, 0) == -EDESTADDRREQ);
	return 0;
}

/* What is published is answered by the kernel; prefixes and status. */
static int published(int argc, char **argv)
{
	struct onym_name n = name_of("/pub"), item = name_of("/pub/item"), route = name_of("/pub");
	struct onym_data d = { .name = &item, .content = "content", .len = 7, .freshness = 1000 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0), control = onym_ctl_open(), one = 1;
	uint8_t raw[ONYM_PACKET_MAX];
	ssize_t len;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	CHECK(!onym_bind(fd, &n, 0));
	CHECK(!setsockopt(fd, SOL_NNET, NNET_STATUS, &one, sizeof(one)));
	CHECK(!onym_publish(fd, &d, NULL));
	patience(c, 20);
	CHECK(!setsockopt(c, SOL_NNET, NNET_WHOLE, &one, sizeof(one)));
	CHECK(!onym_send_interest(c, &n, NNET_CAN_BE_PREFIX, 0));
	CHECK(onym_recv(c, &p, 0) == 7 && !memcmp(content, "content", 7));
	CHECK(onym_status(fd, &p, 10000) == 0 && p.satisfied == 1);
	len = onym_data_make(&d, NULL, raw, sizeof(raw));
	CHECK(len > 0 && !onym_data_verify(raw, len, NULL));
	raw[len - 1] ^= 1;
	CHECK(onym_data_verify(raw, len, NULL) == -EBADMSG);
	CHECK(!onym_unpublish(fd, &item));
	CHECK(onym_unpublish(fd, &item) == -ENOENT);
	n = name_of("/pub/other");
	CHECK(!onym_send_interest(c, &n, 0, 0));
	CHECK(onym_status(fd, &p, 10000) == 0 && p.satisfied == 0);
	return 0;
}

/* The calls that other tests do not make: cast, unpump, watch, unwatch. */
static int calls(int argc, char **argv)
{
	struct onym_name n = name_of("/c"), item = name_of("/c/item");
	struct onym_data d = { .name = &item, .content = "cast", .len = 4 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0), control = onym_ctl_open(), w;
	struct onym_meta m;
	time_t begun = time(NULL);

	patience(c, 20);
	CHECK(!onym_ctl_route(control, &n, 1, 0));
	CHECK(!onym_bind(fd, &n, 0));
	CHECK(!onym_cast(fd, &d, NULL, 2000));
	CHECK(!onym_send_interest(c, &item, 0, 0));
	CHECK(onym_recv(c, &p, 0) == 4 && !memcmp(content, "cast", 4));
	/* It goes after its time; what is then asked for comes to the socket. */
	do {
		CHECK(time(NULL) - begun < 20);
		CHECK(!onym_send_interest(c, &item, NNET_MUST_BE_FRESH, 500));
	} while (onym_status(fd, &p, 200) == -ETIMEDOUT);
	CHECK(!p.satisfied && p.name.len == item.len);
	CHECK(!onym_pump(fd, &n, content, 5000, 1000, NULL));
	CHECK(!onym_touch(&n, &m, 10000) && m.last == 4 && m.size == 5000);
	CHECK(!onym_unpump(fd, &n));
	CHECK(onym_unpump(fd, &n) == -ENOENT);
	close(fd);
	w = onym_watch(&n);
	CHECK(w >= 0);
	/* A name that nobody asked for yet: what pends is suppressed for a while. */
	item = name_of("/c/watched");
	CHECK(!onym_send_interest(c, &item, NNET_MUST_BE_FRESH, 4000));
	CHECK(!onym_status(w, &p, 10000) && p.type == NNET_INTEREST && p.name.len == item.len);
	CHECK(!onym_unwatch(w));
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
static int pump(int argc, char **argv)
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
static int request(int argc, char **argv)
{
	struct onym_name n = name_of(argv[0]);
	struct sum s = { 0 };
	struct onym_meta m;
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
	got = onym_request(&n, add_up, &s, 30000);
	if (got < 0)
		printf("request: %s after %llu segments\n", strerror(-got), (unsigned long long)s.next);
	CHECK(got == atol(argv[1]) && s.next == m.last + 1);
	printf("requested %lld octets, %llu segments\n", (long long)got, (unsigned long long)s.next);
	return 0;
}

/* A SEQPACKET provider numbers the segments itself, and waits for room. */
static int pair(int argc, char **argv)
{
	struct onym_name n = name_of("/pair/object"), route = name_of("/pair");
	int control = onym_ctl_open(), total = 300, i, small = 32768;
	struct onym_packet p;
	pid_t child;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	child = fork();
	if (!child) {
		int fd = onym_socket(SOCK_SEQPACKET, 0);

		CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
		CHECK(!onym_bind(fd, &n, 0));
		for (i = 0; i < total; i++) {
			memset(content, i, 1000);
			CHECK(send(fd, content, 1000, i == total - 1 ? MSG_EOR : 0) == 1000);
		}
		sleep(20);
		exit(0);
	}
	usleep(200000);
	{
		int fd = onym_socket(SOCK_SEQPACKET, 0);

		patience(fd, 30);
		CHECK(!onym_connect(fd, &n, 0));
		for (i = 0; i < total; i++) {
			p = (struct onym_packet){ .content = content, .size = sizeof(content) };
			CHECK(onym_recv(fd, &p, 0) == 1000);
			CHECK(p.segment == (uint64_t)i && content[999] == (uint8_t)i);
			CHECK(p.last == (i == total - 1));
		}
		CHECK(onym_recv(fd, &p, 0) == 0);
	}
	kill(child, 9);
	waitpid(child, NULL, 0);
	return 0;
}

/* Random octets at every call, for ROUNDS. */
static int fuzz(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? atoi(argv[1]) : 1, rounds = atoi(argv[0]);
	int family = onym_family(), control = onym_ctl_open();
	uint16_t genl = onym_ctl_family(control);
	int packet = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624));
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624), .sll_halen = 6 };
	int types[] = { SOCK_RAW, SOCK_DGRAM, SOCK_SEQPACKET };

	printf("seed %u\n", seed);
	srandom(seed);
	to.sll_ifindex = if_nametoindex("lo");
	fcntl(control, F_SETFL, O_NONBLOCK);
	for (unsigned int r = 0; r < rounds; r++) {
		uint8_t v[2048], addr[128];
		size_t len = random() % (r & 7 ? 128 : sizeof(v));
		int fd = socket(family, types[random() % 3] | SOCK_NONBLOCK, random() % 5 ? 0 : random() % 4);
		struct { struct nlmsghdr h; uint8_t v[2048]; } nl;
		struct timeval t = { .tv_usec = 1000 };

		for (size_t i = 0; i < sizeof(v); i++)
			v[i] = random() % 3 ? random() % 40 : random();
		/* Mostly a TLV that starts well. */
		if (random() & 1) {
			static const uint8_t outer[] = { 5, 6, 100, 7 };

			v[0] = outer[random() & 3];
			len = len % 250;
			if (len > 4) {
				v[1] = len - 2;
				v[2] = 7;
				v[3] = random() % (len - 3);
			}
		}
		memcpy(addr, v + 7, sizeof(addr));
		*(uint16_t *)addr = family;
		if (random() & 1)
			memset(addr + 2, 0, 2), memset(addr + 10, 0, 2);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
		setsockopt(fd, SOL_NNET, random() % 16, v, random() % 2 ? 4 : len);
		if (random() & 1)
			bind(fd, (void *)addr, random() % 129);
		if (random() & 1)
			connect(fd, (void *)addr, random() % 129);
		send(fd, v, len, MSG_DONTWAIT);
		{
			struct iovec iov = { v, len };
			struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = nl.v };
			struct cmsghdr *c = (void *)nl.v;
			size_t n = random() % 64;

			memset(nl.v, 0, 512);
			c->cmsg_level = SOL_NNET;
			c->cmsg_type = random() % 20;
			c->cmsg_len = CMSG_LEN(n);
			memcpy(CMSG_DATA(c), v, n);
			m.msg_controllen = CMSG_SPACE(n);
			sendmsg(fd, &m, MSG_DONTWAIT);
		}
		recv(fd, nl.v, sizeof(nl.v), MSG_DONTWAIT);
		close(fd);
		sendto(packet, v, len ?: 1, MSG_DONTWAIT, (void *)&to, sizeof(to));
		memset(&nl.h, 0, sizeof(nl.h));
		nl.h.nlmsg_len = sizeof(nl.h) + 4 + (len & ~3);
		nl.h.nlmsg_type = genl;
		nl.h.nlmsg_flags = NLM_F_REQUEST | (random() & 1 ? NLM_F_DUMP : 0);
		memcpy(nl.v, v, 4 + len);
		nl.v[0] = random() % 26;
		nl.v[1] = 1;
		send(control, &nl, nl.h.nlmsg_len, MSG_DONTWAIT);
		while (recv(control, nl.v, sizeof(nl.v), MSG_DONTWAIT) > 0)
			;
	}
	printf("fuzzed %u rounds\n", rounds);
	return 0;
}

/* Sockets that close while Data for them is under way. */
static int closing(int argc, char **argv)
{
	int rounds = atoi(argv[0]), control = onym_ctl_open();
	struct onym_name n = name_of("/close"), item;
	pid_t child;

	CHECK(!onym_ctl_route(control, &n, 1, 0));
	child = fork();
	if (!child) {
		int fd = bound("/close", 0);
		struct onym_packet p;

		CHECK(fd >= 0);
		for (;;) {
			struct onym_data d = { .name = &p.name, .content = "x", .len = 1 };

			p.size = 0;
			if (onym_recv(fd, &p, 0) >= 0 && p.type == NNET_INTEREST)
				onym_send_data(fd, &d);
		}
	}
	usleep(100000);
	for (int i = 0; i < rounds; i++) {
		int fd = onym_socket(SOCK_DGRAM, 0);

		for (int k = 0; k < 4; k++) {
			item = n;
			onym_name_segment(&item, i * 4 + k);
			CHECK(!onym_send_interest(fd, &item, 0, 200));
		}
		if (i & 1)
			sched_yield();
		close(fd);
	}
	kill(child, 9);
	waitpid(child, NULL, 0);
	printf("closed %d\n", rounds);
	return 0;
}

/* Binds and closes, each time another of a few prefixes. */
static int storm(int argc, char **argv)
{
	int rounds = atoi(argv[0]), ok = 0;

	for (int k = 0; k < 4; k++) {
		if (fork())
			continue;
		for (int i = 0; i < rounds; i++) {
			char uri[32];
			int fd;

			snprintf(uri, sizeof(uri), "/storm/%d", (i * 7 + k) % 5);
			fd = bound(uri, 0);
			CHECK(fd >= 0 || fd == -EADDRINUSE);
			if (fd >= 0)
				close(fd);
		}
		exit(0);
	}
	for (int k = 0, status; k < 4 && wait(&status) > 0; k++)
		ok += !status;
	CHECK(ok == 4);
	printf("storm %d\n", 4 * rounds);
	return 0;
}

/* flood DEVICE MAC SECONDS: Interests as frames, past the module. */
static int flood(int argc, char **argv)
{
	static const uint8_t interest[] = { 5, 14, 7, 6, 8, 1, 'f', 8, 1, 'x', 10, 4, 1, 2, 3, 4 };
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624)), n = 0;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624), .sll_halen = 6 };
	time_t end = time(NULL) + atoi(argv[2]);
	uint8_t frame[64] = { 0 };

	CHECK(fd >= 0 && mac_of(argv[1], to.sll_addr));
	to.sll_ifindex = if_nametoindex(argv[0]);
	memcpy(frame, interest, sizeof(interest));
	while (time(NULL) < end) {
		frame[9] = n;
		memcpy(frame + 12, &n, sizeof(n));
		sendto(fd, frame, sizeof(frame), MSG_DONTWAIT, (void *)&to, sizeof(to));
		n++;
	}
	printf("flooded %d\n", n);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * hit MEGABYTES SAMPLES: fills the cache with Data of 1024 octets that nobody
 * asked for, then asks for SAMPLES of them and tells the delays. The cache is
 * the kernel's, or the store's where that was attached with --user.
 */
static int hit(int argc, char **argv)
{
	uint32_t count = atoi(argv[0]) * 1024, samples = atoi(argv[1]), most = UINT32_MAX, found = 0;
	uint64_t bytes = UINT64_MAX >> 1, sum = 0, *t = calloc(samples, sizeof(*t));
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0), ask = onym_socket(SOCK_RAW, 0);
	struct onym_name base = name_of("/cached/objects"), n;
	struct onym_data d = { .name = &n, .content = content, .len = 1024 };
	uint8_t packet[ONYM_PACKET_MAX], all = NNET_UNSOLICITED_ALL;

	CHECK(!onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_CAPACITY, &most, (size_t)4,
			     NNET_A_ENTRIES_MAX, &most, (size_t)4, NNET_A_BYTES_MAX, &bytes, (size_t)8,
			     NNET_A_UNSOLICITED, &all, (size_t)1, 0));
	patience(ask, 5);
	for (uint32_t i = 0; i < count; i++) {
		ssize_t len;

		n = base;
		onym_name_segment(&n, i);
		len = onym_data_make(&d, NULL, packet, sizeof(packet));
		CHECK(send(fd, packet, len, 0) == len);
		/* The store must keep up: it is asked for what it was given. */
		if (i % 64 == 63)
			sched_yield();
	}
	for (uint32_t i = 0; i < samples; i++) {
		uint8_t interest[128], *p = interest + 2;
		uint64_t begun;

		n = base;
		onym_name_segment(&n, (uint64_t)i * 2654435761u % count);
		*p++ = 7;
		*p++ = n.len;
		memcpy(p, n.v, n.len);
		p += n.len;
		memcpy(p, "\x0a\x04", 2);
		memcpy(p + 2, &i, 4);
		interest[0] = 5;
		interest[1] = p + 6 - interest - 2;
		begun = now_ns();
		CHECK(send(ask, interest, p + 6 - interest, 0) > 0);
		if (recv(ask, packet, sizeof(packet), 0) > 0 && packet[0] == 6)
			t[found++] = now_ns() - begun;
	}
	CHECK(found > samples * 9 / 10);
	qsort(t, found, sizeof(*t), by_size);
	for (uint32_t i = 0; i < found; i++)
		sum += t[i];
	printf("hits %u of %u, mean %llu ns", found, samples, (unsigned long long)(sum / found));
	for (int q = 0; q < 5; q++) {
		static const int per[] = { 1, 25, 50, 90, 99 };

		printf(", p%d %llu", per[q], (unsigned long long)t[(uint64_t)found * per[q] / 100]);
	}
	printf("\n");
	return 0;
}

/* A socket that sees and sends whole frames of a device. */
static int frames_of(const char *device)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(0x8624)), one = 1, room = 16 << 20;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624) };

	CHECK(fd >= 0);
	at.sll_ifindex = if_nametoindex(device);
	CHECK(at.sll_ifindex && !bind(fd, (struct sockaddr *)&at, sizeof(at)));
	CHECK(!setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	return fd;
}

enum { RELAY_NUMBER = 65536 }; /* the first segment, so that all are 4 octets long */

/* A frame to a router whose packet has a segment number, at the offset returned. */
static size_t relay_frame(uint8_t *frame, size_t *len, const char *device, const char *router,
			  const uint8_t *packet, size_t packet_len)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, device, IFNAMSIZ - 1);
	CHECK(!ioctl(fd, SIOCGIFHWADDR, &r));
	close(fd);
	CHECK(mac_of(router, frame));
	memcpy(frame + 6, r.ifr_hwaddr.sa_data, 6);
	memcpy(frame + 12, "\x86\x24", 2);
	memcpy(frame + 14, packet, packet_len);
	*len = 14 + packet_len;
	return (uint8_t *)memmem(frame, *len, "ABCD\x32\x04", 6) + 6 - frame;
}

static int relay_number(const uint8_t *frame, size_t len, uint32_t *number)
{
	const uint8_t *at = memmem(frame, len, "ABCD\x32\x04", 6);

	if (at)
		memcpy(number, at + 6, 4);
	return !!at;
}

/*
 * relay DEV ROUTER DEV ROUTER COUNT SIZE: asks by the first device, answers by
 * the second, both to a router between them; 64 Interests at a time. What was
 * lost is counted and not asked for again.
 */
static int relay(int argc, char **argv)
{
	int a = frames_of(argv[0]), b = frames_of(argv[2]), count = atoi(argv[4]), size = atoi(argv[5]);
	struct onym_name n = name_of("/Net-A/prdc-01/0/PubFiles/ABCD");
	struct onym_data d = { .name = &n, .content = content, .len = size };
	uint8_t packet[ONYM_PACKET_MAX], ask[2048], answer[ONYM_PACKET_MAX + 14], in[ONYM_PACKET_MAX], *p = packet + 2;
	size_t ask_len, answer_len, ask_at, answer_at;
	int sent = 0, got = 0, lost = 0, out = 0;
	struct pollfd both[] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
	uint64_t begun;
	uint32_t number;
	ssize_t len;

	CHECK(!onym_name_segment(&n, RELAY_NUMBER));
	*p++ = 7;
	*p++ = n.len;
	memcpy(p, n.v, n.len);
	memcpy(p + n.len, "\x0a\x04nnnn", 6);
	packet[0] = 5;
	packet[1] = n.len + 8;
	ask_at = relay_frame(ask, &ask_len, argv[0], argv[1], packet, n.len + 10);
	len = onym_data_make(&d, NULL, packet, sizeof(packet));
	CHECK(len > 0);
	answer_at = relay_frame(answer, &answer_len, argv[2], argv[3], packet, len);
	begun = now_ns();
	while (got + lost < count) {
		for (; out < 64 && sent < count; sent++, out++) {
			number = htonl(RELAY_NUMBER + sent);
			memcpy(ask + ask_at, &number, 4);
			memcpy(ask + ask_len - 4, &number, 4);
			CHECK(send(a, ask, ask_len, 0) == (ssize_t)ask_len);
		}
		if (!poll(both, 2, 500)) {
			lost += out;
			out = 0;
		}
		while ((len = recv(b, in, sizeof(in), 0)) > 0) {
			if (!relay_number(in, len, &number))
				continue;
			memcpy(answer + answer_at, &number, 4);
			CHECK(send(b, answer, answer_len, 0) == (ssize_t)answer_len);
		}
		while ((len = recv(a, in, sizeof(in), 0)) > 0) {
			if (!relay_number(in, len, &number))
				continue;
			got++;
			out -= out > 0;
		}
	}
	begun = now_ns() - begun;
	printf("%d Data of %zu octets in frames of %zu, %d lost, %llu ns each, %llu a second\n", got, answer_len - 14,
	       answer_len, lost, (unsigned long long)(begun / (got ?: 1)),
	       (unsigned long long)(got * 1000000000ull / begun));
	return lost > count / 10;
}

/* probe URI: any Data below a name. */
static int probe(int argc, char **argv)
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

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	int arguments;
} commands[] = {
	{ "ctl", ctl, 1 },	   { "serve", serve, 3 },     { "fetch", fetch, 3 },
	{ "binding", binding, 0 }, { "refused", refused, 0 }, { "published", published, 0 },
	{ "calls", calls, 0 },
	{ "relay", relay, 6 },
	{ "pump", pump, 4 },	   { "request", request, 2 }, { "pair", pair, 0 },
	{ "fuzz", fuzz, 1 },	   { "closing", closing, 1 }, { "storm", storm, 1 },
	{ "probe", probe, 1 },	   { "hit", hit, 2 },	   { "flood", flood, 3 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].arguments)
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "nnet-test: no such test, or arguments are missing\n");
	return 2;
}
