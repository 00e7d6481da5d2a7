// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What several processors get done at the same time: by wall clock, so not under -icount. */
#include "nnet-test.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { CACHED = 64, WORKERS_MAX = 16 };

struct shared {
	atomic_int ready, go, stop;
	atomic_ulong done[WORKERS_MAX];
};

/* A packet whose number, and nonce where it has one, are put in before it goes. */
struct shot {
	uint8_t v[ONYM_PACKET_MAX];
	size_t len, number_at;
};

static void ask_shot(struct shot *s, const struct onym_name *n)
{
	s->len = interest_of(n, s->v);
	s->number_at = number_in(s->v, s->len);
	CHECK(s->number_at);
}

static void data_shot(struct shot *s, const struct onym_name *n)
{
	struct onym_data d = { .name = n, .content = content, .len = 1000, .freshness = 3600000 };
	ssize_t len = onym_data_make(&d, NULL, s->v, sizeof(s->v));

	CHECK(len > 0);
	s->len = len;
	s->number_at = number_in(s->v, len);
	CHECK(s->number_at);
}

static void fire(int fd, struct shot *s, uint32_t number, uint32_t nonce)
{
	number_put(s->v + s->number_at, number);
	if (s->v[0] == 5)
		memcpy(s->v + s->len - 4, &nonce, 4);
	CHECK(send(fd, s->v, s->len, 0) == (ssize_t)s->len);
}

static struct onym_name numbered(const char *uri)
{
	struct onym_name n = name_of(uri);

	CHECK(!onym_name_segment(&n, NUMBER_FIRST));
	return n;
}

static void work(struct shared *sh, int k, int hits)
{
	struct onym_name prefix, n;
	int ask = onym_socket(SOCK_RAW, 0), answer = onym_socket(SOCK_RAW, 0);
	static struct shot interest, data;
	uint8_t in[ONYM_PACKET_MAX];
	char uri[48];
	cpu_set_t on;

	CPU_ZERO(&on);
	CPU_SET(k, &on);
	CHECK(!sched_setaffinity(0, sizeof(on), &on));
	/* Of another name each time, for what was exchanged is cached. */
	snprintf(uri, sizeof(uri), hits ? "/parallel/shared" : "/parallel/%d", getpid());
	prefix = name_of(uri);
	n = numbered(uri);
	patience(ask, 20);
	patience(answer, 20);
	if (!hits)
		CHECK(!onym_bind(answer, &prefix, 0));
	ask_shot(&interest, &n);
	data_shot(&data, &n);
	atomic_fetch_add(&sh->ready, 1);
	while (!atomic_load(&sh->go))
		;
	for (uint32_t i = 0; !atomic_load(&sh->stop); i++) {
		fire(ask, &interest, hits ? i * 7919 % CACHED : i, (i * WORKERS_MAX + k) ^ (uint32_t)getpid() << 16);
		if (!hits) {
			CHECK(recv(answer, in, sizeof(in), 0) > 0 && in[0] == 5);
			fire(answer, &data, i, 0);
		}
		CHECK(recv(ask, in, sizeof(in), 0) > 0 && in[0] == 6);
		atomic_fetch_add_explicit(&sh->done[k], 1, memory_order_relaxed);
	}
	exit(0);
}

static void fill_shared(int control)
{
	uint8_t all = NNET_UNSOLICITED_ALL;
	int fd = onym_socket(SOCK_RAW, 0);
	struct onym_name n = numbered("/parallel/shared");
	static struct shot data;

	CHECK(!onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_UNSOLICITED, &all, (size_t)1, 0));
	data_shot(&data, &n);
	for (uint32_t i = 0; i < CACHED; i++)
		fire(fd, &data, i, 0);
	close(fd);
}

/*
 * parallel exchange|hit WORKERS MS: so many processes, each on a processor of its own,
 * exchange packets, or hit packets that all of them hit.
 */
int parallel(int argc, char **argv)
{
	int hits = !strcmp(argv[0], "hit"), workers = atoi(argv[1]), control = onym_ctl_open(), status;
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct onym_name root = name_of("/parallel");
	unsigned long done = 0, each[WORKERS_MAX];
	pid_t child[WORKERS_MAX];
	uint64_t begun;

	CHECK(sh != MAP_FAILED && workers > 0 && workers <= WORKERS_MAX);
	CHECK(!onym_ctl_route(control, &root, 1, 0));
	if (hits)
		fill_shared(control);
	for (int k = 0; k < workers; k++) {
		child[k] = fork();
		if (!child[k])
			work(sh, k, hits);
	}
	while (atomic_load(&sh->ready) < workers)
		usleep(1000);
	begun = now_ns();
	atomic_store(&sh->go, 1);
	usleep(atoi(argv[2]) * 1000);
	for (int k = 0; k < workers; k++)
		done += each[k] = atomic_load(&sh->done[k]);
	begun = now_ns() - begun;
	atomic_store(&sh->stop, 1);
	for (int k = 0; k < workers; k++)
		CHECK(waitpid(child[k], &status, 0) == child[k] && !status);
	printf("%s, %d at once: %.0f a second\n", argv[0], workers, done * 1e9 / begun);
	row_of("exchanges_per_second", done * 1e9 / begun, "1/s", "what=%s,workers=%d", argv[0], workers);
	return 0;
}
