// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Identifiers, routes and statuses of the push half as text. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <onym/push.h>

static bool is_digits(const char *s, size_t len)
{
	if (len < 1 || len > 16)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

// 1 to 64 octets, none of them a control character, and no mark in front (P-72).
static bool is_word(const char *s, size_t len)
{
	if (len < 1 || len > 64 || s[0] == '=' || s[0] == '*')
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		bool is_c1 = c == 0xC2 && i + 1 < len && (unsigned char)s[i + 1] < 0xA0;

		if (c < 0x20 || c == 0x7F || is_c1)
			return false;
	}
	return true;
}

static uint64_t of_digits(const char *s, size_t len)
{
	uint64_t label = 0;

	for (size_t i = 0; i < len; i++) {
		int c = tolower((unsigned char)s[i]);

		label = label << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return label;
}

// FNV-1a of 64 bits.
static uint64_t of_word(const char *s, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)s[i]) * 0x100000001b3;
	return hash;
}

int onym_push_id(const char *text, struct onym_push_id *id)
{
	id->len = 0;
	id->word[0] = 0;
	if (*text != '/')
		return -EINVAL;
	if (!text[1])
		return 0;
	while (*text == '/') {
		const char *part = text + 1;
		size_t len = strcspn(part, "/");
		uint64_t label;

		text = part + len;
		id->word[0] = 0;
		if (is_digits(part, len)) {
			label = of_digits(part, len);
		} else {
			size_t mark = *part == '=';

			part += mark;
			len -= mark;
			if (!is_word(part, len))
				return -EINVAL;
			label = of_word(part, len);
			memcpy(id->word, part, len);
			id->word[len] = 0;
		}
		if (id->len == sizeof(id->v))
			return -ENAMETOOLONG;
		for (int shift = 56; shift >= 0; shift -= 8)
			id->v[id->len++] = (uint8_t)(label >> shift);
	}
	return 0;
}

int onym_push_route(unsigned table, const char *filter, struct onym_push_route *route)
{
	if (table > 255 || strlen(filter) != 256 || strspn(filter, "01") != 256)
		return -EINVAL;
	memset(route->octets, 0, sizeof(route->octets));
	route->octets[0] = 1;
	route->octets[1] = (uint8_t)table;
	route->len = sizeof(route->octets);
	// The first digit is bit 255, in the last octet.
	for (int bit = 0; bit < 256; bit++)
		if (filter[255 - bit] == '1')
			route->octets[2 + bit / 8] |= (uint8_t)(1 << bit % 8);
	return 0;
}

const char *onym_push_status(int status)
{
	static const char *const texts[] = {
		"ok", "wrong ids", "strategy differs", "already so", "no such parent", "an item has this id",
		"no such scope", "a scope has this id", "no such item", "neither publisher nor subscriber",
		"unknown request", "of another rendezvous node", "a bound is reached", "reserved",
		"no rendezvous reached", "request and strategy do not go together",
		"stopped: wait for start publish", "longer than one frame", "not registered",
		"the push half is off", "not on this kind of face", "another word has this label",
	};

	if (status < 0)
		return strerror(-status);
	return (size_t)status < sizeof(texts) / sizeof(*texts) ? texts[status] : "unknown status";
}
