// SPDX-License-Identifier: BSD-3-Clause
// Functions as boxes in ranks, with lines from callers to callees.
import {make, attributes, percent, printable} from "./parts.js";
import {callsOf} from "./shape.js";

/** @typedef {import("./shape.js").Tree} Tree */

/**
 * @typedef {object} CallBoxes
 * @property {(key: number) => void} choose
 * @property {(row: number) => string} label
 * @property {(row: number) => string} mark
 */

/** @typedef {{name: string, keys: number[], of: number[], value: number, self: number, rank: number, place: number, x: number, y: number}} CallBox */
/** @typedef {{from: number, to: number, cost: number, isBack: boolean}} CallLine */

const BOX_WIDTH = 190, BOX_HEIGHT = 40, GAP = 22, RANK = 92, BOXES_MAX = 80, SWEEPS = 6;

/**
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null>} values
 * @param {...(Node | string)} children
 */
export function svg(tag, values, ...children) {
    const element = attributes(document.createElementNS("http://www.w3.org/2000/svg", tag), values);
    element.append(...children.map((each) => (typeof each === "string" ? printable(each) : each)));
    return element;
}

/**
 * The circles of a graph: for each node the number of the one that it is in (Tarjan).
 * @param {number} n
 * @param {number[]} from
 * @param {number[]} to
 */
export function circlesOf(n, from, to) {
    /** @type {number[][]} */ const out = Array.from({length: n}, () => []);
    from.forEach((each, i) => out[each].push(to[i]));
    const order = new Int32Array(n).fill(-1), low = new Int32Array(n), circle = new Int32Array(n).fill(-1), next = new Int32Array(n);
    /** @type {number[]} */ const stack = [], path = [];
    let count = 0, circles = 0;
    for (let root = 0; root < n; root++) {
        if (order[root] >= 0)
            continue;
        path.push(root);
        while (path.length) {
            /** @type {number} */ const at = path[path.length - 1];
            if (order[at] < 0) {
                order[at] = low[at] = count++;
                stack.push(at);
            }
            if (next[at] < out[at].length) {
                /** @type {number} */ const below = out[at][next[at]++];
                if (order[below] < 0)
                    path.push(below);
                else if (circle[below] < 0)
                    low[at] = Math.min(low[at], order[below]);
                continue;
            }
            path.pop();
            if (path.length)
                low[path[path.length - 1]] = Math.min(low[path[path.length - 1]], low[at]);
            if (low[at] === order[at]) {
                let each;
                do {
                    each = /** @type {number} */ (stack.pop());
                    circle[each] = circles;
                } while (each !== at);
                circles++;
            }
        }
    }
    return circle;
}

/**
 * What functions of a circle cost where only their calls are known, not on which paths: by the file itself what they cost without calls within
 * the circle, and after steps, as hpcquery adds up then, all that they can reach: the circle.
 * @param {Tree} tree
 * @param {import("./shape.js").Calls} calls
 * @param {Int32Array} circles of each function
 * @param {Map<number, CallBox>} boxes by function
 * @param {boolean} isStepped
 */
function inCircles(tree, calls, circles, boxes, isStepped) {
    const number = new Map(calls.keys.map((key, i) => [key, i])), circleAt = (/** @type {number} */ node) => circles[number.get(tree.key[node]) ?? 0];
    const sizes = new Map(), whole = new Map();
    circles.forEach((circle) => sizes.set(circle, (sizes.get(circle) || 0) + 1));
    const isOutermost = (/** @type {number} */ node) => {
        for (let above = tree.parent[node]; above >= 0; above = tree.parent[above])
            if (circleAt(above) === circleAt(node))
                return false;
        return true;
    };
    for (const [at, box] of boxes)
        if (sizes.get(circles[at]) > 1)
            box.value = isStepped ? 0 : box.self;
    for (let i = 0; i < tree.n; i++) {
        const above = tree.parent[i], box = above < 0 ? undefined : boxes.get(number.get(tree.key[above]) ?? -1);
        if (isStepped && sizes.get(circleAt(i)) > 1 && isOutermost(i))
            whole.set(circleAt(i), (whole.get(circleAt(i)) || 0) + tree.value[i]);
        else if (!isStepped && box && sizes.get(circleAt(above)) > 1 && circleAt(above) !== circleAt(i))
            box.value += tree.value[i];
    }
    for (const [at, box] of boxes)
        box.value += whole.get(circles[at]) || 0;
}

/**
 * What is drawn: the functions from a share on, and the calls between them.
 * @param {Tree} tree
 * @param {number} least percent
 * @param {boolean} isJoined circles are one box
 * @param {(row: number) => string} label
 * @param {boolean} isStepped steps were taken
 */
