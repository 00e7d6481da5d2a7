// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What namespaces, devices and readers share: each command is one law. */
#include "nnet-test.h"
#include "internal.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <linux/if_packet.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void routes(int control, const char *prefix, uint32_t count, int add)
{
	for (uint32_t i = 0; i < count; i++) {
		struct onym_name n = name_of(prefix);

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + i));
		CHECK(!(add ? onym_ctl_route(control, &n, 1, 0) : onym_ctl_unroute(control, &n, 1)));
	}
}

/* Lines of what is left of a file, read so many octets at a time. */
static long lines_left(int fd, size_t at_a_time)
{
	static char buf[65536];
	long lines = 0;
	ssize_t n;

	while ((n = read(fd, buf, at_a_time)) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
	CHECK(!n);
	return lines;
}

/*
 * parts: a table is told in parts. What went while a reader paused is not told from a
 * copy that was made for it, and whoever reads with a small buffer gets each row once.
 */
int parts(int argc, char **argv)
{
	enum { ROUTES = 5000, PART = 4096 };
	int control = onym_ctl_open(), fd, one = 1, bound_to;
	char buf[PART];
	long left;

	routes(control, "/parts", ROUTES, 1);
	fd = open("/proc/net/nnet/fib", O_RDONLY);
	CHECK(fd >= 0 && lines_left(fd, 777) == 1 + ROUTES);
	CHECK(!lseek(fd, 0, SEEK_SET));
	CHECK(read(fd, buf, PART) > 0);
	routes(control, "/parts", ROUTES, 0);
	left = lines_left(fd, PART);
	printf("routes told after they went: %ld of %d\n", left, ROUTES);
	CHECK(left < ROUTES / 4);
	close(fd);
	bound_to = onym_socket(SOCK_DGRAM, 0);
	CHECK(!setsockopt(bound_to, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
	for (int i = 0; i < 1000; i++) {
		struct onym_name n = name_of("/parts");

		CHECK(!onym_name_segment(&n, i) && !onym_bind(bound_to, &n, 0));
	}
	fd = open("/proc/net/nnet/bindings", O_RDONLY);
	CHECK(fd >= 0 && lines_left(fd, 777) == 1 + 1000);
	CHECK(!lseek(fd, 0, SEEK_SET));
	CHECK(read(fd, buf, PART) > 0);
	close(bound_to);
	left = lines_left(fd, PART);
	printf("bindings told after they went: %ld of 1000\n", left);
	CHECK(left < 500);
	return 0;
}

static unsigned long long cached_bytes(void)
{
	unsigned long long bytes = 0;
	FILE *f = fopen("/proc/net/nnet/cs", "r");

	CHECK(f && fscanf(f, "%*[^\n] %*u %*u %llu", &bytes) == 1);
	fclose(f);
	return bytes;
}

/* Caches some 30 MB that nobody asked for, in a namespace of its own as a user; stays. */
static pid_t caches(int uid, unsigned long long *kept)
{
	int tell[2];
	pid_t child;

	CHECK(!pipe(tell));
	child = fork();
	if (!child) {
		uint64_t room = 48 << 20;
		uint8_t all = NNET_UNSOLICITED_ALL;
		struct onym_name n;
		struct onym_data d = { .name = &n, .content = content, .len = 4000 };
		uint8_t packet[ONYM_PACKET_MAX];
		int control, fd;

		CHECK(!uid || (!setgid(uid) && !setuid(uid)));
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(!unshare((uid ? CLONE_NEWUSER : 0) | CLONE_NEWNET));
		control = onym_ctl_open();
		fd = onym_socket(SOCK_RAW, 0);
		CHECK(control >= 0 && fd >= 0);
		CHECK(!onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_UNSOLICITED, &all, (size_t)1,
				     NNET_A_BYTES_MAX, &room, (size_t)8, 0));
		for (uint32_t i = 0; i < 6000; i++) {
			ssize_t len;

			n = name_of("/host");
			CHECK(!onym_name_segment(&n, NUMBER_FIRST + i));
			len = onym_data_make(&d, NULL, packet, sizeof(packet));
			CHECK(send(fd, packet, len, 0) == len);
		}
		*kept = cached_bytes();
		CHECK(write(tell[1], kept, sizeof(*kept)) == sizeof(*kept));
		pause();
	}
	close(tell[1]);
	CHECK(read(tell[0], kept, sizeof(*kept)) == sizeof(*kept));
	close(tell[0]);
	return child;
}

/*
 * hostsum, on a module with host_bytes=16777216: all namespaces together keep no more,
 * half of it is root's, and each owner and each namespace gets a share, however late.
 */
int hostsum(int argc, char **argv)
{
	enum { MEGA = 1 << 20, OWNERS = 3, ROOTS = 2, SLACK = MEGA };
	unsigned long long kept[OWNERS + ROOTS], owners = 0, all, again;
	pid_t child[OWNERS + ROOTS], last;

	for (int i = 0; i < OWNERS + ROOTS; i++) {
		child[i] = caches(i < OWNERS ? 2000 + i : 0, &kept[i]);
		printf("%s keeps %llu octets\n", i < OWNERS ? "an owner" : "root", kept[i]);
		fflush(stdout);
	}
	for (int i = 0; i < OWNERS; i++)
		owners += kept[i];
	all = owners + kept[OWNERS] + kept[OWNERS + 1];
	CHECK(owners <= 8 * MEGA + SLACK);
	CHECK(kept[0] > 4 * MEGA && kept[1] > MEGA / 2 && kept[2] > 0);
	CHECK(all <= 16 * MEGA + SLACK);
	CHECK(kept[OWNERS] > 5 * MEGA && kept[OWNERS + 1] > MEGA);
	for (int i = 0; i < OWNERS + ROOTS; i++) {
		kill(child[i], 9);
		waitpid(child[i], NULL, 0);
	}
	/* What went with its namespace, a moment later, is room again. */
	for (int tries = 0;; tries++) {
		last = caches(0, &again);
		kill(last, 9);
		waitpid(last, NULL, 0);
		if (again > 11 * MEGA)
			break;
		CHECK(tries < 50);
		usleep(100000);
	}
	return 0;
}

/* stale COUNT PREFIX FRESHNESS: caches so many Data that nobody asked for, of so many ms. */
int stale(int argc, char **argv)
{
	uint8_t all = NNET_UNSOLICITED_ALL;
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0);

	CHECK(!onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_UNSOLICITED, &all, (size_t)1, 0));
	for (int i = 0; i < atoi(argv[0]); i++) {
		struct onym_name n = name_of(argv[1]);

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + i));
		offer(fd, &n, "x", atoi(argv[2]));
	}
	return 0;
}

