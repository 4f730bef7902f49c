/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the forms of operator new and delete: one row each, NEW(form, mangled name) or DELETE(form, name).
 * The enum, the names and the wrappers are made from it. src: Itanium C++ ABI, 5.1.3 (size_t = unsigned long) */
#ifndef LOCUS_ALLOC_WRAP_OPERATORS_H
#define LOCUS_ALLOC_WRAP_OPERATORS_H

#define OPERATOR_ROWS(NEW, DELETE)                                                                                     \
    NEW(OPERATOR_NEW, _Znwm)                                                                                           \
    NEW(OPERATOR_NEW_NOTHROW, _ZnwmRKSt9nothrow_t)                                                                     \
    NEW(OPERATOR_NEW_ALIGNED, _ZnwmSt11align_val_t)                                                                    \
    NEW(OPERATOR_NEW_ALIGNED_NOTHROW, _ZnwmSt11align_val_tRKSt9nothrow_t)                                              \
    NEW(OPERATOR_NEW_ARRAY, _Znam)                                                                                     \
    NEW(OPERATOR_NEW_ARRAY_NOTHROW, _ZnamRKSt9nothrow_t)                                                               \
    NEW(OPERATOR_NEW_ARRAY_ALIGNED, _ZnamSt11align_val_t)                                                              \
    NEW(OPERATOR_NEW_ARRAY_ALIGNED_NOTHROW, _ZnamSt11align_val_tRKSt9nothrow_t)                                        \
    DELETE(OPERATOR_DELETE, _ZdlPv)                                                                                    \
    DELETE(OPERATOR_DELETE_NOTHROW, _ZdlPvRKSt9nothrow_t)                                                              \
    DELETE(OPERATOR_DELETE_SIZED, _ZdlPvm)                                                                             \
    DELETE(OPERATOR_DELETE_ALIGNED, _ZdlPvSt11align_val_t)                                                             \
    DELETE(OPERATOR_DELETE_ALIGNED_NOTHROW, _ZdlPvSt11align_val_tRKSt9nothrow_t)                                       \
    DELETE(OPERATOR_DELETE_SIZED_ALIGNED, _ZdlPvmSt11align_val_t)                                                      \
    DELETE(OPERATOR_DELETE_ARRAY, _ZdaPv)                                                                              \
    DELETE(OPERATOR_DELETE_ARRAY_NOTHROW, _ZdaPvRKSt9nothrow_t)                                                        \
    DELETE(OPERATOR_DELETE_ARRAY_SIZED, _ZdaPvm)                                                                       \
    DELETE(OPERATOR_DELETE_ARRAY_ALIGNED, _ZdaPvSt11align_val_t)                                                       \
    DELETE(OPERATOR_DELETE_ARRAY_ALIGNED_NOTHROW, _ZdaPvSt11align_val_tRKSt9nothrow_t)                                 \
    DELETE(OPERATOR_DELETE_ARRAY_SIZED_ALIGNED, _ZdaPvmSt11align_val_t)

#define OPERATOR_FORM(form, name) form,
enum operator_form { OPERATOR_ROWS(OPERATOR_FORM, OPERATOR_FORM) OPERATOR_FORMS };
#undef OPERATOR_FORM

#endif
