// SPDX-License-Identifier: BSD-3-Clause
// A table of any length: only the rows that can be seen are in the page. It is sorted by numbers that each column has, in orders that are kept;
// the keyboard reaches everything.
import {make, attributes, button, onceAFrame} from "./parts.js";

/**
 * @typedef {object} GridColumn
 * @property {string} key
 * @property {string} title
 * @property {string} [help]
 * @property {string} [classes] "n" is aligned to the right
 * @property {string} [width] of the grid's template: "6rem", "minmax(8rem, 1fr)"
 * @property {ArrayLike<number>} ranks [n] by which rows are sorted; NaN comes last
 * @property {boolean} [isText] sorted upwards at first
 * @property {(row: number) => import("./parts.js").Child} cell
 */

/**
 * The numbers below one.
 * @param {number} n
 */
function upTo(n) {
    const all = new Uint32Array(n);
    for (let i = 0; i < n; i++)
        all[i] = i;
    return all;
}

/**
 * Rows by their ranks, equal ones in the order that they have, NaN last: a radix sort of the doubles' bits, 16 at a time, which knows no slow case.
 * @param {ArrayLike<number>} ranks
 * @param {number} n
 * @param {boolean} falls the largest first
 * @returns {Uint32Array}
 */
export function orderOf(ranks, n, falls) {
    const doubles = new Float64Array(n), words = new Uint32Array(doubles.buffer);
    for (let i = 0; i < n; i++)
        doubles[i] = ranks[i];
    for (let i = 0; i < n; i++) {
        const isNegative = words[2 * i + 1] & 0x80000000, isKnown = !Number.isNaN(ranks[i]);
        const low = isNegative ? ~words[2 * i] : words[2 * i], high = isNegative ? ~words[2 * i + 1] : words[2 * i + 1] | 0x80000000;
        words[2 * i] = isKnown ? (falls ? ~low : low) : 0xffffffff;
        words[2 * i + 1] = isKnown ? (falls ? ~high : high) : 0xffffffff;
    }
    const halves = new Uint16Array(words.buffer), starts = new Uint32Array(65537);
    let from = upTo(n), to = new Uint32Array(n);
    for (let pass = 0; pass < 4; pass++) {
        starts.fill(0);
        for (let i = 0; i < n; i++)
            starts[halves[4 * i + pass] + 1]++;
        if (starts[halves[pass] + 1] === n)
            continue;
        for (let i = 1; i < 65537; i++)
            starts[i] += starts[i - 1];
        for (let i = 0; i < n; i++)
            to[starts[halves[4 * from[i] + pass]]++] = from[i];
        [from, to] = [to, from];
    }
    return from;
}

export class Grid {
    /**
     * @param {object} options
     * @param {string} options.label what the rows are
     * @param {(row: number, event: MouseEvent | KeyboardEvent) => void} options.choose
     * @param {(row: number) => string} [options.marks] classes of a row: "active", "selected", "related"
     * @param {number} [options.height] of a row, in pixels
     * @param {(order: Uint32Array) => Uint32Array} [options.regroup] puts rows of groups into an order
     * @param {(sort: string) => void} [options.onSort] the order is somebody else's; told "KEY" or "-KEY"
     */
    constructor(options) {
        this.options = options;
        this.height = options.height || 26;
        /** @type {GridColumn[]} */ this.columns = [];
        this.n = 0;
        this.sort = "";
        /** @type {Map<string, Uint32Array>} */ this.orders = new Map();
        /** @type {Uint32Array} */ this.order = new Uint32Array(0);
        /** @type {((row: number) => boolean) | null} */ this.keeps = null;
        this.at = 0; // position of the row that the keyboard is at
        this.head = attributes(make("div", "grid-head"), {role: "row"});
        this.space = make("div", "grid-space");
        const body = attributes(make("div", "grid-body", this.space), {role: "rowgroup"});
        this.element = attributes(make("div", "grid", attributes(make("div", "grid-roof", this.head), {role: "rowgroup"}), body), {role: "grid", tabindex: "0", "aria-label": options.label});
        this.drawSoon = onceAFrame(() => this.draw());
        this.top = 0;     // where it is scrolled to, and how high it is: asked after a change, the browser would lay out anew
        this.visible = 0; // 0: not known yet
        this.isLoud = false; // how it went to where it is
        this.roof = 0;
        this.element.addEventListener("scroll", () => {
            this.top = this.element.scrollTop;
            this.drawSoon();
        });
        this.element.addEventListener("keydown", (event) => this.onKey(event));
        body.addEventListener("click", (event) => this.onClick(event));
        new ResizeObserver(() => {
            const isNew = !this.visible;
            this.visible = this.element.clientHeight;
            this.roof = this.head.offsetHeight;
            this.top = this.element.scrollTop; // what was hidden could not be scrolled
            if (isNew && this.visible && this.order.length)
                this.moveTo(this.at, !this.isLoud);
            this.drawSoon();
        }).observe(this.element);
    }

