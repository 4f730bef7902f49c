# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # srcdir, builddir and scratch are common.sh's
# After common.sh: the test suite of a foreign package under hpcrun. What fails must be what is known to fail without it:
# tests/suites/known.txt. A script in tests/suites defines
#   package       the Debian source package
#   n_expected    so many tests must have passed
#   build         builds in the current directory, the unpacked source
#   run LOG PREFIX...      runs all tests, each program under what PREFIX starts; messages go to LOG
#   again LOG NAME PREFIX...   the same for the one test that failed as NAME
#   failed LOG    prints the names of those that failed;  passed LOG   their number
# and ends with `suite_main "$@"`. By itself it measures as the calling user and, if that is root, as user 65534, too;
# with --record it runs without hpcrun and writes the lists. Sources and builds stay in $LOCUS_SUITES.

suite=$(basename "$0" .sh)
script=$srcdir/tests/suites/$suite.sh
known=$srcdir/tests/suites/known.txt
suites_dir=${LOCUS_SUITES:-$builddir/suites}
# shellcheck disable=SC2034 # the suites' own runs end then
limit_s=2400
export LC_ALL=C TZ=UTC0
unset MAKEFLAGS MAKELEVEL MFLAGS LOCUS_SANITIZER CC CFLAGS TERM

# fetch: the source package, by lists of our own, as machines rarely have those of sources.
fetch() {
    local apt=$suites_dir/apt
    [ -z "$(find "$suites_dir/sources" -name "${package}_*.dsc" 2>/dev/null)" ] || return 0
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts" "$suites_dir/sources"
    find /etc/apt/sources.list.d -name 'debian*.sources' -exec cat {} + 2>/dev/null |
        sed 's/^Types:.*/Types: deb-src/' >"$apt/parts/debian.sources"
    sed -n 's/^deb \(.*debian\.org.*\)/deb-src \1/p' /etc/apt/sources.list >"$apt/parts/debian.list" 2>/dev/null || true
    cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/parts";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
END
    (cd "$suites_dir/sources" && export APT_CONFIG=$apt/apt.conf && apt-get -qq update &&
        apt-get -qq source --download-only "$package") >"$scratch/apt" 2>&1 ||
        skip "no source package $package: $(tail -n 1 "$scratch/apt")"
}

# unpack: into the current directory, built once.
unpack() {
    local original
    original=$(find "$suites_dir/sources" -name "${package}_*.orig.tar.*" | sort | tail -n 1)
    [ ! -e built ] || return 0
    tar xf "$original" --strip-components=1
    build >build.log 2>&1 || {
        tail -n 20 build.log
        skip "$package cannot be built here"
    }
    touch built
}

# copy_hpcrun: what is measured with stays the same while the build directory changes, and is open to other users.
copy_hpcrun() {
    local to=$suites_dir/locus
    mkdir -p "$to/.libs"
    cp -r "$builddir/hpcrun" "$builddir/hpcfnbounds" "$builddir/share" "$to"
    cp -P "$builddir"/.libs/libhpcrun.so* "$to/.libs"
    chmod -R a+rX "$suites_dir/locus"
}

# known_failures: the list of this user.
known_failures() {
    sed -n "s/^$suite $who //p" "$known"
}

# fails_again NAME PREFIX...: whether it fails alone, too.
fails_again() {
    local name=$1
    shift
    again "$scratch/again" "$name" "$@" </dev/null || true
    failed "$scratch/again" | grep -Fqx -- "$name"
}

# judge NAME: what failed although it is not on the list.
judge() {
    local reason
    reason=$(key="$suite hpcrun $1 " awk 'index($0, ENVIRON["key"]) == 1 { print substr($0, length(ENVIRON["key"]) + 1) }' \
        "$known")
    if [ -n "$reason" ]; then
        echo "as $who: $1 fails under hpcrun: $reason"
    elif ! fails_again "$1" "${measured[@]}"; then
        echo "as $who: $1 failed once, but not when it was repeated under hpcrun"
    elif fails_again "$1" env; then
        echo "as $who: $1 fails on this machine without hpcrun, too"
    else
        fail "as $who: $1 fails under hpcrun only"
        tail -n 30 "$scratch/again"
    fi
}

record() {
    run "$scratch/log" env
    {
        grep '^#' "$known"
        { grep -v -e '^#' -e "^$suite $who " "$known" && failed "$scratch/log" | sed "s/^/$suite $who /"; } | sort -s -k 1,2
    } >"$scratch/known"
    cat "$scratch/known" >"$known"
    echo "as $who, without hpcrun: $(passed "$scratch/log") tests passed"
}

# measure: everything under hpcrun, and each difference by itself.
measure() {
    local n name
    rm -rf measurement
    measured=("$suites_dir/locus/hpcrun" --append -o "$PWD/measurement" --)
    run "$scratch/log" "${measured[@]}"
    n=$(passed "$scratch/log")
    [ "$n" -ge "$n_expected" ] || fail "as $who: only $n of at least $n_expected tests passed"
    failed "$scratch/log" | sort -u >"$scratch/failed"
    while IFS= read -r name; do
        judge "$name"
    done < <(known_failures | sort | comm -13 - "$scratch/failed")
    known_failures | sort | comm -23 - "$scratch/failed" | sed "s/^/as $who: fails no longer: /"
    echo "as $who: $n tests passed, $(wc -l <"$scratch/failed") failed, $(find measurement -name '*.hpcrun' | wc -l) profiles"
    cp "$scratch/log" "measured.log"
    rm -rf measurement
}

# suite_main [--record] [--only-me]
suite_main() {
    local action=measure arguments=("$@") only_me='' status=0
    while [ $# -gt 0 ]; do
        case $1 in
        --record) action=record ;;
        --only-me) only_me=1 ;;
        esac
        shift
    done
    [ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
    [ "$(id -u)" = 0 ] && who=root || who=user
    if [ -z "$only_me" ]; then
        fetch
        copy_hpcrun
    fi
    mkdir -p "$suites_dir/$suite-$who"
    cd "$suites_dir/$suite-$who" || exit
    unpack
    "$action"
    [ -z "$only_me" ] && [ "$who" = root ] || finish
    other_user "${arguments[@]}" || status=$?
    [ "$status" = 0 ] || n_failures=$((n_failures + 1))
    finish
}

# other_user ARGUMENT...: the same as an unprivileged user.
other_user() {
    local home=$suites_dir/$suite-user
    local as=(setpriv --reuid=65534 --regid=65534 --clear-groups env -u TMPDIR HOME="$home" USER=nobody LOGNAME=nobody)
    mkdir -p "$home"
    chown 65534:65534 "$home"
    "${as[@]}" test -r "$suites_dir/locus/.libs/libhpcrun.so" -a -r "$script" -a -w "$home" || {
        skip_part "the build directory is closed to other users"
        return 0
    }
    cd /
    "${as[@]}" bash "$script" --only-me "$@"
}
