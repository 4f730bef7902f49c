/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can do with the signal that the profiler uses (SIGURG), by every function of libc that sets actions or
 * masks or waits for signals. It prints what it reads back, and how many signals it got: its own, no others. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <netinet/in.h>

#include "burn.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern sighandler_t bsd_signal(int, sighandler_t);
extern char **environ;

static atomic_int n_got, last_code;

static void count(int number)
{
    (void)number;
    atomic_fetch_add(&n_got, 1);
}

static void count_info(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    atomic_fetch_add(&n_got, 1);
    atomic_store(&last_code, info->si_code);
}

static const char *name_of(sighandler_t handler)
{
    return handler == SIG_DFL    ? "default"
           : handler == SIG_IGN  ? "ignore"
           : handler == SIG_HOLD ? "hold"
           : handler == SIG_ERR  ? "error"
           : handler == count    ? "count"
                                 : "foreign";
}

/* The whole mask, its first word. */
static void say_mask(const char *what)
{
    sigset_t set;
    uint64_t word;
    sigemptyset(&set);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    memcpy(&word, &set, sizeof word);
    printf("%s: mask %#llx\n", what, (unsigned long long)word);
}

static void say_action(const char *what, int number)
{
    struct sigaction action;
    uint64_t word;
    memset(&action, 0, sizeof action);
    sigaction(number, NULL, &action);
    memcpy(&word, &action.sa_mask, sizeof word);
    printf("%s: action %s, flags %#x, mask %#llx\n", what, name_of(action.sa_handler),
           (unsigned)action.sa_flags & ~0x4000000u, (unsigned long long)word);
}

/* Work that is sampled, then three signals of the program's own by different ways: how many came. */
static void say_got(const char *what)
{
    (void)burn(25);
    raise(SIGURG);
    kill(getpid(), SIGURG);
    syscall(SYS_tgkill, getpid(), gettid(), SIGURG);
    (void)burn(5);
    printf("%s: got %d\n", what, atomic_exchange(&n_got, 0));
}

static void one(sigset_t *set, int number)
{
    sigemptyset(set);
    sigaddset(set, number);
}

static int way_actions(void)
{
    struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    say_action("at first", SIGURG);
    printf("signal: before %s\n", name_of(signal(SIGURG, count)));
    say_action("signal", SIGURG), say_got("signal");
    printf("ssignal: before %s\n", name_of(ssignal(SIGURG, SIG_IGN)));
    say_action("ssignal", SIGURG), say_got("ssignal");
    printf("bsd_signal: before %s\n", name_of(bsd_signal(SIGURG, count)));
    say_action("bsd_signal", SIGURG), say_got("bsd_signal");
    printf("sysv_signal: before %s\n", name_of(sysv_signal(SIGURG, count)));
    say_action("sysv_signal", SIGURG), say_got("sysv_signal"), say_action("after sysv_signal", SIGURG);
    printf("sigset: before %s\n", name_of(sigset(SIGURG, count)));
    say_action("sigset", SIGURG), say_got("sigset"), say_mask("sigset");
    printf("sigset hold: before %s\n", name_of(sigset(SIGURG, SIG_HOLD)));
    say_action("hold", SIGURG), say_got("hold"), say_mask("hold");
    printf("sigset again: before %s\n", name_of(sigset(SIGURG, count)));
    say_got("sigset again"), say_mask("sigset again");
    printf("siginterrupt: %d\n", siginterrupt(SIGURG, 0));
    say_action("siginterrupt 0", SIGURG), say_got("siginterrupt");
    printf("siginterrupt: %d\n", siginterrupt(SIGURG, 1));
    say_action("siginterrupt 1", SIGURG);
    signal(SIGURG, count);
    say_action("signal after siginterrupt", SIGURG);
    printf("sigignore: %d\n", sigignore(SIGURG));
    say_action("sigignore", SIGURG), say_got("sigignore");
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGURG, &action, NULL);
    say_got("sigaction");
    printf("si_code %d\n", atomic_load(&last_code));
    /* another signal, whose mask has ours in it */
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))count;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaddset(&action.sa_mask, SIGURG);
    sigaction(SIGUSR1, &action, NULL);
    say_action("SIGUSR1", SIGUSR1);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    say_action("SIGUSR1 full", SIGUSR1);
    sigset(SIGUSR1, count);
    say_action("SIGUSR1 by sigset", SIGUSR1);
    return 1;
}

