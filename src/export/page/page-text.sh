#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# page-text.sh FILE...: prints them as C, page.css as page_css[], with the SHA-256 of styles and scripts in base64, as a policy
# for browsers wants it. What stands in a file between tags is what is hashed: nothing comes before or behind it.
set -eu

# text NAME FILE
text() {
    printf '\nextern const char %s[];\nconst char %s[] =\n' "$1" "$1"
    sed -e 's/[\\"?]/\\&/g' -e 's/^/    "/' -e 's/$/\\n"/' "$2"
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

# hash NAME FILE
hash() {
    printf '\nextern const char %s[];\nconst char %s[] = "%s";\n' "$1" "$1" "$(base64_of "$(sha256sum <"$2" | cut -c 1-64)")"
}

echo '/* Made by page-text.sh. */'
for file; do
    name=${file##*/}
    name=${name%.*}_${file##*.}
    text "$name" "$file"
    case $name in
    *_css | *_js) hash "${name}_hash" "$file" ;;
    esac
done
