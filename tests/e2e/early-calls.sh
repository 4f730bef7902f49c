#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Other preloaded libraries that interpose functions of libc: ours calls none of these functions before their constructors
# have run, nor later on its own account. A library of this test interposes every function of libc, and ends the program
# with the function's name where one is called while nothing may call any; an allocator of the program's own is not
# called early, either; and faketime, whose functions set themselves up at the first call, must not notice us.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
CC=${CC:-gcc}
cd "$scratch"

# --- a library that interposes all of libc ---

cat >program.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void early_open(void), early_close(const char *allowed);
static unsigned long work(unsigned long n)
{
    volatile unsigned long x = 0;
    while (n--)
        x += n;
    return x;
}
__attribute__((constructor(101))) static void first(void)
{
    early_open();
}
static void *run(void *argument)
{
    early_open();
    work(20000000);
    early_close(NULL); /* the end of a thread */
    return argument;
}
int main(void)
{
    pthread_t thread;
    int status = 1;
    char *memory = malloc(100000);
    work(30000000);
    fflush(stdout);
    early_close("fork");
    pid_t child = fork();
    early_open();
    if (!child) {
        work(20000000);
        early_close("_exit");
        _exit(3);
    }
    waitpid(child, &status, 0);
    early_close("pthread_create");
    pthread_create(&thread, NULL, run, NULL);
    early_open();
    pthread_join(thread, NULL);
    early_open();
    free(memory);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -status);
    fflush(stdout);
    early_close("exit");
    exit(5);
}
END

# early.c: table and constructor; early.S: a stub for each function, which jumps on if it may.
cat >early.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
extern const char *const early_names[];
extern const int early_n;
__attribute__((visibility("hidden"))) void *early_real[4000];
__attribute__((visibility("hidden"))) volatile char early_is_open;
static volatile int allowed = -1;
static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}
static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
static void say(const char *text)
{
    long n = 0;
    while (text[n])
        n++;
    call(1, 2, (long)text, n);
}
/* The stub of function i has been called while nothing may be. */
__attribute__((visibility("hidden"))) void early_called(int i)
{
    if (i == allowed)
        return;
    say("called early: ");
    say(early_names[i]);
    say("\n");
    call(231, 99, 0, 0); /* exit_group */
}
void early_open(void)
{
    early_is_open = 1;
}
void early_close(const char *name)
{
    allowed = -1;
    for (int i = 0; name && i < early_n; i++)
        if (same(early_names[i], name))
            allowed = i;
    early_is_open = 0;
}
extern char **environ;
__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < early_n; i++)
        early_real[i] = dlsym(RTLD_NEXT, early_names[i]);
    early_is_open = 1;
    for (char **entry = environ; *entry; entry++)
        if (same(*entry, "EARLY_UNTIL=main"))
            early_is_open = 0;
}
END
# Not among them: the allocator, whose calls by the loader our wrappers forward; what begins and ends a program or library;
# the loader's functions that the constructor above needs; and what tests/meta/symbols.py allows libhpcrun.so to import.
cat >stubs.py <<'END'
import re, subprocess, sys
OUT = re.compile(r"""^(malloc|calloc|realloc|reallocarray|free|cfree|memalign|aligned_alloc|posix_memalign|p?valloc|
    malloc_usable_size|__libc_\w+|_dl_\w+|dlv?sym|__cxa_finalize|__sigsetjmp|__tls_get_addr|gnu_get_libc_release)$""", re.X)
lines = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], capture_output=True, text=True, check=True).stdout
found = sorted({m[1] for m in re.finditer(r"^\w+ [TWi] (\w+)@@(?!GLIBC_PRIVATE)", lines, re.M) if not OUT.match(m[1])})
with open("early.S", "w") as out:
    out.write(".text\n")
    for i, name in enumerate(found):
        out.write(f""".globl {name}
.type {name}, @function
{name}:
    cmpb $0, early_is_open(%rip)
    jne 1f
    mov ${i}, %eax
    call early_check
1:  jmp *{8 * i}+early_real(%rip)
""")
    # All registers that may hold arguments are kept for a function that may be called.
    out.write("early_check:\n" + "".join(f"    push %{r}\n" for r in ("rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10")))
    out.write("    sub $8, %rsp\n    mov %eax, %edi\n    call early_called\n    add $8, %rsp\n")
    out.write("".join(f"    pop %{r}\n" for r in ("r10", "r9", "r8", "rcx", "rdx", "rsi", "rdi")) + "    ret\n")
    out.write(".section .rodata\n" + "".join(f'name{i}: .asciz "{name}"\n' for i, name in enumerate(found)))
    out.write(".section .data.rel.ro\n.balign 8\n.globl early_names\n.hidden early_names\nearly_names:\n")
    out.write("".join(f"    .quad name{i}\n" for i in range(len(found))))
    out.write(f".section .rodata\n.balign 4\n.globl early_n\n.hidden early_n\nearly_n: .long {len(found)}\n")
    out.write('.section .note.GNU-stack,"",@progbits\n')
print(len(found))
END

