// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Data a second through a router. */
#include "nnet-test.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>

enum {
	IN_FLIGHT = 64,
	ETHER_HEAD = 14,
	UDP_HEAD = 14 + 20 + 8, /* what a UDP packet is in its frame */
};

/* One side of the router: whole frames of a device, or a UDP socket. */
struct side {
	int fd;
	size_t head;  /* octets before the packet in what is sent */
	size_t frame; /* octets of the frame around the packet */
	uint8_t address[ETHER_HEAD];
};

static void room(int fd)
{
	int most = 16 << 20;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &most, sizeof(most));
}

static struct side by_ether(const char *device, const char *router)
{
	struct side s = { .head = ETHER_HEAD, .frame = ETHER_HEAD };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624) };
	struct ifreq r = { 0 };
	int one = 1;

	s.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(0x8624));
	CHECK(s.fd >= 0);
	at.sll_ifindex = if_nametoindex(device);
	CHECK(at.sll_ifindex && !bind(s.fd, (struct sockaddr *)&at, sizeof(at)));
	CHECK(!setsockopt(s.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)));
	strncpy(r.ifr_name, device, IFNAMSIZ - 1);
	CHECK(!ioctl(s.fd, SIOCGIFHWADDR, &r));
	CHECK(mac_of(router, s.address));
	memcpy(s.address + 6, r.ifr_hwaddr.sa_data, 6);
	memcpy(s.address + 12, "\x86\x24", 2);
	room(s.fd);
	return s;
}

static struct side by_udp(const char *local, const char *router)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(NNET_UDP_PORT) }, to = from;
	struct side s = { .frame = UDP_HEAD };

	s.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	CHECK(s.fd >= 0);
	CHECK(inet_pton(AF_INET, local, &from.sin_addr) == 1 && inet_pton(AF_INET, router, &to.sin_addr) == 1);
	CHECK(!bind(s.fd, (struct sockaddr *)&from, sizeof(from)));
	CHECK(!connect(s.fd, (struct sockaddr *)&to, sizeof(to)));
	room(s.fd);
	return s;
}

/* What goes out again and again with another number in it. */
struct shot {
	uint8_t v[ONYM_PACKET_MAX + ETHER_HEAD];
	size_t len, number_at;
};

static void load(struct shot *shot, const struct side *s, const uint8_t *packet, size_t len)
{
	memcpy(shot->v, s->address, s->head);
	memcpy(shot->v + s->head, packet, len);
	shot->len = s->head + len;
	shot->number_at = s->head + number_in(packet, len);
	CHECK(shot->number_at > s->head);
}

/* The number of what came: forwarders may have put a link header before it. */
static int number_of(const uint8_t *v, size_t len, uint32_t *number)
{
	size_t at = number_in(v, len);

	if (at)
		memcpy(number, v + at, 4);
	return !!at;
}

/* Data of so much content, or so that its frame is so long: "f1500". */
static ssize_t data_of(const struct onym_name *n, const char *size, size_t frame, uint8_t *packet, size_t *len)
{
	struct onym_data d = { .name = n, .content = content, .freshness = 10000 };
	size_t want = atoi(size + (*size == 'f'));
	ssize_t made;

	for (d.len = want;; d.len--) {
		made = onym_data_make(&d, NULL, packet, ONYM_PACKET_MAX);
		CHECK(made > 0 && d.len);
		if (*size != 'f' || made + frame <= want)
			break;
	}
	*len = d.len;
	return made;
}

struct tally {
	int sent, got, lost, out;
};

static void ask_more(const struct side *a, struct shot *ask, struct tally *n, int count)
{
	for (; n->out < IN_FLIGHT && n->sent < count; n->sent++, n->out++) {
		number_put(ask->v + ask->number_at, n->sent);
		memcpy(ask->v + ask->len - 4, &n->sent, 4);
		CHECK(send(a->fd, ask->v, ask->len, 0) == (ssize_t)ask->len);
	}
}

static void answer_all(const struct side *b, struct shot *answer)
{
	uint8_t in[ONYM_PACKET_MAX];
	uint32_t number;
	ssize_t len;

	while ((len = recv(b->fd, in, sizeof(in), 0)) > 0) {
		if (!number_of(in, len, &number))
			continue;
		memcpy(answer->v + answer->number_at, &number, 4);
		CHECK(send(b->fd, answer->v, answer->len, 0) == (ssize_t)answer->len);
	}
}

static void take_all(const struct side *a, struct tally *n)
{
	uint8_t in[ONYM_PACKET_MAX];
	uint32_t number;
	ssize_t len;

	while ((len = recv(a->fd, in, sizeof(in), 0)) > 0) {
		if (!number_of(in, len, &number))
			continue;
		n->got++;
		n->out -= n->out > 0;
	}
}

/* Exchanges until so many were asked for in all, and came or were lost. */
static void exchange(const struct side *a, const struct side *b, struct shot *ask, struct shot *answer,
		     struct tally *t, int count)
{
	struct pollfd both[] = { { .fd = a->fd, .events = POLLIN }, { .fd = b->fd, .events = POLLIN } };

	while (t->got + t->lost < count) {
		ask_more(a, ask, t, count);
		if (!poll(both, 2, 500)) {
			t->lost += t->out;
			t->out = 0;
		}
		answer_all(b, answer);
		take_all(a, t);
	}
}

/*
 * relay ether DEVICE ROUTER DEVICE ROUTER COUNT SIZE, relay udp4 with addresses
 * instead: asks by the first, answers by the second, both to a router between
 * them; 64 Interests at a time, a fifth of COUNT before the measurement. What
 * was lost is counted and not asked again.
 */
int relay(int argc, char **argv)
{
	struct side (*by)(const char *, const char *) = strcmp(argv[0], "udp4") ? by_ether : by_udp;
	struct side a = by(argv[1], argv[2]), b = by(argv[3], argv[4]);
	struct onym_name n = name_of("/Net-A/prdc-01/0/PubFiles/ABCD");
	uint8_t packet[ONYM_PACKET_MAX];
	struct shot ask, answer;
	struct tally t = { 0 };
	int count = atoi(argv[5]), before;
	size_t len, frame;
	uint64_t begun;

	CHECK(!onym_name_segment(&n, NUMBER_FIRST));
	load(&ask, &a, packet, interest_of(&n, packet));
	frame = b.frame + data_of(&n, argv[6], b.frame, packet, &len);
	load(&answer, &b, packet, frame - b.frame);
	exchange(&a, &b, &ask, &answer, &t, count / 5);
	before = t.got;
	begun = now_ns();
	exchange(&a, &b, &ask, &answer, &t, count + count / 5);
	begun = now_ns() - begun;
	t.got -= before;
	printf("%d Data of %zu octets in frames of %zu, %d lost, %llu ns each, %llu a second\n", t.got, len, frame,
	       t.lost, (unsigned long long)(begun / (t.got ?: 1)), (unsigned long long)(t.got * 1000000000ull / begun));
	row("exchanges_per_second", t.got * 1e9 / begun, "1/s");
	row("goodput_bps", t.got * 8e9 * len / begun, "bit/s");
	row("throughput_bps", t.got * 8e9 * frame / begun, "bit/s");
	row("lost", t.lost, "1");
	return t.lost > count / 10;
}
