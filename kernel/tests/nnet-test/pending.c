// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pending Interests: how long, how many, whose, and what is left when who asked has gone. */
#include "nnet-test.h"
#include "internal.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

static int pit_set(int control, uint32_t max)
{
	return onym_ctl_call(control, NNET_CMD_PIT_SET, NULL, 0, NNET_A_PIT_MAX, &max, sizeof(max), 0);
}

static long entries(void)
{
	return told("pit", "entries ");
}

/* Somebody who is asked and never answers. */
static int silent(int control, const char *uri)
{
	struct onym_name n = name_of(uri);
	int fd = bound(uri, 0);

	CHECK(fd >= 0 && !onym_ctl_route(control, &n, 1, 0));
	return fd;
}

/*
 * Asks for names under a prefix, of so many octets, until the kernel refuses
 * some or there are enough. Return: how many were taken.
 */
static long fill(int fd, const char *uri, uint32_t who, size_t octets, long most, int refusals)
{
	static uint8_t name[ONYM_PACKET_MAX], packet[ONYM_PACKET_MAX], in[ONYM_PACKET_MAX];
	struct onym_name prefix = name_of(uri);
	long taken = 0, refused = 0;

	for (uint32_t i = 0; taken < most && refused < refusals; i++) {
		struct ask a = { .name = name, .lifetime = 3600000, .nonce = random() };
		uint8_t *p = name;

		memcpy(p, prefix.v, prefix.len);
		p = onym_put_nni(p + prefix.len, 8, 0x100000000ull + who);
		p = onym_put_nni(p, 8, 0x100000000ull + i);
		if (octets) {
			p = onym_put_tl(p, 8, octets);
			memset(p, 'o', octets);
			p += octets;
		}
		a.name_len = p - name;
		CHECK(send(fd, packet, ask_make(&a, packet), 0) > 0);
		if (recv(fd, in, sizeof(in), MSG_DONTWAIT) > 0)
			refused++;
		else
			taken++;
	}
	return taken;
}

/* pending-lifetime: no Interest pends longer than an hour. */
int pending_lifetime(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = silent(control, "/long"), fd = onym_socket(SOCK_RAW, 0);
	struct onym_name n = name_of("/long/1");
	uint64_t left = 0;
	uint32_t option = 864000000;
	socklen_t len = sizeof(option);
	size_t longest;

	want(fd, &n, 0, 864000000);
	CHECK(pit_row_lifetime(&longest, &left) == 1);
	printf("an Interest of ten days pends for %llu ms more\n", (unsigned long long)left);
	CHECK(left > 3500000 && left <= 3600000);
	CHECK(!setsockopt(fd, SOL_NNET, NNET_LIFETIME, &option, sizeof(option)));
	CHECK(!getsockopt(fd, SOL_NNET, NNET_LIFETIME, &option, &len) && option == 3600000);
	close(provider);
	return 0;
}

/* pending-octets: long names are refused before they take the memory of others. */
int pending_octets(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = silent(control, "/octets"), fd = onym_socket(SOCK_RAW, 0);
	long taken = fill(fd, "/octets", 1, 8000, 12000, 1);

	printf("%ld Interests of 8000 octets are taken\n", taken);
	CHECK(taken < 12000);
	close(fd);
	CHECK(entries() == 0);
	close(provider);
	return 0;
}

/* pending-close: what a socket asked for ends with it, and what others wait for too does not. */
int pending_close(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = silent(control, "/closed"), fd = onym_socket(SOCK_RAW, 0),
	    other = onym_socket(SOCK_RAW, 0), answers = onym_socket(SOCK_RAW, 0);
	struct onym_name n = name_of("/shared/1"), prefix = name_of("/shared");
	uint8_t in[ONYM_PACKET_MAX];

	CHECK(!onym_ctl_route(control, &prefix, 1, 0) && !onym_bind(answers, &prefix, 0));
	patience(answers, 20);
	patience(other, 20);
	CHECK(fill(fd, "/closed", 1, 0, 1000, 1) == 1000);
	want(fd, &n, 0, 60000);
	CHECK(recv(answers, in, sizeof(in), 0) > 0);
	want(other, &n, 0, 60000);
	CHECK(entries() == 1001);
	close(fd);
	printf("%ld of 1001 are pending after the close\n", entries());
	CHECK(entries() == 1);
	offer(answers, &n, "for the other", 0);
	CHECK(recv(other, in, sizeof(in), 0) > 0 && in[0] == 6);
	CHECK(entries() == 0);
	/* A connected socket that closes with its window open. */
	fd = onym_socket(SOCK_SEQPACKET, 0);
	n = name_of("/closed/object");
	CHECK(!onym_connect(fd, &n, 0));
	while (!entries())
		usleep(1000);
	close(fd);
	CHECK(entries() == 0);
	close(provider);
	return 0;
}

