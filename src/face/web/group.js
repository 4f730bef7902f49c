// SPDX-License-Identifier: BSD-3-Clause
// Rows of a list in groups: a row of each group, with the sum of what is in it, stands before its members, which can be folded.

/** @typedef {import("./packed.js").Answer} Answer */

export class Groups {
    /**
     * @param {Answer} answer
     * @param {string} key the column whose texts are the groups
     * @param {string} sumKey what is added up
     */
    constructor(answer, key, sumKey) {
        this.n = answer.n;
        /** @type {string[]} */ this.names = [];
        /** @type {Set<number>} */ this.folded = new Set();
        this.of = new Uint32Array(answer.n);
        this.values = answer.columns.get(sumKey)?.numbers || new Float64Array(answer.n);
        const ids = new Map();
        for (let row = 0; row < answer.n; row++) {
            const name = answer.text(key, row);
            if (!ids.has(name)) {
                ids.set(name, this.names.length);
                this.names.push(name || "not known");
            }
            this.of[row] = ids.get(name);
        }
        this.sums = new Float64Array(this.names.length);
        this.counts = new Uint32Array(this.names.length);
    }

    /**
     * The order with the rows of groups in it: group g has row n + g.
     * @param {Uint32Array} order
     * @param {"falls" | "rises" | "name"} by how groups are ordered: by their sums, or by name
     * @returns {Uint32Array}
     */
    arrange(order, by) {
        this.sums.fill(0);
        this.counts.fill(0);
        for (const row of order) {
            this.sums[this.of[row]] += this.values[row] || 0;
            this.counts[this.of[row]]++;
        }
        const used = [...this.names.keys()].filter((group) => this.counts[group]);
        used.sort((a, b) => (by === "name" ? (this.names[a] < this.names[b] ? -1 : 1) : by === "rises" ? this.sums[a] - this.sums[b] : this.sums[b] - this.sums[a]));
        const at = new Uint32Array(this.names.length);
        let n = 0;
        for (const group of used) {
            at[group] = n;
            n += 1 + (this.folded.has(group) ? 0 : this.counts[group]);
        }
        const made = new Uint32Array(n);
        for (const group of used)
            made[at[group]++] = this.n + group;
        for (const row of order)
            if (!this.folded.has(this.of[row]))
                made[at[this.of[row]]++] = row;
        return made;
    }

    /** @param {number} row of a group */
    fold(row) {
        const group = row - this.n;
        if (!this.folded.delete(group))
            this.folded.add(group);
    }

    /**
     * Opens the group of a thing; says whether it was folded.
     * @param {number} row
     */
    unfold(row) {
        return this.folded.delete(this.of[row]);
    }
}
