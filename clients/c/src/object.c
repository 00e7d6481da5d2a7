// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Signing, and the information-centric calls. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "internal.h"

/* FIPS 180-4. */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

struct sha {
	uint32_t h[8];
	uint64_t len;
	uint8_t buf[64];
};

static uint32_t ror(uint32_t v, int n)
{
	return v >> n | v << (32 - n);
}

static void sha_block(struct sha *s, const uint8_t *p)
{
	uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3];
	uint32_t e = s->h[4], f = s->h[5], g = s->h[6], h = s->h[7], w[64];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 64; i++) {
		uint32_t t = h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
		uint32_t u = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

		h = g, g = f, f = e, e = d + t;
		d = c, c = b, b = a, a = t + u;
	}
	s->h[0] += a, s->h[1] += b, s->h[2] += c, s->h[3] += d;
	s->h[4] += e, s->h[5] += f, s->h[6] += g, s->h[7] += h;
}

static void sha_init(struct sha *s)
{
	static const uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, h, sizeof(h));
	s->len = 0;
}

static void sha_add(struct sha *s, const void *octets, size_t len)
{
	const uint8_t *p = octets;

	while (len) {
		size_t at = s->len % 64, n = len < 64 - at ? len : 64 - at;

		if (n == 64) {
			sha_block(s, p);
		} else {
			memcpy(s->buf + at, p, n);
			if (at + n == 64)
				sha_block(s, s->buf);
		}
		s->len += n;
		p += n;
		len -= n;
	}
}

static void sha_end(struct sha *s, uint8_t out[32])
{
	uint64_t bits = s->len * 8;
	uint8_t pad = 0x80, length[8];

	sha_add(s, &pad, 1);
	pad = 0;
	while (s->len % 64 != 56)
		sha_add(s, &pad, 1);
	for (int i = 0; i < 8; i++)
		length[i] = bits >> (56 - 8 * i);
	sha_add(s, length, 8);
	for (int i = 0; i < 32; i++)
		out[i] = s->h[i / 4] >> (24 - 8 * (i % 4));
}

void onym_sha256(const void *octets, size_t len, uint8_t out[32])
{
	struct sha s;

	sha_init(&s);
	sha_add(&s, octets, len);
	sha_end(&s, out);
}

/* RFC 2104. */
static void hmac(const uint8_t *secret, size_t secret_len, const void *octets, size_t len, uint8_t out[32])
{
	uint8_t key[64] = { 0 }, pad[64];
	struct sha s;

	if (secret_len > 64)
		onym_sha256(secret, secret_len, key);
	else
		memcpy(key, secret, secret_len);
	for (int i = 0; i < 64; i++)
		pad[i] = key[i] ^ 0x36;
	sha_init(&s);
	sha_add(&s, pad, 64);
	sha_add(&s, octets, len);
	sha_end(&s, out);
	for (int i = 0; i < 64; i++)
		pad[i] = key[i] ^ 0x5c;
	sha_init(&s);
	sha_add(&s, pad, 64);
	sha_add(&s, out, 32);
	sha_end(&s, out);
}

static uint8_t *put_octets(uint8_t *p, uint32_t type, const void *v, size_t len)
{
	p = onym_put_tl(p, type, len);
	if (len)
		memcpy(p, v, len);
	return p + len;
}

static uint8_t *put_meta(uint8_t *p, const struct onym_data *d)
{
	uint8_t meta[128], *m = meta;

	if (d->content_type)
		m = onym_put_nni(m, 24, d->content_type);
	if (d->freshness)
		m = onym_put_nni(m, 25, d->freshness);
	if (d->final && d->final_len < 100)
		m = put_octets(m, 26, d->final, d->final_len);
	return m > meta ? put_octets(p, 20, meta, m - meta) : p;
}

