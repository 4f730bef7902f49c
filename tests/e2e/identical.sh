#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# gzip, xz, python3, gcc and git give the same bytes (standard output, errors, files) and the same status with and
# without hpcrun: as this user, as an unprivileged one, and with perf refused; and every sample has a fate.
# usage: identical.sh [SCALE]: how large the inputs are, default 1.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/same.sh
. "$LOCUS_SRCDIR/tests/lib/same.sh"
need_runtime
need python3
scale=${1:-1}
export PATH=/usr/bin:/bin GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@e
chmod 755 "$scratch"
mkdir "$scratch/input" && cd "$scratch/input"

# Inputs.
seq $((200000 * scale)) | sed 's/\(.*\)/\1 words to pack \1/' >text
"$checker" - "$scale" >large.c <<'PYTHON'
import sys
print("#include <stdio.h>\n#include <string.h>\n#include <math.h>")
n = 150 * int(sys.argv[1])
for i in range(n):
    print(f"""struct s{i} {{ int a[{i % 7 + 1}]; double d; const char *name; }};
double f{i}(const struct s{i} *s, int n) {{
    double sum = {i}.5;
    for (int k = 0; k < n; k++)
        sum += s[k].d * sin(k + {i}) + s[k].a[k % {i % 7 + 1}] + strlen(s[k].name);
    switch (n & 7) {{ case 1: return sum + 1; case 3: return sum * {i}; case 5: puts("five"); break; default: break; }}
    return sum{f" + f{i - 1}((const struct s{i - 1} *)s, n / 2)" if i else ""};
}}""")
PYTHON
echo 'int main(void) { return missing; }' >wrong.c
cat >script.py <<'END'
import json, re, sqlite3, subprocess, sys
scale = int(sys.argv[1])
data = [{"id": i, "name": f"n{i}", "values": list(range(i % 50))} for i in range(2000 * scale)]
text = json.dumps(data)
assert json.loads(text) == data
print(len(text), len(re.findall(r'"name": "(n\d*7)"', text)), len(re.sub(r"[0-4]+", "x", text)))
base = sqlite3.connect("base.sqlite")
base.execute("create table t (a integer primary key, b text, c real)")
base.executemany("insert into t values (?, ?, ?)", [(d["id"], d["name"] * 20, d["id"] / 3) for d in data])
base.execute("create index i on t (b)")
base.commit()
print(base.execute("select count(*), sum(a), max(b), avg(c) from t where b like '%7%'").fetchall())
base.close()
print(subprocess.run(["sort", "-r"], input="\n".join(d["name"] for d in data[:500]), capture_output=True, text=True)
      .stdout[:200])
print(subprocess.run([sys.executable, "-c", "import sys; print('to stderr', file=sys.stderr); sys.exit(3)"]).returncode)
sys.exit(7)
END
cat >commits.sh <<'END'
set -e
git init -q -b main repository
cd repository
for i in $(seq "$1"); do
    for file in $(seq 10); do
        seq "$((i * file))" >"file-$file"
        head -c $((i * 1000)) ../text >"part-$file"
    done
    git add .
    git commit -q -m "commit $i"
done
git -c pack.threads=1 gc -q
git log --stat
git diff HEAD~1 | tail -n 100
git fsck --full
git rev-parse HEAD
git blame part-1 | tail -n 5
git status --porcelain
git rev-parse no-such-thing
END

# sampled WAY NAME N: at least N samples were taken.
sampled() {
    "$checker" "$srcdir/tests/lib/check-fates.py" "$scratch/$1/m-$2" --min-taken "$3" || fail "$1, $2: too few samples"
}

# compare_all WAY: every program.
compare_all() {
    mkdir -p "$scratch/$1/home"
    [ "${user:-}" = "" ] || chown -R "$user" "$scratch/$1"
    compare "$1" gzip gzip -9 -c text
    compare "$1" gzip-file gzip -n text
    compare "$1" xz xz -2 -T2 -c text
    compare "$1" python python3 -X utf8 -B script.py "$scale"
    compare "$1" gcc gcc -O2 -c large.c -o large.o
    sampled "$1" gzip 3
    sampled "$1" gcc 20
    compare "$1" gcc-wrong gcc -c wrong.c
    compare "$1" git sh commits.sh $((3 * scale))
}

in_all_ways compare_all
finish
