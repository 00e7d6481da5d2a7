// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * nnet_store FILE [MEGABYTES]: the cache behind the cache. What leaves the
 * kernel's memory is appended to FILE, and found there when it is asked for
 * again, by MustBeFresh as long as it is fresh. At the size limit the file begins
 * anew and what it held is forgotten.
 * With --user every Data comes here and none stays in the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <onym/nnet.h>
#include "internal.h"
#include "nnet_nl.h"

enum { HEADS = 1 << 16 };

struct item {
	struct item *next;
	uint64_t hash;
	uint64_t at;
	uint32_t len;
};

/* As it is in the file. */
struct record {
	uint64_t fresh_until;	/* ms of the monotonic clock */
	uint8_t packet[ONYM_PACKET_MAX];
};

static struct item *heads[HEADS];
static uint64_t file_end, file_max;
static int file, control;
static uint16_t family;

/* FNV-1a of a name and, beside it, of each of its prefixes. */
static uint64_t hash_of(const uint8_t *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ *name++) * 0x100000001b3;
	return h;
}

static int name_of(const uint8_t *packet, size_t len, const uint8_t **name, size_t *name_len)
{
	const uint8_t *p = packet, *end = packet + len;
	uint64_t type, n;

	if (onym_get_tl(&p, end, &type, &n) || onym_get_tl(&p, end, &type, &n) || type != 7)
		return -1;
	*name = p;
	*name_len = n;
	return 0;
}

static void add(uint64_t hash, uint64_t at, uint32_t len)
{
	struct item *i = malloc(sizeof(*i));

	if (!i)
		return;
	*i = (struct item){ heads[hash % HEADS], hash, at, len };
	heads[hash % HEADS] = i;
}

static void begin_anew(void)
{
	for (int h = 0; h < HEADS; h++) {
		while (heads[h]) {
			struct item *i = heads[h];

			heads[h] = i->next;
			free(i);
		}
	}
	file_end = 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static int read_record(const struct item *i, struct record *r)
{
	size_t len = offsetof(struct record, packet) + i->len;

	return pread(file, r, len, i->at) == (ssize_t)len;
}

/* Whether a packet is here already; it is fresh as long as it was said last. */
static int has(const uint8_t *packet, size_t len, const uint8_t *name, size_t name_len, uint64_t fresh_until)
{
	uint64_t h = hash_of(name, name_len);
	struct record r;

	for (struct item *i = heads[h % HEADS]; i; i = i->next) {
		if (i->hash != h || i->len != len || !read_record(i, &r) || memcmp(r.packet, packet, len))
			continue;
		if (fresh_until > r.fresh_until)
			pwrite(file, &fresh_until, sizeof(fresh_until), i->at);
		return 1;
	}
	return 0;
}

/* Keeps a Data, which is fresh for @fresh_ms more, under its name and every prefix. */
static void keep(const uint8_t *packet, size_t len, uint32_t fresh_ms)
{
	struct record r = { .fresh_until = now_ms() + fresh_ms };
	size_t name_len, all = offsetof(struct record, packet) + len;
	const uint8_t *name, *p, *end;
	uint64_t type, n;

	if (len > sizeof(r.packet) || name_of(packet, len, &name, &name_len))
		return;
	/* What came from here and leaves the kernel again is here still. */
	if (has(packet, len, name, name_len, r.fresh_until))
		return;
	if (file_end + all > file_max)
		begin_anew();
	memcpy(r.packet, packet, len);
	if (pwrite(file, &r, all, file_end) != (ssize_t)all)
		return;
	for (p = name, end = name + name_len; p < end && !onym_get_tl(&p, end, &type, &n);) {
		p += n;
		add(hash_of(name, p - name), file_end, len);
	}
	file_end += all;
}

static int answers(const uint8_t *data, size_t data_len, const uint8_t *name, size_t len, int prefix)
{
	const uint8_t *have;
	size_t have_len;

	return !name_of(data, data_len, &have, &have_len) && (prefix ? have_len >= len : have_len == len) &&
	       !memcmp(have, name, len);
}

static void send_packet(uint8_t cmd, const uint8_t *packet, size_t len)
{
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		struct nlattr a;
		uint8_t v[ONYM_PACKET_MAX + 4];
	} m;

	memset(&m, 0, offsetof(__typeof__(m), v));
	m.a.nla_type = NNET_A_PACKET;
	m.a.nla_len = NLA_HDRLEN + len;
	m.h.nlmsg_len = offsetof(__typeof__(m), v) + len;
	m.h.nlmsg_type = family;
	m.h.nlmsg_flags = NLM_F_REQUEST;
	m.g.cmd = cmd;
	m.g.version = 1;
	memcpy(m.v, packet, len);
	send(control, &m, NLMSG_ALIGN(m.h.nlmsg_len), 0);
}

