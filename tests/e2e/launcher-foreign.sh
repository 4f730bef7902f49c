#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Root measures beside other users: programs that change to another user are measured and not trusted, other users'
# sockets, caches and homes neither stop nor steer, and messages about trouble are where people look.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need setpriv python3
cd "$scratch"
chmod 755 .

cat >touch.c <<'END'
#include <stdlib.h>
#include <time.h>
/* Reads matrix all over for a while. */
int main(void)
{
    size_t n = (size_t)1 << 22, at = 1;
    volatile long sum = 0;
    long *matrix = malloc(n * sizeof *matrix);
    for (size_t i = 0; i < n; i++)
        matrix[i] = (long)i;
    while ((double)clock() / CLOCKS_PER_SEC < 0.6)
        for (int i = 0; i < 10000; i++)
            sum += matrix[at = (at * 1103515245 + 12345) & (n - 1)];
    return 4;
}
END
cat >hostile.c <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
/* hostile SEED: gives up root's rights, writes nonsense over the records that it shares with the companion, and goes. */
int main(int argc, char **argv)
{
    char line[512];
    unsigned long low = 0, high = 0;
    volatile unsigned long x = 0;
    for (int i = 0; i < 50000000; i++)
        x += (unsigned long)i;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "locus-arena") && sscanf(line, "%lx-%lx", &low, &high) == 2)
            break;
    if (!high || argc < 2)
        return 9;
    srandom((unsigned)atoi(argv[1]));
    if (setgid(12345) || setuid(12345))
        return 8;
    unsigned char *at = (unsigned char *)low;
    for (unsigned long i = 8 + (unsigned long)(random() % 64); i < 4ul << 20; i += 1 + (unsigned long)(random() % 64))
        at[i] = (unsigned char)random();
    syscall(SYS_exit_group, 0);
}
END
cat >rename.c <<'END'
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* Calls itself something else, as servers do, and has a child work. */
int main(int argc, char **argv)
{
    volatile unsigned long x = 0;
    memset(argv[0], 'z', strlen(argv[0]));
    if (fork() == 0) {
        while ((double)clock() / CLOCKS_PER_SEC < 0.2)
            x += (unsigned long)argc;
        _exit(0);
    }
    wait(0);
    return 4;
}
END
cat >bad.c <<'END'
#define _GNU_SOURCE
#include "arena/arena.h"
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
/* bad HOW: a socket with the name of a companion's that answers for ever (endless), never (silent), or lets nobody in
 * (full). */
int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *name = address.sun_path + 1;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strcat(strcpy(name, COMPANION_PREFIX "0-bad-"), argv[1]);
    if (argc != 2 || bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                                                       strlen(name))) != 0)
        return 1;
    listen(fd, *argv[1] == 'f' ? 0 : 100);
    for (int i = 0; *argv[1] == 'f' && i < 2; i++) {
        int mine = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        (void)!connect(mine, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
    }
    close(open("ready", O_CREAT | O_WRONLY, 0644));
    if (*argv[1] != 'e')
        pause();
    int memory = memfd_create("bad", MFD_ALLOW_SEALING);
    (void)!ftruncate(memory, 1 << 20);
    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK);
    for (;;) {
        struct companion_message message;
        int client = accept(fd, NULL, NULL);
        while (recv(client, &message, sizeof message, 0) == (ssize_t)sizeof message) {
            char control[CMSG_SPACE(sizeof(int))] = {0};
            struct iovec part = {&message, sizeof message};
            struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                                    .msg_controllen = sizeof control};
            struct cmsghdr *item = CMSG_FIRSTHDR(&header);
            item->cmsg_level = SOL_SOCKET;
            item->cmsg_type = SCM_RIGHTS;
            item->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(item), &memory, sizeof memory);
            message.pid = (unsigned)message.exit_code + 1;
            message.size_bytes = 1 << 20;
            sendmsg(client, &header, MSG_NOSIGNAL);
        }
        close(client);
    }
}
END
for program in touch hostile rename; do
    $CC -O1 -g -w "$program.c" -o "$program"
done
$CC -O1 -w -I"$srcdir/src" bad.c -o bad

# Servers that write over their arguments keep the name by which they were started.
expect_status 4 "$hpcrun" -e CPUTIME -o renamed ./rename
settle renamed
[ -n "$(find renamed -name 'rename-*.hpcrun')" ] || fail "the name of the program is lost: $(ls renamed)"

