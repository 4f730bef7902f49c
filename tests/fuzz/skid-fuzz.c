/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for the cache of the skid self-test: a text is that of this machine and sound, or not used.
 * What is used can be told as JSON. */
#include <jansson.h>

#include "sampling/skid.h"

#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static const struct skid_key key = {.cpu = "Zen", .microcode = "0x1", .kernel = "6.1", .hypervisor = "none"};
    struct skid_result result;
    char text[4096];
    FILE *file = len_bytes ? fmemopen((void *)(uintptr_t)data, len_bytes, "r") : NULL;
    if (!file)
        return 0;
    if (skid_cache_read(file, &key, &result)) {
        int n = skid_to_json(&result, text, sizeof text);
        check(n > 0, "a result does not fit");
        json_t *root = json_loadb(text, (size_t)n, 0, NULL);
        check(root != NULL, "a result is no JSON");
        json_decref(root);
        for (unsigned k = 0; k < SKID_KERNELS; k++)
            check(result.kernels[k].n_at <= UINT32_MAX / 4, "a number is none");
    }
    (void)fclose(file);
    return 0;
}
