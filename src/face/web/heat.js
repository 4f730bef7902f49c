// SPDX-License-Identifier: BSD-3-Clause
// A matrix of any number of rows as a picture: each cell a bar in a shade, with its number where there is room. The keyboard goes from cell to
// cell; a table beside the canvas, which is not seen, has what is around.
import {make, attributes, named, percent, short, tableHead, onceAFrame} from "./parts.js";
import {brushFor, colourOf, fitted, shadeOf, inkOn} from "./canvas.js";

/** @typedef {{value: number, share: number, ofRow: number}} Cell share of the whole and of its row, in percent */
/**
 * @typedef {object} Matrix
 * @property {number} n rows
 * @property {string[]} columns
 * @property {string} across what columns are: "thread"
 * @property {(row: number) => string} name
 * @property {(row: number) => Map<number, Cell>} cells by column
 * @property {(row: number) => string} note behind the name: its share, how uneven it is
 * @property {(row: number, column: number) => string[]} items the thing of the row, and of the column
 */

const ROW = 22, HEAD = 24, NUMBER = 46, LEAST = 7, AROUND = 6, PRINTED = 64;

export class Heat {
    /**
     * @param {object} options
     * @param {string} options.label
     * @param {(items: string[], event: MouseEvent | KeyboardEvent) => void} options.choose
     * @param {(item: string) => string} options.marks
     * @param {(words: string) => void} options.tell what the cell says that is pointed at
     */
    constructor(options) {
        this.options = options;
        /** @type {Matrix | null} */ this.matrix = null;
        /** @type {Uint32Array} */ this.order = new Uint32Array(0);
        this.isOfRow = true;
        this.most = 100;
        this.at = {row: 0, column: 0};
        this.canvas = make("canvas", "");
        attributes(this.canvas, {"aria-hidden": "true"});
        this.table = make("table", "unseen");
        this.space = make("div", "heat-space", this.canvas);
        this.view = attributes(make("div", "heat-view", this.space, this.table), {role: "application", tabindex: 0, "aria-label": options.label});
        this.element = make("div", "heat-map", this.view);
        this.drawSoon = onceAFrame(() => this.draw());
        this.view.addEventListener("scroll", () => this.drawSoon());
        this.view.addEventListener("keydown", (event) => this.onKey(event));
        this.view.addEventListener("focus", () => this.point());
        this.view.addEventListener("pointermove", (event) => this.onMove(event));
        this.view.addEventListener("click", (event) => this.onClick(event));
        addEventListener("beforeprint", () => this.matrix && this.makeTable(0, PRINTED, 0, PRINTED));
        new ResizeObserver(() => this.drawSoon()).observe(this.view);
    }

    /**
     * @param {Matrix} matrix
     * @param {Uint32Array} order
     * @param {boolean} isOfRow whether shades are parts of the row, or of the whole
     * @param {number} most percent of the darkest
     */
    fill(matrix, order, isOfRow, most) {
        const isNew = matrix !== this.matrix;
        this.matrix = matrix;
        this.order = order;
        this.isOfRow = isOfRow;
        this.most = most || 100;
        if (isNew || this.at.row >= order.length)
            this.at = {row: 0, column: 0};
        this.makeTable(0, 2 * AROUND, 0, 2 * AROUND);
        this.draw();
    }

    /** Where columns begin, and how wide they are. */
    shape() {
        const width = this.view.clientWidth || 600, n = this.matrix ? this.matrix.columns.length : 1;
        const names = Math.round(Math.min(280, Math.max(110, width * 0.3)));
        return {width, height: this.view.clientHeight || 400, names, each: Math.max(LEAST, Math.min(96, (width - names - 2) / Math.max(n, 1)))};
    }