static int way_masks(void)
{
    sigset_t set;
    signal(SIGURG, count);
    for (int number = 1; number < 65; number++) {
        one(&set, number);
        sigprocmask(SIG_BLOCK, &set, NULL);
        say_mask("one");
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        say_mask("none");
    }
    one(&set, SIGURG);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say_got("blocked");
    sigpending(&set);
    printf("pending %d\n", sigismember(&set, SIGURG));
    say_mask("blocked");
    one(&set, SIGURG);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("unblocked: got %d\n", atomic_exchange(&n_got, 0));
    say_got("unblocked");
    sigfillset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    say_mask("full");
    say_got("full");
    sigdelset(&set, SIGURG);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    printf("all but it: got %d\n", atomic_exchange(&n_got, 0));
    say_mask("all but it");
    sigemptyset(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    sighold(SIGURG);
    say_mask("sighold"), say_got("sighold");
    sigrelse(SIGURG);
    say_mask("sigrelse");
    printf("sigrelse: got %d\n", atomic_exchange(&n_got, 0));
    printf("sigblock %#x\n", (unsigned)sigblock(sigmask(SIGURG)));
    say_mask("sigblock"), say_got("sigblock");
    printf("siggetmask %#x\n", (unsigned)siggetmask());
    printf("sigsetmask %#x\n", (unsigned)sigsetmask(0));
    printf("sigsetmask: got %d\n", atomic_exchange(&n_got, 0));
    say_mask("end");
    return 2;
}

static sigjmp_buf back;
static ucontext_t here, there;
static char coroutine_stack[65536];

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void other(void)
{
    say_mask("in the context");
}

/* Masks that libc and the kernel save and restore by themselves. */
static int way_jumps(void)
{
    sigset_t set;
    struct sigaction action = {.sa_handler = jump};
    one(&set, SIGURG);
    signal(SIGURG, count);
    if (!sigsetjmp(back, 1)) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        siglongjmp(back, 1);
    }
    say_mask("after a jump"), say_got("after a jump");
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!sigsetjmp(back, 1)) {
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        siglongjmp(back, 1);
    }
    say_mask("back to blocked"), say_got("back to blocked");
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("got %d\n", atomic_exchange(&n_got, 0));
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    say_mask("out of a handler"), say_got("out of a handler");
    sigprocmask(SIG_BLOCK, &set, NULL);
    getcontext(&there);
    there.uc_stack.ss_sp = coroutine_stack;
    there.uc_stack.ss_size = sizeof coroutine_stack;
    there.uc_link = &here;
    makecontext(&there, other, 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    swapcontext(&here, &there);
    say_mask("back in this"), say_got("back in this");
    return 3;
}

static void *wait_in_thread(void *argument)
{
    sigset_t set;
    int number = 0;
    one(&set, SIGURG);
    say_mask("thread");
    sigwait(&set, &number);
    return argument ? (void *)(intptr_t)number : NULL;
}

static void *read_mask(void *argument)
{
    (void)argument;
    say_mask("given by an attribute");
    (void)burn(20);
    return NULL;
}