/* The longest that somebody waits who binds and closes, until @pid has ended. */
static uint64_t longest_bind(pid_t pid)
{
	uint64_t longest = 0, begun;

	while (!waitpid(pid, NULL, WNOHANG)) {
		int fd;

		begun = now_ns();
		fd = bound("/beside", 0);
		CHECK(fd >= 0);
		close(fd);
		begun = now_ns() - begun;
		longest = begun > longest ? begun : longest;
	}
	return longest;
}

/* pending-drain: while much that a socket asked for is ended, others bind and close. */
int pending_drain(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = silent(control, "/drain"), tell[2];
	uint64_t took, longest;
	pid_t pid;

	CHECK(!pipe(tell));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = onym_socket(SOCK_RAW, 0);
		char c = 0;

		CHECK(fill(fd, "/drain", 1, 0, 45000, 1) == 45000);
		CHECK(write(tell[1], &c, 1) == 1);
		took = now_ns();
		close(fd);
		took = now_ns() - took;
		CHECK(write(tell[1], &took, sizeof(took)) == sizeof(took));
		_exit(0);
	}
	CHECK(read(tell[0], &took, 1) == 1);
	longest = longest_bind(pid);
	CHECK(read(tell[0], &took, sizeof(took)) == sizeof(took));
	printf("45000 are ended in %llu us, who binds meanwhile waits for %llu us at most\n",
	       (unsigned long long)took / 1000, (unsigned long long)longest / 1000);
	CHECK(entries() == 0);
	CHECK(longest < took / 2);
	close(provider);
	return 0;
}

struct filler {
	const char *uri;
	uint32_t who;
	int sockets;
	long most;
	int hold;	/* says when it is done, and waits for this to close */
	int done;
};

static int filling(void *arg)
{
	const struct filler *f = arg;
	long taken = 0;
	char c;

	for (int s = 0; s < f->sockets; s++) {
		int fd = onym_socket(SOCK_RAW, 0);

		CHECK(fd >= 0);
		taken += fill(fd, f->uri, f->who * 16 + s, 0, f->most, 20);
	}
	CHECK(write(f->done, &taken, sizeof(taken)) == sizeof(taken));
	while (read(f->hold, &c, 1) > 0)
		;
	return 0;
}

/* Starts a filler as a user, and tells how many it got. */
static long started(struct filler f, int uid, int in_namespace, int *hold)
{
	int done[2], held[2], ready[2];
	long taken = -1;
	pid_t pid;
	char c;

	CHECK(!pipe(done) && !pipe(held) && !pipe(ready));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(held[1]);
		f.hold = held[0];
		f.done = done[1];
		if (in_namespace) {
			/* The uids of a user namespace that user 1000 owns. */
			CHECK(!setgid(1000) && !setuid(1000) && !unshare(CLONE_NEWUSER));
			CHECK(write(done[1], &taken, sizeof(taken)) == sizeof(taken));
			CHECK(read(ready[0], &c, 1) == 1);
			CHECK(!setuid(uid));
		} else if (uid) {
			CHECK(!setgid(uid) && !setuid(uid));
		}
		_exit(filling(&f));
	}
	close(done[1]);
	close(held[0]);
	if (in_namespace) {
		char path[64];
		int fd;

		CHECK(read(done[0], &taken, sizeof(taken)) == sizeof(taken));
		snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
		fd = open(path, O_WRONLY);
		CHECK(fd >= 0 && write(fd, "0 100000 65536", 14) == 14);
		close(fd);
		CHECK(write(ready[1], "x", 1) == 1);
	}
	CHECK(read(done[0], &taken, sizeof(taken)) == sizeof(taken));
	close(done[0]);
	*hold = held[1];
	return taken;
}

