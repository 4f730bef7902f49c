/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways in which processes and threads live and end that profilers are known to disturb. The first argument is the name
 * of one; every way computes for a while, prints what it saw and ends with a status of its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "burn.h"

#define BURN_MS 60

struct life_way {
    const char *name;
    int (*run)(void);
};

static const char *own_path;
static char signal_stack[64 * 1024];

static void burn_and_say(const char *text)
{
    say(text, burn(BURN_MS));
}

static int wait_for(pid_t child)
{
    int status = -1;
    if (waitpid(child, &status, 0) != child)
        return -1;
    return status;
}

static int way_plain(void)
{
    burn_and_say("plain");
    return 3;
}

static int way_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl(own_path, own_path, "plain", (char *)NULL);
        _exit(91);
    }
    say("child ended with", (unsigned)wait_for(child));
    child = vfork();
    if (child == 0)
        _exit(17);
    say("child left with", (unsigned)wait_for(child));
    burn_and_say("parent");
    return 4;
}

static int way_spawn(void)
{
    char *arguments[] = {(char *)own_path, "plain", NULL};
    pid_t child;
    if (posix_spawn(&child, own_path, NULL, NULL, arguments, environ) != 0)
        return 92;
    say("spawned ended with", (unsigned)wait_for(child));
    say("system ended with", (unsigned)system("exit 5"));
    burn_and_say("parent");
    return 5;
}

static int way_fork(void)
{
    burn_and_say("before");
    pid_t child = fork();
    if (child == 0) {
        burn_and_say("child");
        exit(18);
    }
    say("child ended with", (unsigned)wait_for(child));
    burn_and_say("parent");
    return 6;
}

static void *fork_in_thread(void *argument)
{
    way_fork();
    return argument;
}

static int way_fork_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    pthread_join(thread, NULL);
    return 7;
}

static int way_exec(void)
{
    unsigned sum = burn(BURN_MS);
    say("before exec", sum);
    execl(own_path, own_path, "plain", (char *)NULL);
    return 93;
}

static void *thread_exits(void *argument)
{
    say("thread", burn(BURN_MS));
    pthread_exit(argument);
}

static void *thread_spins(void *argument)
{
    for (;;)
        *(volatile unsigned *)argument += burn(1);
    return NULL;
}

static void *thread_sleeps(void *argument)
{
    say("sleeper", burn(BURN_MS));
    sem_post(argument);
    for (;;)
        sleep(1000);
    return argument;
}

static int way_thread_ends(void)
{
    pthread_t exits, cancelled, spinning;
    sem_t has_spoken;
    void *result = NULL;
    unsigned volatile counter = 0;
    pthread_create(&exits, NULL, thread_exits, &result);
    pthread_join(exits, &result);
    say("pthread_exit gave", result == &result);
    sem_init(&has_spoken, 0, 0);
    pthread_create(&cancelled, NULL, thread_sleeps, &has_spoken);
    sem_wait(&has_spoken);
    pthread_cancel(cancelled);
    pthread_join(cancelled, &result);
    say("cancelled", result == PTHREAD_CANCELED);
    pthread_create(&spinning, NULL, thread_spins, (void *)&counter);
    burn_and_say("main");
    return 8;
}

static void *thread_ends_process(void *argument)
{
    burn_and_say("ending thread");
    (void)argument;
    exit(9);
}

static int way_exit_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_ends_process, NULL);
    for (;;)
        burn(1);
    return 89;
}

static void *thread_remains(void *argument)
{
    pthread_join(*(pthread_t *)argument, NULL);
    burn_and_say("remaining thread");
    return NULL;
}

static int way_main_leaves(void)
{
    static pthread_t self;
    pthread_t thread;
    self = pthread_self();
    pthread_create(&thread, NULL, thread_remains, &self);
    burn_and_say("main");
    pthread_exit(NULL);
}

static int way_leave(void)
{
    burn_and_say("leaving");
    _exit(10);
}

static int way_quick(void)
{
    burn_and_say("quick");
    quick_exit(11);
}

static int way_abort(void)
{
    burn_and_say("aborting");
    abort();
}

static int way_crash(void)
{
    burn_and_say("crashing");
    *(volatile int *)NULL = 1;
    return 94;
}

static int way_killed(void)
{
    burn_and_say("killed");
    kill(getpid(), SIGKILL);
    return 95;
}

static pthread_barrier_t barrier;

static void *thread_waits(void *argument)
{
    burn(BURN_MS);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    burn(BURN_MS);
    return argument;
}

static int way_close_all(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, thread_waits, NULL);
    pthread_barrier_wait(&barrier);
    burn_and_say("open");
    closefrom(3);
    int first = open("/dev/null", O_RDONLY);
    say("first descriptor", (unsigned)first);
    burn_and_say("closed");
    for (int i = 0; i < 1100; i++) {
        if (open("/dev/null", O_WRONLY) < 0)
            break;
    }
    burn_and_say("full");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    for (int fd = 3; fd < 1000; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            say("somebody closed", (unsigned)fd);
            break;
        }
    }
    return 12;
}