ssize_t onym_data_make(const struct onym_data *d, const struct onym_key *key, uint8_t *buf, size_t size)
{
	size_t locator = key && key->locator ? onym_tl_size(7, key->locator->len) : 0, inner;
	uint8_t work[ONYM_PACKET_MAX + 1024], *p = work, value[512];
	uint32_t type = key ? key->type : 0;
	int n = 32;

	if (d->name->len + d->len + locator > ONYM_PACKET_MAX - 100)
		return -EMSGSIZE;
	p = put_octets(p, 7, d->name->v, d->name->len);
	p = put_meta(p, d);
	p = put_octets(p, 21, d->content, d->len);
	p = onym_put_tl(p, 22, 3 + (locator ? onym_tl_size(28, locator) : 0));
	p = onym_put_nni(p, 27, type);
	if (locator) {
		p = onym_put_tl(p, 28, locator);
		p = put_octets(p, 7, key->locator->v, key->locator->len);
	}
	if (!type)
		onym_sha256(work, p - work, value);
	else if (type == 4)
		hmac(key->secret, key->secret_len, work, p - work, value);
	else
		n = key->sign ? key->sign(key->ctx, work, p - work, value, sizeof(value)) : -ENOTSUP;
	if (n < 0)
		return n;
	p = put_octets(p, 23, value, n);
	inner = p - work;
	if (onym_tl_size(6, inner) > size || onym_tl_size(6, inner) > ONYM_PACKET_MAX)
		return -EMSGSIZE;
	p = put_octets(buf, 6, work, inner);
	return p - buf;
}

int onym_data_verify(const uint8_t *data, size_t len, const struct onym_key *key)
{
	const uint8_t *p = data, *end = data + len, *start, *info = NULL, *at;
	uint64_t type, n, kind = UINT64_MAX;
	uint8_t value[32];

	if (onym_get_tl(&p, end, &type, &n) || type != 6)
		return -EBADMSG;
	end = p + n;
	for (start = p; p < end; p += n) {
		at = p;
		if (onym_get_tl(&p, end, &type, &n))
			return -EBADMSG;
		if (type == 22)
			info = p;
		if (type == 23)
			break;
	}
	if (!info || type != 23)
		return -EBADMSG;
	if (info[0] == 27)
		kind = onym_get_nni(info + 2, info[1]);
	if (!kind)
		onym_sha256(start, at - start, value);
	else if (kind == 4 && key && key->secret)
		hmac(key->secret, key->secret_len, start, at - start, value);
	else
		return -ENOTSUP;
	return n == 32 && !memcmp(value, p, 32) ? 0 : -EBADMSG;
}

static int publish(int fd, const struct onym_data *d, const struct onym_key *key, uint32_t ms)
{
	char control[CMSG_SPACE(4)] __attribute__((aligned(8))) = { 0 };
	uint8_t buf[ONYM_PACKET_MAX];
	ssize_t len = onym_data_make(d, key, buf, sizeof(buf));
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (len < 0)
		return len;
	c->cmsg_level = SOL_NNET;
	c->cmsg_type = NNET_CM_PUBLISH;
	c->cmsg_len = CMSG_LEN(4);
	memcpy(CMSG_DATA(c), &ms, 4);
	return sendmsg(fd, &msg, 0) < 0 ? -errno : 0;
}

int onym_publish(int fd, const struct onym_data *d, const struct onym_key *key)
{
	return publish(fd, d, key, 0);
}

int onym_cast(int fd, const struct onym_data *d, const struct onym_key *key, uint32_t lifetime_ms)
{
	return publish(fd, d, key, lifetime_ms ?: 4000);
}

int onym_unpublish(int fd, const struct onym_name *prefix)
{
	return setsockopt(fd, SOL_NNET, NNET_UNPUBLISH, prefix->v, prefix->len) ? -errno : 0;
}

static void put_be(uint8_t *p, uint64_t v, int n)
{
	while (n--)
		*p++ = v >> (8 * n);
}

static int publish_meta(int fd, const struct onym_name *name, const void *content, size_t len,
			size_t segment, uint64_t last, size_t packet, const struct onym_key *key)
{
	struct onym_name touch = *name;
	uint8_t meta[40], digest[32];
	struct onym_data d = { .name = &touch, .content = meta, .len = sizeof(meta), .freshness = 1000 };
	int err = onym_name_append(&touch, 8, "_TOUCH", 6);

	onym_sha256(content, len, digest);
	put_be(meta, name->len, 4);
	memcpy(meta + 4, digest, 4);
	put_be(meta + 8, 0, 8);
	put_be(meta + 16, last, 8);
	put_be(meta + 24, segment, 4);
	put_be(meta + 28, packet, 4);
	put_be(meta + 32, len, 8);
	return err ?: onym_publish(fd, &d, key);
}

