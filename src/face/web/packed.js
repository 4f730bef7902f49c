// SPDX-License-Identifier: BSD-3-Clause
// Packed answers, as answer_print_packed writes them: a header, columns of one type each, and texts. Columns are decoded when they are first
// used.

const ABSENT = 0xffffffff, PLACE = 0xfffffffe, READ_SINGLY = 1000;
const UTF8 = new TextDecoder();

/** One column of an answer. Numbers that are not known are NaN, texts are null. */
export class Column {
    /**
     * @param {any} about its entry in the header
     * @param {Uint8Array} bytes
     * @param {Answer} answer
     */
    constructor(about, bytes, answer) {
        /** @type {string} */ this.key = about.key;
        /** @type {string} */ this.title = about.title || about.key;
        /** @type {string} */ this.kind = about.kind;
        this.about = about;
        this.bytes = bytes;
        this.answer = answer;
        /** @type {Float64Array | null} */ this.made = null;
        /** @type {Uint32Array | null} */ this.packed = null;
        /** @type {Uint32Array | null} */ this.ids = null;
        /** @type {Uint32Array | null} */ this.places = null;
        /** @type {Map<number, any>} */ this.parsed = new Map();
    }

    /** Whether its cells are texts. */
    get isText() {
        return this.about.type === "text" || this.about.type === "json" || (this.about.type === "same" && typeof this.about.value === "string");
    }

    /** All cells as numbers. */
    get numbers() {
        if (!this.made)
            this.made = this.decode();
        return this.made;
    }

    /** @returns {Float64Array} */
    decode() {
        const n = this.answer.n, {type, value, scale} = this.about;
        const out = new Float64Array(n);
        if (type === "same") {
            out.fill(value === null || typeof value === "string" ? NaN : Number(value));
        } else if (type === "f64") {
            const whole = new Uint8Array(out.buffer);
            for (let plane = 0; plane < 8; plane++)
                for (let i = 0; i < n; i++)
                    whole[8 * i + plane] = this.bytes[plane * n + i];
        } else if (type === "u8") {
            for (let i = 0; i < n; i++)
                out[i] = this.bytes[i] === 255 ? NaN : this.bytes[i];
        } else {
            const words = this.words(), factor = type === "scaled" ? scale : 1;
            for (let i = 0; i < n; i++)
                out[i] = words[i] === ABSENT ? NaN : words[i] * factor;
        }
        return out;
    }

    /** Its 32-bit words: numbers of texts, or counts. */
    words() {
        if (!this.ids) {
            this.ids = this.bare();
            if (this.key === "item")
                this.answer.namePlaces(this.ids);
        }
        return this.ids;
    }

    /** The words as they are packed: of places there is no text yet. */
    bare() {
        if (this.ids)
            return this.ids;
        if (this.packed)
            return this.packed;
        const n = this.answer.n, at = this.bytes, out = new Uint32Array(n);
        if (this.about.type === "same")
            return out;
        for (let i = 0; i < n; i++)
            out[i] = at[i] | (at[n + i] << 8) | (at[2 * n + i] << 16) | (at[3 * n + i] << 24);
        if (this.about.delta)
            for (let i = 0, before = 0; i < n; i++)
                out[i] = before = (before + ((out[i] >>> 1) ^ -(out[i] & 1))) >>> 0;
        this.packed = out;
        return out;
    }

    /** @param {number} row */
    number(row) {
        return this.numbers[row];
    }

    /**
     * @param {number} row
     * @returns {string | null}
     */
    text(row) {
        if (this.about.type === "same")
            return typeof this.about.value === "string" ? this.about.value : null;
        const id = this.bare()[row];
        return id === ABSENT ? null : id === PLACE ? this.answer.placeOf(row) : this.answer.textAt(id);
    }

    /**
     * What tells whether a row has a text.
     * @param {string} text
     * @returns {(row: number) => boolean}
     */
    finder(text) {
        const ids = this.words(), id = this.about.type === "same" ? (this.about.value === text ? 0 : 1) : this.answer.texts.indexOf(text);
        return (row) => ids[row] === id;
    }

    /**
     * A cell that is a table of its own, or a list.
     * @param {number} row
     * @returns {any}
     */
    json(row) {
        let value = this.parsed.get(row);
        if (value === undefined) {
            const text = this.about.type === "same" && typeof this.about.value !== "string" ? null : this.text(row);
            value = text === null ? this.about.value ?? null : JSON.parse(text);
            this.parsed.set(row, value);
        }
        return value;
    }

