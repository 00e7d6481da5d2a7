// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Ends the virtual machine with an exit status: isa-debug-exit at port 0xf4. */
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include <sys/reboot.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

int main(int argc, char **argv)
{
	int status = argc > 1 ? atoi(argv[1]) : 1;

	sync();
	/* The machine ends at once, with what the console has yet to write. */
	tcdrain(STDOUT_FILENO);
#ifdef __x86_64__
	if (!ioperm(0xf4, 4, 1))
		outl(status, 0xf4);
#endif
	(void)status;
	reboot(RB_POWER_OFF);
	return 0;
}
