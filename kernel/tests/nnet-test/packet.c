// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Packets made octet by octet, for what the library does not say. */
#include "nnet-test.h"
#include "internal.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

size_t ask_make(const struct ask *a, uint8_t *packet)
{
	uint8_t body[ONYM_PACKET_MAX + 64], *p = body;

	p = onym_put_tl(p, 7, a->name_len);
	memcpy(p, a->name, a->name_len);
	p += a->name_len;
	if (a->flags & NNET_CAN_BE_PREFIX)
		p = onym_put_tl(p, 0x21, 0);
	if (a->flags & NNET_MUST_BE_FRESH)
		p = onym_put_tl(p, 0x12, 0);
	if (a->hint_len) {
		p = onym_put_tl(p, 0x1e, onym_tl_size(7, a->hint_len));
		p = onym_put_tl(p, 7, a->hint_len);
		memcpy(p, a->hint, a->hint_len);
		p += a->hint_len;
	}
	p = onym_put_tl(p, 10, 4);
	memcpy(p, &a->nonce, 4);
	p += 4;
	if (a->lifetime)
		p = onym_put_nni(p, 12, a->lifetime);
	packet = onym_put_tl(packet, 5, p - body);
	memcpy(packet, body, p - body);
	return onym_tl_size(5, p - body);
}

/* Asks by a RAW socket, each time with another nonce. */
void want(int fd, const struct onym_name *name, uint32_t flags, uint32_t lifetime)
{
	struct ask a = { .name = name->v, .name_len = name->len, .flags = flags,
			 .lifetime = lifetime, .nonce = random() };
	uint8_t packet[ONYM_PACKET_MAX];
	size_t len = ask_make(&a, packet);

	CHECK(send(fd, packet, len, 0) == (ssize_t)len);
}

/* Data of a name by a RAW socket, without asking whether somebody wants it. */
void offer(int fd, const struct onym_name *name, const char *text, uint32_t freshness)
{
	struct onym_data d = { .name = name, .content = text, .len = strlen(text), .freshness = freshness };
	uint8_t packet[ONYM_PACKET_MAX];
	ssize_t len = onym_data_make(&d, NULL, packet, sizeof(packet));

	CHECK(len > 0 && send(fd, packet, len, 0) == len);
}

/* A number that a file of /proc/net/nnet tells behind a word. */
long told(const char *file, const char *word)
{
	char path[64], line[512], *at;
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/net/nnet/%s", file);
	f = fopen(path, "r");
	while (f && value < 0 && fgets(line, sizeof(line), f)) {
		at = strstr(line, word);
		if (at)
			value = atol(at + strlen(word));
	}
	if (f)
		fclose(f);
	return value;
}

/* Waits until a law holds, for a minute at most. */
int comes(int (*law)(void *), void *arg)
{
	for (time_t end = time(NULL) + 60; time(NULL) < end; usleep(20000))
		if (law(arg))
			return 1;
	return 0;
}

/* Runs a function as another user, perhaps in namespaces of its own; its exit status. */
int as_user(int uid, int flags, int (*run)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (uid && (setgid(uid) || setuid(uid)))
			exit(2);
		if (flags && unshare(flags))
			exit(3);
		status = run(arg);
		fflush(stdout);
		_exit(status);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
