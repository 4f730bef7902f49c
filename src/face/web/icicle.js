// SPDX-License-Identifier: BSD-3-Clause
// A tree as boxes on a canvas, callees below callers, as wide as they cost. Marks are on a layer of their own, so that a selection does not draw boxes again.
// Beside it a tree of texts, for those who do not see it.
import {make, attributes, printable} from "./parts.js";
import {brushFor, colourOf} from "./canvas.js";

/** @typedef {import("./shape.js").Tree} Tree */

/**
 * @typedef {object} Boxes what the owner of boxes says about them
 * @property {(node: number) => string} label
 * @property {(node: number) => string} words all about it, in a line
 * @property {(node: number) => string} share
 * @property {(node: number) => number} color
 * @property {(node: number) => string} mark "active", "selected", "related", "hit" or ""
 * @property {(node: number, event: MouseEvent | KeyboardEvent) => void} choose
 * @property {(node: number) => void} zoom -1: out
 * @property {(node: number) => void} show the cursor came to it
 * @property {(key: string, node: number) => boolean} press whether it took a key
 */

/** @typedef {{node: number, left: number, top: number, width: number, isWide: boolean}} Box */

const BOX_ROW = 20, LEAST_TEXT = 28, LEAST_BOX = 0.5;
/** Colours of boxes, by their numbers. */
const BOX_COLOURS = ["--box-0", "--box-1", "--box-2", "--box-3", "--box-data", "--box-group", "--box-line"];

export class Icicle {
    /** @param {Boxes} boxes */
    constructor(boxes) {
        this.boxes = boxes;
        this.canvas = make("canvas", "");
        this.layer = make("canvas", "");
        this.space = make("div", "");
        this.items = make("div", "unseen");
        this.view = attributes(make("div", "icicle-view", this.canvas, this.layer), {"aria-hidden": true});
        this.element = attributes(make("div", "icicle", this.view, this.space, this.items), {role: "tree", tabindex: 0, "aria-label": "Graph"});
        /** @type {Tree | null} */ this.tree = null;
        this.x = new Float64Array(0);
        this.middle = 0;
        this.rows = 0;
        this.whole = 1;
        this.zoomed = -1;
        this.at = 0;
        /** @type {Map<number, string>} */ this.labels = new Map();
        this.width = this.height = this.top = 0; // asked after a change, the browser would lay out anew
        /** @type {Box[]} what is in sight, as it was drawn */ this.seen = [];
        this.element.addEventListener("scroll", () => {
            this.top = this.element.scrollTop;
            this.draw();
        });
        this.element.addEventListener("keydown", (event) => this.press(event));
        this.element.addEventListener("focus", () => this.drawMarks());
        this.element.addEventListener("blur", () => this.drawMarks());
        this.view.addEventListener("click", (event) => this.click(event));
        this.view.addEventListener("dblclick", (event) => this.boxes.zoom(this.nodeAt(event)));
        this.view.addEventListener("pointermove", (event) => this.hover(event));
        new ResizeObserver(() => {
            this.width = this.element.clientWidth;
            this.height = this.element.clientHeight;
            this.top = this.element.scrollTop;
            this.draw();
        }).observe(this.element);
    }

    /**
     * @param {Tree} tree
     * @param {number} zoomed
     */
    fill(tree, zoomed) {
        if (tree !== this.tree) {
            this.tree = tree;
            this.layout(tree);
            this.labels.clear();
            this.at = 0;
        }
        this.zoomed = zoomed < tree.n ? zoomed : -1;
        if (this.zoomed >= 0 && !this.isBelow(this.at, this.zoomed))
            this.at = this.zoomed;
        this.space.style.height = this.rows * BOX_ROW + "px";
        this.draw();
        this.describe();
    }

    /** @param {Tree} tree */
    layout(tree) {
        const {n, parent, value, depth, up} = tree, x = new Float64Array(n), cursor = new Float64Array(n);
        let root = 0, above = 0, highest = 0, lowest = 0;
        for (let i = 0; i < n; i++) {
            const p = parent[i];
            if (p < 0) {
                x[i] = root;
                root += value[i];
            } else if (up && up[i] && !up[p]) {
                x[i] = x[p] + above;
                above += value[i];
            } else {
                x[i] = cursor[p];
                cursor[p] += value[i];
            }
            cursor[i] = x[i];
            if (up && up[i])
                highest = Math.max(highest, depth[i]);
            else
                lowest = Math.max(lowest, depth[i]);
        }
        this.x = x;
        this.middle = highest;
        this.rows = n ? highest + lowest + 1 : 0;
        this.whole = up ? root : Math.max(tree.total, root);
    }

    /** @param {number} node */
    rowOf(node) {
        const {depth, up} = /** @type {Tree} */ (this.tree);
        return up && up[node] ? this.middle - depth[node] : this.middle + depth[node];
    }

    /**
     * @param {number} node
     * @param {number} root
     */
    isBelow(node, root) {
        return root < 0 || (node >= root && node < /** @type {Tree} */ (this.tree).end[root]);
    }

