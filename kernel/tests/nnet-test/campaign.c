// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The campaign: sequences of socket calls, netlink messages and frames from several
 * users and namespaces, drawn from a seed. What is sent is mostly well formed, of few
 * names, so that the calls meet; some of it is broken at a few octets.
 *
 * Laws: whatever is received is one whole packet; every dump parses to its end; a
 * witness is served all the while; what nobody holds any more is gone at the end. That
 * the kernel does not complain is looked for by the guest.
 */
#include "nnet-test.h"
#include "internal.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { FDS = 12, NETLINK_BUFFER = 32768 };

struct worker {
	int fd[FDS];
	int type[FDS];
	int control, frames;
	uint16_t family;
	unsigned int device;
	int admin;
};

static uint64_t state;
/* Allocations of this process fail now and then. */
static int fails;

/* xorshift: the same everywhere for a seed. */
static uint32_t dice(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 16) % sides;
}

static size_t some_name(uint8_t *v, int most)
{
	static const char *const words[] = { "a", "b", "cc", "witness", "localhost", "localhop", "" };
	uint8_t *p = v;

	for (int n = dice(most) + (dice(20) > 0), i = 0; i < n; i++) {
		switch (dice(12)) {
		case 0:
			p = onym_put_nni(p, 50, dice(4));
			break;
		case 1:
			p = onym_put_tl(p, 1, 32);
			memset(p, dice(3), 32);
			p += 32;
			break;
		case 2: {
			size_t len = dice(40) ? dice(60) : dice(3000);

			p = onym_put_tl(p, 8, len);
			memset(p, 'x', len);
			p += len;
			break;
		}
		default: {
			const char *w = words[dice(dice(4) ? 3 : 7)];

			p = onym_put_tl(p, 8, strlen(w));
			memcpy(p, w, strlen(w));
			p += strlen(w);
		}
		}
		if (p - v > 4000)
			break;
	}
	return p - v;
}

static size_t some_interest(uint8_t *packet)
{
	static const uint32_t lifetimes[] = { 0, 1, 20, 4000, 3600000, 864000000, UINT32_MAX };
	uint8_t name[8192], hint[8192];
	struct ask a = { .name = name, .hint = hint, .flags = dice(4), .nonce = dice(50),
			 .lifetime = lifetimes[dice(7)] };

	a.name_len = some_name(name, 4);
	a.hint_len = dice(8) ? 0 : some_name(hint, 2);
	return ask_make(&a, packet);
}

static size_t some_data(uint8_t *packet)
{
	static uint8_t octets[4000];
	struct onym_name n = { 0 };
	uint8_t name[8192];
	struct onym_data d = { .name = &n, .content = octets, .len = dice(10) ? dice(200) : dice(4000),
			       .freshness = dice(3) * 1000 };
	ssize_t len;

	n.len = some_name(name, 4);
	if (n.len > sizeof(n.v))
		n.len = 0;
	memcpy(n.v, name, n.len);
	if (!n.len)
		n = name_of("/a");
	len = onym_data_make(&d, NULL, packet, ONYM_PACKET_MAX);
	return len > 0 ? len : 0;
}

/* A packet in a link header, perhaps a fragment, a Nack, or with fields. */
static size_t some_frame(uint8_t *frame)
{
	uint8_t packet[ONYM_PACKET_MAX + 200], body[ONYM_PACKET_MAX + 400], *p = body;
	size_t len = dice(3) ? some_interest(packet) : some_data(packet);

	if (dice(3)) {
		memcpy(frame, packet, len);
		return len;
	}
	if (dice(2)) {
		uint64_t sequence = htobe64(dice(40));

		p = onym_put_tl(p, 81, 8);
		memcpy(p, &sequence, 8);
		p += 8;
		p = onym_put_nni(p, 82, dice(4));
		p = onym_put_nni(p, 83, dice(6));
		len = dice(len + 1);
	}
	if (!dice(3)) {
		p = onym_put_tl(p, 98, 1 + dice(34));
		p += p[-1];
	}
	if (!dice(4)) {
		p = onym_put_tl(p, 800, dice(2) ? 5 : 0);
		if (p[-1]) {
			p = onym_put_tl(p, 801, 1);
			*p++ = 50 * dice(4);
		}
	}
	if (!dice(6))
		p = onym_put_nni(p, 816, 256 + dice(8));
	p = onym_put_tl(p, 80, len);
	memcpy(p, packet, len);
	p += len;
	if (p - body > ONYM_PACKET_MAX)
		p = body + ONYM_PACKET_MAX;
	frame = onym_put_tl(frame, 100, p - body);
	memcpy(frame, body, p - body);
	return onym_tl_size(100, p - body);
}