int onym_pump(int fd, const struct onym_name *name, const void *content, size_t len, size_t segment,
	      const struct onym_key *key)
{
	uint64_t last = len ? (len - 1) / segment : 0;
	struct onym_name n = *name;
	uint8_t final[12];
	struct onym_data d = { .name = &n, .freshness = 10000, .final = final };
	size_t at = 0;
	int err;

	if (!segment)
		return -EINVAL;
	d.final_len = onym_put_nni(final, 50, last) - final;
	for (uint64_t i = 0; i <= last; i++) {
		n = *name;
		err = onym_name_segment(&n, i);
		d.content = (const uint8_t *)content + at;
		d.len = len - at < segment ? len - at : segment;
		err = err ?: onym_publish(fd, &d, key);
		if (err)
			return err;
		at += d.len;
	}
	return publish_meta(fd, name, content, len, segment, last, segment + name->len + 100, key);
}

int onym_unpump(int fd, const struct onym_name *name)
{
	return onym_unpublish(fd, name);
}

static int set_timeout(int fd, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) ? -errno : 0;
}

int onym_touch(const struct onym_name *name, struct onym_meta *meta, int timeout_ms)
{
	uint8_t buf[64];
	struct onym_packet p = { .content = buf, .size = sizeof(buf) };
	struct onym_name touch = *name;
	int fd = onym_socket(SOCK_DGRAM, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = onym_name_append(&touch, 8, "_TOUCH", 6) ?: set_timeout(fd, timeout_ms) ?:
	    onym_send_interest(fd, &touch, NNET_MUST_BE_FRESH, timeout_ms);
	n = n ?: onym_recv(fd, &p, 0);
	close(fd);
	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : n;
	if (p.type != NNET_DATA)
		return -EHOSTUNREACH;
	if (n != 40)
		return -EBADMSG;
	meta->name_len = onym_get_nni(buf, 4);
	memcpy(meta->pin, buf + 4, 4);
	meta->first = onym_get_nni(buf + 8, 8);
	meta->last = onym_get_nni(buf + 16, 8);
	meta->mtu = onym_get_nni(buf + 24, 4);
	meta->packet_len = onym_get_nni(buf + 28, 4);
	meta->size = onym_get_nni(buf + 32, 8);
	return 0;
}

int64_t onym_request(const struct onym_name *name, onym_sink sink, void *ctx, int timeout_ms)
{
	static __thread uint8_t buf[ONYM_PACKET_MAX];
	int fd = onym_socket(SOCK_SEQPACKET, 0), last = 0;
	int64_t total = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = set_timeout(fd, timeout_ms) ?: onym_connect(fd, name, 0);
	while (!n && !last) {
		struct onym_packet p = { .content = buf, .size = sizeof(buf) };

		n = onym_recv(fd, &p, 0);
		if (n < 0)
			break;
		total += n;
		last = p.last;
		n = sink(ctx, p.segment, buf, n);
	}
	close(fd);
	return n < 0 ? n : total;
}

int onym_watch(const struct onym_name *name)
{
	int fd = onym_socket(SOCK_DGRAM, 0), err;

	if (fd < 0)
		return fd;
	err = onym_bind(fd, name, 0);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int onym_unwatch(int fd)
{
	return close(fd) ? -errno : 0;
}

/* An Interest on a RAW socket is the packet itself; its name is read from it. */
static int raw_interest(struct onym_packet *p, const uint8_t *buf, ssize_t n)
{
	const uint8_t *at = buf, *end = buf + n;
	uint64_t type, len;

	if (p->name.len)
		return 0;
	if (onym_get_tl(&at, end, &type, &len) || onym_get_tl(&at, end, &type, &len) || type != 7 ||
	    len > sizeof(p->name.v))
		return -EBADMSG;
	memcpy(p->name.v, at, len);
	p->name.len = len;
	p->type = p->type ?: NNET_INTEREST;
	return 0;
}

int onym_status(int fd, struct onym_packet *p, int timeout_ms)
{
	static __thread uint8_t buf[ONYM_PACKET_MAX];
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n = poll(&pfd, 1, timeout_ms);

	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	p->content = buf;
	p->size = sizeof(buf);
	n = onym_recv(fd, p, MSG_DONTWAIT);
	return n < 0 ? n : raw_interest(p, buf, n);
}
