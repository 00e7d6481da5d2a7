// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What must not break. */
#include "nnet-test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* Random octets at every call, for ROUNDS. */
int fuzz(int argc, char **argv)
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
int closing(int argc, char **argv)
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
int storm(int argc, char **argv)
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

static uint32_t face_of(int fd)
{
	socklen_t len = sizeof(uint32_t);
	uint32_t face = 0;

	CHECK(!getsockopt(fd, SOL_NNET, NNET_FACE, &face, &len));
	return face;
}

/* A socket with a face: the first Interest, for what nobody serves, brings it. */
static int faced(void)
{
	struct onym_name n = name_of("/nobody");
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_DGRAM, 0);

	CHECK(fd >= 0 && !onym_send_interest(fd, &n, 0, 100));
	patience(fd, 20);
	CHECK(onym_recv(fd, &p, 0) >= 0 && p.type == NNET_NACK);
	return fd;
}

/* Data that comes late for a closed socket does not reach the one that has its slot now. */
int reuse(int argc, char **argv)
{
	struct onym_name n = name_of("/reuse"), item = name_of("/reuse/1");
	struct onym_data d = { .name = &item, .content = "late", .len = 4 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int control = onym_ctl_open(), provider, fd = faced(), tries = 0;
	uint32_t old = face_of(fd), now;

	CHECK(!onym_ctl_route(control, &n, 1, 0));
	provider = bound("/reuse", 0);
	CHECK(provider >= 0);
	patience(provider, 20);
	CHECK(!onym_send_interest(fd, &item, 0, 60000));
	CHECK(onym_recv(provider, &p, 0) >= 0 && p.type == NNET_INTEREST);
	close(fd);
	do {
		fd = faced();
		now = face_of(fd);
		if ((now & 0xffff) == (old & 0xffff))
			break;
		close(fd);
	} while (++tries < 20000);
	CHECK((now & 0xffff) == (old & 0xffff) && now != old);
	CHECK(!onym_send_data(provider, &d));
	CHECK(onym_recv(fd, &p, MSG_DONTWAIT) == -EAGAIN);
	close(fd);
	printf("face %x is %x after %d sockets\n", old, now, tries);
	return 0;
}

/* flood DEVICE MAC SECONDS: Interests as frames, past the module. */
int flood(int argc, char **argv)
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

/*
 * pad DEVICE MAC COUNT OCTETS: fragments of one octet, the first of packets that never
 * come whole, each in a frame that is padded to OCTETS.
 */
int pad(int argc, char **argv)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624)), count = atoi(argv[2]), size = atoi(argv[3]);
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624), .sll_halen = 6 };
	uint8_t *frame = calloc(1, size);
	int buffer = 64 << 20;

	CHECK(fd >= 0 && frame && mac_of(argv[1], to.sll_addr) && size >= 64);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)));
	to.sll_ifindex = if_nametoindex(argv[0]);
	for (int n = 0; n < count; n++) {
		uint64_t sequence = (uint64_t)(n / 390 % 16) * 1000 + 5000 + n % 390;
		uint8_t *p = frame;

		memcpy(p, (uint8_t[]){ 100, 21, 81, 8 }, 4);
		for (int i = 0; i < 8; i++)
			p[4 + i] = sequence >> (56 - 8 * i);
		p += 12;
		memcpy(p, (uint8_t[]){ 82, 2, n % 390 >> 8, n % 390, 83, 2, 400 >> 8, 400 & 255, 80, 1, 5 }, 11);
		CHECK(sendto(fd, frame, size, 0, (void *)&to, sizeof(to)) == size);
	}
	return 0;
}

/* peers DEVICE MAC COUNT: one frame from each of so many stations that nobody knows. */
int peers(int argc, char **argv)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(0x8624)), count = atoi(argv[2]);
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	uint8_t frame[64] = { 0 };

	CHECK(fd >= 0 && mac_of(argv[1], frame));
	memcpy(frame + 12, (uint8_t[]){ 0x86, 0x24, 5, 14, 7, 6, 8, 1, 'p', 8, 1, 'x', 10, 4, 1, 2, 3, 4 }, 18);
	to.sll_ifindex = if_nametoindex(argv[0]);
	for (int n = 0; n < count; n++) {
		memcpy(frame + 6, (uint8_t[]){ 2, 0, 0, n >> 16, n >> 8, n }, 6);
		CHECK(sendto(fd, frame, sizeof(frame), 0, (void *)&to, sizeof(to)) == sizeof(frame));
		/* Faces are made by a thread that takes few at a time. */
		if (n % 32 == 31)
			usleep(2000);
	}
	return 0;
}

/*
 * partial DEVICE MAC SECONDS: fragments of packets that never come whole, again and
 * again of the same ones, so that the router knows them already.
 */
int partial(int argc, char **argv)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624)), n = 0;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624), .sll_halen = 6 };
	uint8_t frame[64] = { 100, 21, 81, 8, 0, 0, 0, 0, 0, 0, 0, 0, 82, 2, 0, 0, 83, 2, 1, 0x90, 80, 1, 5 };
	time_t end = time(NULL) + atoi(argv[2]);

	CHECK(fd >= 0 && mac_of(argv[1], to.sll_addr));
	to.sll_ifindex = if_nametoindex(argv[0]);
	while (time(NULL) < end) {
		unsigned int index = n / 4 % 390, sequence = 1000 * (n % 4) + index;

		frame[10] = sequence >> 8;
		frame[11] = sequence;
		frame[14] = index >> 8;
		frame[15] = index;
		sendto(fd, frame, sizeof(frame), MSG_DONTWAIT, (void *)&to, sizeof(to));
		n++;
	}
	printf("%d fragments\n", n);
	return 0;
}
