#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# IO: the bytes that calls read and write, by call path and by file, against what the program counts itself: descriptors and
# streams, pipes and sockets, threads, a forked child, more files than have names; and a program that looks closely at
# its calls sees no difference.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need gcc python3
need_runtime
cd "$scratch"

cat >mover.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static char bytes[65536];
#define APART __attribute__((noinline))
/* One line for each function: what it has read and written, as the calls themselves said. */
static void said(const char *name, long n_read, long n_written)
{
    int fd = open("said", O_WRONLY | O_APPEND | O_CREAT, 0600);
    dprintf(fd, "%s %ld %ld\n", name, n_read, n_written);
    close(fd);
}
static APART void in_write(void)
{
    long n = 0;
    int fd = open("big", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int i = 0; i < 40; i++)
        n += write(fd, bytes, sizeof bytes - i);
    n += pwrite(fd, bytes, 1000, 5);
    struct iovec parts[2] = {{bytes, 10}, {bytes, 20}};
    n += writev(fd, parts, 2) + pwritev(fd, parts, 2, 0);
    close(fd);
    said(__func__, 0, n);
}
static APART void in_read(void)
{
    long n = 0, part;
    int fd = open("big", O_RDONLY);
    while ((part = read(fd, bytes, 4000)) > 0)
        n += part;
    struct iovec parts[2] = {{bytes, 10}, {bytes, 20}};
    n += pread(fd, bytes, 1000, 5) + preadv(fd, parts, 2, 0);
    close(fd);
    if (read(fd, bytes, 10) != -1 || errno != EBADF || write(fd, bytes, 10) != -1 || errno != EBADF)
        exit(4);
    said(__func__, n, 0);
}
static int through(FILE *stream, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vfprintf(stream, format, list);
    va_end(list);
    return n;
}
static APART void in_stream_out(void)
{
    long n = 0;
    FILE *stream = fopen("lines", "w");
    for (int i = 0; i < 1000; i++) {
        n += fprintf(stream, "%d %s %.3f\n", i, "and so on", i / 7.0);
        n += through(stream, "%5d%c", i, '\n');
    }
    fputs("a line\n", stream);
    fputs_unlocked("a line\n", stream);
    n += 14 + (long)fwrite_unlocked(bytes, 1, 50, stream) + (long)fwrite(bytes, 3, 100, stream) * 3;
    errno = 77;
    n += fprintf(stream, "%m\n");
    fclose(stream);
    said(__func__, 0, n);
}
static APART void in_stream_in(void)
{
    long n = 0;
    char line[300], *more = NULL;
    size_t room = 0;
    FILE *stream = fopen("lines", "r");
    for (int i = 0; i < 1500 && fgets(line, sizeof line, stream); i++)
        n += (long)strlen(line);
    for (int i = 0; i < 400; i++)
        n += getline(&more, &room, stream);
    n += (long)fread(line, 7, 3, stream) * 7;
    n += (long)fread_unlocked(line, 1, 50, stream);
    fclose(stream);
    free(more);
    said(__func__, n, 0);
}
static APART void in_pipe(void)
{
    int ends[2];
    long in = 0, out = 0;
    if (pipe(ends) != 0)
        exit(1);
    for (int i = 0; i < 100; i++) {
        out += write(ends[1], bytes, 333);
        in += read(ends[0], bytes, 400);
    }
    close(ends[1]);
    in += read(ends[0], bytes, 400);
    close(ends[0]);
    said(__func__, in, out);
}
static APART void in_socket(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        exit(1);
    long out = send(ends[0], bytes, 1234, 0);
    recv(ends[1], bytes, 2000, MSG_PEEK);
    long in = recv(ends[1], bytes, 2000, 0);
    int packets[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, packets) != 0)
        exit(1);
    out += send(packets[0], bytes, 50, 0);
    if (recv(packets[1], bytes, 2, MSG_TRUNC) != 50)
        exit(1);
    in += 2;
    said(__func__, in, out);
}
static APART void *in_thread(void *name)
{
    long n = 0;
    int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int i = 0; i < 2000; i++)
        n += write(fd, bytes, 50);
    close(fd);
    return (void *)n;
}
static APART void in_child(void)
{
    long n = 0;
    int fd = open("of-child", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int i = 0; i < 10; i++)
        n += write(fd, bytes, 5000);
    close(fd);
    said(__func__, 0, n);
}
static APART void in_copy(void)
{
    off64_t at = 0;
    int in = open("big", O_RDONLY), out = open("copy", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    long n = copy_file_range(in, &at, out, NULL, 100000, 0);
    off_t from = 5;
    n += sendfile(out, in, &from, 70000);
    close(in);
    close(out);
    said(__func__, n, n);
}
static APART void in_many(int n_files)
{
    long n = 0;
    char name[40];
    for (int i = 0; i < n_files; i++) {
        sprintf(name, "many-%d", i);
        int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        n += write(fd, bytes, 100 + i % 7);
        close(fd);
        unlink(name);
    }
    said(__func__, 0, n);
}
int main(int argc, char **argv)
{
    pthread_t threads[4];
    long n = 0;
    memset(bytes, 'x', sizeof bytes);
    puts("hello");
    printf("%d\n", argc);
    fflush(stdout);
    in_write();
    in_read();
    in_stream_out();
    in_stream_in();
    in_copy();
    in_pipe();
    in_socket();
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, in_thread, i % 2 ? "odd" : "even");
    for (int i = 0; i < 4; i++) {
        void *part;
        pthread_join(threads[i], &part);
        n += (long)part;
    }
    said("in_thread", 0, n);
    if (fork() == 0) {
        in_child();
        _exit(0);
    }
    wait(NULL);
    in_many(argc > 1 ? atoi(argv[1]) : 10);
    return 3;
}
END
gcc -O1 -g -w -pthread mover.c -o mover
gcc -O2 -D_FORTIFY_SOURCE=2 -g -w -pthread mover.c -o mover-checked

