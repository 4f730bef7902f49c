/* SPDX-License-Identifier: BSD-3-Clause */
/* mlockall locks what the program has mapped, and not what the profiler has: the program's mappings one by one, so that
 * neither its limit on locked memory nor the time and memory of populating them meets ours. Ordinary code of the
 * program's threads; raw system calls, no allocation. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/process.h"
#include "runtime/own-call.h"
#include "runtime/wrap.h"
#include "runtime/zone.h"

typedef int all_function(int);
typedef int none_function(void);

struct range {
    uintptr_t low, high;
};

/* What is ours: the zone, and this library where it is one. */
struct ours {
    struct range ranges[2];
};

/* The lines of /proc/self/maps. */
struct maps {
    int fd;
    size_t n, at; /* bytes read, and of them used */
    char bytes[4096];
};

static struct ours find_ours(void)
{
    struct ours ours = {0};
    zone_range_sig(&ours.ranges[0].low, &ours.ranges[0].high);
    wrap_own_image(&ours.ranges[1].low, &ours.ranges[1].high);
    return ours;
}

static int next_byte(struct maps *maps)
{
    if (maps->at == maps->n) {
        long n = own_call_sig(SYS_read, maps->fd, maps->bytes, sizeof maps->bytes);
        if (n <= 0)
            return -1;
        maps->n = (size_t)n;
        maps->at = 0;
    }
    return (unsigned char)maps->bytes[maps->at++];
}

/* A number up to a byte that belongs to none, which is dropped; false at the end of the file. */
static bool next_number(struct maps *maps, uintptr_t *number)
{
    int byte;
    *number = 0;
    while ((byte = next_byte(maps)) >= 0) {
        bool is_digit = byte >= '0' && byte <= '9';
        if (!is_digit && (byte < 'a' || byte > 'f'))
            return true;
        *number = *number << 4 | (uintptr_t)(is_digit ? byte - '0' : byte - 'a' + 10);
    }
    return false;
}

static bool next_mapping(struct maps *maps, struct range *mapping)
{
    int byte;
    if (!next_number(maps, &mapping->low) || !next_number(maps, &mapping->high))
        return false;
    do
        byte = next_byte(maps);
    while (byte >= 0 && byte != '\n');
    return true;
}

/* Takes from the beginning of a mapping a part that is the program's; false when none is left. */
static bool take_part(struct range *mapping, const struct ours *ours, struct range *part)
{
    for (int i = 0; i < 2; i++) /* twice: they may follow each other */
        for (int k = 0; k < 2; k++)
            if (mapping->low >= ours->ranges[k].low && mapping->low < ours->ranges[k].high)
                mapping->low = ours->ranges[k].high;
    *part = *mapping;
    for (int k = 0; k < 2; k++)
        if (ours->ranges[k].low > part->low && ours->ranges[k].low < part->high)
            part->high = ours->ranges[k].low;
    mapping->low = part->high;
    return part->low < part->high;
}

/* Bytes of the program's mappings, after locking them when asked to; 0 when they cannot be read. */
static uint64_t visit_mappings(const struct ours *ours, bool locks, unsigned lock_flags)
{
    struct maps maps = {.fd = (int)own_call_sig(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct range mapping, part;
    uint64_t n_bytes = 0;
    if (maps.fd < 0)
        return 0;
    while (next_mapping(&maps, &mapping)) {
        if (mapping.high > (uintptr_t)-1 / 2) /* vsyscall */
            continue;
        while (take_part(&mapping, ours, &part)) {
            n_bytes += part.high - part.low;
            if (locks) /* what cannot be populated is no error of mlockall, either */
                own_call_sig(SYS_mlock2, part.low, part.high - part.low, lock_flags);
        }
    }
    own_call_sig(SYS_close, maps.fd);
    return n_bytes;
}

static bool may_lock_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return own_call_sig(SYS_capget, &header, data) == 0 && data[0].effective & 1u << CAP_IPC_LOCK;
}

/* As the kernel decides, but for what is ours. */
static bool fits_limit(const struct ours *ours)
{
    struct rlimit limit;
    if (may_lock_all() || own_call_sig(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) != 0)
        return true;
    return visit_mappings(ours, false, 0) <= limit.rlim_cur;
}

static int real_all(int flags)
{
    static all_function *real;
    if (!real)
        real = (all_function *)wrap_real("mlockall");
    return real ? real(flags) : (int)syscall(SYS_mlockall, flags);
}

static int real_none(void)
{
    static none_function *real;
    if (!real)
        real = (none_function *)wrap_real("munlockall");
    return real ? real() : (int)syscall(SYS_munlockall);
}

/* The mappings that there are. */
static int lock_current(int flags)
{
    int saved_errno = errno;
    struct ours ours = find_ours();
    if (!fits_limit(&ours)) {
        errno = ENOMEM;
        return -1;
    }
    /* Mappings to come first: so none is missed that another thread makes meanwhile. */
    bool is_future = flags & MCL_FUTURE, is_known = !is_future && !zone_is_locking_sig();
    bool was_future = zone_is_locking_sig();
    zone_set_locking_sig(is_future);
    int status = is_future ? real_all(flags & ~MCL_CURRENT) : is_known ? 0 : real_none();
    if (status == 0)
        (void)visit_mappings(&ours, true, flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
    if (status == 0)
        errno = saved_errno;
    else
        zone_set_locking_sig(was_future);
    return status;
}

/* Whether the kernel accepts the request at all. */
static bool is_valid(int flags)
{
    struct rlimit limit;
    return !(flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) &&
           (may_lock_all() || (own_call_sig(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) == 0 && limit.rlim_cur));
}

WRAP_EXPORT int mlockall(int flags)
{
    if (flags & MCL_CURRENT && process_is_ours_sig() && is_valid(flags) && visit_mappings(&(struct ours){0}, false, 0))
        return lock_current(flags);
    int status = real_all(flags);
    if (status == 0)
        zone_set_locking_sig(flags & MCL_FUTURE);
    return status;
}

WRAP_EXPORT int munlockall(void)
{
    int status = real_none();
    if (status == 0)
        zone_set_locking_sig(false);
    return status;
}
