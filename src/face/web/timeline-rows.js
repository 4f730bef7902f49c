// SPDX-License-Identifier: BSD-3-Clause
// The rows of the time line: their names, what they did as a picture on a canvas, and on a layer above it markers, pointer and choice. Beside the canvas a table of
// what it shows, for those who do not see it.
import {make, attributes, button, named, percent, size, tableHead, onceAFrame} from "./parts.js";
import {brushFor, colourOf, fitted, inkOn} from "./canvas.js";
import {blockHeight, blocksOf, clockText, inkFor, isOff, memoryOf, rowSizes, rowTop, spanText, timeWords, wantTime, windowNow, wordsWanted, LOST, PREEMPTED, SAMPLE, TWIN, WOKEN} from "./timeline-model.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./timeline-model.js").Picture} Picture */
/** @typedef {{from: number, to: number}} Span */

/**
 * @typedef {object} RowsOwner what the owner of rows does with what people do
 * @property {(from: number, to: number) => void} go to another window
 * @property {(row: number, at: number) => void} choose
 * @property {(from: number, to: number) => void} measure
 * @property {(words: string) => void} tell
 * @property {() => void} scrolled
 * @property {(picture: Picture) => string} only the name of the key that is not grey, "" for all
 */

const NAMES = 150, NAMES_NARROW = 92, LEAST_LABEL = 46, DRAG = 4, TICK_SHADE = 0.55, OVER_BOX = 0.45;
/** A box that waits is hollow: green from waking to running, red while another task has the CPU. */
const HOLLOW = {woken: "#1f8a3b", preempted: "#d0312d"};

export class TimeRows {
    /** @param {RowsOwner} owner */
    constructor(owner) {
        this.owner = owner;
        /** @type {Answer | null} */ this.streams = null;
        /** @type {number[]} */ this.rows = [];
        /** @type {Span} */ this.span = {from: 0, to: 1};
        /** @type {Picture[]} */ this.pictures = [];
        this.width = this.height = this.top = 0;
        this.pointer = NaN;
        this.rowKey = ""; // the same of rows
        this.nSeats = 0;
        this.nameKey = ""; // what names are made of: other windows have the same
        /** @type {import("./timeline-panel.js").Arrow | null} */ this.arrow = null;
        /** @type {import("./timeline-panel.js").Arrow | null} */ this.twin = null;
        /** @type {{x: number, now: number, isShift: boolean, id: number} | null} */ this.drag = null;
        this.canvas = attributes(make("canvas", ""), {"aria-hidden": true});
        this.layer = attributes(make("canvas", ""), {"aria-hidden": true});
        this.names = make("div", "time-names");
        this.table = make("table", "unseen");
        this.sheet = make("div", "time-sheet", this.canvas, this.layer);
        this.space = make("div", "time-space", this.names);
        this.view = attributes(make("div", "time-view", this.sheet, this.space, this.table), {role: "application", tabindex: 0, "aria-label": "Time line"});
        this.blocks = make("div", "time-blocks");
        this.tree = attributes(make("div", "time-tree", this.blocks), {role: "group", "aria-label": "Topology", tabindex: 0});
        this.drawSoon = onceAFrame(() => this.draw());
        this.drawLayerSoon = onceAFrame(() => this.drawLayer());
        this.view.addEventListener("scroll", () => {
            this.top = this.view.scrollTop;
            this.drawSoon();
            this.owner.scrolled();
        });
        this.view.addEventListener("wheel", (event) => this.onWheel(event), {passive: false});
        this.tree.addEventListener("wheel", (event) => event.deltaX === 0 && event.preventDefault(), {passive: false});
        this.view.addEventListener("pointerdown", (event) => this.onDown(event));
        this.view.addEventListener("pointermove", (event) => this.onMove(event));
        this.view.addEventListener("pointerup", (event) => this.onUp(event));
        this.view.addEventListener("pointercancel", () => this.endDrag());
        this.view.addEventListener("pointerleave", () => {
            this.pointer = NaN;
            this.drawLayerSoon();
        });
        for (const name of ["focus", "blur"])
            this.view.addEventListener(name, () => this.drawLayerSoon());
        new ResizeObserver(() => {
            const {clientWidth, clientHeight, scrollTop} = this.view, isOther = clientWidth !== this.width;
            this.width = clientWidth;
            this.height = clientHeight;
            this.top = scrollTop;
            this.drawSoon();
            if (isOther)
                this.owner.scrolled();
        }).observe(this.view);
    }