expect_status 3 ./mover 6000
mv out native

# moved NAME PROGRAM EVENT...: runs the program with these events and compares.
moved() {
    local name=$1 program=$2 event options=() status=0
    shift 2
    for event; do options+=(-e "$event"); done
    rm -f said
    "$hpcrun" -o "$name.m" "${options[@]}" "./$program" 6000 >measured || status=$?
    [ $status = 3 ] || fail "$name: status $status"
    cmp native measured || fail "$name: the output differs"
    expect_status 0 "$builddir/hpcprof" -q -o "$name.db" "$name.m"
    for way in Read Written; do
        "$builddir/hpcquery" functions --metric "IO Bytes $way" --json --top 0 "$name.db" >"$name.$way.json"
        "$builddir/hpcquery" vars --metric "IO Bytes $way" --csv "$name.db" >"$name.$way.csv"
    done
    python3 - "$name" <<'PYTHON' || fail "$name: bytes are wrong"
import csv, json, os, sys
name, is_right = sys.argv[1], True


def check(what, found, right):
    global is_right
    is_right = is_right and found == right
    if found != right:
        print("FAIL", what, "found", found, "right", right)


said = [line.split() for line in open("said")]
total = {"Read": 0, "Written": 0}
for way, column in (("Read", 1), ("Written", 2)):
    functions = json.load(open(f"{name}.{way}.json"))
    inclusive = {row["function"]: row["inclusive"] for row in functions["functions"]}
    for row in said:
        check(f"{way} {row[0]}", inclusive.get(row[0], 0), int(row[column]))
        total[way] += int(row[column])
    files = {row["variable"].split("/")[-1]: row for row in csv.DictReader(open(f"{name}.{way}.csv"))}
    value = lambda file: float(files[file]["value"]) if file in files else 0
    by_function = {row[0]: int(row[column]) for row in said}
    check(f"{way} big", value("big"), by_function["in_write"] + by_function["in_read"] +
          (by_function["in_copy"] if way == "Read" else 0))
    check(f"{way} copy", value("copy"), by_function["in_copy"] if way == "Written" else 0)
    check(f"{way} lines", value("lines"), by_function["in_stream_out"] + by_function["in_stream_in"])
    check(f"{way} pipe", value("pipe"), by_function["in_pipe"])
    check(f"{way} socket", value("socket"), by_function["in_socket"])
    check(f"{way} of-child", value("of-child"), by_function["in_child"])
    check(f"{way} odd and even", [value("odd"), value("even")], [by_function["in_thread"] / 2] * 2)
    many = sum(float(row["value"]) for file, row in files.items() if file.startswith("many-"))
    more = value("<more files>")
    check(f"{way} many", many + more, by_function["in_many"])
    if way == "Written":
        check("so many names that some have none", more > 0 and many > 0, True)
        check("the lines are the program's", "mover.c:" in files["big"]["top_lines"], True)
    # the rest: what the program printed, which goes to a file here; its own log is written by dprintf, which libc does itself
    rest = functions["total"] - total[way]
    check(f"{way} rest", rest, os.path.getsize("native") if way == "Written" else 0)
sys.exit(not is_right)
PYTHON
}
moved checked mover-checked IO
moved alone mover IO
moved beside mover datacentric BLOCKTIME IO
"$builddir/hpcquery" vars alone.db >vars.txt
expect_text vars.txt '^samples +[0-9]+ of IO Bytes Read: each call is measured'
expect_text <(tr -s ' \n' ' ' <vars.txt) 'read 2\.[0-9] MiB; 9[0-9] % [a-z_]*read called by in_read \(mover.c:[0-9]+\).* written [0-9.]+ MiB; '
"$builddir/hpcquery" vars beside.db >beside.txt
expect_text beside.txt '^samples .* of EADDR'
expect_text <(tr -s ' \n' ' ' <beside.txt) "hpcquery vars --metric 'IO Bytes Written' shows the files"