/* Answers an Interest, or says that there is nothing. */
static void find(const uint8_t *interest, size_t len)
{
	const uint8_t *name, *p, *end = interest + len;
	struct record r;
	size_t name_len;

	if (!name_of(interest, len, &name, &name_len)) {
		p = name + name_len;
		int prefix = end - p >= 2 && *p == 0x21;

		p += 2 * prefix;
		uint64_t fresh_at = p < end && *p == 0x12 ? now_ms() : 0;
		uint64_t h = hash_of(name, name_len);

		for (struct item *i = heads[h % HEADS]; i; i = i->next) {
			if (i->hash == h && read_record(i, &r) && r.fresh_until > fresh_at &&
			    answers(r.packet, i->len, name, name_len, prefix)) {
				send_packet(NNET_CMD_STORE_DATA, r.packet, i->len);
				return;
			}
		}
	}
	send_packet(NNET_CMD_STORE_MISS, interest, len);
}

/* For how much longer an offered Data is fresh: the attribute behind it. */
static uint32_t fresh_ms(const struct nlmsghdr *h, const struct nlattr *packet)
{
	const uint8_t *at = (const uint8_t *)packet + NLA_ALIGN(packet->nla_len);
	const struct nlattr *a = (const struct nlattr *)at;
	uint32_t ms = 0;

	if (at + NLA_HDRLEN + sizeof(ms) <= (const uint8_t *)h + h->nlmsg_len && a->nla_type == NNET_A_LIFETIME)
		memcpy(&ms, at + NLA_HDRLEN, sizeof(ms));
	return ms;
}

static void serve(void)
{
	char buf[32768];
	ssize_t n;

	while ((n = recv(control, buf, sizeof(buf), 0)) > 0 || errno == ENOBUFS || errno == EINTR) {
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; n > 0 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			struct genlmsghdr *g = NLMSG_DATA(h);
			struct nlattr *a = (struct nlattr *)(g + 1);

			if (h->nlmsg_type != family || h->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN) + NLA_HDRLEN)
				continue;
			if (g->cmd == NNET_CMD_STORE_OFFER)
				keep((uint8_t *)(a + 1), a->nla_len - NLA_HDRLEN, fresh_ms(h, a));
			else if (g->cmd == NNET_CMD_STORE_ASK)
				find((uint8_t *)(a + 1), a->nla_len - NLA_HDRLEN);
		}
	}
}

int main(int argc, char **argv)
{
	uint8_t user = argc > 1 && !strcmp(argv[argc - 1], "--user");
	int err, room = 32 << 20;

	argc -= user;
	if (argc < 2) {
		fprintf(stderr, "usage: nnet_store FILE [MEGABYTES] [--user]\n");
		return 2;
	}
	file_max = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) << 20;
	file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	control = onym_ctl_open();
	if (file < 0 || control < 0) {
		fprintf(stderr, "no file, or no AF_NNET here\n");
		return 3;
	}
	setsockopt(control, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	family = onym_ctl_family(control);
	err = onym_ctl_call(control, NNET_CMD_STORE_ATTACH, NULL, 0, 0);
	if (!err)
		err = onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_IN_USER, &user, (size_t)1, 0);
	if (err) {
		fprintf(stderr, "refused: %s\n", strerror(-err));
		return 4;
	}
	printf("ready\n");
	fflush(stdout);
	serve();
	return 1;
}
