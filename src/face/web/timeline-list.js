// SPDX-License-Identifier: BSD-3-Clause
// The list of events in the window, below the rows: asked for in pieces when they are seen; linked with the rows both ways.
import {ask, forget, canAsk, isServed} from "./ask.js";
import {make, attributes, button, check, named, onceAFrame} from "./parts.js";
import {Grid} from "./grid.js";
import {clockText, isOff, switchOff} from "./timeline-model.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./timeline-model.js").Words} Words */

const PIECE = 200, PIECES_KEPT = 60, LISTED_MOST = 1e6, RECORDED_EVENTS = 200000, ROW_HIGH = 22;
/** The columns of KernelShark's list, and the stream. */
const EVENT_COLUMNS = [["index", "#", "4.5rem", "n"], ["cpu", "CPU", "3.2rem", "n"], ["time", "time", "10.5rem", "n mono"], ["task", "task", "minmax(7rem, 12rem)", ""], ["pid", "PID", "4.5rem", "n"],
                       ["latency", "latency", "4rem", ""], ["event", "event", "minmax(9rem, 14rem)", ""], ["info", "info", "minmax(16rem, 1fr)", ""], ["stream", "stream", "3.5rem", "n"]];

export class EventList {
    /** @param {(row: number, at: number) => void} choose */
    constructor(choose) {
        this.choose = choose;
        /** @type {Answer | null} */ this.streams = null;
        this.span = {from: 0, to: 0};
        this.key = "";
        this.total = 0;
        this.marked = -1;
        /** @type {Map<number, Answer | null>} null: on its way */ this.pieces = new Map();
        this.grid = new Grid({label: "Events", height: ROW_HIGH, choose: (i) => this.onChoose(i), marks: (i) => (i === this.marked ? "active" : "")});
        this.grid.element.hidden = true; // a grid without columns is none
        this.note = make("span", "dim");
        this.word = attributes(make("input", ""), {type: "search", placeholder: "Find in events", "aria-label": "Find in events"});
        this.word.addEventListener("keydown", (event) => {
            if (event.key === "Enter")
                this.find(event.shiftKey ? -1 : 1);
        });
        const follows = check("graph follows", !isOff("follow"), (isOn) => switchOff("follow", !isOn));
        this.element = attributes(make("section", "time-list", make("div", "tools", this.word, button("Next", () => this.find(1)), button("Previous", () => this.find(-1)), follows, this.note), this.grid.element), {"aria-label": "Events"});
        this.drawSoon = onceAFrame(() => this.grid.draw());
    }

    /**
     * @param {number} start
     * @returns {import("./ask.js").Request}
     */
    request(start) {
        return isServed ? {count: PIECE, from: this.span.from, report: "events", start, to: this.span.to} : {count: RECORDED_EVENTS, report: "events"};
    }

    /**
     * @param {Answer} streams
     * @param {{from: number, to: number}} span
     * @param {Words} words
     */
    show(streams, span, words) {
        const key = isServed ? `${span.from} ${span.to}` : "all";
        if (isOff("list") || key === this.key) {
            this.markNear(words);
            return;
        }
        this.streams = streams;
        this.span = span;
        this.key = key;
        this.pieces.clear();
        this.marked = -1;
        if (!canAsk(this.request(0))) {
            this.note.textContent = "This page does not hold the events: hpcviewer shows them.";
            return;
        }
        this.load(0).then((first) => {
            if (!first || key !== this.key)
                return;
            this.total = Math.min(Number(first.head.events ?? first.head.total ?? first.n + first.more), LISTED_MOST);
            this.note.textContent = `${this.total} events${first.head.events > LISTED_MOST ? " listed, of " + first.head.events : ""}`;
            this.grid.element.hidden = false;
            this.grid.fill(this.columns(first), this.total);
            this.markNear(words);
        });
    }

    /**
     * @param {number} start
     * @returns {Promise<Answer | null>}
     */
    async load(start) {
        const key = this.key, request = this.request(start);
        this.pieces.set(start, null);
        try {
            const answer = await ask(request);
            if (isServed)
                forget(request);
            if (key !== this.key)
                return null;
            this.pieces.set(start, answer);
            for (const old of this.pieces.keys())
                if (this.pieces.size > PIECES_KEPT)
                    this.pieces.delete(old);
            return answer;
        } catch (error) {
            this.note.textContent = error instanceof Error ? error.message : String(error);
            return null;
        }
    }