    /**
     * Where each cell stands in the order of all cells, so that rows can be sorted by numbers alone.
     * @returns {Float64Array | Uint32Array}
     */
    get ranks() {
        if (!this.isText)
            return this.numbers;
        if (!this.places) {
            const n = this.answer.n, texts = this.answer.texts;
            this.places = new Uint32Array(n);
            if (this.about.type !== "same") {
                const words = this.words(), used = [...new Set(words)].filter((id) => id !== ABSENT);
                used.sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0));
                const rank = new Map(used.map((id, i) => [id, i + 1]));
                for (let i = 0; i < n; i++)
                    this.places[i] = rank.get(words[i]) || 0;
            }
        }
        return this.places;
    }
}

/** What a report answered. */
export class Answer {
    /**
     * @param {any} header
     * @param {Uint8Array} data what follows it
     */
    constructor(header, data) {
        /** @type {string} */ this.program = header.program;
        /** @type {string | null} */ this.metric = header.metric;
        /** @type {string} */ this.name = header.name;
        /** @type {number} */ this.n = header.rows;
        /** @type {number} */ this.more = header.more || 0;
        /** @type {any} */ this.head = header.head || {};
        /** @type {Map<string, Column>} */ this.columns = new Map();
        let at = 0;
        for (const about of header.columns) {
            const n_bytes = about.type === "same" ? 0 : about.type === "f64" ? 8 * this.n : about.type === "u8" ? this.n : 4 * this.n;
            this.columns.set(about.key, new Column(about, data.subarray(at, at + n_bytes), this));
            at += (n_bytes + 7) & ~7;
        }
        this.rest = data.subarray(at, at + header.text_bytes);
        /** @type {string[] | null} */ this.strings = null;
        /** @type {Uint32Array | null} where texts begin */ this.starts = null;
        this.nRead = 0;
    }

    /** @param {number} row */
    placeOf(row) {
        return `line:${this.text("file", row)}:${this.number("line", row)}`;
    }

    /**
     * Gives places texts of their own behind all others, the same to the same place.
     * @param {Uint32Array} ids
     */
    namePlaces(ids) {
        const files = this.columns.get("file")?.words(), lines = this.columns.get("line")?.numbers, {texts} = this;
        /** @type {Map<number, number>} */ const known = new Map();
        const spelled = new Map([...new Set(ids)].filter((id) => id < PLACE).map((id) => [texts[id], id]));
        for (let i = 0; files && lines && i < ids.length; i++) {
            if (ids[i] !== PLACE)
                continue;
            const key = files[i] * 1e7 + lines[i];
            let id = known.get(key);
            if (id === undefined) {
                const text = this.placeOf(i);
                known.set(key, id = spelled.get(text) ?? texts.push(text) - 1);
            }
            ids[i] = id;
        }
    }

    get texts() {
        if (!this.strings)
            this.strings = UTF8.decode(this.rest).split("\0");
        return this.strings;
    }

    /**
     * One text: all of them are decoded only when many were asked for.
     * @param {number} id
     */
    textAt(id) {
        if (this.strings || this.nRead++ > READ_SINGLY)
            return this.texts[id];
        if (!this.starts) {
            const {rest} = this, n = rest.length, found = [0];
            for (let at = rest.indexOf(0); at >= 0; at = rest.indexOf(0, at + 1))
                found.push(at + 1);
            this.starts = Uint32Array.from(found.concat(n + 1));
        }
        return UTF8.decode(this.rest.subarray(this.starts[id], this.starts[id + 1] - 1));
    }

    /**
     * @param {string} key
     * @param {number} row
     * @returns {string} "" is not known
     */
    text(key, row) {
        return this.columns.get(key)?.text(row) ?? "";
    }

    /**
     * @param {string} key
     * @param {number} row
     * @returns {number} NaN is not known
     */
    number(key, row) {
        const column = this.columns.get(key);
        return column ? column.number(row) : NaN;
    }

    /**
     * @param {string} key
     * @param {number} row
     * @returns {any} null is not known
     */
    json(key, row) {
        return this.columns.get(key)?.json(row) ?? null;
    }
}

/** @param {ArrayBuffer} buffer */
export function decode(buffer) {
    const bytes = new Uint8Array(buffer), view = new DataView(buffer);
    if (view.getUint32(0, true) !== 0x31434f4c)
        throw new Error("this is no packed answer");
    const n = view.getUint32(4, true);
    return new Answer(JSON.parse(UTF8.decode(bytes.subarray(8, 8 + n))), bytes.subarray(8 + n));
}
