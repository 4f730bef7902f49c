// SPDX-License-Identifier: BSD-3-Clause
// The list of events in the window, below the rows: asked for in pieces when they are seen; linked with the rows both ways.
import {ask, forget, canAsk, isServed} from "./ask.js";
import {make, attributes, button, check, named, onceAFrame} from "./parts.js";
import {Grid} from "./grid.js";
import {isOff, switchOff, timeWords, wantTime} from "./timeline-model.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./timeline-model.js").Words} Words */

/** Events that a page in a file has at most. */
export const RECORDED_EVENTS = 200000;
const PIECE = 200, PIECES_KEPT = 60, LISTED_MOST = 1e6, LOOKED_MOST = 50000, ROW_HIGH = 22;
/** The columns of KernelShark's list, and the stream. */
const EVENT_COLUMNS = [["index", "#", "4.5rem", "n"], ["cpu", "CPU", "3.2rem", "n"], ["time", "time", "8.5rem", "n mono"], ["comm", "task", "minmax(7rem, 11rem)", ""], ["task", "PID", "4.5rem", "n"],
                       ["latency", "latency", "4rem", ""], ["event", "event", "minmax(9rem, 14rem)", ""], ["info", "info", "minmax(16rem, 1fr)", ""], ["stream", "stream", "3.8rem", "n"]];

/**
 * A time in microseconds, rounded as trace-cmd and KernelShark do.
 * @param {string} text seconds with nine digits
 */
function microText(text) {
    const ns = BigInt(text.replace(".", "")), us = ((ns < 0n ? -ns : ns) + 500n) / 1000n;
    return `${ns < 0n ? "-" : ""}${us / 1000000n}.${String(us % 1000000n).padStart(6, "0")}`;
}

/**
 * The filter by which only events of a row are answered.
 * @param {Answer} streams
 * @param {number} row
 * @returns {import("./ask.js").Request}
 */
const filterOf = (streams, row) => ({[streams.text("kind", row)]: String(streams.number("number", row))});

/**
 * Whether an event is one of a row: numbers of CPUs and tasks are there once in each recording.
 * @param {Answer} events
 * @param {number} i
 * @param {number} row
 */
const isOfRow = (events, i, row) => events.number("cpu_row", i) === row || events.number("task_row", i) === row;

/**
 * What chooses events of the list, as --task, --cpu and --event of hpcquery sched events do.
 * @param {"tasks" | "cpus" | "events"} key
 * @param {string} hint
 */
function filterInput(key, hint) {
    const input = attributes(make("input", "time-filter"), {type: "text", name: key, placeholder: hint, "aria-label": `Of the list: ${key} alone, names or numbers with commas`});
    input.addEventListener("change", () => wantTime({[key]: input.value.trim()}));
    return input;
}

export class EventList {
    /**
     * @param {(row: number, at: number) => void} choose
     * @param {(twin: import("./timeline-panel.js").Arrow | null) => void} join
     */
    constructor(choose, join) {
        this.choose = choose;
        this.join = join;
        /** @type {Answer | null} */ this.streams = null;
        this.span = {from: 0, to: 0};
        this.key = "";
        this.total = this.found = this.turn = 0;
        this.words = ""; // of the note
        this.marked = -1;
        /** @type {Map<number, Answer | null>} null: on its way */ this.pieces = new Map();
        this.grid = new Grid({label: "Events", height: ROW_HIGH, choose: (i, event) => this.onChoose(i, event), marks: (i) => (i === this.marked ? "active" : "")});
        this.grid.element.hidden = true; // a grid without columns is none
        this.note = make("span", "dim");
        this.word = attributes(make("input", ""), {type: "search", placeholder: "Find in events", "aria-label": "Find in events", title: "What an event says, its task as name:PID, its time, or #7 for its number"});
        this.word.addEventListener("keydown", (event) => {
            if (event.key === "Enter")
                this.find(event.shiftKey ? -1 : 1);
        });
        const follows = check("graph follows", !isOff("follow"), (isOn) => switchOff("follow", !isOn));
        const own = check("the chosen row alone", isOff("others"), (isOn) => switchOff("others", isOn));
        this.filters = isServed ? [filterInput("tasks", "Tasks: app*,7"), filterInput("cpus", "CPUs: 0-3"), filterInput("events", "Events: sched_*")] : [];
        this.element = attributes(make("section", "time-list", make("div", "tools", this.word, button("Next", () => this.find(1)), button("Previous", () => this.find(-1)), ...this.filters, follows, own, this.note), this.grid.element), {"aria-label": "Events"});
        this.drawSoon = onceAFrame(() => this.grid.draw());
    }

