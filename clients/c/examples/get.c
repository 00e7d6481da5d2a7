// SPDX-License-Identifier: Apache-2.0 OR MIT
/* get NAME > FILE: fetches an object over the node. */
#include <stdio.h>
#include <string.h>
#include <errno.h>

#include <onym/pull.h>

static int write_out(void *ctx, uint64_t segment, const uint8_t *content, size_t len)
{
	(void)segment;
	return fwrite(content, 1, len, ctx) == len ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct onym_pull_how how = { .sink = write_out, .ctx = stdout };
	struct onym_pull *node;
	struct onym_name name;
	int64_t got;

	if (argc != 2 || onym_name(argv[1], &name)) {
		fprintf(stderr, "usage: get NAME > FILE\n");
		return 2;
	}
	node = onym_pull_open(NULL);
	if (!node) {
		fprintf(stderr, "no node answers: %s\n", strerror(errno));
		return 3;
	}
	got = onym_pull_fetch(node, &name, &how);
	onym_pull_close(node);
	if (got >= 0 && fflush(stdout))
		got = -errno;
	if (got < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror((int)-got));
		return 5;
	}
	fprintf(stderr, "%lld octets\n", (long long)got);
	return 0;
}
