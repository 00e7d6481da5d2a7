// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the measurements share. */
#include "nnet-test.h"

#include <arpa/inet.h>
#include <stdarg.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int alike(uint64_t few, uint64_t many)
{
	struct timespec tick;

	CHECK(!clock_getres(CLOCK_MONOTONIC, &tick));
	return many < 4 * few || many <= 2 * (uint64_t)tick.tv_nsec;
}

static void put_row(const char *more, const char *metric, double value, const char *unit)
{
	const char *where = getenv("CASE"), *subject = getenv("SUBJECT");

	if (where && subject)
		printf("ROW %s%s%s %s %s %.9g %s\n", where, *more ? "," : "", more, subject, metric, value, unit);
}

void row(const char *metric, double value, const char *unit)
{
	put_row("", metric, value, unit);
}

void row_of(const char *metric, double value, const char *unit, const char *more, ...)
{
	char text[64];
	va_list args;

	va_start(args, more);
	vsnprintf(text, sizeof(text), more, args);
	va_end(args);
	put_row(text, metric, value, unit);
}

/* An Interest of a name with a nonce of zeros at its end. */
size_t interest_of(const struct onym_name *name, uint8_t *packet)
{
	uint8_t *p = packet;

	*p++ = 5;
	*p++ = name->len + 8;
	*p++ = 7;
	*p++ = name->len;
	memcpy(p, name->v, name->len);
	memcpy(p + name->len, "\x0a\x04\0\0\0\0", 6);
	return name->len + 10;
}

size_t number_in(const uint8_t *packet, size_t len)
{
	const uint8_t *at = memmem(packet, len, "\x32\x04\x00", 3);

	return at ? at + 2 - packet : 0;
}

void number_put(uint8_t *at, uint32_t number)
{
	number = htonl(NUMBER_FIRST + number);
	memcpy(at, &number, 4);
}