static void broken(uint8_t *v, size_t *len)
{
	if (dice(5) || !*len)
		return;
	for (int n = 1 + dice(3); n--;)
		v[dice(*len < 60 ? *len : 60)] = dice(3) ? dice(256) : (uint8_t[]){ 0, 253, 254, 255 }[dice(4)];
	if (!dice(4))
		*len = dice(*len);
}

/* What is received is one whole packet: its length is that of its first element. */
static void receive(int fd, int type)
{
	static uint8_t in[65536], more[4096];
	struct iovec iov = { in, dice(10) ? sizeof(in) : dice(64) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = more,
			    .msg_controllen = dice(4) ? sizeof(more) : dice(100) };
	const uint8_t *p = in;
	uint64_t t, len;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | (dice(10) ? 0 : MSG_PEEK | MSG_TRUNC));

	if (type != SOCK_RAW || n <= 0 || (m.msg_flags & MSG_TRUNC) || (size_t)n > iov.iov_len)
		return;
	CHECK(!onym_get_tl(&p, in + n, &t, &len) && p + len == in + n && (t == 5 || t == 6 || t == 100));
}

static void send_some(struct worker *w, int i)
{
	static uint8_t v[2 * ONYM_PACKET_MAX];
	size_t len = dice(3) ? some_interest(v) : w->type[i] == SOCK_RAW && dice(4) ? some_data(v) : some_frame(v);
	union {
		struct cmsghdr h;
		uint8_t v[4096];
	} c = { 0 };
	struct iovec iov = { v, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.v };
	struct cmsghdr *h = &c.h;

	if (w->type[i] == SOCK_RAW && dice(4)) {
		broken(v, &len);
		send(w->fd[i], v, len, MSG_DONTWAIT);
		return;
	}
	iov.iov_len = dice(1000);
	for (int n = dice(5); n--;) {
		uint8_t body[8192];
		size_t size = 4;
		uint32_t value = dice(3) ? dice(10) : dice(UINT32_MAX);

		h->cmsg_level = SOL_NNET;
		h->cmsg_type = dice(2) ? 1 + dice(2) : dice(20);
		memcpy(body, &value, 4);
		if (h->cmsg_type == NNET_CM_TYPE) {
			value = dice(2) ? 5 : 6;
			memcpy(body, &value, 4);
		} else if (h->cmsg_type == NNET_CM_NAME) {
			size = some_name(body, 4);
		} else if (!dice(10)) {
			size = dice(64);
		}
		if ((uint8_t *)h - c.v + CMSG_SPACE(size) > sizeof(c.v))
			break;
		h->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(h), body, size);
		h = (void *)((uint8_t *)h + CMSG_SPACE(size));
	}
	m.msg_controllen = (uint8_t *)h - c.v;
	sendmsg(w->fd[i], &m, MSG_DONTWAIT | (dice(4) ? 0 : MSG_EOR));
}

static void address_some(struct worker *w, int i)
{
	struct sockaddr_nnet a = { .snn_family = onym_family(), .snn_flags = dice(8) ? 0 : dice(16) };
	uint8_t name[8192];
	size_t len = some_name(name, 3);

	if (len > sizeof(a.snn_name)) {
		setsockopt(w->fd[i], SOL_NNET, NNET_NAME, name, len);
		a.snn_flags |= NNET_ADDR_EXTERNAL;
		len = 0;
	}
	a.snn_name_len = dice(20) ? len : dice(200);
	memcpy(a.snn_name, name, len);
	if (dice(3))
		bind(w->fd[i], (void *)&a, dice(20) ? sizeof(a) : dice(128));
	else
		connect(w->fd[i], (void *)&a, sizeof(a));
}

