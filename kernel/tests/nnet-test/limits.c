// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What one who may do nothing cannot do to others: link fields, faces, limits, rows. */
#include "nnet-test.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/genetlink.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { STRANGER = 65534, ANOTHER = 1000 };

/* A child of another user: runs what follows in it, until it exits. */
static pid_t as(uid_t uid)
{
	pid_t child = fork();

	if (child)
		return child;
	CHECK(!setgid(uid) && !setuid(uid));
	/* What changes the user takes it back. */
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	return 0;
}

static int ended_well(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child && !status;
}

static uint32_t face_number(int fd)
{
	socklen_t len = sizeof(uint32_t);
	uint32_t face = 0;

	CHECK(!getsockopt(fd, SOL_NNET, NNET_FACE, &face, &len));
	return face;
}

/* A frame whose Interest, /localhost/secret or /x/secret, goes to the face that it names. */
static size_t chosen_frame(uint8_t *frame, uint32_t face, const char *first)
{
	static const uint8_t tail[] = { 8, 6, 's', 'e', 'c', 'r', 'e', 't', 10, 4, 1, 2, 3, 4 };
	size_t n = strlen(first), name = 2 + n + 8, interest = 2 + name + 6;
	uint8_t *p = frame;

	*p++ = 100;
	*p++ = 8 + 2 + 2 + interest;
	memcpy(p, (uint8_t[]){ 0xfd, 816 >> 8, 816 & 255, 4, face >> 24, face >> 16, face >> 8, face }, 8);
	p += 8;
	*p++ = 80;
	*p++ = 2 + interest;
	*p++ = 5;
	*p++ = interest;
	*p++ = 7;
	*p++ = name;
	*p++ = 8;
	*p++ = n;
	memcpy(p, first, n);
	memcpy(p + n, tail, sizeof(tail));
	p[n + sizeof(tail) - 1] = random();
	return p + n + sizeof(tail) - frame;
}

static int link_socket(void)
{
	int fd = onym_socket(SOCK_RAW, 0), one = 1;

	CHECK(fd >= 0 && !setsockopt(fd, SOL_NNET, NNET_LP, &one, sizeof(one)));
	return fd;
}

/* Who has no capability does not choose the face of an Interest; who has obeys the scope. */
int lpfields(int argc, char **argv)
{
	int victim = bound("/victim", 0), control = onym_ctl_open(), one = 1, fd;
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	uint8_t frame[128], loopback[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	uint32_t face = face_number(victim), lower;
	size_t len = chosen_frame(frame, face, "localhost");
	pid_t child;

	CHECK(victim >= 0);
	child = as(STRANGER);
	if (!child) {
		fd = link_socket();
		CHECK(send(fd, frame, len, 0) == (ssize_t)len);
		exit(0);
	}
	CHECK(ended_well(child));
	CHECK(onym_recv(victim, &p, MSG_DONTWAIT) == -EAGAIN);
	child = as(STRANGER);
	if (!child) {
		fd = link_socket();
		CHECK(setsockopt(fd, SOL_NNET, NNET_LOCAL_FIELDS, &one, sizeof(one)) && errno == EPERM);
		exit(0);
	}
	CHECK(ended_well(child));
	/* The capability alone is not enough: the socket says that it wants them. */
	fd = link_socket();
	CHECK(send(fd, frame, len, 0) == (ssize_t)len);
	CHECK(onym_recv(victim, &p, MSG_DONTWAIT) == -EAGAIN);
	close(fd);
	fd = link_socket();
	CHECK(!setsockopt(fd, SOL_NNET, NNET_LOCAL_FIELDS, &one, sizeof(one)));
	CHECK(send(fd, frame, len, 0) == (ssize_t)len);
	CHECK(onym_recv(victim, &p, MSG_DONTWAIT) >= 0 && p.type == NNET_INTEREST);
	/* Not even the one who may choose sends /localhost off the host. */
	CHECK(!onym_ctl_udp(control, loopback, 6999, 0, &lower));
	len = chosen_frame(frame, lower, "localhost");
	CHECK(send(fd, frame, len, 0) == (ssize_t)len);
	len = chosen_frame(frame, lower, "elsewhere");
	CHECK(send(fd, frame, len, 0) == (ssize_t)len);
	printf("face %u\n", lower);
	return 0;
}

static int rows(uint8_t command, int *longer);

/* What wants a capability is refused to others; reading the tables is free. */
int rights(int argc, char **argv)
{
	pid_t child = as(STRANGER);
	struct onym_name n = name_of("/free");
	int control, longer, fd;
	uint32_t few = 10;
	uint8_t kind = NNET_FACE_KIND_UDP;

	if (child)
		return !ended_well(child);
	control = onym_ctl_open();
	CHECK(control >= 0);
	fd = bound("/free/prefix", 0);
	CHECK(fd >= 0);
	CHECK(bound("/localhost/prefix", 0) == -EACCES && bound("/localhop/prefix", 0) == -EACCES);
	CHECK(onym_socket(SOCK_RAW, NNET_PROTO_ALL) == -EPERM);
	CHECK(onym_ctl_route(control, &n, 1, 0) == -EPERM && onym_ctl_unroute(control, &n, 1) == -EPERM);
	CHECK(onym_ctl_strategy(control, &n, NNET_STRATEGY_MULTICAST) == -EPERM);
	CHECK(onym_ctl_face_del(control, face_number(fd)) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_FACE_NEW, NULL, 0, NNET_A_FACE_KIND, &kind, (size_t)1, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_CAPACITY, &few, (size_t)4, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_CS_ERASE, NULL, 0, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_PIT_SET, NULL, 0, NNET_A_PIT_MAX, &few, (size_t)4, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_NET_SET, NULL, 0, NNET_A_AUTO_FACES, &kind, (size_t)1, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_STORE_ATTACH, NULL, 0, 0) == -EPERM);
	CHECK(onym_ctl_call(control, NNET_CMD_DISPATCH_SET, NULL, 0, NNET_A_DISPATCH_MODE, &kind, (size_t)1, 0) == -EPERM);
	CHECK(rows(NNET_CMD_BPT_GET, &longer) == 1 && rows(NNET_CMD_STATS_GET, &longer) > 50);
	exit(0);
}