    /**
     * @param {number} start
     * @returns {import("./ask.js").Request}
     */
    request(start) {
        const {row, tasks, cpus, events} = timeWords(), own = isOff("others") && row >= 0 && this.streams ? filterOf(this.streams, row) : {};
        return isServed ? {cpu: cpus || undefined, event: events || undefined, task: tasks || undefined, ...own, count: PIECE, from: this.span.from, report: "events", start, to: this.span.to} : {count: RECORDED_EVENTS, report: "events"};
    }

    /**
     * @param {Answer} streams
     * @param {{from: number, to: number}} span
     * @param {Words} words
     */
    show(streams, span, words) {
        const key = isServed ? [span.from, span.to, isOff("others") ? words.row : "", words.tasks, words.cpus, words.events].join(" ") : "all";
        for (const input of this.filters)
            if (input !== document.activeElement)
                input.value = words[/** @type {"tasks" | "cpus" | "events"} */ (input.name)];
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
            this.found = Number(isServed ? first.head.found : first.n);
            this.total = Math.min(this.found, LISTED_MOST);
            this.note.textContent = this.words = `${this.total} events${Number(first.head.found) > this.total ? " listed, of " + first.head.found : ""}`;
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
        return EVENT_COLUMNS.filter(([key]) => first.columns.has(key) && (key !== "stream" || this.streams?.head.streams.length > 1)).map(([key, title, width, classes]) => ({key, title, width, classes, ranks, help: title, cell: (i) => {
            const found = this.eventAt(i), column = found?.answer.columns.get(key);
            if (!found || !column)
                return "\u2026";
            if (key === "time")
                return attributes(make("span", "", microText(column.text(found.row) || "0.000000000")), {title: column.text(found.row) + " s"});
            return column.isText ? named(column.text(found.row) || "") : Number.isNaN(column.number(found.row)) ? "" : String(column.number(found.row));
        }}));
    }

    /**
     * @param {number} i
     * @param {Event} [event] Enter at a twin goes to its origin, which stands before it
     */
    onChoose(i, event) {
        if (event instanceof KeyboardEvent && event.key === "Enter" && this.originOf(i)) {
            this.grid.moveTo(i - 1);
            i--;
        }
        const found = this.eventAt(i), now = timeWords().row;
        this.marked = i;
        this.join(this.originOf(i));
        if (!found || isOff("follow"))
            return;
        const {answer, row} = found, cpu = answer.number("cpu_row", row), task = answer.number("task_row", row), isTask = now >= 0 && this.streams?.text("kind", now) === "task";
        this.choose(isTask && !Number.isNaN(task) || Number.isNaN(cpu) ? task : cpu, answer.number("time_ns", row));
    }

    /**
     * From the origin of a twin, which stands before it, to the twin; null: it is none.
     * @param {number} i
     * @returns {import("./timeline-panel.js").Arrow | null}
     */
    originOf(i) {
        const twin = this.eventAt(i), origin = i > 0 ? this.eventAt(i - 1) : null, number = (/** @type {{answer: Answer, row: number}} */ of, /** @type {string} */ key) => of.answer.number(key, of.row);
        if (!twin || !origin || number(origin, "stream") !== number(twin, "stream") || number(origin, "index") !== number(twin, "twin_of"))
            return null;
        return {row: number(origin, "task_row"), at: number(origin, "time_ns"), toRow: number(twin, "task_row"), to: number(twin, "time_ns")};
    }