static int way_waits(void)
{
    sigset_t set, empty;
    siginfo_t info;
    struct timespec soon = {.tv_nsec = 20000000}, at_once = {0};
    int number = 0;
    sigemptyset(&empty);
    one(&set, SIGURG);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say_mask("blocked");
    (void)burn(20);
    printf("sigtimedwait: %d\n", sigtimedwait(&set, &info, &at_once));
    kill(getpid(), SIGURG);
    (void)burn(20);
    printf("sigwait: %d", sigwait(&set, &number));
    printf(" %d\n", number);
    (void)burn(20);
    raise(SIGURG);
    printf("sigwaitinfo: %d", sigwaitinfo(&set, &info));
    printf(" code %d from me %d\n", info.si_code, info.si_pid == getpid());
    sigqueue(getpid(), SIGURG, (union sigval){.sival_int = 77});
    (void)burn(20);
    printf("sigtimedwait: %d", sigtimedwait(&set, &info, &soon));
    printf(" code %d value %d\n", info.si_code, info.si_value.sival_int);
    printf("sigtimedwait: %d\n", sigtimedwait(&set, &info, &soon));
    /* signalfd: it is there when the signal is, and not before */
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    struct signalfd_siginfo got;
    (void)burn(20);
    printf("signalfd: %d\n", poll(&wait, 1, 0));
    kill(getpid(), SIGURG);
    printf("signalfd: %d", poll(&wait, 1, 1000));
    printf(" read %d", (int)read(fd, &got, sizeof got));
    printf(" signal %u from me %d\n", got.ssi_signo, got.ssi_pid == (unsigned)getpid());
    (void)burn(20);
    printf("signalfd: %d\n", poll(&wait, 1, 0));
    /* sleeps that let it through */
    signal(SIGURG, count);
    kill(getpid(), SIGURG);
    printf("ppoll: %d", ppoll(NULL, 0, &soon, &empty));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("sigsuspend: %d", sigsuspend(&empty));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("pselect: %d", pselect(0, NULL, NULL, NULL, &soon, &empty));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    sigset_t others;
    sigfillset(&others);
    sigdelset(&others, SIGURG);
    raise(SIGURG);
    printf("sigsuspend, others blocked: %d", sigsuspend(&others));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("ppoll, others blocked: %d", ppoll(NULL, 0, &soon, &others));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("pselect, others blocked: %d", pselect(0, NULL, NULL, NULL, &soon, &others));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    say_mask("after them");
    raise(SIGURG);
    printf("sigpause: %d", sigpause(SIGURG));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    int epoll = epoll_create1(0);
    struct epoll_event event;
    raise(SIGURG);
    printf("epoll_pwait: %d", epoll_pwait(epoll, &event, 1, 100, &empty));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("epoll_pwait, others blocked: %d", epoll_pwait(epoll, &event, 1, 100, &others));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    raise(SIGURG);
    printf("epoll_pwait2: %d", epoll_pwait2(epoll, &event, 1, &soon, &empty));
    printf(" got %d\n", atomic_exchange(&n_got, 0));
    /* and one that does not */
    one(&set, SIGURG);
    errno = 0;
    raise(SIGURG);
    printf("ppoll: %d", ppoll(NULL, 0, &soon, &set));
    printf(" error %d got %d\n", errno, atomic_exchange(&n_got, 0));
    say_mask("blocked");
    /* a thread waits for what is sent to the process, while others work */
    sigtimedwait(&set, &info, &at_once);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_in_thread, &number);
    (void)burn(50);
    kill(getpid(), SIGURG);
    (void)burn(20);
    pthread_join(thread, &result);
    printf("thread: %d\n", (int)(intptr_t)result);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    sigaddset(&set, SIGUSR2);
    pthread_attr_setsigmask_np(&attr, &set);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    pthread_create(&thread, &attr, read_mask, NULL);
    pthread_join(thread, NULL);
    one(&set, SIGSTKFLT);
    pthread_attr_setsigmask_np(&attr, &set);
    pthread_create(&thread, &attr, read_mask, NULL);
    pthread_join(thread, NULL);
    return 4;
}

