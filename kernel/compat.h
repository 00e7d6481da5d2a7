/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What differs between the kernels that this compiles for. Kbuild looks into their
 * headers for what came in the middle of a series (NNET_HAS_*), for distributions
 * take such changes into older ones.
 */
#ifndef _NNET_COMPAT_H
#define _NNET_COMPAT_H

#include <linux/timer.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#ifndef from_timer
#define from_timer timer_container_of
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define del_timer timer_delete
#define del_timer_sync timer_delete_sync
#endif

/* What calls of a socket take for an address. */
#ifdef NNET_HAS_SOCKADDR_UNSIZED
#define nnet_sockaddr sockaddr_unsized
#else
#define nnet_sockaddr sockaddr
#endif

#endif /* _NNET_COMPAT_H */
