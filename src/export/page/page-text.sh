#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# page-text.sh HTML CSS JS: prints them as C, with the SHA-256 of the style and of the script in base64, as a policy for
# browsers wants it. What stands in a file between tags is what is hashed: nothing comes before or behind it.
set -eu

# text NAME FILE
text() {
    printf '\nconst char %s[] =\n' "$1"
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
    printf '\nconst char %s[] = "%s";\n' "$1" "$(base64_of "$(sha256sum <"$2" | cut -c 1-64)")"
}

echo '/* Made by page-text.sh. */'
echo 'extern const char page_html[], page_css[], page_js[], page_css_hash[], page_js_hash[];'
text page_html "$1"
text page_css "$2"
text page_js "$3"
hash page_css_hash "$2"
hash page_js_hash "$3"