/* Binds prefixes of one depth until it is refused. Returns how many it got. */
static int bindings_taken(const char *first, int most)
{
	struct onym_name n = name_of(first);
	int fd = -1, one = 1, count;

	for (count = 0; count < most; count++) {
		struct onym_name item = n;

		if (count % 1024 == 0) {
			fd = onym_socket(SOCK_DGRAM, 0);
			CHECK(fd >= 0 && !setsockopt(fd, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
		}
		CHECK(!onym_name_segment(&item, count));
		if (onym_bind(fd, &item, 0)) {
			CHECK(errno == ENOBUFS);
			break;
		}
	}
	return count;
}

/* One user takes its share of the bindings; another one and root get theirs. */
int bindings(int argc, char **argv)
{
	int first, tell[2];
	pid_t child;

	CHECK(!pipe(tell));
	child = as(STRANGER);
	if (!child) {
		first = bindings_taken("/stranger", 20000);
		CHECK(write(tell[1], &first, sizeof(first)) == sizeof(first));
		pause();
	}
	CHECK(read(tell[0], &first, sizeof(first)) == sizeof(first));
	printf("bindings of one user: %d\n", first);
	CHECK(first == 65536 / 4);
	CHECK(bindings_taken("/root", 100) == 100);
	kill(child, 9);
	CHECK(waitpid(child, NULL, 0) == child);
	return 0;
}

/* Sockets that have a face, up to so many; errno of the first that gets none in *err. */
static int faces_taken(int most, int *err)
{
	struct onym_name n = name_of("/nobody");
	int count;

	*err = 0;
	for (count = 0; count < most; count++) {
		int fd = onym_socket(SOCK_DGRAM, 0);

		if (fd < 0) {
			*err = -fd;
			break;
		}
		*err = -onym_send_interest(fd, &n, 0, 100);
		if (*err) {
			close(fd);
			break;
		}
	}
	return count;
}

/* Takes what it can get as another user and stays. Writes how many it got. */
static pid_t hoard(uid_t uid, int most, int *got)
{
	int tell[2];
	pid_t child;

	CHECK(!pipe(tell));
	child = as(uid);
	if (!child) {
		int err, count = faces_taken(most, &err);

		CHECK(!err || err == ENOBUFS);
		CHECK(write(tell[1], &count, sizeof(count)) == sizeof(count));
		pause();
	}
	close(tell[1]);
	CHECK(read(tell[0], got, sizeof(*got)) == sizeof(*got));
	close(tell[0]);
	return child;
}

/* Writes an identity map of many users for a child in a user namespace of its own. */
static void map_users(pid_t pid)
{
	static const char *const what[] = { "uid_map", "gid_map" };

	for (int i = 0; i < 2; i++) {
		char path[64], map[64];
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/%s", pid, what[i]);
		snprintf(map, sizeof(map), "0 100000 65536");
		fd = open(path, O_WRONLY);
		CHECK(fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map));
		close(fd);
	}
}

/* Many users of one user namespace, whose owner is @owner: what they get together. */
static int hoard_inside(uid_t owner, pid_t *group)
{
	int made[2], mapped[2], tell[2], total = 0, got;
	char c = 0;

	CHECK(!pipe(made) && !pipe(mapped) && !pipe(tell));
	*group = fork();
	if (!*group) {
		CHECK(!setresgid(owner, owner, owner) && !setresuid(owner, owner, owner));
		CHECK(!unshare(CLONE_NEWUSER));
		CHECK(write(made[1], &c, 1) == 1 && read(mapped[0], &c, 1) == 1);
		CHECK(!setresgid(0, 0, 0) && !setresuid(0, 0, 0));
		for (int u = 1; u <= 4; u++) {
			hoard(u, 2000, &got);
			total += got;
		}
		CHECK(write(tell[1], &total, sizeof(total)) == sizeof(total));
		pause();
	}
	CHECK(read(made[0], &c, 1) == 1);
	map_users(*group);
	CHECK(write(mapped[1], &c, 1) == 1);
	CHECK(read(tell[0], &total, sizeof(total)) == sizeof(total));
	return total;
}

/* One user takes its share of the faces; others and root get theirs. */
int shares(int argc, char **argv)
{
	struct rlimit many = { 8192, 8192 };
	int err, first, second, inside, root;
	uint32_t lower;
	uint8_t loopback[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	pid_t a, b, group;

	CHECK(!setrlimit(RLIMIT_NOFILE, &many));
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	a = hoard(STRANGER, 5000, &first);
	b = hoard(ANOTHER, 5000, &second);
	inside = hoard_inside(ANOTHER + 1, &group);
	printf("faces: %d, then another %d, then four of a user namespace %d\n", first, second, inside);
	CHECK(first > 0 && first <= 3840 / 4);
	CHECK(second >= first);
	CHECK(inside > 0 && inside <= 3840 / 4);
	CHECK(!onym_ctl_udp(onym_ctl_open(), loopback, 6998, 0, &lower));
	root = faces_taken(200, &err);
	CHECK(root == 200 && !err);
	kill(a, 9);
	kill(b, 9);
	kill(group, 9);
	/* Their faces and those of the group's users are free when they have ended, not when they are told to. */
	while (wait(NULL) > 0)
		;
	return 0;
}

static int cs_limit(int control, uint16_t attr, const void *v, size_t len)
{
	return onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, attr, v, len, 0);
}

/* The root of a user namespace stays below what the host allows; the host's own may do more. */
int hostlimits(int argc, char **argv)
{
	uint32_t packets = 4000000000u, few = 1000;
	uint64_t bytes = 1ull << 40, some = 1 << 20;
	int control = onym_ctl_open();
	pid_t child;

	CHECK(!cs_limit(control, NNET_A_CAPACITY, &packets, 4));
	CHECK(!cs_limit(control, NNET_A_BYTES_MAX, &bytes, 8));
	child = as(STRANGER);
	if (!child) {
		CHECK(!unshare(CLONE_NEWUSER | CLONE_NEWNET));
		control = onym_ctl_open();
		CHECK(control >= 0);
		CHECK(cs_limit(control, NNET_A_CAPACITY, &packets, 4) == -EPERM);
		CHECK(cs_limit(control, NNET_A_BYTES_MAX, &bytes, 8) == -EPERM);
		CHECK(onym_ctl_call(control, NNET_CMD_PIT_SET, NULL, 0, NNET_A_PIT_MAX, &packets, (size_t)4, 0) ==
		      -EPERM);
		CHECK(!cs_limit(control, NNET_A_CAPACITY, &few, 4));
		CHECK(!cs_limit(control, NNET_A_BYTES_MAX, &some, 8));
		CHECK(!onym_ctl_call(control, NNET_CMD_PIT_SET, NULL, 0, NNET_A_PIT_MAX, &few, (size_t)4, 0));
		exit(0);
	}
	CHECK(ended_well(child));
	return 0;
}

static void segment_for(int fd, size_t len, uint32_t ms, int flags, ssize_t expect)
{
	union {
		struct cmsghdr h;
		uint8_t room[CMSG_SPACE(4)];
	} c = { .h = { .cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_NNET, .cmsg_type = NNET_CM_PUBLISH } };
	struct iovec iov = { content, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	ssize_t got;

	memcpy(CMSG_DATA(&c.h), &ms, 4);
	got = sendmsg(fd, &m, flags);
	CHECK(expect < 0 ? got < 0 && errno == -expect : got == expect);
}

static int segment_socket(const char *uri, int buffer)
{
	struct onym_name n = name_of(uri);
	int fd = onym_socket(SOCK_SEQPACKET, 0);

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)));
	CHECK(!onym_bind(fd, &n, 0));
	return fd;
}