    /** From where to where boxes are shown. */
    get range() {
        return this.zoomed < 0 ? [0, this.whole || 1] : [this.x[this.zoomed], this.x[this.zoomed] + /** @type {Tree} */ (this.tree).value[this.zoomed]];
    }

    /** Finds the boxes that are wide enough and in sight; of narrower ones only the first at each pixel, with a width of 1. */
    find() {
        const tree = /** @type {Tree} */ (this.tree), {n, value, end, depth, up, hidden} = tree, {x, width: w, height: h, top} = this;
        const [lo, hi] = this.range, scale = w / (hi - lo), last = new Int32Array(this.rows).fill(-1);
        this.seen = [];
        for (let i = 0; i < n;) {
            const left = (x[i] - lo) * scale, width = value[i] * scale;
            if (left >= w || left + width <= 0 || (hidden && hidden[i])) {
                i = end[i];
                continue;
            }
            const isUp = up && up[i], row = isUp ? this.middle - depth[i] : this.middle + depth[i], y = row * BOX_ROW - top;
            if (width < LEAST_BOX) {
                const pixel = Math.floor(left);
                if (last[row] < pixel && y > -BOX_ROW && y < h)
                    this.seen.push({node: i, left: pixel, top: y, width: 1, isWide: false});
                last[row] = Math.max(pixel, last[row]);
                i = end[i];
            } else if (!isUp && y >= h && !up) {
                i = end[i];
            } else {
                if (y > -BOX_ROW && y < h)
                    this.seen.push({node: i, left: Math.max(left, 0), top: y, width: Math.min(left + width, w) - Math.max(left, 0), isWide: true});
                i++;
            }
        }
    }

    draw() {
        if (!this.tree || !this.width)
            return;
        this.find();
        const {boxes} = this, {key} = this.tree, pen = brushFor(this.canvas, this.width, this.height), colors = BOX_COLOURS.map(colourOf);
        pen.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
        pen.textBaseline = "middle";
        const letter = pen.measureText("m").width, narrow = colourOf("--edge");
        /** @type {[number, number, number, number][]} */ const texts = [];
        for (const {node, left, top, width, isWide} of this.seen) {
            pen.fillStyle = isWide ? colors[boxes.color(node)] : narrow;
            pen.fillRect(left, top, width > 3 ? width - 1 : width, BOX_ROW - 1);
            if (width >= LEAST_TEXT)
                texts.push([node, left, top, width]);
        }
        pen.fillStyle = colourOf("--box-ink");
        for (const [node, left, top, width] of texts) {
            let label = this.labels.get(key[node]);
            if (label === undefined)
                this.labels.set(key[node], label = printable(boxes.label(node)));
            const room = Math.floor((width - 8) / letter), share = boxes.share(node);
            pen.fillText(label.length > room ? label.slice(0, Math.max(room - 1, 0)) + "\u2026" : label, left + 4, top + BOX_ROW / 2);
            if (room > label.length + share.length + 1)
                pen.fillText(share, left + width - 6 - letter * share.length, top + BOX_ROW / 2);
        }
        this.drawMarks();
    }

    drawMarks() {
        if (!this.tree || !this.width)
            return;
        const {boxes} = this, pen = brushFor(this.layer, this.width, this.height), isFocused = document.activeElement === this.element;
        for (const {node, left, top, width, isWide} of this.seen) {
            const mark = isWide ? boxes.mark(node) : "";
            if (mark === "related" || mark === "hit") {
                pen.strokeStyle = colourOf("--ink");
                pen.lineWidth = 1;
                pen.beginPath();
                // Strokes from corner to corner for what was searched for, a dotted line below for what belongs to the thing.
                if (mark === "hit")
                    for (let at = left + 2; at < left + width - 6; at += 9) {
                        pen.moveTo(at, top + BOX_ROW - 2);
                        pen.lineTo(at + 4, top + BOX_ROW - 6);
                    }
                pen.setLineDash(mark === "hit" ? [] : [2, 2]);
                pen.strokeRect(left + 1, top + 1, Math.max(width - 3, 1), BOX_ROW - 3);
                pen.stroke();
            } else if (mark) {
                pen.setLineDash([]);
                pen.lineWidth = mark === "active" ? 3 : 2;
                pen.strokeStyle = colourOf("--accent");
                pen.strokeRect(left + 1, top + 1, Math.max(width - 3, 1), BOX_ROW - 3);
            }
            if (node === this.at && isFocused) {
                pen.setLineDash([4, 3]);
                pen.lineWidth = 2;
                pen.strokeStyle = colourOf("--ink");
                pen.strokeRect(left + 1, top + 1, Math.max(width - 3, 1), BOX_ROW - 3);
            }
        }
    }

