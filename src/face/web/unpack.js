// SPDX-License-Identifier: BSD-3-Clause
// Starts the application, which lies in the page in few bytes. The page's policy knows what it must be, to the last byte.
(async () => {
    const code = /** @type {HTMLElement} */ (document.getElementById("code")), made = document.createElement("script");
    const bytes = Uint8Array.from(atob(code.textContent || ""), (c) => c.charCodeAt(0));
    made.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    code.replaceWith(made);
})();