# run NAME COMMAND...: the program under it, beside ours.
run() {
    local name=$1
    shift
    expect_status 5 timeout 120 "$builddir/hpcrun" -o "$name.m" "$@"
    [ "$(cat "$scratch/out")" = "child 3" ] || fail "$name: $(cat "$scratch/out" "$scratch/err")"
    settle "$name.m"
    ls "$name.m"/*.hpcrun >/dev/null 2>&1 || fail "$name: nothing was measured"
}

if [ "$(uname -m)" = x86_64 ]; then
    echo 'int main(void) { return 0; }' >nothing.c && $CC nothing.c -o nothing
    n=$(python3 stubs.py "$(ldd ./nothing | awk '$1 == "libc.so.6" { print $3 }')")
    $CC -O1 -fno-builtin -fno-stack-protector -fPIC -shared early.c early.S -o libearly.so || fail "the library does not build"
    $CC -O1 -pthread program.c ./libearly.so -o program || fail "program.c does not build"
    expect_status 5 ./program
    [ "$n" -gt 1000 ] || fail "only $n functions of libc are interposed"
    echo "$n functions interposed"
    # shellcheck disable=SC2016 # the inner shell expands them
    for until in library main; do
        run "needed-$until" sh -c "EARLY_UNTIL=$until exec ./program"
        run "after-$until" sh -c 'EARLY_UNTIL='$until' LD_PRELOAD="$LD_PRELOAD:$PWD/libearly.so" exec ./program'
        run "before-$until" sh -c 'EARLY_UNTIL='$until' LD_PRELOAD="$PWD/libearly.so:$LD_PRELOAD" exec ./program'
    done
    # The library sees such calls at all.
    cat >caller.c <<'END'
#include <unistd.h>
__attribute__((constructor)) static void begin(void)
{
    (void)getppid();
}
END
    $CC -shared -fPIC -Wl,-z,initfirst caller.c -o libcaller.so
    LD_PRELOAD=$PWD/libcaller.so expect_status 99 ./program
    expect_text "$scratch/err" 'called early: getppid'
else
    skip_part "the interposing library is written for x86-64"
fi

# --- an allocator of the program's own, which its constructor sets up ---

cat >own.c <<'END'
#include <stdio.h>
#include <stdlib.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
static int is_set_up, n_early[4];
void *malloc(size_t n)
{
    n_early[0] += !is_set_up;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    n_early[1] += !is_set_up;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    n_early[2] += !is_set_up;
    return __libc_realloc(p, n);
}
void free(void *p)
{
    n_early[3] += !is_set_up;
    __libc_free(p);
}
__attribute__((constructor(101))) static void set_up(void)
{
    is_set_up = 1;
}
int main(void)
{
    printf("%d %d %d %d\n", n_early[0], n_early[1], n_early[2], n_early[3]);
    return 0;
}
END
$CC -O1 -fno-builtin own.c -o own || fail "own.c does not build"
./own >native
for events in datacentric BLOCKTIME CPUTIME MEMLEAK; do
    "$builddir/hpcrun" -e $events -o own.m ./own >out 2>err || fail "own allocator, $events: $(cat err)"
    cmp native out || fail "own allocator, $events: early calls $(cat out) instead of $(cat native)"
done

# --- faketime ---

if command -v faketime >/dev/null; then
    faketime_at=('2020-01-01 00:00:00')
    # shellcheck disable=SC2016 # the inner shells expand them
    commands='for i in 1 2 3; do /bin/date +%Y; done; sh -c "exit 3"; echo $?'
    faketime "${faketime_at[@]}" sh -c "$commands" >native 2>&1
    before=$(find /dev/shm -name '*faketime*' | sort)
    "$builddir/hpcrun" -o inside.m faketime "${faketime_at[@]}" sh -c "$commands" >inside 2>inside.err || fail "hpcrun faketime: status $?"
    faketime "${faketime_at[@]}" "$builddir/hpcrun" -o outside.m sh -c "$commands" >outside 2>outside.err || fail "faketime hpcrun: status $?"
    library=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
    for order in "$builddir/.libs/libhpcrun.so:$library" "$library:$builddir/.libs/libhpcrun.so"; do
        "$builddir/hpcrun" -o order.m faketime "${faketime_at[@]}" sh -c "LD_PRELOAD=$order sh -c 'date +%Y; date +%Y'" >order 2>order.err
        [ "$(cat order)" = $'2020\n2020' ] || fail "preloaded as $order: $(cat order order.err)"
    done
    for way in inside outside; do
        cmp native $way || fail "$way: $(cat $way $way.err)"
        ! grep -v '^hpcrun: ' $way.err || fail "$way: faketime complains"
        settle $way.m
        ls $way.m/*.hpcrun >/dev/null 2>&1 || fail "$way: nothing was measured"
    done
    # Where the clock stands still, the companion process of a killed program ends none the less.
    faketime -f "${faketime_at[@]}" "$builddir/hpcrun" -o frozen.m sleep 1000 2>/dev/null &
    await compgen -G 'frozen.m/.writing-*'
    companion=$(companion_of frozen.m)
    pkill -KILL -P $!
    await test ! -d "/proc/$companion"
    compgen -G 'frozen.m/*.hpcrun' >/dev/null || fail "with a frozen clock nothing was measured"
    [ "$before" = "$(find /dev/shm -name '*faketime*' | sort)" ] || fail "shared memory of faketime stays"
else
    skip_part "faketime is not installed"
fi
finish