/* A handler jumps out of the wait for the signal: afterwards the thread is as any other. */
static int way_jump_from_wait(void)
{
    struct itimerval soon = {.it_value.tv_usec = 20000};
    sigset_t set;
    int number;
    one(&set, SIGURG);
    signal(SIGALRM, jump);
    for (int i = 0; i < 2; i++) {
        setitimer(ITIMER_REAL, &soon, NULL);
        if (!sigsetjmp(back, !i)) /* with the mask and without */
            sigwait(&set, &number);
        say_mask("out of the wait");
        alarm(0);
    }
    sigrelse(SIGALRM);
    printf("burnt %u\n", burn(300) != 0);
    say_got("out of the wait");
    return 9;
}

static void burn_at_last(void *argument)
{
    (void)argument;
    say_mask("cancelled");
    printf("burnt %u\n", burn(300) != 0);
}

static void *wait_for_ever(void *argument)
{
    sigset_t set;
    int number;
    one(&set, SIGURG);
    pthread_cleanup_push(burn_at_last, NULL);
    sigwait(&set, &number);
    pthread_cleanup_pop(0);
    return argument;
}

/* A thread is cancelled in the wait: what it does at last is measured. */
static int way_cancel_in_wait(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(50000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    return 10;
}

#define STARTED "8" /* descriptors of the shell */
#define GATE "9"

static void *run_shell(void *argument)
{
    sighold(SIGURG);
    pthread_cleanup_push(burn_at_last, NULL);
    int status = system("grep -E 'Sig(Blk|Ign)' /proc/self/status; echo >&" STARTED "; read line <&" GATE "; exit 3");
    printf("shell %d\n", WEXITSTATUS(status));
    say_mask("after the shell");
    pthread_cleanup_pop(0);
    return argument;
}

/* A thread waits for a shell, which is not measured, while another computes; the shell ends, or the thread is
 * cancelled. Both work and do nothing else, so the samples can be compared with those of a program that does not ignore
 * the signal. */
static int wait_for_shell(sighandler_t handler, bool cancels)
{
    int started[2], gate[2];
    char byte;
    pthread_t thread;
    void *result = NULL;
    unsetenv("LD_PRELOAD");
    signal(SIGURG, handler);
    if (pipe(started) || pipe(gate) || dup2(started[1], atoi(STARTED)) < 0 || dup2(gate[0], atoi(GATE)) < 0)
        return 90;
    pthread_create(&thread, NULL, run_shell, NULL);
    (void)!read(started[0], &byte, 1);
    printf("burnt %u\n", burn(300) != 0);
    say_action("meanwhile", SIGURG), say_action("meanwhile", SIGINT), say_action("meanwhile", SIGQUIT);
    if (cancels)
        pthread_cancel(thread);
    else
        (void)!write(gate[1], "\n", 1);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    say_action("after it", SIGURG), say_action("after it", SIGINT), say_action("after it", SIGQUIT);
    printf("burnt %u\n", burn(300) != 0);
    return 11;
}

static int way_system(void)
{
    return wait_for_shell(SIG_DFL, false);
}

static int way_system_ignored(void)
{
    errno = 0;
    printf("can run %d, error %d\n", system(NULL), errno);
    return wait_for_shell(SIG_IGN, false);
}

static int way_cancel_in_system(void)
{
    return wait_for_shell(SIG_DFL, true);
}

static int way_cancel_in_system_ignored(void)
{
    return wait_for_shell(SIG_IGN, true);
}

/* Urgent data on a socket, an asynchronous descriptor and a timer, with the signal's number. */
static int way_senders(void)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), pipes[2];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGURG, &action, NULL);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &len))
        return 90;
    int sender = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sender, (struct sockaddr *)&address, len))
        return 91;
    int receiver = accept(listener, NULL, NULL);
    fcntl(receiver, F_SETOWN, getpid());
    (void)burn(20);
    send(sender, "!", 1, MSG_OOB);
    for (int i = 0; i < 100 && !atomic_load(&n_got); i++)
        (void)burn(5);
    printf("urgent data: got %d code %d\n", atomic_exchange(&n_got, 0), atomic_load(&last_code));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes))
        return 92;
    fcntl(pipes[0], F_SETOWN, getpid());
    fcntl(pipes[0], F_SETSIG, SIGURG);
    fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    (void)burn(20);
    (void)!write(pipes[1], "x", 1);
    (void)burn(20);
    printf("F_SETSIG: got %d code %d\n", atomic_exchange(&n_got, 0), atomic_load(&last_code));
    timer_t timer;
    struct sigevent notify = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    struct itimerspec once = {.it_value.tv_nsec = 5000000};
    timer_create(CLOCK_MONOTONIC, &notify, &timer);
    timer_settime(timer, 0, &once, NULL);
    (void)burn(40);
    printf("timer: got %d code %d\n", atomic_exchange(&n_got, 0), atomic_load(&last_code));
    return 5;
}

