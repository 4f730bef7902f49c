/* SPDX-License-Identifier: BSD-3-Clause */
/* Escaping, and the frame of a page. */
#include "export/html-text.h"

#include "base/input.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2330;--dim:#5b6577;--line:#dfe3ea;--soft:#f4f6f9;"
    "--memory:#c2410c;--execution:#2f6fb3;--unverified:#9aa3b2;--accent:#1f5fa8}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181f;--ink:#e4e8ef;--dim:#98a2b3;--line:#2b323d;"
    "--soft:#1b212a;--memory:#f0803c;--execution:#5b9bdd;--unverified:#6b7484;--accent:#8fbdf0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,'DejaVu Sans',sans-serif}\n"
    "main{max-width:82rem;margin:0 auto;padding:1.2rem 1.4rem 3rem}\n"
    "h1{font-size:1.35rem;margin:.2rem 0 .8rem;overflow-wrap:anywhere}\n"
    "code,.mono{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:.88em;overflow-wrap:anywhere}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:0 0 1.3rem}\n"
    "dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;width:100%;margin:0 0 1.4rem}\n"
    "th{position:sticky;top:0;background:var(--paper);text-align:left;font-weight:600;color:var(--dim);"
    "font-size:.85rem;border-bottom:2px solid var(--line);padding:.35rem .6rem;vertical-align:bottom}\n"
    "td{border-bottom:1px solid var(--line);padding:.5rem .6rem;vertical-align:top}\n"
    "th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "td.name{min-width:14rem}td.from{overflow-wrap:anywhere}\n"
    "tr.special{background:var(--soft)}tr.aside td{color:var(--dim)}\n"
    ".bar{display:block;height:.6rem;min-width:7rem;margin-top:.4rem;background:var(--line);border-radius:.2rem;"
    "overflow:hidden;white-space:nowrap;font-size:0;text-align:left}\n"
    ".bar i{display:inline-block;height:100%}\n"
    ".memory{background:var(--memory)}.execution{background:var(--execution)}.unverified{background:var(--unverified)}"
    ".share{background:var(--accent)}\n"
    ".key{display:inline-block;width:.75em;height:.75em;border-radius:.15em;margin:0 .3em 0 .8em}\n"
    ".dim{color:var(--dim);font-size:.9rem}p{margin:.25rem 0}\n"
    "summary{cursor:pointer;color:var(--accent);font-size:.9rem}details{margin:.25rem 0 0}\n"
    "ol,ul{margin:.2rem 0 .4rem;padding-left:1.4rem}pre{margin:.3rem 0;overflow-x:auto;font-size:.82rem}\n"
    "@media(max-width:60rem){main{padding:.8rem}thead{display:none}table,tbody{display:block}"
    "tr{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.5rem,1fr));gap:.1rem .8rem;padding:.6rem .4rem;"
    "border-bottom:1px solid var(--line)}td{border:0;padding:.1rem 0;display:block}"
    "td.n{text-align:left}td.name,td.from,td.wide{grid-column:1/-1;min-width:0}td.name{order:-1}"
    "td[data-label]::before{content:attr(data-label);display:block;color:var(--dim);font-size:.75rem}"
    "dl{grid-template-columns:1fr}dd{margin:0 0 .4rem}}\n"
    "@media print{th{position:static}}\n";

void html_put(struct buf *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    struct buf plain = {0};
    printable_put(&plain, text);
    for (const char *p = plain.data ? plain.data : ""; *p; p++) {
        size_t i = 0;
        while (special[i] && special[i] != *p)
            i++;
        if (special[i])
            buf_printf(out, "%s", escaped[i]);
        else
            buf_append(out, p, 1);
    }
    out->failed = out->failed || plain.failed;
    buf_fini(&plain);
}

void html_put_element(struct buf *out, const char *element, const char *class, const char *text)
{
    buf_printf(out, class ? "<%s class=\"%s\">" : "<%s>", element, class);
    html_put(out, text);
    buf_printf(out, "</%s>", element);
}

void html_put_begin(struct buf *out, const char *title)
{
    buf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                    "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html_put_element(out, "title", NULL, title);
    buf_printf(out, "\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
}

void html_put_end(struct buf *out)
{
    buf_printf(out, "</main>\n</body>\n</html>\n");
}