# The names of files are no names of code: nothing is cut out of them. What is no character stands as \xNN.
cat >names.c <<'END'
#include <stdio.h>
int main(int n, char **names)
{
    static char bytes[100000];
    for (int i = 1; i < n; i++) {
        FILE *out = fopen(names[i], "w");
        if (!out || fwrite(bytes, 1, sizeof bytes, out) != sizeof bytes || fclose(out))
            return 1;
    }
    return 0;
}
END
gcc -g -o names names.c
names=('a<b>c' 'Foo<int>::bar(1).dat' '<script>x' 'a&lt;b' 'x, std::allocator<c>' $'tab\there' $'line\nbreak' $'red\033[31m' $'byte\377')
expect_status 0 "$builddir/hpcrun" -e IO -o names.m ./names "${names[@]}"
expect_status 0 "$builddir/hpcprof" -o names.db names.m
"$builddir/hpcquery" vars --top 0 names.db >names.txt
"$builddir/hpcquery" datatree names.db >tree.txt
for name in "${names[@]:0:5}" 'tab\x09here' 'line\x0abreak' 'red\x1b[31m' 'byte\xff'; do
    for report in names.txt tree.txt; do
        grep -qF "  $name" "$report" || fail "$report has not the file $name: $(cat "$report")"
    done
done

# Functions of Python are on the paths, also while the interpreter has let its lock go.
if python3 -c 'import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 13))'; then
    cat >app.py <<'END'
import threading
def save(name):
    with open(name, "w") as out:
        for i in range(20000):
            out.write(f"{i} and so on\n")
def load(name):
    return sum(len(line) for line in open(name))
save("text")
threads = [threading.Thread(target=save, args=(f"text{i}",)) for i in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(load("text"), flush=True)
END
    expect_status 0 "$hpcrun" -o py.m -e IO python3 app.py
    expect_status 0 "$builddir/hpcprof" -q -o py.db py.m
    for way in Read Written; do
        "$builddir/hpcquery" functions --metric "IO Bytes $way" --json --top 0 py.db >"py.$way.json"
    done
    python3 - <<'PYTHON' || fail "Python: bytes are wrong"
import json, os, sys
size = os.path.getsize("text")
value = lambda way, name: sum(row["inclusive"] for row in json.load(open(f"py.{way}.json"))["functions"] if row["function"] == name)
found = value("Written", "save"), value("Read", "load")
print("found", found, "right", (4 * size, size))
sys.exit(found != (4 * size, size))
PYTHON
    "$builddir/hpcquery" vars --metric 'IO Bytes Written' --csv py.db >py.csv
    expect_text py.csv '/text,file,.*app.py:5'
else
    skip_part "this version of Python is not read"
fi

# What the program sees of its calls stays the same, cancellation included.
gcc -g -O1 -pthread "$srcdir/tests/e2e/blocktime.c" -o waiter
./waiter same "$scratch/file" >native
"$hpcrun" -o same.m -e IO ./waiter same "$scratch/file" >measured || fail "status $?"
diff native measured || fail "the program sees a difference"

# Programs of others: the bytes are what the kernel has counted.
if command -v cat >/dev/null && command -v dd >/dev/null; then
    head -c 3000000 /dev/zero >zeros
    expect_status 0 "$hpcrun" -o dd.m -e IO dd if=zeros of=copy bs=4096 status=none
    expect_status 0 "$builddir/hpcprof" -q -o dd.db dd.m
    for way in Read Written; do
        "$builddir/hpcquery" vars --metric "IO Bytes $way" --csv dd.db | grep -q "/$([ $way = Read ] && echo zeros || echo copy),file,.*,3000000," ||
            fail "dd: $way is not 3000000 bytes"
    done
fi

# Callers without debug information are told apart: a small read first, then large ones.
cat >callers.c <<'END'
#include <fcntl.h>
#include <unistd.h>
char bytes[4096];
int fd;
__attribute__((noinline)) int at_first(void) { return (int)read(fd, bytes, 16) + 1; }
__attribute__((noinline)) int later(void) { return (int)read(fd, bytes, 4096) + 1; }
int main(void)
{
    int n = 0;
    fd = open("/dev/zero", O_RDONLY);
    n += at_first();
    for (int i = 0; i < 100; i++)
        n += later();
    return n == 0;
}
END
gcc -O1 -w callers.c -o callers
expect_status 0 "$hpcrun" -o callers.m -e IO ./callers
expect_status 0 "$builddir/hpcprof" -q -o callers.db callers.m
"$builddir/hpcquery" vars callers.db >callers.txt
expect_text <(tr -s ' \n' ' ' <callers.txt) 'read 400.0 KiB; 100 % [a-z_]*read called by later'

# It takes no period, and cannot be had in a program that runs already.
expect_status 2 "$hpcrun" -e IO@100 true
expect_text err 'IO takes no period: each call is measured'
finish
