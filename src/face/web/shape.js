// SPDX-License-Identifier: BSD-3-Clause
// Trees of what called what, as arrays in pre-order, and what makes one of another: steps of the trail, the view from below, names that are merged. Nothing
// here knows of the page.
import {shapeOf} from "./nodes.js";
import {place} from "./parts.js";
import {orderOf} from "./grid.js";

/** @typedef {import("./packed.js").Answer} Answer */

/**
 * @typedef {object} Tree
 * @property {Answer} nodes where its names come from
 * @property {number} n
 * @property {Int32Array} parent -1: a root
 * @property {Uint32Array} end the first node behind the subtree
 * @property {Uint16Array} depth
 * @property {Float64Array} value with all below
 * @property {Float64Array} self without
 * @property {Uint32Array} of a node of the answer that it shows
 * @property {Uint32Array} key what it is: the same for each call of a function
 * @property {number} total of all roots, and of what is left of roots that are not shown
 * @property {Uint8Array} [up] 1: above the root of a sandwich
 * @property {Uint8Array} [hidden] 1: neither it nor what is below it is shown; all sums have it
 */

/** What a node is. */
export const OTHER = 0, FUNCTION = 1, LOOP = 2, LINE = 3, GROUP = 4, VARIABLE = 5, SMALL = 6;
const KIND_NUMBERS = /** @type {Record<string, number>} */ ({function: FUNCTION, "inlined": FUNCTION, "inlined function": FUNCTION, loop: LOOP, line: LINE, statement: LINE,
    call: LINE, instruction: LINE, group: GROUP, variable: VARIABLE, field: VARIABLE, small: SMALL});

/** @typedef {{kind: Uint8Array, key: Uint32Array, n: number, isData: Uint8Array}} Keys by node of an answer */

/** @type {WeakMap<Answer, Keys>} */ const keysKept = new WeakMap();

/**
 * The numbers of texts of a column.
 * @param {Answer} nodes
 * @param {string} key
 */
function idsOf(nodes, key) {
    const column = nodes.columns.get(key);
    return column && column.about.type !== "same" && column.isText ? column.words() : new Uint32Array(nodes.n);
}

/**
 * @param {Answer} nodes
 * @returns {Keys}
 */
export function keysOf(nodes) {
    const before = keysKept.get(nodes);
    if (before)
        return before;
    const n = nodes.n, kinds = nodes.columns.get("kind"), names = idsOf(nodes, "name"), files = idsOf(nodes, "file"), modules = idsOf(nodes, "module");
    const made = {kind: new Uint8Array(n), key: new Uint32Array(n), n: 0, isData: new Uint8Array(n)};
    const lines = nodes.columns.get("line")?.numbers, texts = idsOf(nodes, "kind"), {parent} = shapeOf(nodes);
    /** @type {Map<number, number>} */ const byText = new Map();
    /** @type {Map<number, number>[]} */ const maps = Array.from({length: 7}, () => new Map());
    for (let i = 0; i < n; i++) {
        let kind = byText.get(texts[i]);
        if (kind === undefined)
            byText.set(texts[i], kind = KIND_NUMBERS[kinds?.text(i) || ""] || OTHER);
        made.kind[i] = kind;
        const isPlace = kind === LOOP || kind === LINE;
        const word = kind === SMALL ? 0 : isPlace ? files[i] * 1e7 + (lines ? lines[i] || 0 : 0) : names[i] * 1e7 + (kind === FUNCTION ? modules[i] : 0);
        let key = maps[kind].get(word);
        if (key === undefined)
            maps[kind].set(word, key = made.n++);
        made.key[i] = key;
        if (kind === VARIABLE || (kind === GROUP && parent[i] < 0 && nodes.text("name", i) === "<datacentric>"))
            made.isData[i] = 1;
    }
    for (let i = n - 1; i > 0; i--) // the whole tree of a variable is one of data
        if (made.isData[i] && parent[i] >= 0)
            made.isData[parent[i]] = 1;
    for (let i = 0; i < n; i++)
        if (parent[i] >= 0)
            made.isData[i] = made.isData[parent[i]];
    keysKept.set(nodes, made);
    return made;
}