    /**
     * The answer that has an event, and its row there; what is not there yet is asked for.
     * @param {number} i
     * @returns {{answer: Answer, row: number} | null}
     */
    eventAt(i) {
        const start = isServed ? Math.floor(i / PIECE) * PIECE : 0, answer = this.pieces.get(start);
        if (answer === undefined)
            this.load(start).then((made) => made && this.drawSoon());
        return answer && i - start < answer.n ? {answer, row: i - start} : null;
    }

    /**
     * @param {Answer} first
     * @returns {import("./grid.js").GridColumn[]}
     */
    columns(first) {
        const ranks = new Float64Array(0);
        return EVENT_COLUMNS.filter(([key]) => first.columns.has(key)).map(([key, title, width, classes]) => ({key, title, width, classes, ranks, help: title, cell: (i) => {
            const found = this.eventAt(i), column = found?.answer.columns.get(key);
            if (!found || !column)
                return "\u2026";
            if (key === "time" && !column.isText)
                return clockText(/** @type {Answer} */ (this.streams), column.number(found.row));
            return column.isText ? named(column.text(found.row) || "") : Number.isNaN(column.number(found.row)) ? "" : String(column.number(found.row));
        }}));
    }

    /**
     * The time of an event since the beginning.
     * @param {number} i
     */
    timeOf(i) {
        const found = this.eventAt(i);
        return found ? found.answer.number("ns", found.row) : NaN;
    }

    /** @param {number} i */
    rowOf(i) {
        const found = this.eventAt(i), streams = this.streams;
        if (!found || !streams)
            return -1;
        const row = found.answer.number("row", found.row);
        return Number.isNaN(row) ? -1 : row;
    }

    /** @param {number} i */
    onChoose(i) {
        this.marked = i;
        const t = this.timeOf(i), row = this.rowOf(i);
        if (!Number.isNaN(t) && !isOff("follow"))
            this.choose(row, t);
    }

    /**
     * Marks the event that is chosen in the rows, as far as it is there.
     * @param {Words} words
     */
    markNear(words) {
        if (Number.isNaN(words.at) || !this.grid.n)
            return;
        let best = -1, least = Infinity;
        for (const [start, answer] of this.pieces)
            for (let row = 0; answer && row < answer.n; row++) {
                const far = Math.abs(answer.number("ns", row) - words.at);
                if (far < least) {
                    least = far;
                    best = start + row;
                }
            }
        if (best !== this.marked && this.timeOf(this.marked) !== words.at) {
            this.marked = best;
            this.grid.show(best);
        }
        this.grid.mark();
    }

    /**
     * The event of a row that is nearest to a time.
     * @param {number} row
     * @param {number} t
     * @param {number} around
     * @param {(t: number) => void} action
     */
    async nearest(row, t, around, action) {
        const request = {count: PIECE, from: Math.max(Math.floor(t - around), 0), report: "events", rows: [row], start: 0, to: Math.ceil(t + around)};
        let best = t;
        if (isServed)
            await ask(request).then((answer) => {
                forget(request);
                let least = Infinity;
                for (let i = 0; i < answer.n; i++)
                    if (Math.abs(answer.number("ns", i) - t) < least) {
                        best = answer.number("ns", i);
                        least = Math.abs(best - t);
                    }
            }, () => undefined);
        action(best);
    }

    /**
     * The next event with the words, among those of the window.
     * @param {number} step
     */
    async find(step) {
        const low = this.word.value.toLowerCase(), key = this.key;
        for (let i = this.marked < 0 ? (step > 0 ? 0 : this.total - 1) : this.marked + step; low && i >= 0 && i < this.total; i += step) {
            const start = isServed ? Math.floor(i / PIECE) * PIECE : 0;
            if (!this.pieces.get(start))
                await this.load(start);
            const found = this.eventAt(i);
            if (key !== this.key || !found)
                return;
            if (EVENT_COLUMNS.some(([name]) => (found.answer.columns.get(name)?.isText ? found.answer.text(name, found.row) : String(found.answer.number(name, found.row))).toLowerCase().includes(low))) {
                this.onChoose(i);
                this.grid.show(i, false);
                return;
            }
        }
        this.note.textContent = low ? `nothing ${step > 0 ? "behind" : "before"} this has "${this.word.value}"` : "";
    }
}
