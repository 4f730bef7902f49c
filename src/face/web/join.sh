#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# join.sh DIR: prints the application in DIR as C: page_html[], page_css[], page_js[] and page_code[], with the SHA-256 of style
# and scripts in base64, as a policy for browsers wants it. page_code is the script, compressed by gzip and in base 85: main.js with
# the modules that it imports, each behind those that it imports itself, as the browser would run them; without the words import
# and export, comments and indentation. page_js is what unpacks and starts it, unpack.js. Of the style only what the first screen needs
# is page_css: the rest, behind the second comment of style.css, is STYLE in the script. Pages with a time line have page_time_code
# as well: timeline.js with those of its modules that page_code lacks, and its style, which unpack.js puts behind it. Their
# hash, page_both_hash, is of both together. join.sh --js DIR [ROOT] prints a script alone.
# join.sh --text FILE... prints files as C, each under its name: flames.css as flames_css[].
# What stands in a file between tags is what is hashed: nothing comes before or behind it.
set -eu

# script DIR ROOT [WITHOUT]: the module ROOT and what it imports, without what the module WITHOUT imports
script() {
    awk -v dir="$1" -v root="$2" -v without="${3-}" '
    # Takes comments of a line that is no comment as a whole: casts, and words behind a statement.
    function bare(line,    at, end) {
        while ((at = index(line, "/** @")) && (end = index(substr(line, at), "*/")))
            line = substr(line, 1, at - 1) substr(substr(line, at + end + 1), substr(line, at + end + 1, 1) == " " ? 2 : 1)
        if (match(line, /[;:{,)] +\/\/ [^"`\047]*$/))
            line = substr(line, 1, RSTART)
        return line
    }
    function join(file,    line, lines, n, i, is_comment, imported) {
        if (file in seen)
            return
        seen[file] = 1
        n = 0
        while ((status = (getline line < (dir "/" file))) > 0)
            lines[++n] = line
        if (status < 0) {
            print "join.sh: " dir "/" file " cannot be read" > "/dev/stderr"
            failed = 1
            exit 1
        }
        close(dir "/" file)
        for (i = 1; i <= n; i++)
            if (lines[i] ~ /^import .* from "\.\/[a-z-]+\.js";$/) {
                imported = lines[i]
                sub(/^.* from "\.\//, "", imported)
                sub(/";$/, "", imported)
                join(imported)
            }
        is_comment = 0
        for (i = 1; i <= n; i++) {
            line = lines[i]
            sub(/^ +/, "", line)
            if (!is_comment && line ~ /^\/\*\*.*\*\/$/)
                continue
            if (is_comment || line ~ /^\/\*\*/ && index(line, "*/") == 0) {
                is_comment = index(line, "*/") == 0
                continue
            }
            if (line ~ /^(\/\/|import )/)
                continue
            sub(/^export /, "", line)
            line = bare(line)
            if (!is_quiet && line !~ /^ *$/)
                print line
        }
    }
    BEGIN {
        is_quiet = 1
        if (without)
            join(without)
        is_quiet = 0
        join(root)
        exit failed
    }' </dev/null
}

# start FILE: the script that is no module, without comments and indentation
start() {
    sed -e '/^ *\/\*\*/d' -e '/^ \*/d' -e '/^\/\//d' -e 's/^ *//' -e 's|/\*\* @type {[A-Za-z]*} \*/ ||' "$1"
}

# style: a style sheet without comments of one line, needless blanks and ends of lines; no text in it has these
style() {
    sed -e '/^ *\/\*.*\*\/$/d' -e 's/^ *//' -e 's/\([:;,]\) /\1/g' -e 's/ *{ */{/g' -e 's/;* }/}/g' | tr -d '\n'
    echo
}

# style_in NAME, of a style sheet: as a text of a script
style_in() {
    printf 'const %s="%s";\n' "$1" "$(style | sed -e 's/[\\"]/\\&/g')"
}

# Bytes in base 85: see put_base85 in face/page.c.
base85() {
    od -A n -v -t u1 | awk '
    function group(n,    k, digits) {
        for (k = n; k < 4; k++)
            word *= 256
        for (k = 0; k < 5; k++) {
            digits = substr(alphabet, word % 85 + 1, 1) digits
            word = int(word / 85)
        }
        line = line substr(digits, 1, n + 1)
        word = n_bytes = 0
        if (length(line) >= 500) {
            print line
            line = ""
        }
    }
    BEGIN { alphabet = "()*+,-./0123456789:;}=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[~]^_`abcdefghijklmnopqrstuvwxyz{|" }
    {
        for (i = 1; i <= NF; i++) {
            word = 256 * word + $i
            if (++n_bytes == 4)
                group(4)
        }
    }
    END {
        if (n_bytes)
            group(n_bytes)
        print line
    }'
}

# text NAME, of standard input
text() {
    printf '\nextern const char %s[];\nconst char %s[] =\n' "$1" "$1"
    sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/'
    echo '    "";'
}

# base64 of hexadecimal digits
base64_of() {
    awk -v hex="$1" 'BEGIN {
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (i = 1; i <= length(hex); i += 6) {
            n = 0
            for (k = 0; k < 6; k++)
                n = 16 * n + index("0123456789abcdef", substr(hex "0000", i + k, 1)) - 1
            group = ""
            for (k = 0; k < 4; k++) {
                group = substr(digits, n % 64 + 1, 1) group
                n = int(n / 64)
            }
            text = text group
        }
        print substr(text, 1, 43) "="
    }'
}

# hash NAME, of standard input
hash() {
    printf '\nextern const char %s[];\nconst char %s[] = "%s";\n' "$1" "$1" "$(base64_of "$(sha256sum | cut -c 1-64)")"
}

if [ "$1" = --js ]; then
    script "$2" main.js
    if [ "${3-}" ]; then
        script "$2" "$3" main.js
    fi
    exit
fi
echo '/* Made by join.sh. */'
if [ "$1" = --text ]; then
    shift
    for file; do
        name=${file##*/}
        text "${name%.*}_${file##*.}" <"$file"
    done
    exit
fi
joined=$(mktemp -d)
trap 'rm -rf "$joined"' EXIT
{
    echo '"use strict";'
    sed -e '1,/^\/\* The application/d' "$1/style.css" | style_in STYLE
    script "$1" main.js
} >"$joined/code"
{
    style_in TIME_STYLE <"$1/timeline.css"
    script "$1" timeline.js main.js
} >"$joined/time"
sed -e '/^\/\* The application/,$d' "$1/style.css" | style >"$joined/css"
text page_html <"$1/index.html"
text page_css <"$joined/css"
hash page_css_hash <"$joined/css"
start "$1/unpack.js" | text page_js
start "$1/unpack.js" | hash page_js_hash
gzip -9 -n -c "$joined/code" | base85 | text page_code
hash page_code_hash <"$joined/code"
gzip -9 -n -c "$joined/time" | base85 | text page_time_code
cat "$joined/code" "$joined/time" | hash page_both_hash