    /** The events of the window as CSV, as many as one answer has; the times to the nanosecond. */
    async csv() {
        const request = {...this.request(0), ...(isServed ? {count: RECORDED_EVENTS} : {})}, answer = await ask(request), lines = [EVENT_COLUMNS.map(([key]) => key).join(",")];
        if (isServed)
            forget(request);
        const cell = (/** @type {string} */ key, /** @type {number} */ i) => {
            const column = answer.columns.get(key), text = !column ? "" : column.isText ? column.text(i) || "" : Number.isNaN(column.number(i)) ? "" : String(column.number(i));
            return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
        };
        for (let i = 0; i < answer.n; i++)
            if (answer.number("time_ns", i) >= this.span.from && answer.number("time_ns", i) <= this.span.to)
                lines.push(EVENT_COLUMNS.map(([key]) => cell(key, i)).join(","));
        return lines.join("\n") + "\n";
    }

    /** The time of the event that is marked, NaN: it is not there. */
    timeOfMarked() {
        const found = this.marked < 0 ? null : this.eventAt(this.marked);
        return found ? found.answer.number("time_ns", found.row) : NaN;
    }

    /**
     * Marks the event at the time that is chosen in the rows, and shows it.
     * @param {Words} words
     */
    async markNear(words) {
        const key = this.key;
        if (Number.isNaN(words.at) || !this.grid.n || words.at < this.span.from || words.at > this.span.to || this.timeOfMarked() === words.at)
            return this.grid.mark();
        let place = -1;
        if (isServed) {
            const request = {...this.request(0), at: words.at, count: 1, start: undefined}, answer = await ask(request).catch(() => null);
            forget(request);
            place = answer ? Math.min(Number(answer.head.start), this.total - 1) : -1;
        } else {
            const times = this.pieces.get(0)?.columns.get("time_ns")?.numbers || [];
            while (place + 1 < times.length && times[place + 1] <= words.at)
                place++;
        }
        if (key !== this.key || place < 0)
            return;
        this.marked = place;
        this.grid.show(place);
        this.grid.mark();
    }

    /**
     * The event of a row behind a time, or before it.
     * @param {number} row
     * @param {number} t NaN: of the whole recording
     * @param {number} step
     * @returns {Promise<number>} its time, NaN: there is none
     */
    async beside(row, t, step) {
        const streams = /** @type {Answer} */ (this.streams), own = {...filterOf(streams, row), report: "events"};
        if (!isServed) {
            const all = this.pieces.get(0), order = Array.from({length: all?.n || 0}, (_, i) => i).filter((i) => all && isOfRow(all, i, row));
            return order.map((i) => /** @type {Answer} */ (all).number("time_ns", i)).filter((each) => Number.isNaN(t) || (step > 0 ? each > t : each < t)).at(step > 0 ? 0 : -1) ?? NaN;
        }
        const last = Number(streams.head.length_ns), now = this.span.to - this.span.from;
        let from = step > 0 ? (Number.isNaN(t) ? 0 : t + 1) : Infinity, to = step > 0 ? -1 : Number.isNaN(t) ? last : t - 1, found = NaN;
        for (let wide = Math.max(now, 1e6); Number.isNaN(found) && (step > 0 ? from <= last : to >= 0); wide *= 8) { // near ones are found without looking at all
            [from, to] = step > 0 ? [from, from + wide] : [Math.max(to - wide, 0), to];
            found = await this.timeIn({...own, count: PIECE, from, to, start: step > 0 ? undefined : await this.lastPiece({...own, from, to})}, row, step);
            [from, to] = step > 0 ? [to + 1, to] : [from, from - 1];
        }
        return found;
    }

    /**
     * Where the last piece of an answer's events begins.
     * @param {import("./ask.js").Request} request
     */
    async lastPiece(request) {
        const where = {...request, count: 1}, answer = await ask(where).catch(() => null);
        forget(where);
        return Math.max(Number(answer?.head.found || 0) - PIECE, 0);
    }

