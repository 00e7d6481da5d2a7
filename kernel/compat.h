/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between the kernels this is built for: 6.1 and 6.12. */
#ifndef _NNET_COMPAT_H
#define _NNET_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* _NNET_COMPAT_H */
