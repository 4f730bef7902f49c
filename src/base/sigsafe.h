/* SPDX-License-Identifier: BSD-3-Clause */
/* Last include of every *-sig.c: poisons the names that must not appear in code which runs in a signal handler.
 * What remains are memory accesses, atomics and raw system calls. */
#ifndef LOCUS_BASE_SIGSAFE_H
#define LOCUS_BASE_SIGSAFE_H

#pragma GCC poison malloc calloc realloc reallocarray free posix_memalign aligned_alloc strdup strndup asprintf
#pragma GCC poison printf fprintf sprintf snprintf vsnprintf puts fputs perror fopen fclose fread fwrite fflush
#pragma GCC poison pthread_mutex_lock pthread_mutex_unlock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_once
#pragma GCC poison dlsym dlopen dlclose dladdr dl_iterate_phdr getenv setenv exit abort syslog backtrace
#pragma GCC poison unw_step unw_backtrace unw_init_local strerror setlocale localtime

#endif