    /**
     * The time of the first event of a row in an answer, or of the last.
     * @param {import("./ask.js").Request} request
     * @param {number} row
     * @param {number} step
     */
    async timeIn(request, row, step) {
        const answer = await ask(request).catch(() => null);
        forget(request);
        for (let i = 0, n = answer?.n || 0; answer && i < n; i++)
            if (isOfRow(answer, step > 0 ? i : n - 1 - i, row))
                return answer.number("time_ns", step > 0 ? i : n - 1 - i);
        return NaN;
    }

    /**
     * The next event with the words, among those of the window; the server looks through them piece by piece, larger ones the longer it takes.
     * @param {number} step
     */
    async find(step) {
        const text = this.word.value.trim(), key = this.key, turn = ++this.turn, all = isServed ? this.found : this.total;
        let i = this.marked < 0 ? (step > 0 ? 0 : all - 1) : this.marked + step;
        for (let n = PIECE; text && i >= 0 && i < all; n = Math.min(2 * n, LOOKED_MOST)) {
            const start = step > 0 ? i : Math.max(i - n + 1, 0), count = step > 0 ? Math.min(n, all - i) : i - start + 1;
            const found = isServed ? await this.lookIn(start, count, text, step) : this.lookHere(start, count, text.toLowerCase(), step);
            if (key !== this.key || turn !== this.turn)
                return;
            if (found) {
                this.note.textContent = this.words;
                await this.goTo(found.place, found.answer, found.row);
                return;
            }
            i = step > 0 ? start + count : start - 1;
            this.note.textContent = `looking for "${text}", ${Math.floor((100 * (step > 0 ? i : all - i)) / all)} %`;
        }
        this.note.textContent = text ? `nothing ${step > 0 ? "behind" : "before"} this has "${text}"` : this.words;
    }

    /**
     * The first of some events that has a text, or the last one.
     * @param {number} start
     * @param {number} count
     * @param {string} text
     * @param {number} step
     * @returns {Promise<{place: number, answer: Answer, row: number} | null>}
     */
    async lookIn(start, count, text, step) {
        const request = {...this.request(start), count, find: text}, answer = await ask(request).catch(() => null), row = answer && step < 0 ? answer.n - 1 : 0;
        forget(request);
        return answer?.n ? {place: answer.number("place", row), answer, row} : null;
    }

    /**
     * The same in a page in a file, which has all events.
     * @param {number} start
     * @param {number} count
     * @param {string} low
     * @param {number} step
     */
    lookHere(start, count, low, step) {
        const answer = this.pieces.get(0), texts = (/** @type {Answer} */ of, /** @type {number} */ i) => [`#${of.number("index", i)}`, `${of.text("comm", i)}:${of.number("task", i)}`, of.text("time", i), microText(of.text("time", i) || "0.000000000"), of.text("event", i), of.text("info", i)];
        for (let k = 0; answer && k < count; k++) {
            const place = step > 0 ? start + k : start + count - 1 - k;
            if (low.startsWith("#") ? `#${answer.number("index", place)}` === low : texts(answer, place).some((each) => each.toLowerCase().includes(low)))
                return {place, answer, row: place};
        }
        return null;
    }

    /**
     * Chooses an event that was found; of one that is not listed, since there are too many, fewer around it.
     * @param {number} place
     * @param {Answer} answer
     * @param {number} row
     */
    async goTo(place, answer, row) {
        const {from, to} = this.span, t = answer.number("time_ns", row), half = ((to - from) * this.total) / this.found / 4;
        if (place >= this.total) {
            this.choose(answer.number("cpu_row", row), t);
            wantTime({from: Math.round(Math.max(t - half, from)), to: Math.round(Math.min(t + half, to))});
            return;
        }
        if (!this.eventAt(place))
            await this.load(isServed ? Math.floor(place / PIECE) * PIECE : 0);
        this.onChoose(place);
        this.grid.show(place, false);
    }
}