function chosen(tree, least, isJoined, label, isStepped) {
    const calls = callsOf(tree), n = calls.keys.length, circles = circlesOf(n, calls.from, calls.to), circle = isJoined ? circles : Int32Array.from({length: n}, (_, i) => i);
    /** @type {Map<number, CallBox>} */ const all = new Map();
    const sizes = new Map();
    circle.forEach((each) => sizes.set(each, (sizes.get(each) || 0) + 1));
    let cycles = 0;
    for (let i = 0; i < n; i++) {
        let box = all.get(circle[i]);
        if (!box)
            all.set(circle[i], box = {name: sizes.get(circle[i]) > 1 ? `<cycle ${++cycles}>` : label(calls.of[i]), keys: [], of: [], value: 0, self: 0, rank: 0, place: 0, x: 0, y: 0});
        box.keys.push(calls.keys[i]);
        box.of.push(calls.of[i]);
        box.self += calls.self[i];
    }
    for (const box of all.values()) // what a circle costs is what its outermost functions cost
        if (box.keys.length > 1) {
            const keys = new Set(box.keys);
            for (let i = 0; i < tree.n; i = keys.has(tree.key[i]) ? tree.end[i] : i + 1)
                if (keys.has(tree.key[i]))
                    box.value += tree.value[i];
        } else {
            box.value = calls.value[calls.keys.indexOf(box.keys[0])];
        }
    if (!isJoined && (tree.nodes.head.calls || []).length)
        inCircles(tree, calls, circles, all, isStepped);
    const boxes = [...all.values()].filter((box) => box.value >= (tree.total * least) / 100).sort((a, b) => b.value - a.value).slice(0, BOXES_MAX);
    const number = new Map(boxes.flatMap((box, i) => box.keys.map((key) => [key, i])));
    /** @type {Map<number, CallLine>} */ const lines = new Map();
    calls.from.forEach((each, i) => {
        const from = number.get(calls.keys[each]), to = number.get(calls.keys[calls.to[i]]);
        if (from === undefined || to === undefined || (from === to && boxes[from].keys.length > 1))
            return;
        const line = lines.get(from * BOXES_MAX + to);
        if (line)
            line.cost = (line.cost || 0) + (calls.cost[i] || 0);
        else
            lines.set(from * BOXES_MAX + to, {from, to, cost: calls.cost[i], isBack: false});
    });
    return {boxes, lines: [...lines.values()], left: all.size - boxes.length, total: tree.total};
}

/**
 * Ranks by the longest way from above; a line of a circle that goes up is drawn back.
 * @param {CallBox[]} boxes
 * @param {CallLine[]} lines
 */
function rank(boxes, lines) {
    const state = new Uint8Array(boxes.length);
    /** @param {number} at */
    const visit = (at) => {
        state[at] = 1;
        for (const line of lines)
            if (line.from === at) {
                if (state[line.to] === 1)
                    line.isBack = true;
                else if (!state[line.to])
                    visit(line.to);
            }
        state[at] = 2;
    };
    for (let i = 0; i < boxes.length; i++)
        if (!state[i] && !lines.some((line) => line.to === i && line.from !== i))
            visit(i);
    for (let i = 0; i < boxes.length; i++)
        if (!state[i])
            visit(i);
    for (let round = 0, isChanged = true; isChanged && round < boxes.length; round++) {
        isChanged = false;
        for (const line of lines)
            if (!line.isBack && boxes[line.to].rank < boxes[line.from].rank + 1) {
                boxes[line.to].rank = boxes[line.from].rank + 1;
                isChanged = true;
            }
    }
}

/**
 * Places within ranks: each box in the middle of those that it is tied to, a few times down and up.
 * @param {CallBox[]} boxes
 * @param {CallLine[]} lines
 */
function arrange(boxes, lines) {
    /** @type {CallBox[][]} */ const ranks = [];
    for (const box of boxes)
        (ranks[box.rank] ||= []).push(box);
    const number = new Map(boxes.map((box, i) => [box, i]));
    for (const each of ranks)
        each.forEach((box, i) => {
            box.place = i;
        });
    for (let sweep = 0; sweep < SWEEPS; sweep++)
        for (const each of sweep % 2 ? [...ranks].reverse() : ranks) {
            for (const box of each) {
                const me = number.get(box), tied = lines.filter((line) => (sweep % 2 ? line.from : line.to) === me).map((line) => boxes[sweep % 2 ? line.to : line.from].place);
                if (tied.length)
                    box.place = tied.reduce((a, b) => a + b, 0) / tied.length;
            }
            each.sort((a, b) => a.place - b.place).forEach((box, i) => {
                box.place = i - each.length / 2;
            });
        }
    const widest = Math.max(1, ...ranks.map((each) => each.length)), width = widest * (BOX_WIDTH + GAP) + GAP;
    for (const each of ranks)
        each.forEach((box, i) => {
            box.x = (width - each.length * (BOX_WIDTH + GAP)) / 2 + GAP / 2 + i * (BOX_WIDTH + GAP);
            box.y = 8 + box.rank * RANK;
        });
    return {width, height: ranks.length * RANK};
}