static int none_pends(void *arg)
{
	return entries() == 0;
}

/* pending-share: whoever fills the table leaves room for others: sockets, users, uids of a namespace. */
int pending_share(int argc, char **argv)
{
	struct filler f = { .uri = "/share", .sockets = 4, .most = 5000 };
	int control = onym_ctl_open(), provider = silent(control, "/share"), hold[4];
	long first, second, third, fourth;

	CHECK(!pit_set(control, 4096));
	f.who = 1;
	first = started(f, 1001, 0, &hold[0]);
	f.who = 2;
	second = started(f, 1002, 0, &hold[1]);
	f.who = 3;
	third = started(f, 1003, 0, &hold[2]);
	printf("of 4096: %ld, then %ld, then %ld for three users with four sockets each\n", first, second, third);
	CHECK(first <= 3072 && first >= 3000 && second >= 700 && third >= 150);
	for (int i = 0; i < 3; i++)
		close(hold[i]);
	CHECK(comes(none_pends, NULL));
	/* The uids of one user namespace are one user. */
	f.who = 4;
	first = started(f, 1, 1, &hold[0]);
	f.who = 5;
	second = started(f, 2, 1, &hold[1]);
	f.who = 6;
	third = started(f, 3, 1, &hold[2]);
	f.who = 7;
	fourth = started(f, 1004, 0, &hold[3]);
	printf("of 4096: %ld, %ld, %ld for three uids of a user namespace, %ld for a user beside it\n", first, second,
	       third, fourth);
	CHECK(first <= 3072 && second + third < 20 && fourth >= 700);
	for (int i = 0; i < 4; i++)
		close(hold[i]);
	CHECK(comes(none_pends, NULL));
	CHECK(!pit_set(control, 65536));
	close(provider);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* A network namespace of the user's, filled. */
static int namespace_filled(void *arg)
{
	long *taken = arg;
	int control, fd;

	CHECK(!unshare(CLONE_NEWNET));
	control = onym_ctl_open();
	silent(control, "/mine");
	fd = onym_socket(SOCK_RAW, 0);
	*taken += fill(fd, "/mine", 1, 8000, 300, 20);
	return 0;
}

static int namespaces_filled(void *arg)
{
	long taken = 0;

	for (int i = 0; i < 4; i++)
		namespace_filled(&taken);
	printf("%ld Interests of 8000 octets in four network namespaces of one user\n", taken);
	return taken > 600;
}

/*
 * pending-user: what the network namespaces of a user keep has one bound. The
 * module was loaded with owner_bytes=8388608: 512 Interests of 16 KB.
 */
int pending_user(int argc, char **argv)
{
	CHECK(!as_user(1005, CLONE_NEWUSER, namespaces_filled, NULL));
	/* It has ended, and may fill as much again. */
	CHECK(!as_user(1005, CLONE_NEWUSER, namespaces_filled, NULL));
	return 0;
}

/* pending-variants: Interests of one name that differ in hint or digest are bounded. */
int pending_variants(int argc, char **argv)
{
	int control = onym_ctl_open(), provider = silent(control, "/variants"), fd = onym_socket(SOCK_RAW, 0);
	struct onym_name n = name_of("/variants/1");
	uint8_t packet[ONYM_PACKET_MAX], in[ONYM_PACKET_MAX];
	int refused = 0;

	for (uint32_t i = 0; i < 500; i++) {
		struct onym_name hint = name_of("/variants");
		struct ask a = { .name = n.v, .name_len = n.len, .nonce = i, .lifetime = 60000 };

		CHECK(!onym_name_segment(&hint, i));
		a.hint = hint.v;
		a.hint_len = hint.len;
		CHECK(send(fd, packet, ask_make(&a, packet), 0) > 0);
		refused += recv(fd, in, sizeof(in), MSG_DONTWAIT) > 0;
	}
	printf("%ld of 500 hints for one name are pending, %d refused\n", entries(), refused);
	CHECK(entries() <= 64 && refused >= 436);
	close(fd);
	close(provider);
	return 0;
}
