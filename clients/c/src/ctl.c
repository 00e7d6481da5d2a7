// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Control: the generic netlink family. */
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "internal.h"
#include "nnet_nl.h"

struct request {
	struct nlmsghdr h;
	struct genlmsghdr g;
	uint8_t attrs[9000];
};

static void put(struct request *r, uint16_t type, const void *v, size_t len)
{
	struct nlattr *a = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->h.nlmsg_len));

	if (NLMSG_ALIGN(r->h.nlmsg_len) + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(*r))
		return;
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, v, len);
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static void init(struct request *r, uint16_t family, uint8_t cmd)
{
	static uint32_t sequence;

	memset(r, 0, sizeof(r->h) + sizeof(r->g));
	r->h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	r->h.nlmsg_type = family;
	r->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	r->h.nlmsg_seq = ++sequence;
	r->g.cmd = cmd;
	r->g.version = 1;
}

static const void *find(const struct nlmsghdr *h, uint16_t type, size_t *len)
{
	const char *p = (const char *)h + NLMSG_LENGTH(GENL_HDRLEN), *end = (const char *)h + h->nlmsg_len;

	while (p + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const struct nlattr *)p;

		if (a->nla_len < NLA_HDRLEN)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type) {
			*len = a->nla_len - NLA_HDRLEN;
			return p + NLA_HDRLEN;
		}
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

/* Sends a request; what it answers goes to *reply; the acknowledgement ends it. */
static int talk(int ctl, struct request *r, uint32_t *reply, uint16_t attr)
{
	char buf[16384];
	ssize_t n;

	if (send(ctl, r, r->h.nlmsg_len, 0) < 0)
		return -errno;
	while ((n = recv(ctl, buf, sizeof(buf), 0)) > 0) {
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			const void *v;
			size_t len;

			if (h->nlmsg_seq != r->h.nlmsg_seq)
				continue;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			v = reply ? find(h, attr, &len) : NULL;
			if (v)
				memcpy(reply, v, len < 4 ? len : 4);
		}
	}
	return n < 0 ? -errno : -EPIPE;
}

uint16_t onym_ctl_family(int ctl)
{
	struct request r;
	uint32_t id = 0;

	init(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	put(&r, CTRL_ATTR_FAMILY_NAME, NNET_NL_NAME, sizeof(NNET_NL_NAME));
	return talk(ctl, &r, &id, CTRL_ATTR_FAMILY_ID) ? 0 : id;
}

int onym_ctl_open(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || !onym_ctl_family(fd)) {
		close(fd);
		return -EAFNOSUPPORT;
	}
	return fd;
}

void onym_ctl_close(int ctl)
{
	close(ctl);
}

int onym_ctl_call(int ctl, uint8_t command, uint32_t *reply, uint16_t reply_attr, ...)
{
	uint16_t family = onym_ctl_family(ctl);
	struct request r;
	va_list ap;
	int type;

	if (!family)
		return -EAFNOSUPPORT;
	init(&r, family, command);
	va_start(ap, reply_attr);
	while ((type = va_arg(ap, int))) {
		const void *v = va_arg(ap, const void *);

		put(&r, type, v, va_arg(ap, size_t));
	}
	va_end(ap);
	return talk(ctl, &r, reply, reply_attr);
}

#define ATTR(type, v) (int)(type), (const void *)&(v), sizeof(v)

int onym_ctl_ether(int ctl, const char *device, const uint8_t mac[6], uint16_t mtu, uint32_t *face)
{
	uint8_t kind = NNET_FACE_KIND_ETHER;
	uint32_t index = if_nametoindex(device);

	if (!index)
		return -ENODEV;
	return onym_ctl_call(ctl, NNET_CMD_FACE_NEW, face, NNET_A_FACE_ID, ATTR(NNET_A_FACE_KIND, kind),
			     ATTR(NNET_A_IFINDEX, index), NNET_A_PEER, (const void *)mac, (size_t)6,
			     ATTR(NNET_A_MTU, mtu), 0);
}

int onym_ctl_udp(int ctl, const uint8_t address[16], uint16_t port, uint16_t mtu, uint32_t *face)
{
	uint8_t kind = NNET_FACE_KIND_UDP;

	return onym_ctl_call(ctl, NNET_CMD_FACE_NEW, face, NNET_A_FACE_ID, ATTR(NNET_A_FACE_KIND, kind),
			     NNET_A_ADDRESS, (const void *)address, (size_t)16, ATTR(NNET_A_PORT, port),
			     ATTR(NNET_A_MTU, mtu), 0);
}

int onym_ctl_face_del(int ctl, uint32_t face)
{
	return onym_ctl_call(ctl, NNET_CMD_FACE_DEL, NULL, 0, ATTR(NNET_A_FACE_ID, face), 0);
}

int onym_ctl_route(int ctl, const struct onym_name *prefix, uint32_t face, uint32_t cost)
{
	return onym_ctl_call(ctl, NNET_CMD_FIB_ADD, NULL, 0, NNET_A_NAME, (const void *)prefix->v,
			     prefix->len, ATTR(NNET_A_FACE_ID, face), ATTR(NNET_A_COST, cost), 0);
}

int onym_ctl_unroute(int ctl, const struct onym_name *prefix, uint32_t face)
{
	return onym_ctl_call(ctl, NNET_CMD_FIB_DEL, NULL, 0, NNET_A_NAME, (const void *)prefix->v,
			     prefix->len, ATTR(NNET_A_FACE_ID, face), 0);
}

int onym_ctl_strategy(int ctl, const struct onym_name *prefix, uint8_t strategy)
{
	return onym_ctl_call(ctl, NNET_CMD_STRATEGY_SET, NULL, 0, NNET_A_NAME, (const void *)prefix->v,
			     prefix->len, ATTR(NNET_A_STRATEGY, strategy), 0);
}