/**
 * What a box says.
 * @param {Answer} nodes
 * @param {number} row
 */
export function labelOf(nodes, row) {
    const kind = keysOf(nodes).kind[row], line = nodes.number("line", row), file = nodes.text("file", row);
    if (file && (kind === LOOP || (kind === LINE && line > 0)))
        return (kind === LOOP ? "loop " : "") + place(file, line);
    return nodes.text("name", row) || nodes.text("kind", row);
}

/**
 * Ends and depths from parents, and sums from what nodes cost themselves.
 * @param {Answer} nodes
 * @param {number} n
 * @param {Int32Array} parent
 * @param {Float64Array} self
 * @param {Uint32Array} of
 * @param {Uint32Array} key
 * @param {number} [rest] what the total has beside them
 * @returns {Tree}
 */
function finish(nodes, n, parent, self, of, key, rest = 0) {
    const end = new Uint32Array(n), depth = new Uint16Array(n), value = self.slice(0, n);
    let total = rest;
    for (let i = 0; i < n; i++)
        depth[i] = parent[i] < 0 ? 0 : depth[parent[i]] + 1;
    for (let i = n - 1; i >= 0; i--) {
        end[i] = Math.max(end[i], i + 1);
        if (parent[i] < 0) {
            total += value[i];
        } else {
            value[parent[i]] += value[i];
            end[parent[i]] = Math.max(end[parent[i]], end[i]);
        }
    }
    return {nodes, n, parent: parent.subarray(0, n), end, depth, value, self: self.subarray(0, n), of: of.subarray(0, n), key: key.subarray(0, n), total};
}

/**
 * The tree of code of an answer, or that of data.
 * @param {Answer} nodes
 * @param {boolean} isData
 * @returns {Tree}
 */
export function treeOf(nodes, isData) {
    const keys = keysOf(nodes), shape = shapeOf(nodes), values = nodes.columns.get("value")?.numbers || new Float64Array(nodes.n);
    const number = new Int32Array(nodes.n), parent = new Int32Array(nodes.n), self = new Float64Array(nodes.n), of = new Uint32Array(nodes.n), key = new Uint32Array(nodes.n);
    let n = 0;
    for (let i = 0; i < nodes.n; i++) {
        if (Boolean(keys.isData[i]) !== isData)
            continue;
        number[i] = n;
        of[n] = i;
        key[n] = keys.key[i];
        self[n] = values[i] || 0;
        parent[n] = shape.parent[i] < 0 ? -1 : number[shape.parent[i]];
        if (parent[n] >= 0)
            self[parent[n]] -= self[n];
        n++;
    }
    // Parents lost what their children cost before these lost theirs: what is left by rounding is nothing.
    for (let i = 0; i < n; i++)
        if (Math.abs(self[i]) < 1e-9 * (values[of[i]] || 1))
            self[i] = 0;
    return finish(nodes, n, parent, self, of, key);
}

/** What becomes of a node: what it costs goes with it, it goes to its caller, or it stays; PASS: what is below it goes to its caller, not what it costs itself. */
const LOSE = 0, MELT = 1, KEEP = 2, PASS = 3;

/**
 * @param {Tree} tree
 * @param {Uint8Array} fate of each node
 * @returns {Tree}
 */
export function rebuilt(tree, fate) {
    const {n, nodes} = tree, to = new Int32Array(n), parent = new Int32Array(n), self = new Float64Array(n), of = new Uint32Array(n), key = new Uint32Array(n);
    let m = 0, rest = tree.total;
    for (let i = 0; i < n; i++)
        if (tree.parent[i] < 0)
            rest -= tree.value[i];
    if (Math.abs(rest) < 1e-9 * tree.total)
        rest = 0;
    for (let i = 0; i < n; i++) {
        const above = tree.parent[i] < 0 ? -1 : to[tree.parent[i]];
        if (fate[i] !== KEEP) {
            to[i] = above;
            if (fate[i] === MELT && above >= 0)
                self[above] += tree.self[i];
            else if (fate[i] === MELT)
                rest += tree.self[i];
            continue;
        }
        to[i] = m;
        parent[m] = above;
        self[m] = tree.self[i];
        of[m] = tree.of[i];
        key[m++] = tree.key[i];
    }
    return finish(nodes, m, parent, self, of, key, rest);
}