static void too_late(int sig)
{
	static const char words[] = "still blocked after 10 s\n";

	_exit(write(1, words, sizeof(words) - 1) < 0 ? 2 : 1);
}

/* A segment that SO_SNDBUF can never hold is refused; time that runs out wakes who waits. */
int blocked(int argc, char **argv)
{
	struct onym_name n = name_of("/room");
	struct pollfd pfd = { .events = POLLOUT };
	struct timeval soon = { .tv_usec = 50000 };
	int fd, sent = 0;

	CHECK(!onym_ctl_route(onym_ctl_open(), &n, 1, 0));
	signal(SIGALRM, too_late);
	alarm(10);
	/* SOCK_MIN_SNDBUF is some 4.6 KB: a segment of 8000 octets needs more. */
	fd = segment_socket("/room/small", 1);
	segment_for(fd, 8000, 0, 0, -EMSGSIZE);
	segment_for(fd, 1000, 0, 0, 1000);
	close(fd);
	fd = segment_socket("/room/timed", 16384);
	pfd.fd = fd;
	/* A provider has nobody to hang up, and waits for Interests. */
	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	CHECK(recv(fd, content, 1, 0) < 0 && errno == EAGAIN);
	while (poll(&pfd, 1, 0)) {
		CHECK(pfd.revents == POLLOUT && sent < 100);
		segment_for(fd, 2000, 500, 0, 2000);
		sent++;
	}
	segment_for(fd, 8000, 500, MSG_DONTWAIT, -EAGAIN);
	alarm(10);
	segment_for(fd, 8000, 500, 0, 8000);
	/* So does poll(). */
	while (poll(&pfd, 1, 0))
		segment_for(fd, 2000, 500, 0, 2000);
	alarm(10);
	CHECK(poll(&pfd, 1, -1) == 1 && pfd.revents == POLLOUT);
	alarm(0);
	printf("blocked after %d segments\n", sent);
	return 0;
}