static const char *own_path;

/* What a program finds that is started with this mask and with the signal ignored, or not. */
static int way_found(void)
{
    say_mask("found");
    say_action("found", SIGURG);
    fflush(stdout);
    return 6;
}

static void run(char *how, sighandler_t handler, const sigset_t *set)
{
    char *arguments[] = {(char *)(uintptr_t)own_path, "found", NULL}, command[600];
    int status = 0;
    pid_t child = -1;
    sigset_t none;
    sigemptyset(&none);
    signal(SIGURG, handler);
    sigprocmask(SIG_SETMASK, set, NULL);
    printf("%s with %s\n", how, name_of(handler));
    fflush(stdout);
    snprintf(command, sizeof command, "exec %s found", own_path);
    if (!strcmp(how, "exec")) {
        if ((child = fork()) == 0) {
            execv(own_path, arguments);
            _exit(88);
        }
    } else if (!strcmp(how, "vfork")) {
        if ((child = vfork()) == 0) {
            execv("/nonexistent", arguments);
            execv(own_path, arguments);
            _exit(88);
        }
    } else if (!strcmp(how, "posix_spawn")) {
        posix_spawn(&child, own_path, NULL, NULL, arguments, environ);
    } else if (!strcmp(how, "posix_spawnp")) {
        posix_spawnp(&child, own_path, NULL, NULL, arguments, environ);
    } else if (!strcmp(how, "system")) {
        status = system(command);
    } else {
        FILE *stream = popen(command, "r");
        char line[200];
        while (stream && fgets(line, sizeof line, stream))
            fputs(line, stdout);
        status = pclose(stream);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    say_mask("after it");
    say_action("after it", SIGURG);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int way_children(void)
{
    static char *const ways[] = {"exec", "vfork", "posix_spawn", "posix_spawnp", "system", "popen"};
    sigset_t set;
    for (int i = 0; i < 6; i++) {
        sigemptyset(&set);
        run(ways[i], SIG_DFL, &set);
        one(&set, SIGURG);
        run(ways[i], SIG_IGN, &set);
        sigfillset(&set);
        run(ways[i], count, &set);
        (void)burn(10);
    }
    say_got("end");
    return 7;
}

/* A system call of the program's own replaces the handler: what comes of that is the program's affair, but it ends. */
static int way_raw(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {.handler = SIG_IGN};
    uint64_t mask = UINT64_C(1) << (SIGURG - 1);
    (void)burn(20);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof mask);
    (void)burn(20);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, NULL, sizeof mask);
    (void)burn(20);
    syscall(SYS_rt_sigaction, SIGURG, &action, NULL, sizeof action.mask);
    printf("burnt %u\n", burn(40) != 0);
    return 8;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {{"actions", way_actions},
                {"masks", way_masks},
                {"jumps", way_jumps},
                {"waits", way_waits},
                {"senders", way_senders},
                {"children", way_children},
                {"found", way_found},
                {"raw", way_raw},
                {"jump-from-wait", way_jump_from_wait},
                {"cancel-in-wait", way_cancel_in_wait},
                {"system", way_system},
                {"system-ignored", way_system_ignored},
                {"cancel-in-system", way_cancel_in_system},
                {"cancel-in-system-ignored", way_cancel_in_system_ignored}};
    own_path = argv[0];
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 99;
}
