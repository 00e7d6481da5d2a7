// SPDX-License-Identifier: Apache-2.0 OR MIT
// Segments: what a publication of a stream's item is (spec/registry.md).

#include "stream.h"

static uint32_t word(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_word(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

// False where it is none: another version or kind, a window that nobody has, octets where none belong.
bool segment_parse(const uint8_t *octets, size_t len, struct segment *s)
{
	if (len < SEGMENT_HEAD || octets[0] != 1 || octets[1] > RESET)
		return false;
	s->kind = octets[1];
	s->window = (unsigned)octets[2] << 8 | octets[3];
	s->number = word(octets + 4);
	s->acknowledged = word(octets + 8);
	s->came = word(octets + 12);
	s->octets = octets + SEGMENT_HEAD;
	s->len = len - SEGMENT_HEAD;
	return s->window <= WINDOW && s->len <= SEGMENT_MAX && (s->kind == OCTETS) == (s->len > 0) &&
	       (s->kind != OPEN || s->number == 0);
}

size_t segment_write(const struct segment *s, uint8_t out[SEGMENT_HEAD])
{
	out[0] = 1;
	out[1] = (uint8_t)s->kind;
	out[2] = (uint8_t)(s->window >> 8);
	out[3] = (uint8_t)s->window;
	put_word(out + 4, s->number);
	put_word(out + 8, s->acknowledged);
	put_word(out + 12, s->came);
	return SEGMENT_HEAD;
}