    draw() {
        const matrix = this.matrix;
        if (!matrix)
            return;
        const {width, height, names, each} = this.shape(), n = matrix.columns.length, top = this.view.scrollTop, left = this.view.scrollLeft;
        this.space.style.height = HEAD + this.order.length * ROW + "px";
        this.space.style.width = names + n * each + "px";
        const brush = brushFor(this.canvas, width, height), ink = colourOf("--ink"), dim = colourOf("--dim"), paper = colourOf("--paper");
        const font = getComputedStyle(this.view).fontFamily, first = Math.floor(top / ROW), last = Math.min(this.order.length, first + Math.ceil(height / ROW) + 1);
        const from = Math.floor(left / each), to = Math.min(n, from + Math.ceil((width - names) / each) + 1);
        brush.fillStyle = paper;
        brush.fillRect(0, 0, width, height);
        brush.textBaseline = "middle";
        brush.font = `12px ${font}`;
        for (let at = first; at < last; at++) {
            const row = this.order[at], y = HEAD + at * ROW - top, cells = matrix.cells(row);
            for (let column = from; column < to; column++)
                this.drawCell(brush, names + column * each - left, y, each, cells.get(column));
            brush.fillStyle = paper;
            brush.fillRect(0, y, names, ROW);
            this.drawName(brush, row, y, names, ink, dim);
        }
        this.drawHead(brush, from, to, names, each, left, width);
        if (document.activeElement === this.view && this.order.length) {
            brush.strokeStyle = colourOf("--accent");
            brush.lineWidth = 2.5;
            brush.strokeRect(names + this.at.column * each - left + 1, HEAD + this.at.row * ROW - top + 1, Math.max(each - 2, 4), ROW - 3);
        }
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {number} x
     * @param {number} y
     * @param {number} each
     * @param {Cell | undefined} cell
     */
    drawCell(brush, x, y, each, cell) {
        const value = cell ? (this.isOfRow ? cell.ofRow : cell.share) : 0, part = Math.min(value / this.most, 1), gap = each > 12 ? 1 : 0;
        brush.fillStyle = shadeOf(0);
        brush.fillRect(x, y + 1, each - gap, ROW - 2);
        if (!(value > 0))
            return;
        const shade = shadeOf(part), isWide = each >= NUMBER, high = isWide ? ROW - 2 : Math.max(2, (ROW - 2) * part);
        brush.fillStyle = shade;
        brush.fillRect(x, y + 1 + (ROW - 2 - high), each - gap, high);
        if (isWide) {
            brush.fillStyle = inkOn(shade);
            brush.fillText(value.toFixed(1), x + 5, y + ROW / 2 + 0.5);
        }
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {number} row
     * @param {number} y
     * @param {number} names
     * @param {string} ink
     * @param {string} dim
     */
    drawName(brush, row, y, names, ink, dim) {
        const matrix = /** @type {Matrix} */ (this.matrix), mark = this.options.marks(matrix.items(row, -1)[0]), note = names > 160 ? matrix.note(row) : "", room = brush.measureText(note).width;
        if (mark) {
            brush.fillStyle = colourOf(mark === "related" ? "--related" : "--mark");
            brush.fillRect(0, y, names, ROW);
            brush.fillStyle = colourOf(mark === "related" ? "--edge" : "--accent");
            brush.fillRect(0, y, mark === "active" ? 4 : 2, ROW);
        }
        brush.fillStyle = ink;
        brush.fillText(fitted(brush, matrix.name(row), names - room - 18), 8, y + ROW / 2);
        brush.fillStyle = dim;
        brush.fillText(note, names - room - 5, y + ROW / 2);
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {number} from
     * @param {number} to
     * @param {number} names
     * @param {number} each
     * @param {number} left
     * @param {number} width
     */
    drawHead(brush, from, to, names, each, left, width) {
        const matrix = /** @type {Matrix} */ (this.matrix);
        brush.fillStyle = colourOf("--soft");
        brush.fillRect(0, 0, width, HEAD);
        const widest = Math.max(12, ...matrix.columns.slice(from, to).map((name) => brush.measureText(name).width)), step = Math.max(1, Math.ceil((Math.min(widest, 90) + 8) / each));
        brush.fillStyle = colourOf("--ink");
        for (let column = Math.ceil(from / step) * step; column < to; column += step)
            if (column * each - left >= 0)
                brush.fillText(fitted(brush, matrix.columns[column], each * step - 4), names + column * each - left + 3, HEAD / 2);
        brush.fillStyle = colourOf("--soft");
        brush.fillRect(0, 0, names, HEAD);
        brush.fillStyle = colourOf("--dim");
        brush.fillText(fitted(brush, `${this.order.length} rows, by ${matrix.across}`, names - 12), 8, HEAD / 2);
    }

    /** Says what is in the cell, here and in the table for those who do not see the picture. */
    point() {
        const matrix = this.matrix;
        if (!matrix || !this.order.length)
            return;
        this.options.tell(this.words(this.order[this.at.row], this.at.column));
        this.makeTable(Math.max(0, this.at.row - AROUND), AROUND * 2 + 1, Math.max(0, this.at.column - AROUND), AROUND * 2 + 1);
        this.drawSoon();
    }

    /**
     * @param {number} row
     * @param {number} column
     */
    words(row, column) {
        const matrix = /** @type {Matrix} */ (this.matrix), cell = matrix.cells(row).get(column), where = `${matrix.name(row)}, ${matrix.across} ${matrix.columns[column]}: `;
        return where + (cell ? `${short(cell.value)}, ${percent(cell.share)} of all, ${percent(cell.ofRow)} of the row` : "nothing");
    }

    /**
     * @param {number} first
     * @param {number} n
     * @param {number} from
     * @param {number} m
     */
    makeTable(first, n, from, m) {
        const matrix = /** @type {Matrix} */ (this.matrix), columns = matrix.columns.slice(from, from + m);
        const head = make("tr", "", attributes(make("th", "", matrix.across), {scope: "col"}), ...columns.map((name) => attributes(make("th", "", name), {scope: "col"})));
        const rows = Array.from(this.order.subarray(first, first + n), (row, i) => {
            const cells = matrix.cells(row), line = make("tr", "", attributes(make("th", "", named(matrix.name(row)), " ", matrix.note(row)), {scope: "row"}));
            for (let column = from; column < from + columns.length; column++) {
                const cell = cells.get(column);
                line.append(make("td", "n", cell ? percent(this.isOfRow ? cell.ofRow : cell.share) : ""));
            }
            return attributes(line, {"aria-rowindex": first + i + 2});
        });
        this.table.replaceChildren(make("caption", "", this.options.label), tableHead(head), make("tbody", "", ...rows));
        attributes(this.table, {"aria-rowcount": this.order.length + 1, "aria-colcount": matrix.columns.length + 1});
    }

    /** Shows a cell. */
    reveal() {
        const {width, height, names, each} = this.shape(), y = this.at.row * ROW, x = this.at.column * each, view = this.view;
        view.scrollTop = Math.min(y, Math.max(view.scrollTop, y + ROW + HEAD - height));
        view.scrollLeft = Math.min(x, Math.max(view.scrollLeft, x + each + names - width));
    }

    /**
     * The cell at a place of the page.
     * @param {MouseEvent} event
     */
    cellAt(event) {
        const {names, each} = this.shape(), box = this.view.getBoundingClientRect(), n = this.matrix ? this.matrix.columns.length : 0;
        const x = event.clientX - box.left, y = event.clientY - box.top;
        const row = Math.floor((y - HEAD + this.view.scrollTop) / ROW), column = x < names ? -1 : Math.floor((x - names + this.view.scrollLeft) / each);
        return y >= HEAD && row >= 0 && row < this.order.length && column < n ? {row, column} : null;
    }

    /** @param {PointerEvent} event */
    onMove(event) {
        const cell = this.cellAt(event), matrix = this.matrix;
        if (cell && matrix)
            this.options.tell(cell.column < 0 ? `${matrix.name(this.order[cell.row])} ${matrix.note(this.order[cell.row])}` : this.words(this.order[cell.row], cell.column));
    }

    /** @param {MouseEvent} event */
    onClick(event) {
        const cell = this.cellAt(event);
        if (!cell || !this.matrix)
            return;
        this.at = {row: cell.row, column: Math.max(cell.column, 0)};
        this.options.choose(this.matrix.items(this.order[cell.row], cell.column), event);
        this.point();
    }

    /** @param {KeyboardEvent} event */
    onKey(event) {
        const matrix = this.matrix;
        if (!matrix || !this.order.length || event.altKey || event.metaKey)
            return;
        const page = Math.max(1, Math.floor(this.shape().height / ROW) - 2), {row, column} = this.at, last = this.order.length - 1;
        const target = (/** @type {Record<string, number[]>} */ ({ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1],
                                                                  PageDown: [row + page, column], PageUp: [row - page, column], Home: [event.ctrlKey ? 0 : row, 0],
                                                                  End: [event.ctrlKey ? last : row, matrix.columns.length - 1]}))[event.key];
        if (target) {
            event.preventDefault();
            this.at = {row: Math.max(0, Math.min(target[0], last)), column: Math.max(0, Math.min(target[1], matrix.columns.length - 1))};
            this.reveal();
            this.point();
        } else if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            this.options.choose(matrix.items(this.order[row], column), event);
        }
    }
}
