// SPDX-License-Identifier: BSD-3-Clause
// What browsers have and the checker's own list does not know yet; texts that join.sh puts into the scripts.
declare const STYLE: string;
declare const TIME_STYLE: string;
interface Document {
    adoptedStyleSheets: CSSStyleSheet[];
}
declare class DecompressionStream {
    constructor(format: string);
    readable: ReadableStream<Uint8Array>;
    writable: WritableStream<Uint8Array>;
}
