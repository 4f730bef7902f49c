/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions by which a program's pools announce their blocks: those of our own header (runtime/locus.h), of heaptrack's
 * API and ITT's heap functions, which programs may already call. Apart from the wrappers because nothing is forwarded.
 * Runs inside the program's allocation calls. */
#include <stddef.h>

#include "alloc-wrap/hook.h"

/* The sink if an annotation may be passed on, else NULL. */
static const struct alloc_sink *annotation_sink(const void *p, struct alloc_thread **thread)
{
    const struct alloc_sink *sink = alloc_sink_hook();
    *thread = alloc_thread_hook();
    if (!sink || !p || (*thread)->n_guard)
        return NULL;
    if (ALLOC_UNLIKELY((*thread)->in_hook || (*thread)->nest))
        alloc_check_left_hook(*thread, (uintptr_t)__builtin_frame_address(0));
    if ((*thread)->in_hook) {
        sink->skipped(ALLOC_SKIP_REENTERED);
        return NULL;
    }
    return sink;
}

static void annotate_alloc(void *p, size_t n_bytes, const struct alloc_site *site)
{
    struct alloc_thread *thread;
    const struct alloc_sink *sink = annotation_sink(p, &thread);
    double weight = sink ? alloc_weight_hook(thread, n_bytes) : 0;
    if (weight <= 0)
        return;
    int saved_errno = alloc_work_enter_hook(thread);
    if (sink->ready())
        sink->alloc(ALLOC_POOL, p, n_bytes, weight, site);
    alloc_work_leave_hook(thread, saved_errno);
}

static void annotate_free(void *p)
{
    struct alloc_thread *thread;
    const struct alloc_sink *sink = annotation_sink(p, &thread);
    if (!sink)
        return;
    int saved_errno = alloc_work_enter_hook(thread);
    sink->release(ALLOC_POOL, p);
    alloc_work_leave_hook(thread, saved_errno);
}

static void annotate_realloc(void *old_p, void *new_p, size_t n_bytes, const struct alloc_site *site)
{
    annotate_free(old_p);
    annotate_alloc(new_p, n_bytes, site);
}

/* Called by the inline functions of runtime/locus.h. */
ALLOC_EXPORT void locus_pool_alloc_event(void *p, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    annotate_alloc(p, n_bytes, &site);
}

ALLOC_EXPORT void locus_pool_free_event(void *p)
{
    annotate_free(p);
}

/* heaptrack's API: weak functions that its header declares and that a program calls if they exist. */
ALLOC_EXPORT void heaptrack_malloc(void *p, size_t n_bytes);
ALLOC_EXPORT void heaptrack_malloc(void *p, size_t n_bytes)
{
    const struct alloc_site site = alloc_site_here();
    annotate_alloc(p, n_bytes, &site);
}

ALLOC_EXPORT void heaptrack_realloc(void *old_p, size_t n_bytes, void *new_p);
ALLOC_EXPORT void heaptrack_realloc(void *old_p, size_t n_bytes, void *new_p)
{
    const struct alloc_site site = alloc_site_here();
    annotate_realloc(old_p, new_p, n_bytes, &site);
}

ALLOC_EXPORT void heaptrack_realloc2(uintptr_t old_p, size_t n_bytes, uintptr_t new_p);
ALLOC_EXPORT void heaptrack_realloc2(uintptr_t old_p, size_t n_bytes, uintptr_t new_p)
{
    const struct alloc_site site = alloc_site_here();
    annotate_realloc((void *)old_p, (void *)new_p, n_bytes, &site);
}

ALLOC_EXPORT void heaptrack_free(void *p);
ALLOC_EXPORT void heaptrack_free(void *p)
{
    annotate_free(p);
}

/* ITT's heap functions, as its static library looks them up in the library that INTEL_LIBITTNOTIFY64 names. A heap is
 * named by function and domain; here its blocks are distinguished by call path, so one handle serves all. */
ALLOC_EXPORT const char *__itt_api_version(void);
ALLOC_EXPORT const char *__itt_api_version(void)
{
    return "3.0";
}

ALLOC_EXPORT void *__itt_heap_function_create(const char *name, const char *domain);
ALLOC_EXPORT void *__itt_heap_function_create(const char *name, const char *domain)
{
    static char heap;
    (void)name;
    (void)domain;
    return &heap;
}

ALLOC_EXPORT void __itt_heap_allocate_begin(void *heap, size_t n_bytes, int initialized);
ALLOC_EXPORT void __itt_heap_allocate_begin(void *heap, size_t n_bytes, int initialized)
{
    (void)heap;
    (void)n_bytes;
    (void)initialized;
}

ALLOC_EXPORT void __itt_heap_allocate_end(void *heap, void **p, size_t n_bytes, int initialized);
ALLOC_EXPORT void __itt_heap_allocate_end(void *heap, void **p, size_t n_bytes, int initialized)
{
    const struct alloc_site site = alloc_site_here();
    (void)heap;
    (void)initialized;
    if (p)
        annotate_alloc(*p, n_bytes, &site);
}

ALLOC_EXPORT void __itt_heap_free_begin(void *heap, void *p);
ALLOC_EXPORT void __itt_heap_free_begin(void *heap, void *p)
{
    (void)heap;
    annotate_free(p);
}

ALLOC_EXPORT void __itt_heap_free_end(void *heap, void *p);
ALLOC_EXPORT void __itt_heap_free_end(void *heap, void *p)
{
    (void)heap;
    (void)p;
}

ALLOC_EXPORT void __itt_heap_reallocate_begin(void *heap, void *p, size_t n_bytes, int initialized);
ALLOC_EXPORT void __itt_heap_reallocate_begin(void *heap, void *p, size_t n_bytes, int initialized)
{
    (void)heap;
    (void)n_bytes;
    (void)initialized;
    annotate_free(p);
}

ALLOC_EXPORT void __itt_heap_reallocate_end(void *heap, void *p, void **new_p, size_t n_bytes, int initialized);
ALLOC_EXPORT void __itt_heap_reallocate_end(void *heap, void *p, void **new_p, size_t n_bytes, int initialized)
{
    const struct alloc_site site = alloc_site_here();
    (void)heap;
    (void)p;
    (void)initialized;
    if (new_p)
        annotate_alloc(*new_p, n_bytes, &site);
}