const RUNTIME = /(^|\/)lib(gomp|omp|iomp5)\b/;
const ROOTS = /^(<(program root|thread root|memory access call-path|datacentric)>|main thread)$/;

/**
 * Whether a node belongs to the runtime: a root, or a function of OpenMP's library.
 * @param {Answer} nodes
 */
function runtimeOf(nodes) {
    const kinds = keysOf(nodes).kind, names = idsOf(nodes, "name"), modules = idsOf(nodes, "module"), texts = nodes.texts;
    const isRoot = texts.map((text) => ROOTS.test(text)), isLibrary = texts.map((text) => RUNTIME.test(text));
    return (/** @type {number} */ row) => (kinds[row] === FUNCTION ? isLibrary[modules[row]] : kinds[row] === GROUP || kinds[row] === OTHER ? isRoot[names[row]] : false);
}

/**
 * Without the nodes that are not asked for: lines, loops, and what belongs to the runtime, of which the outermost stays where nothing else is below.
 * @param {Tree} tree
 * @param {{loops: boolean, lines: boolean, runtime: boolean}} shows
 */
export function folded(tree, shows) {
    const {n, of, parent, nodes} = tree, kinds = keysOf(nodes).kind, isRuntime = runtimeOf(nodes);
    const fate = new Uint8Array(n).fill(KEEP), leads = new Uint8Array(n), isOurs = new Uint8Array(n);
    for (let i = 0; i < n; i++) {
        const kind = kinds[of[i]];
        if ((kind === LOOP && !shows.loops) || (kind === LINE && (!shows.lines || tree.end[i] > i + 1))) // lines of calls are no boxes of their own
            fate[i] = MELT;
        isOurs[i] = isRuntime(of[i]) ? 1 : 0;
    }
    for (let i = n - 1; i >= 0; i--)
        if (parent[i] >= 0 && (leads[i] || (!isOurs[i] && kinds[of[i]] !== LOOP && kinds[of[i]] !== LINE && kinds[of[i]] !== SMALL)))
            leads[parent[i]] = 1;
    const isWithin = new Uint8Array(n); // below one that stays, which lines of calls may stand between
    for (let i = 0; i < n && !shows.runtime; i++) {
        const above = parent[i];
        isWithin[i] = above >= 0 && (isWithin[above] || (isOurs[above] && kinds[of[above]] === FUNCTION && !leads[above])) ? 1 : 0;
        if (isOurs[i] && (kinds[of[i]] !== FUNCTION || leads[i] || isWithin[i]))
            fate[i] = MELT;
    }
    return rebuilt(tree, fate);
}

/**
 * Whether nodes of the answer have a name.
 * @param {Answer} nodes
 * @param {string} name
 */
function isNamed(nodes, name) {
    const id = nodes.texts.indexOf(name), names = idsOf(nodes, "name");
    return (/** @type {number} */ row) => id >= 0 && names[row] === id;
}

/**
 * A step of the trail: "focus NAME", "merge NAME", "drop NAME", "collapse NAME".
 * @param {Tree} tree
 * @param {string} step
 */
export function stepped(tree, step) {
    const {n, of, parent, end, nodes} = tree, word = step.slice(0, step.indexOf(" ")), is = isNamed(nodes, step.slice(step.indexOf(" ") + 1));
    const fate = new Uint8Array(n).fill(word === "focus" ? LOSE : KEEP);
    const inside = new Uint8Array(n);
    for (let i = 0; i < n; i++) {
        const isHere = is(of[i]);
        inside[i] = isHere || (parent[i] >= 0 && inside[parent[i]]) ? 1 : 0;
        if (word === "merge" && isHere)
            fate[i] = PASS;
        else if (word === "collapse" && isHere && parent[i] >= 0 && inside[parent[i]])
            fate[i] = PASS;
        else if (word === "drop" && inside[i])
            fate[i] = LOSE;
        else if (word === "focus" && inside[i])
            fate[i] = KEEP;
    }
    if (word === "focus")
        for (let i = n - 1; i >= 0; i--)
            if (fate[i] === KEEP && parent[i] >= 0)
                fate[parent[i]] = KEEP;
    return end.length ? rebuilt(tree, fate) : tree;
}

