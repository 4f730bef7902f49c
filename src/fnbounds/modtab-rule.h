/* SPDX-License-Identifier: BSD-3-Clause */
/* One register's rule in a row of call frame information, in the few forms that unwind rows can say; and the rows of
 * machines with a link register. Inside of fnbounds. */
#ifndef LOCUS_FNBOUNDS_MODTAB_RULE_H
#define LOCUS_FNBOUNDS_MODTAB_RULE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "fnbounds/modtab.h"

enum modtab_rule_kind {
    MODTAB_RULE_SAME,
    MODTAB_RULE_LOST,
    MODTAB_RULE_CFA,     /* saved at CFA + value */
    MODTAB_RULE_IN_REG,  /* in register value */
    MODTAB_RULE_RBP_EXPR /* saved at *(rbp + value) */
};

struct modtab_rule {
    enum modtab_rule_kind kind;
    int64_t value;
};

/* The rule of a DWARF register. Without one it keeps its value: libdw calls some of the callee-saved ones undefined. */
struct modtab_rule modtab_rule_of(Dwarf_Frame *frame, int reg);

/* Whether the information says that the register has no value in the caller: for the return address, that there is no
 * caller. */
bool modtab_rule_is_undefined(Dwarf_Frame *frame, int reg);

/* DWARF columns of the return address. */
enum { MODTAB_LINK_AARCH64 = 30, MODTAB_LINK_PPC64 = 65 };

/* One row of such a machine, pc not set. is_signal: of a signal trampoline. */
struct modtab_row modtab_row_of_aarch64(Dwarf_Frame *frame, bool is_signal);
struct modtab_row modtab_row_of_ppc64(Dwarf_Frame *frame, bool is_signal);

#endif
