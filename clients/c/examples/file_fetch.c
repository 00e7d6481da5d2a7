// SPDX-License-Identifier: Apache-2.0 OR MIT
/* file_fetch NAME > FILE: fetches what file_server serves. */
#include <stdio.h>
#include <string.h>

#include <onym/nnet.h>

static int write_out(void *ctx, uint64_t segment, const uint8_t *content, size_t len)
{
	(void)segment;
	return fwrite(content, 1, len, ctx) == len ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct onym_name name;
	int64_t got;

	if (argc != 2 || onym_name(argv[1], &name)) {
		fprintf(stderr, "usage: file_fetch NAME > FILE\n");
		return 2;
	}
	got = onym_request(&name, write_out, stdout, 10000);
	if (got < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-got));
		return 5;
	}
	fprintf(stderr, "%lld octets\n", (long long)got);
	return 0;
}