/* Rows of a table over netlink, and how many of them have names of more than 7000 octets. */
static int rows(uint8_t command, int *longer)
{
	static uint8_t answer[65536];
	/* A descriptor of its own: the kernel remembers the largest buffer that was offered. */
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), control = onym_ctl_open();
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
	} r = { { .nlmsg_len = sizeof(r), .nlmsg_type = onym_ctl_family(control),
		  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = 777 },
		{ .cmd = command, .version = 1 } };
	int count = 0;

	*longer = 0;
	CHECK(send(fd, &r, sizeof(r), 0) == sizeof(r));
	for (;;) {
		ssize_t n = recv(fd, answer, recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC), 0);

		CHECK(n > 0 && n <= (ssize_t)sizeof(answer));
		for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE) {
				close(fd);
				close(control);
				return count;
			}
			CHECK(h->nlmsg_type != NLMSG_ERROR);
			count++;
			*longer += h->nlmsg_len > 7000;
		}
	}
}

/* One component of 8000 octets, for tables take few. */
static size_t long_prefix(uint8_t *v, int number)
{
	memcpy(v, (uint8_t[]){ 8, 0xfd, 8000 >> 8, 8000 & 255 }, 4);
	memset(v + 4, 'a' + number, 8000);
	return 8004;
}

