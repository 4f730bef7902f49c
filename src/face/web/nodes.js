// SPDX-License-Identifier: BSD-3-Clause
// The nodes of a profile, in pre-order: a parent stands before what is below it.

/** @typedef {import("./packed.js").Answer} Answer */

export const NODES = {min: 0.01, report: "nodes"};

/** @typedef {{parent: Int32Array, end: Uint32Array, depth: Uint16Array}} Shape parent: -1 for roots; end: the first node behind the subtree */

/** @type {WeakMap<Answer, Shape>} */ const shapes = new WeakMap();

/**
 * @param {Answer} nodes
 * @returns {Shape}
 */
export function shapeOf(nodes) {
    const before = shapes.get(nodes);
    if (before)
        return before;
    const n = nodes.n, numbers = nodes.columns.get("parent")?.numbers || new Float64Array(n).fill(NaN);
    const parent = new Int32Array(n), end = new Uint32Array(n), depth = new Uint16Array(n);
    for (let i = 0; i < n; i++) {
        parent[i] = Number.isNaN(numbers[i]) ? -1 : numbers[i];
        depth[i] = parent[i] < 0 ? 0 : depth[parent[i]] + 1;
        end[i] = i + 1;
    }
    for (let i = n - 1; i > 0; i--)
        if (parent[i] >= 0)
            end[parent[i]] = Math.max(end[parent[i]], end[i]);
    const made = {parent, end, depth};
    shapes.set(nodes, made);
    return made;
}

/**
 * The nodes above one, the nearest first.
 * @param {Answer} nodes
 * @param {number} node
 */
export function nodesAbove(nodes, node) {
    const {parent} = shapeOf(nodes), path = [];
    for (let at = parent[node]; at >= 0; at = parent[at])
        path.push(at);
    return path;
}

/**
 * The heaviest leaves below a node with the nodes between, the leaf first.
 * @param {Answer} nodes
 * @param {number} node
 * @param {number} n at most
 */
export function heaviestBelow(nodes, node, n) {
    const {parent, end} = shapeOf(nodes), leaves = [];
    for (let i = node + 1; i < end[node]; i++)
        if (end[i] === i + 1 && nodes.text("kind", i) !== "small")
            leaves.push({leaf: i, value: nodes.number("value", i)});
    leaves.sort((a, b) => b.value - a.value);
    return leaves.slice(0, n).map(({leaf, value}) => {
        const path = [];
        for (let at = leaf; at !== node; at = parent[at])
            path.push(at);
        return {path, value};
    });
}

/** @type {WeakMap<Answer, Map<number, number[]>>} */ const owners = new WeakMap();

/**
 * The nodes of a thing, by its identity.
 * @param {Answer} nodes
 * @param {string} item
 * @returns {number[]}
 */
export function nodesOf(nodes, item) {
    const column = nodes.columns.get("item"), words = column?.words() || [], id = nodes.texts.indexOf(item);
    if (!column || id < 0)
        return [];
    let byItem = owners.get(nodes);
    if (!byItem) {
        byItem = new Map();
        for (let i = 0; i < words.length; i++) {
            const same = byItem.get(words[i]);
            if (same)
                same.push(i);
            else
                byItem.set(words[i], [i]);
        }
        owners.set(nodes, byItem);
    }
    return byItem.get(id) || [];
}