    /**
     * Other rows.
     * @param {GridColumn[]} columns
     * @param {number} n
     */
    fill(columns, n) {
        this.columns = columns;
        this.n = n;
        this.orders.clear();
        const template = columns.map((column) => column.width || "minmax(4.5rem, auto)").join(" ");
        this.element.style.setProperty("--columns", template);
        attributes(this.element, {"aria-colcount": columns.length});
        this.head.replaceChildren(...columns.map((column, i) => {
            const title = button("", () => this.sortBy(column));
            title.title = column.help || "Sort by this";
            return attributes(make("div", column.classes || "", title), {role: "columnheader", "aria-colindex": i + 1});
        }));
        this.arrange(this.sort, null); // what was kept were other rows
    }

    /**
     * Another order, or other rows that are kept.
     * @param {string} sort
     * @param {((row: number) => boolean) | null} keeps
     */
    arrange(sort, keeps) {
        const key = sort.replace(/^-/, ""), column = this.columns.find((each) => each.key === key);
        this.sort = column ? sort : "";
        this.keeps = keeps;
        const whole = column ? this.orderBy(column, sort.startsWith("-")) : this.plain();
        const kept = keeps ? whole.filter(keeps) : whole;
        this.order = this.options.regroup ? this.options.regroup(kept) : kept;
        attributes(this.element, {"aria-rowcount": this.order.length + 1});
        this.space.style.height = this.order.length * this.height + "px";
        this.at = Math.min(this.at, Math.max(this.order.length - 1, 0));
        this.drawHead();
        this.draw();
    }

    plain() {
        return upTo(this.n);
    }

    /**
     * @param {GridColumn} column
     * @param {boolean} falls
     */
    orderBy(column, falls) {
        const name = (falls ? "-" : "") + column.key;
        let order = this.orders.get(name);
        if (!order) {
            order = orderOf(column.ranks, this.n, falls);
            this.orders.set(name, order);
        }
        return order;
    }

    /** The titles stay, so that the keyboard stays where it is. */
    drawHead() {
        this.columns.forEach((column, i) => {
            const isThis = this.sort.replace(/^-/, "") === column.key, falls = this.sort.startsWith("-"), place = this.head.children[i];
            const title = /** @type {HTMLElement} */ (place.firstChild), text = column.title + (isThis ? (falls ? " \u25be" : " \u25b4") : "");
            if (title.textContent !== text)
                title.textContent = text;
            attributes(/** @type {HTMLElement} */ (place), {"aria-sort": isThis ? (falls ? "descending" : "ascending") : "none"});
        });
    }

    /** @param {GridColumn} column */
    sortBy(column) {
        const falls = this.sort === column.key || (this.sort !== "-" + column.key && !column.isText);
        const sort = (falls ? "-" : "") + column.key, at = this.columns.indexOf(column);
        if (this.options.onSort)
            this.options.onSort(sort);
        else
            this.arrange(sort, this.keeps);
        const title = /** @type {HTMLElement | undefined} */ (this.head.children[at]?.firstChild);
        if (document.activeElement !== title) // it is asked for where it is not: the browser would lay out at once
            title?.focus();
    }

