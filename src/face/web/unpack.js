// SPDX-License-Identifier: BSD-3-Clause
// Starts the application, which lies in the page in few bytes. The page's policy knows what it must be, to the last byte.
// The application uses bytesOf, too.
/**
 * The bytes of a text in base 85: four for five characters from "(" on; "}" and "~" stand for "<" and "\".
 * @param {string} text
 */
function bytesOf(text) {
    const n = text.length, from = new TextEncoder().encode(text), size = Math.floor(n * 4 / 5), out = new Uint8Array(size + 4), digits = new Uint8Array(128);
    for (let c = 40; c < 127; c++)
        digits[c] = c === 125 ? 20 : c === 126 ? 52 : c - 40;
    for (let i = 0, at = 0; i < n; i += 5, at += 4) {
        let word = 0; // of 32 bits: what is above is lost
        for (let k = i; k < i + 5; k++)
            word = (Math.imul(word, 85) + (k < n ? digits[from[k]] : 84)) | 0;
        out[at] = word >>> 24;
        out[at + 1] = word >>> 16;
        out[at + 2] = word >>> 8;
        out[at + 3] = word;
    }
    return out.subarray(0, size);
}
(async () => {
    const made = document.createElement("script");
    let text = "";
    for (const part of document.querySelectorAll("#code, #time-code")) {
        text += await new Response(new Blob([bytesOf((part.textContent || "").replace(/\n/g, ""))]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
        part.remove();
    }
    made.textContent = text;
    document.body.append(made);
})();
