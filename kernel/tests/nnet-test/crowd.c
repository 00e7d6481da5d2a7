// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Several users at once, each doing what it likes; one who behaves is served all the time. */
#include "nnet-test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { USERS = 6, SOCKETS = 64 };

static uint8_t octets[8800];

/* One call that may do harm. */
static void mischief(int *fds, unsigned int *seed)
{
	static const int types[] = { SOCK_RAW, SOCK_DGRAM, SOCK_SEQPACKET };
	int *fd = &fds[rand_r(seed) % SOCKETS], one = 1;
	char uri[64];
	struct onym_name n;

	snprintf(uri, sizeof(uri), "/crowd/%d/%d", rand_r(seed) % 8, rand_r(seed) % 64);
	n = name_of(uri);
	if (*fd < 0)
		*fd = onym_socket(types[rand_r(seed) % 3], 0);
	if (*fd < 0)
		return;
	switch (rand_r(seed) % 10) {
	case 0:
		close(*fd);
		*fd = -1;
		break;
	case 1:
		onym_bind(*fd, &n, 0);
		break;
	case 2:
		onym_connect(*fd, &n, 0);
		break;
	case 3:
		setsockopt(*fd, SOL_NNET, NNET_LP, &one, sizeof(one));
		break;
	case 4: {
		struct onym_data d = { .name = &n, .content = octets, .len = rand_r(seed) % 2000, .freshness = 1 };

		onym_publish(*fd, &d, NULL);
		break;
	}
	case 5: {
		struct onym_data d = { .name = &n, .content = octets, .len = rand_r(seed) % 8000 };

		onym_send_data(*fd, &d);
		break;
	}
	case 6:
		send(*fd, octets, rand_r(seed) % 512, MSG_DONTWAIT);
		break;
	case 7:
		recv(*fd, octets, sizeof(octets), MSG_DONTWAIT);
		break;
	default:
		/* Of long life and of none, for what somebody serves and nobody does. */
		onym_send_interest(*fd, &n, rand_r(seed) % 4, rand_r(seed) % 2 ? 1 : 3600000);
	}
}

static void one_of_many(int number, int seed)
{
	int fds[SOCKETS];
	unsigned int at = seed * 31 + number;

	CHECK(!setgid(2000 + number) && !setuid(2000 + number) && !prctl(PR_SET_PDEATHSIG, SIGKILL));
	for (int i = 0; i < SOCKETS; i++)
		fds[i] = -1;
	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = rand_r(&at);
	for (;;)
		mischief(fds, &at);
}

static long lines_of(const char *path, const char *word)
{
	char line[512];
	FILE *f = fopen(path, "r");
	long n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += !!strstr(line, word);
	fclose(f);
	return n;
}

/*
 * crowd ROUNDS [SEED]: a consumer and a provider exchange ROUNDS times beside the
 * crowd. Afterwards nothing of the crowd is left.
 */
int crowd(int argc, char **argv)
{
	int rounds = atoi(argv[0]), seed = argc > 1 ? atoi(argv[1]) : 1, control = onym_ctl_open();
	struct onym_name n = name_of("/behaves"), all = name_of("/crowd");
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int consumer = onym_socket(SOCK_DGRAM, 0), provider;
	pid_t child[USERS];
	time_t begun;

	printf("seed %d\n", seed);
	fflush(stdout);
	CHECK(!onym_ctl_route(control, &n, 1, 0) && !onym_ctl_route(control, &all, 1, 0));
	provider = bound("/behaves", 0);
	patience(consumer, 60);
	patience(provider, 60);
	for (int i = 0; i < USERS; i++) {
		child[i] = fork();
		if (!child[i])
			one_of_many(i, seed);
	}
	for (int i = 0; i < rounds; i++) {
		struct onym_name item = n;
		struct onym_data d = { .name = &item, .content = "served", .len = 6 };

		CHECK(!onym_name_segment(&item, i));
		CHECK(!onym_send_interest(consumer, &item, 0, 60000));
		p.size = sizeof(content);
		CHECK(onym_recv(provider, &p, 0) >= 0 && p.type == NNET_INTEREST);
		CHECK(!onym_send_data(provider, &d));
		p.size = sizeof(content);
		CHECK(onym_recv(consumer, &p, 0) == 6 && p.type == NNET_DATA);
	}
	for (int i = 0; i < USERS; i++)
		kill(child[i], 9);
	for (int i = 0; i < USERS; i++)
		waitpid(child[i], NULL, 0);
	begun = time(NULL);
	while (lines_of("/proc/net/nnet/faces", " socket ") != 2 || lines_of("/proc/net/nnet/bindings", "/crowd")) {
		CHECK(time(NULL) - begun < 60);
		usleep(10000);
	}
	printf("%d exchanges beside %d users\n", rounds, USERS);
	return 0;
}
