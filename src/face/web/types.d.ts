// SPDX-License-Identifier: BSD-3-Clause
// What browsers have and the checker's own list does not know yet.
declare class DecompressionStream {
    constructor(format: string);
    readable: ReadableStream<Uint8Array>;
    writable: WritableStream<Uint8Array>;
}
