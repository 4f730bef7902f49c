#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# However processes and threads live and end (life.c), the program's output and status are those without hpcrun, there
# are complete files of every process, and every sample has a fate.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/live.sh
. "$LOCUS_SRCDIR/tests/lib/live.sh"
need_runtime
need python3
cd "$scratch"
ulimit -c 0

$CC -O2 -g -pthread "$srcdir/tests/e2e/life.c" -o life || fail "life.c does not build"
# A plugin in C++ that finds the library beside it by its own RUNPATH, loaded by a program in C.
mkdir life.plugins
cat >helper.c <<'END'
#include <stdlib.h>
int helper_sum(int n)
{
    int *numbers = malloc(1000 * sizeof *numbers), sum = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 1000; i++)
            sum += numbers[i] = (i ^ k) & 7;
    free(numbers);
    return sum;
}
END
cat >plugin.cc <<'END'
#include <map>
#include <stdexcept>
#include <string>
extern "C" int helper_sum(int);
struct ends_late {
    std::string *text = new std::string(5000, 'x');
    ~ends_late() { delete text; }
};
static thread_local ends_late late;
extern "C" int plugin_run()
{
    std::map<int, std::string> texts;
    for (int i = 0; i < 2000; i++)
        texts[i] = std::string(2000, 'a');
    try {
        texts.at(-1);
    } catch (const std::out_of_range &) {
        return helper_sum(50000) + int(late.text->size());
    }
    return 0;
}
END
has_plugin=no
# shellcheck disable=SC2016 # $ORIGIN is the loader's
if command -v "${CXX:-g++}" >/dev/null; then
    $CC -O2 -g -shared -fPIC helper.c -o life.plugins/libhelper.so
    "${CXX:-g++}" -O2 -g -shared -fPIC plugin.cc -o life.plugins/plugin.so -Llife.plugins -lhelper \
        -Wl,--enable-new-dtags,-rpath,'$ORIGIN' && has_plugin=yes
fi

live plain 1 1
live vfork 2 2
live spawn 3 3
live fork 2 2
live fork-thread 2 3
live exec 2 2
live thread-ends 1 -
live exit-in-thread 1 2
live main-leaves 1 2
live leave 1 1
live quick 1 1
live abort 1 1 killed
live crash 1 1 killed
live killed 1 1 killed
live close-all 1 2
live block-signals 1 1
live own-handler 1 1
live limit-files 2 2
live limit-memory 2 2
live small-stacks 1 41
live alternate-stack 1 1
live coroutines 1 1
live detached 1 -
if [ "$has_plugin" = yes ]; then
    live plugin 1 1
else
    skip_part "no C++ compiler"
fi

# A program with a sanitizer of its own, which watches the stacks and the allocator.
rm -rf exit-in-thread.m fork.m
status=0
if $CC -O1 -g -pthread -fsanitize=address "$srcdir/tests/e2e/life.c" -o life-asan 2>err; then
    ./life-asan plain >out || status=$?
fi
if [ "$status" = 3 ]; then
    program=./life-asan live exit-in-thread 1 2
    program=./life-asan live fork 2 2
else
    skip_part "no address sanitizer"
fi

# Blocked signals: samples arrived in the blocked stretch too, that is about one per millisecond of it.
python3 "$srcdir/tests/lib/check-fates.py" block-signals.m --min-taken 20 ||
    fail "few samples while signals are blocked"
finish
