// SPDX-License-Identifier: BSD-3-Clause
// Which rows of two recordings are about the same thing, as `hpcquery diff` has it (src/frame/op-match.c): the nearest places of each name are
// brought together first, and what is left of a name on both sides in the end. Lambdas have their line in their name.
import {groupedBy} from "./parts.js";

/**
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} place the file, or else the module
 * @property {string} library
 * @property {number} side 0 or 1
 * @property {number} row
 */
/** @typedef {{place: string, library: string, line: number, entries: Entry[]}} Placed the entries of a name at one place */

/** How many folders and files at the end of a path must be the same, step by step; 0: the whole path. */
const TAILS = [0, 3, 2, 1];
const LAMBDA_LINE = /:(\d+)(?=\})/g;

/** @param {string} module */
export function libraryOf(module) {
    const name = module.slice(module.lastIndexOf("/") + 1), end = name.search(/\.so(\.|$)/);
    return end < 0 ? "" : name.slice(0, end);
}

/**
 * @param {string} path
 * @param {number} n
 */
const tailOf = (path, n) => (n ? path.split("/").slice(-n).join("/") : path);

/** @param {Placed} placed */
const sidesOf = (placed) => placed.entries.reduce((sides, entry) => sides | (1 << entry.side), 0);

/**
 * Lines of one file that are left, in their order, where both sides have as many.
 * @param {Placed[]} left
 * @param {Entry[][]} matched
 * @returns {Placed[]} what is left then
 */
function matchMoved(left, matched) {
    const rest = [];
    for (const same of groupedBy(left, (placed) => tailOf(placed.place, 1) + "\n" + placed.library).values()) {
        const [before, after] = [0, 1].map((side) => same.filter((placed) => (sidesOf(placed) === 2) === (side === 1)).sort((a, b) => a.line - b.line));
        if (same[0].line && before.length === after.length)
            before.forEach((placed, i) => matched.push([...placed.entries, ...after[i].entries]));
        else
            rest.push(...same);
    }
    return rest;
}

/**
 * @param {Entry[]} entries
 * @returns {Entry[][]} those that are the same
 */
export function matchEntries(entries) {
    /** @type {Entry[][]} */ const matched = [];
    for (const same of groupedBy(entries, (entry) => entry.name.replace(LAMBDA_LINE, "")).values()) {
        const lineIn = (/** @type {Entry} */ entry) => Number(/:(\d+)\}/.exec(entry.name)?.[1] || 0);
        let left = [...groupedBy(same, (entry) => [entry.place, entry.library, lineIn(entry)].join("\n")).values()].map((each) =>
            (/** @type {Placed} */ ({place: each[0].place, library: each[0].library, line: lineIn(each[0]), entries: each})));
        for (const n of TAILS) {
            const rest = [];
            for (const near of groupedBy(left, (placed) => [tailOf(placed.place, n), placed.library, placed.line].join("\n")).values())
                if (near.reduce((sides, placed) => sides | sidesOf(placed), 0) === 3)
                    matched.push(near.flatMap((placed) => placed.entries));
                else
                    rest.push(...near);
            left = rest;
        }
        left = matchMoved(left, matched);
        if (left.reduce((sides, placed) => sides | sidesOf(placed), 0) === 3)
            matched.push(left.flatMap((placed) => placed.entries));
        else
            matched.push(...left.map((placed) => placed.entries));
    }
    return matched;
}
