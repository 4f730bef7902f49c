/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the self-test's loops and its result as JSON. */
#include "sampling/skid.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name, *text;
} rows[SKID_KERNELS] = {
    {"k1", "dependent loads"},
    {"k2", "dependent loads among loads that hit"},
    {"k3", "random stores"},
    {"k4", "independent random loads"},
};

const char *skid_kernel_name(unsigned i)
{
    return rows[i].name;
}

const char *skid_kernel_text(unsigned i)
{
    return rows[i].text;
}

/* Text under construction; len_bytes beyond n_bytes means that it did not fit. */
struct text {
    char *bytes;
    size_t n_bytes, len_bytes;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
    va_list args;
    size_t at = text->len_bytes < text->n_bytes ? text->len_bytes : text->n_bytes;
    va_start(args, format);
    int n = vsnprintf(text->bytes + at, text->n_bytes - at, format, args);
    va_end(args);
    text->len_bytes += n < 0 ? text->n_bytes : (size_t)n;
}

static void put_string(struct text *text, const char *name, const char *value)
{
    put(text, "\"%s\": \"", name);
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            put(text, "\\%c", c);
        else if (c < ' ')
            put(text, "\\u%04x", c);
        else
            put(text, "%c", c);
    }
    put(text, "\", ");
}

static double percent(uint32_t part, uint32_t whole)
{
    return whole ? 100.0 * part / whole : 0.0;
}

static void put_kernel(struct text *text, const struct skid_kernel *kernel, unsigned i)
{
    uint32_t n = kernel->n_at + kernel->n_next + kernel->n_elsewhere;
    put(text, "%s{\"name\": \"%s\", \"loop\": \"%s\", \"samples\": %u, ", i ? ", " : "", rows[i].name, rows[i].text, n);
    put(text, "\"percent_at\": %.1f, \"percent_next\": %.1f, \"percent_elsewhere\": %.1f}", percent(kernel->n_at, n),
        percent(kernel->n_next, n), percent(kernel->n_elsewhere, n));
}

int skid_to_json(const struct skid_result *result, char *bytes, size_t n_bytes)
{
    static const char *const rules[] = {"unknown", "holds", "fails"};
    struct text text = {bytes, n_bytes, 0};
    put(&text, "{");
    put_string(&text, "cpu", result->key.cpu);
    put_string(&text, "microcode", result->key.microcode);
    put_string(&text, "kernel", result->key.kernel);
    put_string(&text, "hypervisor", result->key.hypervisor);
    put_string(&text, "trigger", result->trigger);
    put(&text, "\"rule\": \"%s\", \"kernels\": [", rules[result->rule <= SKID_FAILS ? result->rule : SKID_UNKNOWN]);
    for (unsigned k = 0; k < SKID_KERNELS; k++)
        put_kernel(&text, &result->kernels[k], k);
    put(&text, "]}");
    return text.len_bytes < n_bytes ? (int)text.len_bytes : -1;
}