/**
 * A name as a text of a query.
 * @param {string} name
 */
const inQuery = (name) => '"' + name.replace(/["\\]/g, "\\$&") + '"';

/**
 * Steps of hpcquery that do what a step of the trail does.
 * @param {string} step
 * @returns {string[][]}
 */
export function stepWords(step) {
    const name = inQuery(step.slice(step.indexOf(" ") + 1));
    switch (step.slice(0, step.indexOf(" "))) {
    case "focus":
        return [["query", `MATCH ("*")->(f)->("*") WHERE f.name = ${name}`]];
    case "merge":
        return [["filter", `name != ${name}`]];
    case "drop":
        return [["query", `NOT {MATCH (f)->("*") WHERE f.name = ${name}}`]];
    case "collapse": // all but those of this name that are not the first on their path
        return [["query", `NOT ({MATCH (f) WHERE f.name = ${name}} AND NOT ({MATCH (f) WHERE f.name = ${name} AND f.depth = 0} OR ({MATCH (r)->("*", p)->(f) WHERE r.depth = 0 AND r.name != ${name} AND p.name != ${name} AND f.name = ${name}} AND {MATCH (f) WHERE f.name = ${name}})))`]];
    default:
        return [];
    }
}

/**
 * With nodes of some names, and what is below them, out of sight.
 * @param {Tree} tree
 * @param {string[]} names
 * @returns {Tree}
 */
export function hiding(tree, names) {
    const are = names.map((name) => isNamed(tree.nodes, name));
    return names.length ? {...tree, hidden: Uint8Array.from(tree.of, (row) => (are.some((is) => is(row)) ? 1 : 0))} : tree;
}

/**
 * The names of functions that call themselves, the costliest first.
 * @param {Tree} tree
 */
export function recursive(tree) {
    const {n, of, key, end, nodes} = tree, kinds = keysOf(nodes).kind, until = new Map(), found = new Map();
    for (let i = 0; i < n; i++)
        if (kinds[of[i]] === FUNCTION) {
            if (i < (until.get(key[i]) || 0))
                found.set(nodes.text("name", of[i]), (found.get(nodes.text("name", of[i])) || 0) + tree.value[i]);
            else
                until.set(key[i], end[i]);
        }
    return [...found].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** A tree that is growing: parents stand before children, in no other order. */
class Growing {
    constructor() {
        /** @type {number[]} */ this.parent = [];
        /** @type {number[]} */ this.key = [];
        /** @type {number[]} */ this.of = [];
        /** @type {number[]} */ this.value = [];
    }

    /**
     * @param {number} parent
     * @param {number} key
     * @param {number} of
     * @param {number} value
     */
    add(parent, key, of, value) {
        this.key.push(key);
        this.of.push(of);
        this.value.push(value);
        return this.parent.push(parent) - 1;
    }

    /**
     * In pre-order, the largest child first.
     * @param {Answer} nodes
     * @returns {Tree}
     */
    sorted(nodes) {
        const n = this.key.length, first = new Int32Array(n + 1).fill(-1), next = new Int32Array(n), most = this.value.reduce((a, b) => Math.max(a, b), 0) || 1;
        for (const i of orderOf(this.value, n, false)) {
            const above = this.parent[i] + 1;
            next[i] = first[above];
            first[above] = i;
        }
        const parent = new Int32Array(n), self = new Float64Array(n), of = new Uint32Array(n), key = new Uint32Array(n), number = new Int32Array(n);
        let m = 0, at = first[0];
        while (at >= 0) {
            number[at] = m;
            parent[m] = this.parent[at] < 0 ? -1 : number[this.parent[at]];
            self[m] = this.value[at];
            if (parent[m] >= 0)
                self[parent[m]] -= this.value[at];
            of[m] = this.of[at];
            key[m++] = this.key[at];
            let down = first[at + 1];
            while (down < 0 && at >= 0) {
                down = next[at];
                at = this.parent[at];
            }
            at = down;
        }
        for (let i = 0; i < n; i++)
            if (Math.abs(self[i]) < 1e-9 * most)
                self[i] = 0;
        return finish(nodes, n, parent, self, of, key);
    }
}

/**
 * Below each node one of each name, the largest first.
 * @param {Tree} tree
 */
export function leftHeavy(tree) {
    const {n, end, key, of, value, nodes} = tree, grown = new Growing(), next = new Int32Array(n), size = keysOf(nodes).n, seen = new Int32Array(size), child = new Int32Array(size);
    /** @type {number[]} */ const first = [];
    // A node of the new tree has a list of those that it is made of; their children are told apart by a stamp for each name.
    for (let at = -1; at < first.length; at++)
        for (let member = at < 0 ? 0 : first[at]; member >= 0; member = at < 0 ? -1 : next[member])
            for (let i = at < 0 ? 0 : member + 1, last = at < 0 ? n : end[member]; i < last; i = end[i]) {
                const word = key[i];
                if (seen[word] !== at + 2) {
                    seen[word] = at + 2;
                    child[word] = grown.add(at, word, of[i], 0);
                    first.push(-1);
                }
                const to = child[word];
                grown.value[to] += value[i];
                next[i] = first[to];
                first[to] = i;
            }
    return {...grown.sorted(nodes), total: tree.total};
}

/**
 * Who called some nodes, with parts of their cost, from below; what costs less than `least` is not followed further.
 * @param {Tree} tree
 * @param {Map<number, number>} members node and cost
 * @param {number} least
 */
function upwards(tree, members, least) {
    const {n, parent, key, of, nodes} = tree, grown = new Growing(), size = keysOf(nodes).n, seen = new Int32Array(size), made = new Int32Array(size);
    const met = new Int32Array(n), entry = new Int32Array(n);
    // Lists of nodes that a new node is made of, with what each has of the cost.
    const first = /** @type {number[]} */ ([]), node = /** @type {number[]} */ ([]), cost = /** @type {number[]} */ ([]), next = /** @type {number[]} */ ([]);
    const add = (/** @type {number} */ above, /** @type {number} */ each, /** @type {number} */ part) => {
        const word = key[each], stamp = above + 2;
        if (seen[word] !== stamp) {
            seen[word] = stamp;
            made[word] = grown.add(above, word, of[each], 0);
            first.push(-1);
        }
        grown.value[made[word]] += part;
        if (met[each] === stamp) {
            cost[entry[each]] += part;
            return;
        }
        met[each] = stamp;
        entry[each] = node.push(each) - 1;
        cost.push(part);
        next.push(first[made[word]]);
        first[made[word]] = entry[each];
    };
    for (const [each, part] of members)
        add(-1, each, part);
    for (let at = 0; at < first.length; at++)
        if (grown.value[at] >= least)
            for (let i = first[at]; i >= 0; i = next[i])
                if (parent[node[i]] >= 0)
                    add(at, parent[node[i]], cost[i]);
    return {...grown.sorted(nodes), total: tree.total};
}

/** Callers of what is less than this part of the whole are not followed. */
const LEAST_FOLLOWED = 2e-4;

/**
 * Functions by what they cost themselves, and below them who called them.
 * @param {Tree} tree
 */
export function bottomUp(tree) {
    const members = new Map();
    for (let i = 0; i < tree.n; i++)
        if (tree.self[i] > 0)
            members.set(i, tree.self[i]);
    return upwards(tree, members, tree.total * LEAST_FOLLOWED);
}

/**
 * The outermost nodes for which a condition is true, and what they cost together.
 * @param {Tree} tree
 * @param {(node: number) => boolean} is
 */
export function outermost(tree, is) {
    const found = new Map();
    let sum = 0;
    for (let i = 0; i < tree.n; i = is(i) ? tree.end[i] : i + 1)
        if (is(i)) {
            found.set(i, tree.value[i]);
            sum += tree.value[i];
        }
    return {found, sum};
}

/**
 * A function in the middle: what it calls as a tree below it, who calls it as one above.
 * @param {Tree} tree
 * @param {number} key
 * @returns {Tree}
 */
export function sandwich(tree, key) {
    const {found} = outermost(tree, (node) => tree.key[node] === key), {n, parent, nodes} = tree;
    const fate = new Uint8Array(n), inside = new Uint8Array(n), above = new Int32Array(n);
    for (let i = 0; i < n; i++) {
        inside[i] = found.has(i) || (parent[i] >= 0 && inside[parent[i]]) ? 1 : 0;
        fate[i] = inside[i] ? KEEP : LOSE;
        above[i] = parent[i];
    }
    const below = leftHeavy(rebuilt(tree, fate)), up = upwards(tree, found, tree.total * LEAST_FOLLOWED), m = below.n + up.n - 1;
    if (!below.n)
        return below;
    /** @type {(key: "parent" | "end" | "depth" | "value" | "self" | "of" | "key") => any} */
    const joined = (name) => {
        const all = new /** @type {any} */ (below[name].constructor)(m);
        all.set(below[name]);
        all.set(up[name].subarray(1), below.n);
        return all;
    };
    const made = {...below, n: m, parent: joined("parent"), end: joined("end"), depth: joined("depth"), value: joined("value"), self: joined("self"), of: joined("of"),
                  key: joined("key"), up: new Uint8Array(m).fill(1, below.n), nodes, total: tree.total};
    for (let i = below.n; i < m; i++) {
        made.end[i] += below.n - 1;
        made.parent[i] = made.parent[i] ? made.parent[i] + below.n - 1 : 0;
    }
    made.end[0] = m;
    return made;
}

/** @typedef {{keys: number[], of: number[], value: Float64Array, self: Float64Array, from: number[], to: number[], cost: number[], total: number}} Calls a graph of functions */

/**
 * Functions and who calls whom; what a call of oneself costs again is counted once.
 * @param {Tree} tree of functions alone
 * @returns {Calls}
 */
export function callsOf(tree) {
    const {n, parent, end, key, of, value, self} = tree, number = new Int32Array(keysOf(tree.nodes).n).fill(-1);
    /** @type {Calls} */ const made = {keys: [], of: [], value: new Float64Array(n), self: new Float64Array(n), from: [], to: [], cost: [], total: tree.total};
    /** @type {Map<number, number>[]} */ const edges = [];
    /** @type {number[]} */ const until = [], edgeUntil = /** @type {number[]} */ ([]);
    for (let i = 0; i < n; i++) {
        let at = number[key[i]];
        if (at < 0) {
            number[key[i]] = at = made.keys.push(key[i]) - 1;
            made.of.push(of[i]);
            until.push(0);
            edges.push(new Map());
        }
        made.self[at] += self[i];
        if (i >= until[at]) {
            made.value[at] += value[i];
            until[at] = end[i];
        }
        if (parent[i] < 0)
            continue;
        const from = number[key[parent[i]]];
        let edge = edges[from].get(at);
        if (edge === undefined) {
            edges[from].set(at, edge = made.from.push(from) - 1);
            made.to.push(at);
            made.cost.push(0);
            edgeUntil.push(0);
        }
        if (i >= edgeUntil[edge]) {
            made.cost[edge] += value[i];
            edgeUntil[edge] = end[i];
        }
    }
    // Calls of what is elsewhere in the tree: what they cost is not known.
    for (const {caller, callee} of tree.nodes.head.calls || []) {
        const [from, to] = [caller, callee].map((row) => number[keysOf(tree.nodes).key[row]]);
        if (from < 0 || to < 0 || edges[from].has(to))
            continue;
        edges[from].set(to, made.from.push(from) - 1);
        made.to.push(to);
        made.cost.push(NaN);
    }
    return made;
}
