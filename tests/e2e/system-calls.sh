#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sampling interrupts no system call: a program that alternates between computing and every kind of blocking call counts
# how often one ended with EINTR. With the default sources never; with wall-clock timers, which nobody gets unless he
# names them, calls that the kernel can restart are restarted.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >calls.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
static _Atomic int stop;
static int pipe_fds[2];
static void *feed(void *argument) /* sends a byte every 2 ms, so that read blocks */
{
    struct timespec gap = {.tv_nsec = 2000000};
    while (!atomic_load(&stop)) {
        (void)!write(pipe_fds[1], "x", 1);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, NULL);
    }
    return argument;
}
static volatile unsigned long sink;
static void compute(void)
{
    for (int i = 0; i < 400000; i++)
        sink += i;
}
int main(void)
{
    int idle[2], restartable = 0, others = 0, calls = 0;
    char byte;
    pthread_t feeder;
    struct timespec gap = {.tv_nsec = 2000000};
    if (pipe(pipe_fds) != 0 || pipe(idle) != 0)
        return 1;
    int epoll = epoll_create1(0);
    pthread_create(&feeder, NULL, feed, NULL);
    for (int i = 0; i < 200; i++, calls += 6) {
        struct pollfd wait = {.fd = idle[0], .events = POLLIN};
        struct timeval short_time = {.tv_usec = 2000};
        struct epoll_event event;
        fd_set set;
        FD_ZERO(&set);
        FD_SET(idle[0], &set);
        compute();
        restartable += read(pipe_fds[0], &byte, 1) < 0 && errno == EINTR;
        compute();
        others += nanosleep(&gap, NULL) < 0 && errno == EINTR;
        others += clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, NULL) == EINTR;
        compute();
        others += poll(&wait, 1, 2) < 0 && errno == EINTR;
        others += select(idle[0] + 1, &set, NULL, NULL, &short_time) < 0 && errno == EINTR;
        compute();
        others += epoll_wait(epoll, &event, 1, 2) < 0 && errno == EINTR;
    }
    atomic_store(&stop, 1);
    pthread_join(feeder, NULL);
    printf("%d %d %d\n", calls, restartable, others);
    return 0;
}
END
$CC -O1 -pthread calls.c -o calls

# count NAME OPTIONS...: runs it under hpcrun; $calls, $restartable and $others are what it counted.
count() {
    local name=$1
    shift
    expect_status 0 "$builddir/hpcrun" -o "$name" "$@" ./calls
    read -r calls restartable others <"$scratch/out"
    samples=$(cat "$name"/calls-*.log | sed -n 's/^SUMMARY: samples: \([0-9]*\).*/\1/p')
    echo "$name: $samples samples, $calls calls, interrupted: $restartable restartable, $others others"
    [ "${samples:-0}" -gt 20 ] || skip_part "$name: only ${samples:-0} samples"
}

if perf_works; then
    count default
    [ "$restartable $others" = "0 0" ] || fail "system calls were interrupted: $restartable restartable, $others others"
    count fast -e EADDR@f5000 -e CPUTIME@f2000
    [ "$restartable $others" = "0 0" ] || fail "at a high rate calls were interrupted: $restartable, $others"
else
    skip_part "perf is refused here"
fi
count wallclock -e REALTIME@f500
[ "$restartable" = 0 ] || fail "$restartable restartable calls were interrupted by REALTIME"
expect_text "$scratch/err" 'warning: .*REALTIME'

# --- page faults that the program handles itself ---

# Each page's fault waits for another thread, which counts those that come once more for the same page.
cat >handled.c <<'END'
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { PAGES = 40000 };
static size_t page_bytes;
static int fd, twice;
static void *serve(void *unused)
{
    char *source = aligned_alloc(page_bytes, page_bytes);
    struct uffd_msg message;
    memset(source, 1, page_bytes);
    while (read(fd, &message, sizeof message) == (ssize_t)sizeof message) {
        uint64_t page = message.arg.pagefault.address & ~(uint64_t)(page_bytes - 1);
        struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)source, .len = page_bytes};
        struct uffdio_range range = {page, page_bytes};
        if (ioctl(fd, UFFDIO_COPY, &copy) == 0)
            continue;
        twice += errno == EEXIST;
        ioctl(fd, UFFDIO_WAKE, &range);
    }
    return unused;
}
int main(void)
{
    pthread_t server;
    long sum = 0;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
    struct uffdio_api api = {.api = UFFD_API};
    char *pages = mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)pages, PAGES * page_bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
        return 77;
    pthread_create(&server, NULL, serve, NULL);
    for (size_t i = 0; i < PAGES; i++)
        sum += pages[i * page_bytes];
    printf("%ld pages, %d faults once more\n", sum, twice);
    return 0;
}
END
$CC -O1 -pthread handled.c -o handled
if ! ./handled >native; then
    skip_part "this kernel gives a program no userfaultfd"
elif "$builddir/hpcrun" --print-plan -e FAULTS@1 >/dev/null 2>&1; then
    [ "$(cat native)" = "40000 pages, 0 faults once more" ] || fail "by itself: $(cat native)"
    expect_status 0 "$builddir/hpcrun" -e FAULTS@1 -o handled.m ./handled
    cmp native "$scratch/out" || fail "FAULTS@1: $(cat "$scratch/out")"
    settle handled.m
    named=$(cat handled.m/handled-*.log | sed -n '/name: FAULTS/s/.* named: \([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')
    [ "${named:-0}" -ge 40000 ] || fail "only ${named:-0} of 40000 faults have their block"
else
    skip_part "page faults cannot be sampled here"
fi
finish
