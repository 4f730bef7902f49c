# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# Measurements of very many profiles for bench-hpcprof*.sh, in $scratch/measured: made by make-profiles.py, of a module
# in which addresses are looked up for real.

# make_module: $scratch/module.so, with functions of some lines each.
make_module() {
    local i k
    {
        echo 'volatile long sink;'
        for ((i = 0; i < 300; i++)); do
            printf 'long fun_%d(long a)\n{\n    long b = a;\n' "$i"
            for ((k = 0; k < 24; k++)); do echo "    b += (b >> $((k % 7 + 1))) ^ sink;"; done
            printf '    return b;\n}\n'
        done
    } >"$scratch/module.c"
    gcc -g -O1 -shared -fPIC -o "$scratch/module.so" "$scratch/module.c"
}

# make_profiles FIRST COUNT NODES: with 25 metrics, 5 % of the values not zero.
make_profiles() {
    python3 "$srcdir/tests/lib/make-profiles.py" --module "$scratch/module.so" --first "$1" --profiles "$2" \
        --nodes "$3" --metrics 25 --density 0.05 "$scratch/measured" >/dev/null
}
