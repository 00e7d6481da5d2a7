// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Names and TLV. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>

#include "internal.h"

uint8_t *onym_put_tl(uint8_t *p, uint64_t type, uint64_t len)
{
	uint64_t v[2] = { type, len };

	for (int i = 0; i < 2; i++) {
		if (v[i] < 253) {
			*p++ = v[i];
		} else {
			*p++ = 253;
			*p++ = v[i] >> 8;
			*p++ = v[i];
		}
	}
	return p;
}

size_t onym_tl_size(uint64_t type, uint64_t len)
{
	return (type < 253 ? 1 : 3) + (len < 253 ? 1 : 3) + len;
}

static size_t nni_size(uint64_t v)
{
	return v < 256 ? 1 : v < 65536 ? 2 : v <= UINT32_MAX ? 4 : 8;
}

uint8_t *onym_put_nni(uint8_t *p, uint32_t type, uint64_t v)
{
	size_t n = nni_size(v);

	p = onym_put_tl(p, type, n);
	for (size_t i = n; i--;)
		*p++ = v >> (8 * i);
	return p;
}

static int get_var(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	const uint8_t *at = *p;
	int n;

	if (at >= end)
		return -EINVAL;
	if (*at < 253) {
		*v = *at;
		*p = at + 1;
		return 0;
	}
	n = *at == 253 ? 2 : *at == 254 ? 4 : 8;
	if (end - at <= n)
		return -EINVAL;
	*v = 0;
	for (int i = 1; i <= n; i++)
		*v = *v << 8 | at[i];
	*p = at + 1 + n;
	return 0;
}

int onym_get_tl(const uint8_t **p, const uint8_t *end, uint64_t *type, uint64_t *len)
{
	if (get_var(p, end, type) || get_var(p, end, len) || *len > (uint64_t)(end - *p))
		return -EINVAL;
	return 0;
}

uint64_t onym_get_nni(const uint8_t *p, size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++)
		v = v << 8 | p[i];
	return v;
}

int onym_name_append(struct onym_name *name, uint32_t type, const void *value, size_t len)
{
	uint8_t *p;

	if (name->len + onym_tl_size(type, len) > sizeof(name->v))
		return -ENAMETOOLONG;
	p = onym_put_tl(name->v + name->len, type, len);
	memcpy(p, value, len);
	name->len = p + len - name->v;
	return 0;
}

static int append_number(struct onym_name *name, uint32_t type, uint64_t v)
{
	if (name->len + 10 > sizeof(name->v))
		return -ENAMETOOLONG;
	name->len = onym_put_nni(name->v + name->len, type, v) - name->v;
	return 0;
}

int onym_name_segment(struct onym_name *name, uint64_t segment)
{
	return append_number(name, 50, segment);
}

int onym_name_version(struct onym_name *name, uint64_t version)
{
	return append_number(name, 54, version);
}

static int unescape(const char *s, size_t n, uint8_t *out, size_t *len)
{
	*len = 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '%') {
			char hex[3] = { 0 };

			if (i + 2 >= n || !isxdigit((unsigned char)s[i + 1]) ||
			    !isxdigit((unsigned char)s[i + 2]))
				return -EINVAL;
			memcpy(hex, s + i + 1, 2);
			out[(*len)++] = strtoul(hex, NULL, 16);
			i += 2;
		} else {
			out[(*len)++] = s[i];
		}
	}
	return 0;
}

static int append_component(struct onym_name *name, const char *s, size_t n)
{
	static const struct {
		const char *word;
		uint32_t type;
	} typed[] = { { "seg=", 50 }, { "off=", 52 }, { "v=", 54 }, { "t=", 56 }, { "seq=", 58 } };
	uint8_t value[1024];
	uint32_t type = 8;
	size_t len, dots = strspn(s, ".");

	for (size_t i = 0; i < sizeof(typed) / sizeof(*typed); i++) {
		size_t w = strlen(typed[i].word);

		if (n > w && !strncmp(s, typed[i].word, w))
			return append_number(name, typed[i].type, strtoull(s + w, NULL, 10));
	}
	if (n > sizeof(value))
		return -ENAMETOOLONG;
	if (isdigit((unsigned char)*s) && memchr(s, '=', n)) {
		char *end;

		type = strtoul(s, &end, 10);
		if (*end != '=' || !type || type > 65535)
			return -EINVAL;
		n -= end + 1 - s;
		s = end + 1;
	} else if (dots >= n) {
		if (n < 3)
			return -EINVAL;
		n -= 3;
	}
	if (unescape(s, n, value, &len))
		return -EINVAL;
	return onym_name_append(name, type, value, len);
}

int onym_name(const char *uri, struct onym_name *name)
{
	int err;

	name->len = 0;
	if (!strncmp(uri, "ndn:", 4))
		uri += 4;
	while (*uri) {
		size_t n;

		uri += *uri == '/';
		n = strcspn(uri, "/");
		if (n) {
			err = append_component(name, uri, n);
			if (err)
				return err;
		}
		uri += n;
	}
	return 0;
}

int onym_name_show(const uint8_t *v, size_t len, char *buf, size_t size)
{
	const uint8_t *p = v, *end = v + len;
	uint64_t type, n;
	size_t at = 0;

	if (!len)
		return snprintf(buf, size, "/");
	while (p < end && !onym_get_tl(&p, end, &type, &n) && at + 40 < size) {
		buf[at++] = '/';
		if (type == 50 || type == 54)
			at += snprintf(buf + at, size - at, "%s%llu", type == 50 ? "seg=" : "v=",
				       (unsigned long long)onym_get_nni(p, n));
		else if (type != 8)
			at += snprintf(buf + at, size - at, "%llu=", (unsigned long long)type);
		for (uint64_t i = 0; type != 50 && type != 54 && i < n && at + 40 < size; i++)
			at += snprintf(buf + at, size - at,
				       isalnum(p[i]) || strchr("-._~", p[i]) ? "%c" : "%%%02X", p[i]);
		p += n;
	}
	buf[at] = 0;
	return at;
}