static void option_some(struct worker *w, int i)
{
	uint8_t v[8192];
	uint32_t value = dice(3) ? dice(3) : dice(UINT32_MAX);
	socklen_t len = 4;

	memcpy(v, &value, 4);
	switch (dice(4)) {
	case 0:
		len = some_name(v, 3);
		break;
	case 1:
		len = dice(100);
		getsockopt(w->fd[i], SOL_NNET, dice(18), v, &len);
		return;
	case 2:
		value = 2000 + dice(200000);
		setsockopt(w->fd[i], SOL_SOCKET, dice(2) ? SO_SNDBUF : SO_RCVBUF, &value, 4);
		return;
	}
	setsockopt(w->fd[i], SOL_NNET, dice(18), v, len);
}

/*
 * Reads a dump to its end, which is lost only with an allocation that failed; every
 * message and attribute of it fits.
 */
static void dump_read(int fd)
{
	static uint8_t buf[NETLINK_BUFFER];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (poll(&p, 1, fails ? 200 : 20000) == 1 && (n = recv(fd, buf, sizeof(buf), MSG_TRUNC)) > 0) {
		CHECK(n <= (ssize_t)sizeof(buf));
		for (struct nlmsghdr *h = (void *)buf; n > 0; h = NLMSG_NEXT(h, n)) {
			CHECK(NLMSG_OK(h, n));
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return;
			for (ssize_t left = h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), at = NLMSG_LENGTH(GENL_HDRLEN);
			     left > 0;) {
				struct nlattr *a = (void *)((uint8_t *)h + at);

				CHECK(left >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= left);
				at += NLA_ALIGN(a->nla_len);
				left -= NLA_ALIGN(a->nla_len);
			}
		}
	}
	CHECK(fails);
}

static void netlink_some(struct worker *w)
{
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		uint8_t v[12000];
	} r = { .h = { .nlmsg_type = w->family, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK, .nlmsg_seq = dice(1000) },
		.g = { .cmd = 1 + dice(26), .version = 1 } };
	static const uint8_t dumps[] = { NNET_CMD_FACE_GET, NNET_CMD_FIB_GET, NNET_CMD_BPT_GET, NNET_CMD_PIT_GET,
					 NNET_CMD_STATS_GET };
	uint8_t *p = r.v;
	size_t len;

	if (!dice(4)) {
		r.g.cmd = dumps[dice(5)];
		r.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	}
	for (int n = dice(6); n-- && r.h.nlmsg_flags == (NLM_F_REQUEST | NLM_F_ACK);) {
		struct nlattr *a = (void *)p;
		uint8_t body[8192];
		uint32_t value = dice(4) ? dice(8) : dice(2) ? 256 + dice(6) : dice(UINT32_MAX);

		a->nla_type = 1 + dice(45);
		memset(body, 0, 64);
		memcpy(body, &value, 4);
		len = (size_t[]){ 1, 2, 4, 8, 6, 16 }[dice(6)];
		if (a->nla_type == NNET_A_NAME)
			len = some_name(body, 3);
		else if (a->nla_type == NNET_A_PACKET)
			len = dice(2) ? some_interest(body) : some_data(body);
		else if (a->nla_type == NNET_A_IFINDEX)
			memcpy(body, &w->device, 4), len = 4;
		/* A dispatcher's threads stay, and what is chosen for them holds for all. */
		if (a->nla_type == NNET_A_DISPATCH_MODE && body[0] > 3)
			body[0] = 1;
		a->nla_len = NLA_HDRLEN + len;
		memcpy(p + NLA_HDRLEN, body, len);
		p += NLA_ALIGN(a->nla_len);
		if (p - r.v > 3000)
			break;
	}
	r.h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) + (p - r.v);
	len = p - r.v;
	if (!dice(6))
		broken(r.v, &len);
	if (send(w->control, &r, r.h.nlmsg_len, MSG_DONTWAIT) > 0)
		dump_read(w->control);
}

static void open_some(struct worker *w, int i)
{
	static const int types[] = { SOCK_RAW, SOCK_DGRAM, SOCK_SEQPACKET };

	if (w->fd[i] > 0)
		close(w->fd[i]);
	w->type[i] = types[dice(3)];
	w->fd[i] = socket(onym_family(), w->type[i] | SOCK_NONBLOCK, dice(4) ? 0 : dice(5));
	if (w->fd[i] < 0)
		w->fd[i] = 0;
}