    draw() {
        const first = Math.max(0, Math.floor(this.top / this.height) - 4);
        const last = Math.min(this.order.length, first + Math.ceil((this.visible || 600) / this.height) + 9);
        const rows = [];
        for (let at = first; at < last; at++)
            rows.push(this.makeRow(at));
        this.space.replaceChildren(...rows);
        this.pointAt();
    }

    /** @param {number} at */
    idOf(at) {
        return `${this.options.label.replace(/\W/g, "-")}-${at}`;
    }

    /** @param {number} at its position */
    makeRow(at) {
        const row = this.order[at], marks = this.options.marks ? this.options.marks(row) : "";
        const element = make("div", "grid-row " + marks + (at === this.at ? " at" : ""));
        attributes(element, {role: "row", id: this.idOf(at), "aria-rowindex": at + 2, "aria-selected": /\b(active|selected)\b/.test(marks)});
        element.dataset.row = String(row);
        element.style.transform = `translateY(${at * this.height}px)`;
        for (const column of this.columns)
            element.append(attributes(make("div", column.classes || "", column.cell(row)), {role: "gridcell"}));
        return element;
    }

    /** Only the marks changed: no row is made anew. */
    mark() {
        for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.space.querySelectorAll(".grid-row"))) {
            const marks = this.options.marks ? this.options.marks(Number(element.dataset.row)) : "";
            const classes = "grid-row " + marks + (element.id === this.idOf(this.at) ? " at" : "");
            if (element.className === classes)
                continue;
            element.className = classes;
            attributes(element, {"aria-selected": /\b(active|selected)\b/.test(marks)});
        }
        this.pointAt();
    }

    /** Tells those who do not see the page which row the keyboard is at, if it is in the page. */
    pointAt() {
        const id = this.idOf(this.at);
        attributes(this.element, {"aria-activedescendant": this.space.querySelector("#" + CSS.escape(id)) ? id : null});
    }

    /**
     * Moves to a row and shows it.
     * @param {number} row
     * @param {boolean} [isQuiet] without scrolling when it can be seen
     */
    show(row, isQuiet = true) {
        const at = this.order.indexOf(row);
        if (at >= 0)
            this.moveTo(at, isQuiet);
    }

    /**
     * @param {number} at
     * @param {boolean} [isQuiet]
     */
    moveTo(at, isQuiet = true) {
        this.at = at;
        this.isLoud = !isQuiet;
        if (!this.visible) { // shown when it is known how high it is
            this.drawSoon();
            return;
        }
        const top = at * this.height, room = this.visible - this.roof;
        if (!isQuiet || top < this.top)
            this.scrollTo(Math.max(0, top - (isQuiet ? 0 : room / 3)));
        else if (top + this.height > this.top + room)
            this.scrollTo(top + this.height - room);
        if (this.space.querySelector("#" + CSS.escape(this.idOf(at))))
            this.mark();
        else
            this.draw();
    }

    /** @param {number} top */
    scrollTo(top) {
        this.element.scrollTop = top;
        this.top = top;
    }

    /** @param {KeyboardEvent} event */
    onKey(event) {
        if (event.altKey || event.metaKey || !this.order.length || /** @type {HTMLElement} */ (event.target).closest("button"))
            return;
        const page = Math.max(1, Math.floor((this.visible - this.roof) / this.height) - 1);
        const last = this.order.length - 1;
        const target = (/** @type {Record<string, number>} */ ({ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: last}))[event.key];
        if (target !== undefined) {
            event.preventDefault();
            this.moveTo(Math.min(Math.max(target, 0), last));
        } else if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            this.options.choose(this.order[this.at], event);
        }
    }

    /** @param {MouseEvent} event */
    onClick(event) {
        const element = /** @type {HTMLElement} */ (event.target).closest(".grid-row");
        if (!(element instanceof HTMLElement) || /** @type {HTMLElement} */ (event.target).closest("button, a"))
            return;
        this.at = Number(element.getAttribute("aria-rowindex")) - 2;
        this.options.choose(Number(element.dataset.row), event);
        this.mark();
    }
}