static int frames_of(const char *device, const char *peer, struct sockaddr_ll *to)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624)), one = 1;

	memset(to, 0, sizeof(*to));
	to->sll_family = AF_PACKET;
	to->sll_protocol = htons(0x8624);
	to->sll_halen = 6;
	to->sll_ifindex = if_nametoindex(device);
	CHECK(fd >= 0 && to->sll_ifindex && mac_of(peer, to->sll_addr));
	CHECK(!bind(fd, (void *)to, sizeof(*to)));
	CHECK(!setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)));
	return fd;
}

/* Asks for what is dear, as fast as it can. */
static void flood_dear(const char *device, const char *peer)
{
	struct sockaddr_ll to;
	struct onym_name n = name_of("/stale");
	int fd = frames_of(device, peer, &to);
	uint8_t packet[ONYM_PACKET_MAX];

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	for (uint32_t i = 0;; i++) {
		struct ask a = { .name = n.v, .name_len = n.len, .nonce = i, .lifetime = 10,
				 .flags = NNET_CAN_BE_PREFIX | NNET_MUST_BE_FRESH };
		size_t len = ask_make(&a, packet);

		sendto(fd, packet, len, MSG_DONTWAIT, (void *)&to, sizeof(to));
	}
}

/*
 * turns DEVICE PEER DEVICE PEER: while one namespace, behind the first device, has
 * more to do than its threads can, one behind the second answers from its cache.
 */
int turns(int argc, char **argv)
{
	enum { ASKED = 20 };
	struct sockaddr_ll to;
	int fd = frames_of(argv[2], argv[3], &to);
	pid_t flood = fork();

	if (!flood)
		flood_dear(argv[0], argv[1]);
	sleep(2);
	for (uint32_t i = 0; i < ASKED; i++) {
		struct onym_name n = name_of("/fresh");
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint8_t packet[ONYM_PACKET_MAX];
		struct ask a = { .name = n.v, .nonce = 1000000 + i, .lifetime = 20000 };
		uint64_t begun = now_ns();
		size_t len;

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + i % 8));
		a.name_len = n.len;
		len = ask_make(&a, packet);
		CHECK(sendto(fd, packet, len, 0, (void *)&to, sizeof(to)) == (ssize_t)len);
		if (poll(&p, 1, 20000) != 1) {
			printf("%u of %d were answered\n", i, ASKED);
			return 1;
		}
		CHECK(recv(fd, packet, sizeof(packet), 0) > 0 && packet[0] == 6);
		if (i == ASKED - 1)
			printf("all of %d were answered, the last after %llu ms\n", ASKED,
			       (unsigned long long)(now_ns() - begun) / 1000000);
	}
	kill(flood, 9);
	waitpid(flood, NULL, 0);
	return 0;
}

/* What it takes a device with 900 faces that no route leads to to go down. */
static uint64_t down_ns(const char *device)
{
	int control = onym_ctl_open(), fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { 0 };
	uint64_t begun;

	strncpy(r.ifr_name, device, IFNAMSIZ - 1);
	CHECK(!ioctl(fd, SIOCGIFFLAGS, &r));
	r.ifr_flags |= IFF_UP;
	CHECK(!ioctl(fd, SIOCSIFFLAGS, &r));
	for (int i = 0; i < 900; i++) {
		uint8_t mac[6] = { 2, 0, 0, 1, i >> 8, i };
		uint32_t face;

		CHECK(!onym_ctl_ether(control, device, mac, 0, &face));
	}
	r.ifr_flags &= ~IFF_UP;
	begun = now_ns();
	CHECK(!ioctl(fd, SIOCSIFFLAGS, &r));
	begun = now_ns() - begun;
	r.ifr_flags |= IFF_UP;
	CHECK(!ioctl(fd, SIOCSIFFLAGS, &r));
	close(fd);
	close(control);
	return begun;
}

/* The least of some, for somebody else may have the processor meanwhile. */
static uint64_t least_down_ns(const char *device)
{
	uint64_t least = down_ns(device), again;

	for (int i = 0; i < 4; i++) {
		again = down_ns(device);
		least = again < least ? again : least;
	}
	return least;
}

/* downs DEVICE: a device that goes does not look through the routes for each face of it. */
int downs(int argc, char **argv)
{
	uint64_t before = least_down_ns(argv[0]), after;

	routes(onym_ctl_open(), "/routes", 20000, 1);
	after = least_down_ns(argv[0]);
	printf("a device with 900 faces goes in %llu us, with 20000 routes in %llu us\n",
	       (unsigned long long)before / 1000, (unsigned long long)after / 1000);
	CHECK(alike(before, after));
	return 0;
}
