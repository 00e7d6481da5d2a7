// SPDX-License-Identifier: Apache-2.0 OR MIT
// SHA-256 of identifiers: at most 55 octets, one block.

#include "onym_udp.h"

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

// The first n primes' roots are computed and not listed: `power` 2 for square, 3 for cube roots.
static uint32_t root_fraction(uint32_t prime, int power)
{
	// floor(root(prime) * 2^32) by bisection in 128-bit arithmetic, less its whole part.
	unsigned __int128 low = 0, high = (unsigned __int128)1 << 37;

	while (high - low > 1) {
		unsigned __int128 mid = (low + high) / 2;
		// For cube roots compare mid^3 with prime * 2^96: mid is below 2^36, so that fits 128 bits.
		bool is_below = power == 2 ? mid * mid <= (unsigned __int128)prime << 64
					   : mid * mid * mid <= (unsigned __int128)prime << 96;
		if (is_below)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
}

static uint32_t sha_h[8], sha_k[64];
static pthread_once_t sha_once = PTHREAD_ONCE_INIT;

static void sha_constants(void)
{
	uint32_t candidate = 2;

	for (int found = 0; found < 64; candidate++) {
		bool is_prime = true;

		for (uint32_t d = 2; d * d <= candidate; d++)
			is_prime = is_prime && candidate % d;
		if (!is_prime)
			continue;
		if (found < 8)
			sha_h[found] = root_fraction(candidate, 2);
		sha_k[found++] = root_fraction(candidate, 3);
	}
}

// The first 8 octets of the digest.
void sha256_label(const uint8_t *octets, size_t len, uint8_t label[LABEL])
{
	uint8_t block[64] = { 0 };
	uint32_t w[64], s[8];

	pthread_once(&sha_once, sha_constants);
	memcpy(block, octets, len);
	block[len] = 0x80;
	block[62] = (uint8_t)(len >> 5);
	block[63] = (uint8_t)(len << 3);
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(s, sha_h, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t e = rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25);
		uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[i] + w[i];
		uint32_t a = rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22);
		uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (int i = 0; i < LABEL; i++)
		label[i] = (uint8_t)((s[i / 4] + sha_h[i / 4]) >> (24 - 8 * (i % 4)));
}