/* Long names do not end a dump. */
int longrows(int argc, char **argv)
{
	enum { LONG = 5 };
	int control = onym_ctl_open(), longer, fd, ask = onym_socket(SOCK_RAW, 0), one = 1;
	struct sockaddr_nnet a = { .snn_family = onym_family(), .snn_flags = NNET_ADDR_EXTERNAL };
	uint8_t v[8192], interest[8800];
	uint32_t to = 1, forever = 60000;

	for (int i = 0; i < LONG; i++) {
		size_t len = long_prefix(v, i);

		fd = onym_socket(SOCK_DGRAM, 0);
		CHECK(!setsockopt(fd, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
		CHECK(!setsockopt(fd, SOL_NNET, NNET_NAME, v, len));
		CHECK(!bind(fd, (void *)&a, sizeof(a)));
		CHECK(!onym_ctl_call(control, NNET_CMD_FIB_ADD, NULL, 0, NNET_A_NAME, v, len, NNET_A_FACE_ID, &to,
				     (size_t)4, 0));
		CHECK(bound((char[]){ '/', 'a' + i, 0 }, 0) >= 0);
		/* And one that waits: below the prefix that is bound. */
		{
			uint8_t *p = interest;
			size_t name = len + 3;

			memcpy(p, (uint8_t[]){ 5, 0xfd, (name + 4 + 6 + 6) >> 8, (name + 4 + 6 + 6) & 255, 7, 0xfd,
					       name >> 8, name & 255 }, 8);
			memcpy(p + 8, v, len);
			p += 8 + len;
			memcpy(p, (uint8_t[]){ 8, 1, 'x', 10, 4, 1, 2, 3, i, 12, 4, 0, 0, forever >> 8, forever & 255 }, 15);
			CHECK(send(ask, interest, p + 15 - interest, 0) == p + 15 - interest);
		}
	}
	printf("bindings %d", rows(NNET_CMD_BPT_GET, &longer));
	printf(" (%d), ", longer);
	CHECK(rows(NNET_CMD_BPT_GET, &longer) == 2 * LONG && longer == LONG);
	CHECK(rows(NNET_CMD_FIB_GET, &longer) >= LONG && longer == LONG);
	CHECK(rows(NNET_CMD_PIT_GET, &longer) >= LONG && longer == LONG);
	printf("all rows came\n");
	return 0;
}

static long charged_now(const char *group)
{
	char path[128], word[64];
	long value, found = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", group);
	f = fopen(path, "r");
	CHECK(f);
	while (fscanf(f, "%63s %ld", word, &value) == 2)
		if (!strcmp(word, "kernel"))
			found = value;
	fclose(f);
	CHECK(found >= 0);
	return found;
}

/* charged GROUP: what a process lets the kernel keep is charged to its control group. */
int charged(int argc, char **argv)
{
	enum { COUNT = 4000, PENDING = 500 };
	int fd = onym_socket(SOCK_RAW, 0), ask = onym_socket(SOCK_RAW, 0), buffer = 64 << 20, held = COUNT * 3000;
	struct onym_name prefix = name_of("/charged");
	uint8_t interest[8800], v[8192];
	long before = charged_now(argv[0]), after;
	size_t len = long_prefix(v, 0);

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)));
	CHECK(!onym_ctl_route(onym_ctl_open(), &prefix, 1, 0) && !onym_bind(fd, &prefix, 0));
	for (int i = 0; i < COUNT; i++) {
		struct onym_name n = prefix;
		struct onym_data d = { .name = &n, .content = content, .len = 3000 };

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + i) && !onym_publish(fd, &d, NULL));
	}
	after = charged_now(argv[0]);
	printf("published %d octets, charged %ld; ", held, after - before);
	CHECK(after - before >= held);
	before = after;
	for (int i = 0; i < PENDING; i++) {
		uint8_t *p = interest;
		size_t name = prefix.len + len + 4;

		memcpy(p, (uint8_t[]){ 5, 0xfd, (name + 4 + 6 + 4) >> 8, (name + 10) & 255, 7, 0xfd, name >> 8, name & 255 }, 8);
		p[2] = (name + 10) >> 8;
		memcpy(p + 8, prefix.v, prefix.len);
		memcpy(p + 8 + prefix.len, v, len);
		p += 8 + prefix.len + len;
		memcpy(p, (uint8_t[]){ 8, 2, i >> 8, i, 10, 4, 1, 2, i >> 8, i }, 10);
		CHECK(send(ask, interest, p + 10 - interest, 0) == p + 10 - interest);
	}
	after = charged_now(argv[0]);
	printf("%d pending of 8 KB, charged %ld\n", PENDING, after - before);
	CHECK(after - before >= PENDING * 8000);
	return 0;
}

/* autoload: socket() of a user who may do nothing, whatever comes of it. */
int autoload(int argc, char **argv)
{
	pid_t child = as(STRANGER);

	if (!child) {
		socket(NNET_FAMILY_DEFAULT, SOCK_RAW, 0);
		exit(0);
	}
	return !ended_well(child);
}
