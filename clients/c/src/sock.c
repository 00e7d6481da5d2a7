// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

int onym_family(void)
{
	char buf[16] = { 0 };
	int fd = open("/sys/module/nnet/parameters/family", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -EAFNOSUPPORT;
	if (read(fd, buf, sizeof(buf) - 1) <= 0)
		buf[0] = 0;
	close(fd);
	return atoi(buf) ?: -EAFNOSUPPORT;
}

int onym_socket(int type, int protocol)
{
	int family = onym_family(), fd;

	if (family < 0)
		return family;
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	return fd < 0 ? -errno : fd;
}

/* Long names go by option, short ones in the address. */
static int address(int fd, const struct onym_name *name, int flags, struct sockaddr_nnet *a)
{
	memset(a, 0, sizeof(*a));
	a->snn_family = onym_family();
	a->snn_flags = flags;
	if (name->len <= sizeof(a->snn_name)) {
		a->snn_name_len = name->len;
		memcpy(a->snn_name, name->v, name->len);
		return 0;
	}
	a->snn_flags |= NNET_ADDR_EXTERNAL;
	return setsockopt(fd, SOL_NNET, NNET_NAME, name->v, name->len) ? -errno : 0;
}

int onym_bind(int fd, const struct onym_name *name, int flags)
{
	struct sockaddr_nnet a;
	int err = address(fd, name, flags, &a);

	if (err)
		return err;
	return bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
}

int onym_connect(int fd, const struct onym_name *name, int flags)
{
	struct sockaddr_nnet a;
	int err = address(fd, name, flags, &a);

	if (err)
		return err;
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
}

/* Control messages, written one behind the other. */
struct out {
	struct msghdr msg;
	struct iovec iov;
	size_t at;
	char buf[2048] __attribute__((aligned(8)));
};

static void out_init(struct out *o, const void *content, size_t len)
{
	memset(&o->msg, 0, sizeof(o->msg));
	o->at = 0;
	o->iov.iov_base = (void *)content;
	o->iov.iov_len = len;
	o->msg.msg_iov = &o->iov;
	o->msg.msg_iovlen = 1;
	o->msg.msg_control = o->buf;
}

static void out_put(struct out *o, int type, const void *v, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(o->buf + o->at);

	if (o->at + CMSG_SPACE(len) > sizeof(o->buf))
		return;
	memset(c, 0, CMSG_SPACE(len));
	c->cmsg_level = SOL_NNET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), v, len);
	o->at += CMSG_SPACE(len);
	o->msg.msg_controllen = o->at;
}

static void out_u32(struct out *o, int type, uint32_t v)
{
	out_put(o, type, &v, sizeof(v));
}

static int out_send(int fd, struct out *o)
{
	return sendmsg(fd, &o->msg, 0) < 0 ? -errno : 0;
}

int onym_send_interest(int fd, const struct onym_name *name, uint32_t flags, uint32_t lifetime)
{
	struct out o;

	out_init(&o, NULL, 0);
	out_u32(&o, NNET_CM_TYPE, NNET_INTEREST);
	out_put(&o, NNET_CM_NAME, name->v, name->len);
	if (flags)
		out_u32(&o, NNET_CM_FLAGS, flags);
	if (lifetime)
		out_u32(&o, NNET_CM_LIFETIME, lifetime);
	return out_send(fd, &o);
}

int onym_send_nack(int fd, const struct onym_packet *interest, uint32_t reason)
{
	struct out o;

	out_init(&o, NULL, 0);
	out_u32(&o, NNET_CM_TYPE, NNET_NACK);
	out_put(&o, NNET_CM_NAME, interest->name.v, interest->name.len);
	out_u32(&o, NNET_CM_FLAGS, interest->flags);
	out_u32(&o, NNET_CM_NONCE, interest->nonce);
	out_u32(&o, NNET_CM_REASON, reason);
	return out_send(fd, &o);
}

int onym_send_data(int fd, const struct onym_data *d)
{
	struct out o;

	out_init(&o, d->content, d->len);
	out_u32(&o, NNET_CM_TYPE, NNET_DATA);
	out_put(&o, NNET_CM_NAME, d->name->v, d->name->len);
	if (d->freshness)
		out_u32(&o, NNET_CM_FRESHNESS, d->freshness);
	if (d->content_type)
		out_u32(&o, NNET_CM_CONTENT_TYPE, d->content_type);
	if (d->final)
		out_put(&o, NNET_CM_FINAL_BLOCK, d->final, d->final_len);
	return out_send(fd, &o);
}

static void take(struct onym_packet *p, const struct cmsghdr *c)
{
	const void *v = CMSG_DATA(c);
	size_t n = c->cmsg_len - CMSG_LEN(0);
	static const struct {
		int type;
		size_t at;
	} numbers[] = {
		{ NNET_CM_TYPE, offsetof(struct onym_packet, type) },
		{ NNET_CM_LIFETIME, offsetof(struct onym_packet, lifetime) },
		{ NNET_CM_FRESHNESS, offsetof(struct onym_packet, freshness) },
		{ NNET_CM_FLAGS, offsetof(struct onym_packet, flags) },
		{ NNET_CM_NONCE, offsetof(struct onym_packet, nonce) },
		{ NNET_CM_REASON, offsetof(struct onym_packet, reason) },
		{ NNET_CM_FACE, offsetof(struct onym_packet, face) },
		{ NNET_CM_MARK, offsetof(struct onym_packet, mark) },
		{ NNET_CM_CONTENT_TYPE, offsetof(struct onym_packet, content_type) },
		{ NNET_CM_SATISFIED, offsetof(struct onym_packet, satisfied) },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (c->cmsg_type == numbers[i].type && n == 4)
			memcpy((char *)p + numbers[i].at, v, 4);
	if (c->cmsg_type == NNET_CM_NAME && n <= sizeof(p->name.v)) {
		memcpy(p->name.v, v, n);
		p->name.len = n;
	} else if (c->cmsg_type == NNET_CM_FINAL_BLOCK && n <= sizeof(p->final)) {
		memcpy(p->final, v, n);
		p->final_len = n;
	} else if (c->cmsg_type == NNET_CM_SEGMENT && n == 8) {
		memcpy(&p->segment, v, 8);
	}
}

ssize_t onym_recv(int fd, struct onym_packet *p, int flags)
{
	char control[4096] __attribute__((aligned(8)));
	struct iovec iov = { p->content, p->size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	uint8_t *content = p->content;
	size_t size = p->size;
	ssize_t n = recvmsg(fd, &msg, flags);

	if (n < 0)
		return -errno;
	memset(p, 0, sizeof(*p));
	p->content = content;
	p->size = size;
	p->len = n;
	p->last = !!(msg.msg_flags & MSG_EOR);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_NNET)
			take(p, c);
	return n;
}