export class CallGraph {
    /** @param {CallBoxes} owner */
    constructor(owner) {
        this.owner = owner;
        this.element = make("div", "calls");
        this.key = "";
        /** @type {Tree | null} */ this.tree = null;
        /** @type {[Element, CallBox][]} */ this.groups = [];
    }

    /**
     * @param {Tree} tree
     * @param {number} least
     * @param {boolean} isJoined
     * @param {string[]} circular names of functions that call themselves
     * @param {boolean} isStepped
     */
    fill(tree, least, isJoined, circular, isStepped) {
        const key = `${least} ${isJoined}`;
        if (this.tree !== tree || this.key !== key) {
            this.tree = tree;
            this.key = key;
            this.draw(chosen(tree, least, isJoined, this.owner.label, isStepped), circular);
        }
        for (const [group, box] of this.groups) {
            const marks = box.of.map((row) => this.owner.mark(row));
            attributes(group, {class: "call " + (["active", "selected", "related", "hit"].find((mark) => marks.includes(mark)) || "")});
        }
    }

    /**
     * @param {ReturnType<typeof chosen>} what
     * @param {string[]} circular
     */
    draw({boxes, lines, left, total}, circular) {
        rank(boxes, lines);
        const arranged = arrange(boxes, lines), height = arranged.height, width = arranged.width + (lines.some((line) => line.isBack) ? BOX_WIDTH / 2 : 0), part = (/** @type {number} */ value) => percent((100 * value) / (total || 1));
        const paths = lines.map((line) => {
            const from = boxes[line.from], to = boxes[line.to], x1 = from.x + BOX_WIDTH / 2, y1 = from.y + BOX_HEIGHT, x2 = to.x + BOX_WIDTH / 2, y2 = to.y;
            const bend = line.isBack ? RANK : (y2 - y1) / 2, side = line.isBack ? BOX_WIDTH * 0.7 : 0;
            const path = svg("path", {d: `M${x1 + side / 2},${y1 - (side ? BOX_HEIGHT / 2 : 0)} C${x1 + side},${y1 + bend} ${x2 + side},${y2 - bend} ${x2 + side / 3},${y2}`,
                "class": line.isBack ? "back" : "", "stroke-width": Math.max(1, Math.min(8, (8 * line.cost) / (total || 1) || 0)), "marker-end": "url(#tip)"});
            return [path, svg("text", {x: (x1 + x2) / 2 + side, y: (y1 + y2) / 2, "class": "cost"}, Number.isNaN(line.cost) ? "" : part(line.cost))];
        });
        this.groups = boxes.map((box) => {
            const isCircle = box.keys.length > 1 || circular.includes(box.name), room = 24, name = box.name.length > room ? box.name.slice(0, room - 1) + "\u2026" : box.name;
            const names = box.keys.length > 1 ? box.of.map(this.owner.label).join(", ") : "";
            const words = `${box.name}${names ? ": " + names : ""}, ${part(box.value)}, ${part(box.self)} itself${isCircle ? ", calls itself" : ""}`;
            const bar = Math.round(((BOX_WIDTH - 12) * box.value) / (total || 1));
            const group = svg("g", {tabindex: 0, role: "button", "aria-description": words, transform: `translate(${box.x},${box.y})`}, svg("title", {}, words),
                svg("rect", {width: BOX_WIDTH, height: BOX_HEIGHT, rx: 4}), svg("rect", {"class": "part", x: 6, y: BOX_HEIGHT - 6, width: Math.max(bar, 1), height: 3}),
                svg("text", {x: 6, y: 15}, name + " "), svg("text", {x: 6, y: 29, "class": "dim"}, `${part(box.value)}, ${part(box.self)} itself${isCircle ? " \u21ba" : ""}`));
            group.addEventListener("click", () => this.owner.choose(box.keys[0]));
            group.addEventListener("keydown", (event) => {
                const {key} = /** @type {KeyboardEvent} */ (event);
                if (key === "Enter" || key === " ") {
                    event.preventDefault();
                    this.owner.choose(box.keys[0]);
                }
            });
            return /** @type {[Element, CallBox]} */ ([group, box]);
        });
        const tip = svg("marker", {id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto"}, svg("path", {d: "M0,0 L8,4 L0,8 z"}));
        const picture = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Functions and who calls whom"}, svg("defs", {}, tip),
                            svg("g", {"class": "edges", "aria-hidden": true}, ...paths.flat()), ...this.groups.map(([group]) => group));
        this.element.replaceChildren(make("p", "dim", left ? `${left} functions below the threshold are not shown.` : ""), picture);
    }
}