    get nameWidth() {
        return this.width < 480 ? NAMES_NARROW : NAMES;
    }

    /** Pixels that time has. */
    get room() {
        return Math.max(this.width - this.nameWidth, 1);
    }

    /**
     * @param {Answer} streams
     * @param {number[]} rows
     */
    fill(streams, rows) {
        const key = [isOff("tree"), isOff("compact"), timeWords().pin.length, rows].join(" ");
        if (key === this.rowKey && streams === this.streams && (streams.head.topology || []).length === this.nSeats)
            return;
        this.rowKey = key;
        this.nSeats = (streams.head.topology || []).length;
        this.nameKey = "";
        this.streams = streams;
        this.rows = rows;
        this.space.style.height = (rows.length ? rowTop(rows.length - 1) + rowSizes().H + rowSizes().S / 2 : 0) + "px";
        this.drawTree();
        this.drawSoon();
    }

    /**
     * Rows that can be seen, as places.
     * @returns {[number, number]}
     */
    get inSight() {
        const {H, S} = rowSizes();
        return [Math.max(0, Math.floor((this.top - S / 2) / (H + S))), Math.min(this.rows.length, Math.ceil((this.top + this.height) / (H + S)) + 1)];
    }

    /** @param {number} t */
    xOf(t) {
        return ((t - this.span.from) * this.room) / (this.span.to - this.span.from);
    }

    /** @param {number} x */
    timeAt(x) {
        return this.span.from + (x * (this.span.to - this.span.from)) / this.room;
    }

    // --- drawing -------------------------------------------------------------------------------------------------------