    /**
     * The node at a place on the page, -1: none.
     * @param {MouseEvent} event
     */
    nodeAt(event) {
        const box = this.canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top + this.top) / BOX_ROW), px = event.clientX - box.left;
        return this.seen.filter(({node, left, width}) => px >= left && px < left + width && this.rowOf(node) === row).pop()?.node ?? -1;
    }

    /** @param {MouseEvent} event */
    click(event) {
        const node = this.nodeAt(event);
        if (node < 0)
            return;
        this.element.focus({preventScroll: true});
        this.moveTo(node);
        this.boxes.choose(node, event);
    }

    /** @param {MouseEvent} event */
    hover(event) {
        const node = this.nodeAt(event);
        attributes(this.view, {title: node < 0 ? null : this.boxes.words(node)});
    }

    /** @param {number} node */
    moveTo(node) {
        this.at = node;
        const top = this.rowOf(node) * BOX_ROW;
        if (top < this.top || top + BOX_ROW > this.top + this.height)
            this.element.scrollTop = Math.max(top - this.height / 2, 0);
        this.describe();
        this.drawMarks();
        this.boxes.show(node);
    }

    /**
     * The children of a node: those that are above it, or those below.
     * @param {number} node
     * @param {boolean} [isUp]
     */
    childrenOf(node, isUp) {
        const {end, n, up, hidden} = /** @type {Tree} */ (this.tree), all = [];
        for (let i = node + 1, last = node < 0 ? n : end[node]; i < last; i = end[i])
            if (!(hidden && hidden[i]) && (!up || node !== 0 || Boolean(up[i]) === Boolean(isUp)))
                all.push(i);
        return all;
    }

    /** @param {number} node */
    siblingsOf(node) {
        const {parent, up} = /** @type {Tree} */ (this.tree);
        return this.childrenOf(parent[node], Boolean(up && up[node]));
    }

    /** @param {KeyboardEvent} event */
    press(event) {
        const tree = this.tree;
        if (!tree || !tree.n || event.ctrlKey && event.key !== "Enter" || event.metaKey || event.altKey)
            return;
        const isUp = Boolean(tree.up && tree.up[this.at]), siblings = this.siblingsOf(this.at), place = siblings.indexOf(this.at);
        const farther = this.childrenOf(this.at, isUp)[0], nearer = tree.parent[this.at];
        const to = (/** @type {Record<string, number | undefined>} */ ({
            ArrowDown: isUp ? nearer : farther, ArrowUp: isUp ? farther : this.at === 0 && tree.up ? this.childrenOf(0, true)[0] : nearer,
            ArrowLeft: siblings[place - 1], ArrowRight: siblings[place + 1], Home: Math.max(this.zoomed, 0), End: siblings[siblings.length - 1]}))[event.key];
        let isTaken = true;
        if (to !== undefined && to >= 0)
            this.moveTo(to);
        else if (event.key === "Enter" || event.key === " ")
            this.boxes.choose(this.at, event);
        else if (event.key === "z" || event.key === "Z")
            this.boxes.zoom(this.at);
        else if (event.key === "Escape" && this.zoomed >= 0)
            this.boxes.zoom(-1);
        else
            isTaken = /^(Arrow|Home|End)/.test(event.key) || this.boxes.press(event.key.toLowerCase(), this.at);
        if (isTaken) {
            event.preventDefault();
            event.stopPropagation();
        }
    }

    /** The tree of texts around the cursor: what is above it, beside it and below it. */
    describe() {
        const tree = this.tree, AROUND = 20;
        if (!tree || !tree.n) {
            this.items.replaceChildren(attributes(make("div", "", "nothing"), {role: "treeitem"}));
            return;
        }
        const above = [], isUp = Boolean(tree.up && tree.up[this.at]);
        for (let at = tree.parent[this.at]; at >= 0 && above.length < AROUND; at = tree.parent[at])
            above.unshift(at);
        const siblings = this.siblingsOf(this.at), first = Math.max(siblings.indexOf(this.at) - AROUND / 2, 0);
        const below = this.childrenOf(this.at, isUp).slice(0, AROUND);
        const some = siblings.slice(first, first + AROUND), split = some.indexOf(this.at) + 1;
        /** @type {Map<number, number[]>} */ const families = new Map();
        this.items.replaceChildren(...[...above, ...some.slice(0, split), ...below, ...some.slice(split)].map((node) => {
            const place = 2 * tree.parent[node] + (tree.up && tree.up[node] ? 1 : 0), of = families.get(place) || this.siblingsOf(node);
            families.set(place, of);
            return attributes(make("div", "", this.boxes.words(node)), {role: "treeitem", id: "box-" + node, "aria-level": tree.depth[node] + 1, "aria-posinset": of.indexOf(node) + 1,
                "aria-setsize": of.length, "aria-selected": this.boxes.mark(node) === "active", "aria-expanded": tree.end[node] > node + 1 ? true : null});
        }));
        attributes(this.element, {"aria-activedescendant": "box-" + this.at});
    }

    /** Draws marks again, after a selection or a search. */
    mark() {
        this.drawMarks();
        for (const item of this.items.children)
            attributes(item, {"aria-selected": this.boxes.mark(Number(item.id.slice(4))) === "active"});
    }
}