static int way_block_signals(void)
{
    sigset_t all, seen;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    burn_and_say("blocked");
    pthread_sigmask(SIG_SETMASK, NULL, &seen);
    say("SIGURG is blocked", (unsigned)sigismember(&seen, SIGURG));
    say("SIGUSR1 is blocked", (unsigned)sigismember(&seen, SIGUSR1));
    sigemptyset(&all);
    sigaddset(&all, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    sigprocmask(SIG_BLOCK, NULL, &seen);
    say("SIGURG is blocked", (unsigned)sigismember(&seen, SIGURG));
    say("SIGUSR1 is blocked", (unsigned)sigismember(&seen, SIGUSR1));
    return 13;
}

static volatile sig_atomic_t n_caught;

static void on_urgent(int number)
{
    n_caught += number == SIGURG;
}

static int way_own_handler(void)
{
    struct sigaction action = {.sa_handler = on_urgent}, old;
    sigaction(SIGURG, &action, &old);
    say("the default was set", old.sa_handler == SIG_DFL);
    for (int i = 0; i < 50; i++) {
        burn(1);
        raise(SIGURG);
        kill(getpid(), SIGURG);
    }
    say("caught", (unsigned)n_caught);
    sigaction(SIGURG, NULL, &old);
    say("own handler is set", old.sa_handler == on_urgent);
    say("signal gives it back", signal(SIGURG, SIG_IGN) == on_urgent);
    raise(SIGURG);
    say("caught", (unsigned)n_caught);
    burn_and_say("ignored");
    return 14;
}

static int limited(int resource, rlim_t limit)
{
    struct rlimit old, new;
    getrlimit(resource, &old);
    new = old;
    new.rlim_cur = limit;
    setrlimit(resource, &new);
    return execl(own_path, own_path, "many-files", (char *)NULL);
}

static int way_many_files(void)
{
    int n = 0;
    while (n < 2000 && open("/dev/null", O_RDONLY) >= 0)
        n++;
    say("files", (unsigned)n);
    errno = 0;
    void *block = malloc((size_t)1 << 20);
    say("memory", block != NULL);
    free(block);
    burn_and_say("limited");
    return 15;
}

static int way_limit_files(void)
{
    return limited(RLIMIT_NOFILE, 64);
}

static int way_limit_memory(void)
{
    return limited(RLIMIT_AS, (rlim_t)400 << 20);
}

static void *small_thread(void *argument)
{
    *(unsigned *)argument = burn(2);
    return NULL;
}

static int way_small_stacks(void)
{
    unsigned sum = 0, result;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, small_thread, &result) != 0)
            return 96;
        pthread_join(thread, NULL);
        sum += result;
    }
    say("small stacks", sum);
    return 16;
}

static void on_alternate(int number)
{
    char here;
    say("on the alternate stack", &here >= signal_stack && &here < signal_stack + sizeof signal_stack);
    say("burnt there", burn(BURN_MS));
    (void)number;
}

static int way_alternate_stack(void)
{
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    burn_and_say("back");
    return 17;
}

static ucontext_t outer, inner[2];

static void coroutine(int which)
{
    unsigned sum = 0;
    for (int i = 0; i < 10; i++) {
        sum += burn(3);
        swapcontext(&inner[which], &outer);
    }
    say("coroutine", sum);
}

static void coroutine_make(int which, size_t size)
{
    getcontext(&inner[which]);
    inner[which].uc_stack.ss_size = size;
    inner[which].uc_stack.ss_sp =
        which ? malloc(size) : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    inner[which].uc_link = &outer;
    makecontext(&inner[which], (void (*)(void))coroutine, 1, which);
}

static int way_coroutines(void)
{
    coroutine_make(0, 64 * 1024);
    coroutine_make(1, 64 * 1024);
    for (volatile int turn = 0; turn < 22; turn++)
        swapcontext(&outer, &inner[turn & 1]);
    burn_and_say("main");
    return 18;
}

static int way_plugin(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.plugins/plugin.so", own_path);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;
    if (!run) {
        fprintf(stderr, "%s\n", dlerror());
        return 97;
    }
    say("plugin", (unsigned)run());
    burn_and_say("main");
    dlclose(plugin);
    return 19;
}

static int way_detached(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    static unsigned counters[4];
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, &attributes, thread_spins, &counters[i]);
    }
    burn_and_say("main");
    return 20;
}

static const struct life_way ways[] = {
    {"plain", way_plain},
    {"vfork", way_vfork},
    {"spawn", way_spawn},
    {"fork", way_fork},
    {"fork-thread", way_fork_thread},
    {"exec", way_exec},
    {"thread-ends", way_thread_ends},
    {"exit-in-thread", way_exit_in_thread},
    {"main-leaves", way_main_leaves},
    {"leave", way_leave},
    {"quick", way_quick},
    {"abort", way_abort},
    {"crash", way_crash},
    {"killed", way_killed},
    {"close-all", way_close_all},
    {"block-signals", way_block_signals},
    {"own-handler", way_own_handler},
    {"many-files", way_many_files},
    {"limit-files", way_limit_files},
    {"limit-memory", way_limit_memory},
    {"small-stacks", way_small_stacks},
    {"alternate-stack", way_alternate_stack},
    {"coroutines", way_coroutines},
    {"plugin", way_plugin},
    {"detached", way_detached},
};

int main(int argc, char **argv)
{
    own_path = argv[0];
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    }
    return 99;
}
