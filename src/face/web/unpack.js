// SPDX-License-Identifier: BSD-3-Clause
// Starts the application, which lies in the page in few bytes. The page's policy knows what it must be, to the last byte.
// The application uses bytesOf, too.
/**
 * The bytes of a text in base 85: four for five characters from "(" on; "}" and "~" stand for "<" and "\".
 * @param {string} text
 */
function bytesOf(text) {
    const n = text.length, out = new Uint8Array(Math.floor(n * 4 / 5));
    for (let i = 0, at = 0; i < n; i += 5) {
        let word = 0;
        for (let k = i; k < i + 5; k++) {
            const c = k < n ? text.charCodeAt(k) : 124;
            word = word * 85 + (c === 125 ? 20 : c === 126 ? 52 : c - 40);
        }
        for (let shift = 24; shift >= 0 && at < out.length; shift -= 8)
            out[at++] = word >>> shift;
    }
    return out;
}
(async () => {
    const code = /** @type {HTMLElement} */ (document.getElementById("code")), made = document.createElement("script");
    const bytes = bytesOf((code.textContent || "").replace(/\n/g, ""));
    made.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    code.replaceWith(made);
})();
