/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef ONYM_INTERNAL_H
#define ONYM_INTERNAL_H

#include <onym/nnet.h>

uint8_t *onym_put_tl(uint8_t *p, uint64_t type, uint64_t len);
uint8_t *onym_put_nni(uint8_t *p, uint32_t type, uint64_t v);
size_t onym_tl_size(uint64_t type, uint64_t len);
int onym_get_tl(const uint8_t **p, const uint8_t *end, uint64_t *type, uint64_t *len);
uint64_t onym_get_nni(const uint8_t *p, size_t len);

#endif