    draw() {
        if (!this.streams || !this.width)
            return;
        const {H} = rowSizes(), [first, last] = this.inSight, brush = brushFor(this.canvas, this.room, this.height), {hide} = timeWords();
        this.sheet.style.marginLeft = this.nameWidth + "px";
        this.blocks.style.transform = `translateY(${-this.top}px)`;
        brush.fillStyle = colourOf("--paper");
        brush.fillRect(0, 0, this.room, this.height);
        brush.font = "12px system-ui, 'DejaVu Sans', sans-serif";
        brush.textBaseline = "middle";
        for (let place = first; place < last; place++) {
            const y = rowTop(place) - this.top;
            brush.fillStyle = colourOf("--track");
            brush.fillRect(0, y + H - 1, this.room, 1);
            const picture = this.pictures.find((each) => each.rows.has(this.rows[place]));
            if (picture)
                this.drawRow(brush, picture, this.rows[place], y, H, this.owner.only(picture));
        }
        this.drawNames(first, last, hide);
        this.drawLayer();
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {Picture} of
     * @param {number} row
     * @param {number} y
     * @param {number} H
     * @param {string} only
     */
    drawRow(brush, of, row, y, H, only) {
        const [begin, end] = /** @type {[number, number]} */ (of.rows.get(row)), scale = ((of.to - of.from) / of.width) * this.room / (this.span.to - this.span.from), start = this.xOf(of.from), half = H / 2;
        const grey = colourOf("--track"), ink = colourOf("--ink");
        for (let i = begin; i < end; i++) {
            const x = start + of.x[i] * scale, w = Math.max(of.n[i] * scale, 1);
            if (x + w < 0 || x > this.room)
                continue;
            const key = of.keys[of.key[i]], isGrey = only !== "" && key?.name !== only, high = Math.max((half * of.run[i]) / 255, Math.min(3, half));
            if (of.unknown[i])
                this.dot(brush, x, y + half, w, half);
            if (of.run[i]) {
                brush.fillStyle = isGrey || !key ? grey : key.colour;
                brush.fillRect(x, y + H - high, w, high);
            }
            if (of.wait[i])
                this.drawWait(brush, x, y + half, w, half, of.flags[i]);
            if (of.events[i]) {
                const wide = of.n[i] > 1 ? w : Math.min(w, 1), shade = of.n[i] * scale > 1.5 && of.n[i] > 1 ? TICK_SHADE / 2 : Math.min(TICK_SHADE + of.events[i] / 20, 1);
                brush.fillStyle = ink;
                brush.globalAlpha = shade;
                brush.fillRect(x, y, wide, half);
                brush.globalAlpha = shade * OVER_BOX; // the colour of the box is seen through it
                brush.fillRect(x, y + half, wide, half);
                brush.globalAlpha = 1;
            }
            if (of.run[i] && key && w >= LEAST_LABEL && H > 20) {
                brush.fillStyle = isGrey ? colourOf("--dim") : inkOn(key.colour);
                brush.fillText(fitted(brush, key.name, w - 8), Math.max(x, 0) + 4, y + H - half / 2);
            }
            if (of.flags[i])
                this.drawFlags(brush, x, y, w, H, of.flags[i]);
        }
    }

    /**
     * What is not known: dots, which stand for neither work nor rest.
     * @param {CanvasRenderingContext2D} brush
     * @param {number} x
     * @param {number} y
     * @param {number} w
     * @param {number} h
     */
    dot(brush, x, y, w, h) {
        brush.fillStyle = colourOf("--edge");
        for (let at = Math.max(Math.ceil(x / 4) * 4, 0), last = Math.min(x + w, this.room); at < last; at += 4)
            for (let line = 2; line < h; line += 4)
                brush.fillRect(at, y + line + ((at / 4) % 2) * 2, 1, 1);
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {number} x
     * @param {number} y
     * @param {number} w
     * @param {number} h
     * @param {number} flags
     */
    drawWait(brush, x, y, w, h, flags) {
        const colour = flags & PREEMPTED ? HOLLOW.preempted : flags & WOKEN ? HOLLOW.woken : colourOf("--edge"), left = Math.max(x, -2), right = Math.min(x + w, this.room + 2);
        if (right - left < 3) {
            brush.fillStyle = colour;
            brush.fillRect(left, y, right - left, 1);
            brush.fillRect(left, y + h - 2, right - left, 1);
            return;
        }
        brush.strokeStyle = colour;
        brush.lineWidth = 1.5;
        brush.setLineDash(flags & PREEMPTED ? [4, 2] : []);
        brush.strokeRect(left + 0.75, y + 0.75, right - left - 1.5, h - 2.5);
        brush.setLineDash([]);
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {number} x
     * @param {number} y
     * @param {number} w
     * @param {number} H
     * @param {number} flags
     */
    drawFlags(brush, x, y, w, H, flags) {
        if (flags & LOST) {
            brush.strokeStyle = colourOf("--memory");
            brush.lineWidth = 1;
            brush.beginPath();
            for (let at = -H; at < Math.max(w, 4); at += 5) {
                brush.moveTo(x + Math.max(at, 0), y + H - Math.max(-at, 0));
                brush.lineTo(x + Math.min(at + H, Math.max(w, 4)), y + Math.max(at + H - Math.max(w, 4), 0));
            }
            brush.stroke();
        }
        if (flags & SAMPLE) {
            brush.fillStyle = colourOf("--accent");
            brush.beginPath();
            brush.moveTo(x - 2.5, y);
            brush.lineTo(x + 3.5, y);
            brush.lineTo(x + 0.5, y + 5);
            brush.fill();
        }
        if (flags & TWIN) {
            brush.fillStyle = colourOf("--accent");
            for (let line = 1; line < H / 2; line += 4)
                brush.fillRect(x, y + line, 1, 2);
        }
    }

    /** @param {import("./timeline-panel.js").Arrow | null} arrow from who woke the choice */
    point(arrow) {
        this.arrow = arrow;
        this.drawLayerSoon();
    }

    /** @param {import("./timeline-panel.js").Arrow | null} twin from the origin of a twin to it */
    join(twin) {
        this.twin = twin;
        this.drawLayerSoon();
    }

    /**
     * @param {CanvasRenderingContext2D} brush
     * @param {import("./timeline-panel.js").Arrow | null} arrow
     * @param {number} wide
     */
    drawArrow(brush, arrow, wide) {
        const {H} = rowSizes(), from = this.rows.indexOf(arrow?.row ?? -1), to = this.rows.indexOf(arrow?.toRow ?? -1);
        if (!arrow || from < 0 || to < 0)
            return;
        const x = this.xOf(arrow.at), y = rowTop(from) - this.top + H / 2, right = this.xOf(arrow.to), down = rowTop(to) - this.top + H / 2, turn = Math.atan2(down - y, right - x);
        brush.strokeStyle = brush.fillStyle = colourOf("--ink");
        brush.lineWidth = wide;
        brush.beginPath();
        brush.moveTo(x, y);
        brush.lineTo(right, down);
        brush.stroke();
        brush.beginPath();
        brush.moveTo(right, down);
        for (const side of [-0.4, 0.4])
            brush.lineTo(right - 9 * Math.cos(turn + side), down - 9 * Math.sin(turn + side));
        brush.fill();
    }

    drawLayer() {
        if (!this.width || !this.streams)
            return;
        const brush = brushFor(this.layer, this.room, this.height), {a, b, on, row, at} = timeWords(), {H} = rowSizes();
        brush.font = "bold 12px system-ui, sans-serif";
        brush.textBaseline = "top";
        const line = (/** @type {number} */ t, /** @type {string} */ colour, /** @type {string} */ name, /** @type {number[]} */ dash) => {
            const x = Math.round(this.xOf(t)) + 0.5;
            if (Number.isNaN(t) || x < -20 || x > this.room + 20)
                return;
            brush.strokeStyle = brush.fillStyle = colour;
            brush.lineWidth = name === on.toUpperCase() ? 2 : 1;
            brush.setLineDash(dash);
            brush.beginPath();
            brush.moveTo(x, 0);
            brush.lineTo(x, this.height);
            brush.stroke();
            brush.fillText(name, x + 3, 1);
        };
        line(this.pointer, colourOf("--edge"), "", [2, 3]);
        line(a, colourOf("--marker-a"), "A", []);
        line(b, colourOf("--marker-b"), "B", [6, 3]);
        brush.setLineDash([]);
        const place = this.rows.indexOf(row);
        if (place >= 0) {
            const y = rowTop(place) - this.top;
            brush.strokeStyle = colourOf("--accent");
            brush.lineWidth = 1.5;
            brush.strokeRect(0.75, y - 3, this.room - 1.5, H + 6);
            if (!Number.isNaN(at)) {
                brush.lineWidth = 3;
                brush.strokeRect(this.xOf(at) - 4, y - 2, 8, H + 4);
            }
        }
        this.drawArrow(brush, this.arrow, 1.5);
        this.drawArrow(brush, this.twin, 0.75);
        if (this.drag && Math.abs(this.drag.now - this.drag.x) >= DRAG) {
            brush.globalAlpha = 0.25;
            brush.fillStyle = colourOf(this.drag.isShift ? "--marker-b" : "--accent");
            brush.fillRect(Math.min(this.drag.x, this.drag.now), 0, Math.abs(this.drag.now - this.drag.x), this.height);
            brush.globalAlpha = 1;
        }
    }

    // --- names ---------------------------------------------------------------------------------------------------------

    /**
     * @param {number} first
     * @param {number} last
     * @param {number[]} hidden
     */
    drawNames(first, last, hidden) {
        const streams = /** @type {Answer} */ (this.streams), {row: chosen, pin} = timeWords(), {H} = rowSizes(), made = [];
        const key = [H, this.nameWidth, chosen, pin, hidden, first, this.rows.slice(first, last)].join(" ");
        if (key === this.nameKey)
            return;
        this.nameKey = key;
        for (let place = first; place < last; place++) {
            const row = this.rows[place], name = streams.text("name", row), isPinned = pin.includes(row);
            const hide = attributes(button("\u00d7", () => wantTime({hide: [...hidden, row]}), "bare"), {title: "Hide this row (X)", "aria-label": "Hide " + name});
            const stick = attributes(button(isPinned ? "\u25bc" : "\u25b2", () => wantTime({pin: isPinned ? pin.filter((each) => each !== row) : [...pin, row]}), "bare"),
                                     {title: isPinned ? "Back to its place" : "To the top", "aria-label": (isPinned ? "Unpin " : "Pin ") + name});
            const element = attributes(make("div", "time-name" + (row === chosen ? " active" : ""), make("span", "time-label", named(name)), H > 20 && stick, H > 20 && hide), {title: name});
            element.dataset.row = String(row);
            element.style.cssText = `top:${rowTop(place)}px;height:${H}px;width:${this.nameWidth}px`;
            made.push(element);
        }
        this.names.replaceChildren(...made);
    }

    /** The table beside the picture. */
    describe() {
        const streams = this.streams, [first, last] = this.inSight;
        if (!streams)
            return;
        const head = make("tr", "", ...["row", "runs", "waits", "not known"].map((title) => attributes(make("th", "", title), {scope: "col"})));
        const rows = this.rows.slice(first, last).map((row) => {
            const picture = this.pictures.find((each) => each.rows.has(row)), sums = [0, 0, 0], [begin, end] = picture?.rows.get(row) || [0, 0];
            for (let i = begin; picture && i < end; i++)
                [picture.run[i], picture.wait[i], picture.unknown[i]].forEach((part, k) => (sums[k] += (part * picture.n[i]) / 255 / picture.width));
            return make("tr", "", attributes(make("th", "", named(streams.text("name", row))), {scope: "row"}), ...sums.map((sum) => make("td", "", percent(100 * sum))));
        });
        this.table.replaceChildren(make("caption", "", `Rows in ${spanText(this.span.to - this.span.from)}`), tableHead(head), make("tbody", "", ...rows));
    }

    // --- topology ------------------------------------------------------------------------------------------------------

    drawTree() {
        const streams = this.streams, blocks = streams && !isOff("tree") ? blocksOf(streams, this.rows) : [];
        this.tree.hidden = !blocks.length;
        this.blocks.classList.toggle("nested", blocks.some((block) => block.level === 3));
        this.blocks.replaceChildren(...blocks.map((block) => {
            const element = attributes(make("div", `time-block level-${block.level}`, make("span", "", block.label)), {title: block.title, "aria-label": block.title, role: "img", tabindex: 0});
            element.style.cssText = `top:${rowTop(block.first)}px;height:${blockHeight(block.n)}px;background:rgb(${block.colour.join(",")});color:${inkFor(block.colour)}`;
            element.dataset.rows = block.rows.join(".");
            for (const name of ["pointerenter", "focus"])
                element.addEventListener(name, () => {
                    const share = this.busyShare(block.rows), memory = streams ? memoryOf(streams, block, size) : "";
                    const words = block.title + (Number.isNaN(share) ? "" : `, busy ${percent(100 * share)}`) + (memory ? ", " + memory : "");
                    attributes(element, {title: words, "aria-label": words});
                });
            return element;
        }));
        this.blocks.style.height = this.space.style.height;
    }

    /**
     * How busy rows of CPUs are in the window, of what is known of those in sight; NaN: of none.
     * @param {number[]} rows
     */
    busyShare(rows) {
        const {from, to} = this.span, now = this.pictures.filter((each) => each.from === from && each.to === to), inSight = new Set(this.rows.slice(...this.inSight));
        let busy = 0, known = 0;
        for (const row of rows) {
            const of = now.find((each) => each.rows.has(row)) || now[0], [begin, end] = of?.rows.get(row) || [0, 0];
            if (!of || !inSight.has(row))
                continue;
            known += 1;
            for (let i = begin; i < end; i++) {
                busy += (of.n[i] * of.run[i]) / 255 / of.width;
                known -= (of.n[i] * of.unknown[i]) / 255 / of.width;
            }
        }
        return known > 0 ? busy / known : NaN;
    }

    // --- what people do ------------------------------------------------------------------------------------------------

    /**
     * The row at a place of the page, and the time.
     * @param {MouseEvent} event
     */
    placeAt(event) {
        const box = this.layer.getBoundingClientRect(), {H, S} = rowSizes(), y = event.clientY - box.top + this.top - S / 2, place = Math.floor((y + S / 2) / (H + S));
        return {x: event.clientX - box.left, row: this.rows[place] ?? -1};
    }

    /** @param {WheelEvent} event */
    onWheel(event) {
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.timeAt(this.placeAt(event).x));
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            this.pan((event.deltaX || event.deltaY) / this.room);
        }
    }

    /**
     * @param {number} factor of the window's length
     * @param {number} [around] the time that stays where it is: else the choice, if it is in sight
     */
    zoom(factor, around) {
        const words = wordsWanted(), {from, to} = windowNow(Number(this.streams?.head.length_ns) || 1, words), chosen = words.at;
        const at = around ?? (chosen >= from && chosen <= to ? chosen : (from + to) / 2);
        this.owner.go(at - (at - from) * factor, at + (to - at) * factor);
    }

    /** @param {number} part of the window */
    pan(part) {
        const {from, to} = windowNow(Number(this.streams?.head.length_ns) || 1, wordsWanted()), by = (to - from) * part;
        this.owner.go(from + by, to + by);
    }

    /** @param {PointerEvent} event */
    onDown(event) {
        if (event.button !== 0 || /** @type {HTMLElement} */ (event.target).closest("button, .time-names"))
            return;
        const {x} = this.placeAt(event);
        this.drag = {x, now: x, isShift: event.shiftKey, id: event.pointerId};
        this.view.setPointerCapture?.(event.pointerId);
    }

    /** @param {PointerEvent} event */
    onMove(event) {
        const {x, row} = this.placeAt(event);
        this.pointer = x >= 0 ? this.timeAt(x) : NaN;
        if (this.drag)
            this.drag.now = Math.min(Math.max(x, 0), this.room);
        this.drawLayerSoon();
        if (row >= 0 && x >= 0 && this.streams)
            this.owner.tell(`${clockText(this.streams, this.pointer)} s, ${this.wordsAt(row, x)}`);
    }

    endDrag() {
        this.drag = null;
        this.drawLayerSoon();
    }

    /** @param {PointerEvent} event */
    onUp(event) {
        const drag = this.drag, {row} = this.placeAt(event);
        this.endDrag();
        if (!drag)
            return;
        const from = this.timeAt(Math.min(drag.x, drag.now)), to = this.timeAt(Math.max(drag.x, drag.now));
        if (Math.abs(drag.now - drag.x) < DRAG)
            row >= 0 && this.owner.choose(row, Math.round(this.timeAt(drag.x)));
        else if (drag.isShift)
            this.owner.measure(from, to);
        else
            this.owner.go(from, to);
    }

    /**
     * The run of pixels of a row at a time, -1: none.
     * @param {number} row
     * @param {number} t
     * @returns {{picture: Picture, i: number} | null}
     */
    runAt(row, t) {
        const picture = this.pictures.find((each) => each.rows.has(row)), [begin, end] = picture?.rows.get(row) || [0, 0];
        if (!picture)
            return null;
        const x = Math.floor(((t - picture.from) * picture.width) / (picture.to - picture.from));
        for (let i = begin; i < end; i++)
            if (picture.x[i] <= x && x < picture.x[i] + picture.n[i])
                return {picture, i};
        return null;
    }

    /**
     * @param {number} row
     * @param {number} x
     */
    wordsAt(row, x) {
        const found = this.runAt(row, this.timeAt(x)), name = this.streams?.text("name", row) || "";
        if (!found)
            return `${name}: nothing`;
        const {picture, i} = found, key = picture.keys[picture.key[i]], words = [], part = (/** @type {number} */ share) => percent((100 * share) / 255);
        if (picture.run[i])
            words.push(`${key ? key.name + " " : ""}${part(picture.run[i])}`);
        if (picture.wait[i])
            words.push(`waits ${part(picture.wait[i])}`);
        if (picture.unknown[i])
            words.push(`not known ${part(picture.unknown[i])}`);
        if (picture.events[i])
            words.push(picture.events[i] === 1 ? "an event" : `${2 ** (picture.events[i] - 1)} events or more`);
        for (const [flag, word] of /** @type {[number, string][]} */ ([[LOST, "events were lost"], [TWIN, "a twin"], [SAMPLE, "a sample"]]))
            if (picture.flags[i] & flag)
                words.push(word);
        return `${name}: ${words.join(", ")}`;
    }

    /** @param {number} row */
    reveal(row) {
        const place = this.rows.indexOf(row), {H, S} = rowSizes(), y = place < 0 ? this.top : rowTop(place);
        if (y - S < this.top || y + H + S > this.top + this.height)
            this.view.scrollTop = Math.max(0, y - this.height / 2);
    }
}
