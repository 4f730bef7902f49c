#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What comes beside the tools: completion in bash and zsh from the tables of options, the pkg-config file, the module
# file.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
cd "$builddir"
PATH=$builddir:$PATH

# complete_bash TOOL WORD...: what bash offers for the last word.
complete_bash() {
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_$1"; printf "%s\n" "${COMPREPLY[@]}"' \
        - "packaging/bash/$1" "$@"
}
for tool in hpcrun hpcprof hpcproftt hpcquery hpcfnbounds hpcstruct hpclink hpcviewer; do
    [ -x "$tool" ] || continue
    complete_bash "$tool" -- >"$scratch/offered"
    "./$tool" --help | sed -n '/^Options:/,/^[A-Z][a-z]*:$/s/^ *\(-.*\)$/\1/p' | sed 's/   *.*//' |
        grep -Eo -- '--[a-z][a-z-]*[a-z]' |
        sort -u >"$scratch/options"
    [ -s "$scratch/options" ] || fail "$tool --help lists no options"
    while read -r option; do
        "./$tool" --help | grep -Eq -- "^ +-.*$option( |,|\$)" || continue # named in a sentence only
        grep -qx -- "$option" "$scratch/offered" || fail "bash does not offer $option of $tool"
    done <"$scratch/options"
    complete_bash "$tool" --hel >"$scratch/offered"
    expect_text "$scratch/offered" '^--help$'
done
mkdir "$scratch/only-here"
complete_bash hpcrun -o "$scratch/only-" >"$scratch/offered"
expect_text "$scratch/offered" 'only-here$'
complete_bash hpcrun -t chgr >"$scratch/offered"
expect_text "$scratch/offered" '^chgrp$'
complete_bash hpcrun -t ls "$scratch/only-" >"$scratch/offered"
expect_text "$scratch/offered" 'only-here$'
# Reports, databases, metrics and events are known, by the tool itself where they depend on the machine or the database.
mkdir "$scratch/data" "$scratch/database"
"$builddir/tests/golden/make-database" "$(unpack_golden hardware)/locus.json" "$scratch/database/locus.db"
offers() {
    local wanted=$1
    shift
    complete_bash "$@" | xargs -d '\n' >"$scratch/offered"
    [ "$(cat "$scratch/offered")" = "$wanted" ] || fail "bash offers '$(cat "$scratch/offered")' for $*, not '$wanted'"
}
complete_bash hpcquery '' >"$scratch/offered"
for word in vars functions lines annotate tree leaks export diff $(hpcquery filter --help | sed -n '/^Operations:/,/^Examples:/s/^  \([a-z]\+\) .*/\1/p'); do
    grep -qx "$word" "$scratch/offered" || fail "bash does not offer $word of hpcquery"
done
grep -qx union "$scratch/offered" && grep -qx folded "$scratch/offered" || fail "bash does not offer operations and forms"
offers 'leaks' hpcquery -a le
offers "$scratch/database" hpcquery vars "$scratch/data"
offers 'LATENCY (cycles) LATENCY-REMOTE (cycles)' hpcquery vars "$scratch/database" -M LAT
offers 'rank region' hpcquery vars --by r
offers 'function' hpcquery diff --by f
offers '--top' hpcquery vars --to # and not --to and --topology, which are options of streams
offers '--top --topology --to' hpcquery -a sched tasks --to
offers '--variable --version' hpcquery patterns "$scratch/database" --v
offers '' hpcquery numa --b
offers '' hpcquery numa --comm # --at and --command stand in place of a report
offers '--by --base --beyond-noise --buffer' hpcquery --b
hpcrun -L | sed -n 's/^  + \([^ ]*\).*/\1/p' | grep '^[A-Z]' >"$scratch/events" || true
[ ! -s "$scratch/events" ] || offers "$(grep "^$(head -c 1 "$scratch/events")" "$scratch/events" | xargs)" \
    hpcrun -e "$(head -c 1 "$scratch/events")"

if command -v zsh >/dev/null; then
    for file in packaging/zsh/_*; do
        zsh -n "$file" || fail "zsh cannot read $file"
    done
else
    skip_part "zsh is not installed"
fi
if command -v pkg-config >/dev/null; then
    expect_status 0 env PKG_CONFIG_PATH=packaging pkg-config --cflags --modversion locus
else
    skip_part "pkg-config is not installed"
fi
if command -v tclsh >/dev/null; then
    mkdir -p "$scratch/prefix/share/modulefiles"
    cp packaging/locus "$scratch/prefix/share/modulefiles/locus"
    cat >"$scratch/module.tcl" <<'END'
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {name value} { puts "$name=$value" }
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
END
    expect_status 0 tclsh "$scratch/module.tcl" "$scratch/prefix/share/modulefiles/locus"
    expect_text "$scratch/out" "^PATH=$scratch/prefix/bin\$"
else
    skip_part "tclsh is not installed"
fi
finish