# Told on the terminal, once the program has ended: where the data is whose directory has gone.
cat >terminal.py <<'END'
import os, pty, select, shutil, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "-e", "CPUTIME", "-o", "gone", "sh", "-c",
                           "until [ -e go ]; do sleep 0.05; done; ./touch; echo the end"])
while not any(name.startswith(".writing") for name in (os.listdir("gone") if os.path.isdir("gone") else [])):
    time.sleep(0.02)
while os.path.isdir("gone"):  # something may be written there meanwhile
    shutil.rmtree("gone", ignore_errors=True)
open("go", "w").close()
text, end = b"", time.time() + 30
while b"--collect" not in text and time.time() < end:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            text += os.read(fd, 4096)
        except OSError:
            time.sleep(0.1)
sys.stdout.write(text.decode())
END
python3 terminal.py "$hpcrun" >terminal
expect_text <(tr -d '\r' <terminal) '^the end$'
expect_text <(tr -d '\r' <terminal | sed -n '/^the end/,$p') "^hpcrun: .* kept in .*'hpcrun --collect .*gone' moves them"
expect_status 0 "$hpcrun" --collect gone

[ "$(id -u)" = 0 ] || {
    skip_part "other users' parts take root"
    finish
}
other=(setpriv --reuid=12346 --regid=12346 --clear-groups)

# A program that another user's rights are left for is measured as any other, its data by name.
if setpriv --reuid=12345 --regid=12345 --clear-groups test -r "$builddir/.libs/libhpcrun.so"; then
    expect_status 4 "$hpcrun" -e EADDR -o changed setpriv --reuid=12345 --regid=12345 --clear-groups ./touch
    settle changed
    "$builddir/hpcprof" -q -o changed.db changed 2>said || fail "changed: $(cat said)"
    "$builddir/hpcquery" vars changed.db >vars || fail "changed: hpcquery fails"
    expect_text vars 'matrix'
    await sh -c '! ls -d locus-tables-* 2>/dev/null'
else
    skip_part "a library that everybody may read"
fi

# Nonsense in shared records costs what they held, and nobody else anything.
expect_status 4 "$hpcrun" -e CPUTIME -o hostile.m sh -c 'for i in 1 2 3 4 5 6; do ./hostile $i; done; ./touch'
settle hostile.m
[ -n "$(find hostile.m -name 'touch-*.hpcrun')" ] || fail "the companion did not survive: $(ls -A hostile.m)"
[ -z "$(find hostile.m -name '.arena-*')" ] || fail "a companion was missed: $(ls -A hostile.m)"

# Sockets of other users that bear a companion's name: root sees what is real, soon, and whose the others are.
mkdir -m 777 bad.d
for how in endless silent full; do
    rm -f bad.d/ready
    (cd bad.d && exec "${other[@]}" ../bad "$how") &
    pids+=($!)
    await test -e bad.d/ready
done
clean_up() {
    kill "${pids[@]}" 2>/dev/null
}
"$hpcrun" -e CPUTIME -o real sh -c 'until [ -e enough ]; do ./touch; done' 2>/dev/null &
started=$!
await compgen -G 'real/.writing-*'
sleep 0.5
expect_status 0 timeout 60 "$hpcrun" --status
expect_text "$scratch/out" "^ *$started .*real"
expect_text "$scratch/err" 'companion process of user 12346 (answered without end|did not answer)'
touch enough
wait "$started" || true

# Nothing of ours appears in another user's home, and another user's cache is not used.
mkdir home cache
mkdir -m 777 cache/locus
chown -R 12346:12346 home cache
HOME=$scratch/home XDG_CACHE_HOME=$scratch/cache "$hpcrun" --doctor >doctor 2>/dev/null || true
[ -z "$(find home cache/locus -mindepth 1)" ] || fail "files in a home or cache of another user: $(find home cache)"
expect_text doctor '^cache '
! grep -q "^cache .*$scratch" doctor || fail "another user's cache is used: $(grep '^cache' doctor)"

# Without /proc nothing can be measured: not because something is not installed.
if unshare -m true 2>/dev/null; then
    expect_status 4 unshare -m sh -c "mount -t tmpfs none /proc && exec '$hpcrun' -e CPUTIME -o noproc ./touch"
    expect_text "$scratch/err" '/proc cannot be read here'
    expect_text "$scratch/err" 'runs without being measured'
else
    skip_part "no mount namespaces here"
fi
finish