static void frame_some(struct worker *w)
{
	static uint8_t v[2 * ONYM_PACKET_MAX];
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(0x8624), .sll_halen = 6,
				  .sll_ifindex = w->device };
	size_t len = some_frame(v);

	memset(to.sll_addr, dice(3) ? 0xff : 2, 6);
	broken(v, &len);
	if (len > 1480)
		len = 1480;
	sendto(w->frames, v, len ?: 1, MSG_DONTWAIT, (void *)&to, sizeof(to));
}

static void act(struct worker *w)
{
	int i = dice(FDS);

	if (w->fd[i] <= 0 || !dice(25)) {
		open_some(w, i);
		return;
	}
	switch (dice(10)) {
	case 0:
		address_some(w, i);
		break;
	case 1:
		option_some(w, i);
		break;
	case 2:
		if (w->control > 0)
			netlink_some(w);
		break;
	case 3:
		if (w->frames > 0)
			frame_some(w);
		break;
	case 4:
	case 5:
		receive(w->fd[i], w->type[i]);
		break;
	default:
		send_some(w, i);
	}
}

/*
 * traffic SEED COUNT [DEVICE]: what one worker does; COUNT 0: until it is killed. With
 * a device also frames.
 */
int traffic(int argc, char **argv)
{
	struct worker w = { 0 };
	long count = atol(argv[1]);

	state = 0x9e3779b97f4a7c15ull * (atoi(argv[0]) + 1);
	w.control = onym_ctl_open();
	w.family = w.control >= 0 ? onym_ctl_family(w.control) : 0;
	if (argc > 2) {
		w.device = if_nametoindex(argv[2]);
		w.frames = socket(AF_PACKET, SOCK_DGRAM, htons(0x8624));
	}
	for (long n = 0; !count || n < count; n++)
		act(&w);
	return 0;
}

/* witness SECONDS: asks and answers in a namespace where strangers do what they like. */
int witness(int argc, char **argv)
{
	struct onym_name prefix = name_of("/witness-only");
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int provider = bound("/witness-only", 0), c = onym_socket(SOCK_DGRAM, 0);
	time_t end = time(NULL) + atoi(argv[0]);
	uint32_t served = 0, tries = 0;

	CHECK(provider >= 0 && c >= 0);
	patience(provider, 20);
	while (time(NULL) < end) {
		struct onym_name n = prefix;
		struct onym_data d = { .name = &p.name, .content = "yes", .len = 3 };

		CHECK(!onym_name_segment(&n, NUMBER_FIRST + tries++));
		CHECK(!onym_send_interest(c, &n, 0, 20000));
		CHECK(onym_recv(provider, &p, 0) >= 0 && p.type == NNET_INTEREST);
		CHECK(!onym_send_data(provider, &d));
		patience(c, 20);
		CHECK(onym_recv(c, &p, 0) == 3 && p.type == NNET_DATA);
		served++;
		usleep(20000);
	}
	printf("the witness was served %u times of %u\n", served, tries);
	return 0;
}

/* Marks a process: where the kernel lets them, its allocations fail. Root says so. */
static void mark(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/make-it-fail", pid);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
}

/*
 * as UID FLAGS COMMAND…: runs a command as a user; FLAGS: u, n for namespaces of its
 * own, m for a mark, - for none. What is marked is `traffic`, and only when it is what
 * it shall be, so that nothing but what it does fails.
 */
int run_as(int argc, char **argv)
{
	int uid = atoi(argv[0]), flags = 0, ready[2], go[2], status;
	extern char **environ;
	pid_t child = 0;
	char c;

	flags |= strchr(argv[1], 'u') ? CLONE_NEWUSER : 0;
	flags |= strchr(argv[1], 'n') ? CLONE_NEWNET : 0;
	if (strchr(argv[1], 'm')) {
		CHECK(!pipe(ready) && !pipe(go));
		child = fork();
		if (child) {
			CHECK(child > 0 && read(ready[0], &c, 1) == 1);
			mark(child);
			CHECK(write(go[1], "x", 1) == 1 && waitpid(child, &status, 0) == child);
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		}
	}
	CHECK(!uid || (!setgid(uid) && !setuid(uid)));
	CHECK(!flags || !unshare(flags));
	if (strchr(argv[1], 'm')) {
		CHECK(argc > 4 && write(ready[1], "x", 1) == 1 && read(go[0], &c, 1) == 1);
		fails = 1;
		return traffic(argc - 3, argv + 3);
	}
	execve("/proc/self/exe", argv + 1, environ);
	return 2;
}
