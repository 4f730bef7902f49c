// SPDX-License-Identifier: BSD-3-Clause
// Beside the list: what is known of the stay that is chosen, with places to jump to; and what the window holds, without time.
import {ask, canAsk, forget, isServed} from "./ask.js";
import {make, attributes, button, named, percent, meter, definitions, smallTable, numberCell} from "./parts.js";
import {functionItem, tables} from "./things.js";
import {itemLink} from "./view-variable.js";
import {isOff, spanText, timeWords, viewerCommand} from "./timeline-model.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./timeline-model.js").Words} Words */
/** @typedef {import("./parts.js").Child} Child */

const KEYS_LISTED = 10;

/** @typedef {{row: number, at: number, toRow: number, to: number}} Arrow from who woke to who was woken */
/**
 * @typedef {object} PanelOwner
 * @property {(from: number, to: number) => void} go
 * @property {(row: number, at: number) => void} choose
 * @property {(arrow: Arrow | null) => void} arrow
 */

/**
 * The memory node of a CPU, as the topology has it, or where to give one.
 * @param {Answer} streams
 * @param {number} row of the same recording
 * @param {number} cpu
 */
function nodeText(streams, row, cpu) {
    const seats = (streams.head.topology || []).filter((/** @type {any} */ each) => each.stream === streams.number("stream", row)), seat = seats.find((/** @type {any} */ each) => each.number === cpu);
    return seat ? `NUMA node ${seat.node ?? "?"}` : seats.length ? "not in the topology" : "not known: \u201cRecordings\u2026\u201d takes a topology";
}

export class TimePanel {
    /** @param {PanelOwner} owner */
    constructor(owner) {
        this.owner = owner;
        /** @type {Answer | null} */ this.streams = null;
        this.stayKey = this.windowKey = "";
        this.stay = make("div", "time-stay");
        this.window = make("div", "time-window");
        this.element = attributes(make("section", "time-panel", this.stay, this.window), {"aria-label": "What is chosen, and the window", tabindex: 0});
    }

    /**
     * @param {Answer} streams
     * @param {Words} words
     */
    showStay(streams, words) {
        const key = `${words.row} ${words.at}`;
        this.streams = streams;
        if (isOff("panel") || key === this.stayKey)
            return;
        this.stayKey = key;
        this.owner.arrow(null);
        this.askFor({at: words.at, report: "stay", row: words.row}, words.row >= 0 && !Number.isNaN(words.at), this.stay, "A click on a row shows what happened there.", (answer) => key === this.stayKey && this.drawStay(answer));
    }

    /**
     * @param {{from: number, to: number}} span
     * @param {Words} words
     */
    showWindow(span, words) {
        const key = `${span.from} ${span.to} ${words.by}`;
        if (isOff("panel") || key === this.windowKey)
            return;
        this.windowKey = key;
        this.askFor({by: words.by || "task", from: span.from, report: "window", to: span.to}, true, this.window, "", (answer) => key === this.windowKey && this.drawWindow(answer, span));
    }

    /**
     * @param {import("./ask.js").Request} request
     * @param {boolean} isWanted
     * @param {HTMLElement} place
     * @param {string} without
     * @param {(answer: Answer) => void} draw
     */
    async askFor(request, isWanted, place, without, draw) {
        if (!isWanted || !canAsk(request)) {
            place.replaceChildren(make("p", "dim", isWanted ? `This page does not hold what is known of a ${request.report === "stay" ? "place" : "window"}: ${viewerCommand(this.streams)} shows it.` : without));
            return;
        }
        try {
            const answer = await ask(request);
            if (isServed)
                forget(request);
            draw(answer);
        } catch (error) {
            place.replaceChildren(make("p", "dim", error instanceof Error ? error.message : String(error)));
        }
    }

    /**
     * A place to jump to.
     * @param {number} row
     * @param {number} t
     * @param {string} label
     */
    jump(row, t, label) {
        if (Number.isNaN(row) || Number.isNaN(t))
            return named(label);
        return button(named(label), () => {
            const {from, to} = timeWords();
            this.owner.choose(row, t);
            if (t < from || t > to)
                this.owner.go(t - (to - from) / 2, t + (to - from) / 2);
        }, "link");
    }

    /**
     * The name of a key: that of a variable or function leads to it.
     * @param {string} name
     */
    thing(name) {
        const t = tables(), {by} = timeWords(), row = t && by === "variable" ? t.byName.get(name)?.[0] : undefined;
        const item = t && row !== undefined ? t.vars.text("item", row) : t && by === "function" ? functionItem(t, name, "") : "";
        return item ? itemLink(item, name) : named(name);
    }

    /** @param {Answer} answer */
    drawStay(answer) {
        const number = (/** @type {string} */ key) => answer.number(key, 0), text = (/** @type {string} */ key) => answer.text(key, 0);
        const from = number("from_ns"), to = number("to_ns"), row = number("row"), woken = number("woken_ns"), wakerRow = number("waker_row"), isDisplaced = text("state") === "preempted", hasDisplaced = text("before_state") === "preempted";
        /** @type {Child[][]} */ const pairs = [["state", text("state")], ["task", this.jump(number("task_row"), from, text("task"))]];
        const add = (/** @type {string} */ label, /** @type {boolean} */ isKnown, /** @type {Child} */ words) => isKnown && pairs.push([label, words]);
        add("CPU", !Number.isNaN(number("cpu")), this.jump(number("cpu_row"), from, "CPU " + number("cpu")));
        add("node", !Number.isNaN(number("cpu")), nodeText(/** @type {Answer} */ (this.streams), row, number("cpu")));
        add("from", true, this.jump(row, from, text("from")));
        add("to", true, this.jump(row, to, text("to")));
        add("ran", number("ran_ns") >= 0, spanText(number("ran_ns")));
        add("waited", number("waited_ns") >= 0, this.jump(row, number("waited_from_ns"), spanText(number("waited_ns"))));
        add("woken by", text("waker") !== "", make("span", "", this.jump(wakerRow, woken, text("waker")), Number.isNaN(number("waker_cpu")) ? "" : ` on CPU ${number("waker_cpu")}`));
        add("then", text("then") !== "", text("then"));
        add(hasDisplaced ? "displaced" : "before it", text("before") !== "", make("span", "", this.jump(number("before_row"), from - 1, text("before")), hasDisplaced || !text("before_state") ? "" : `, then ${text("before_state")}`));
        add(isDisplaced || text("then") === "preempted" ? "displaced by" : "behind it", text("next") !== "", this.jump(number("next_row"), isDisplaced ? from : to, text("next")));
        this.stay.replaceChildren(make("h2", "", "The choice"), definitions(pairs));
        if (!Number.isNaN(wakerRow + woken))
            this.owner.arrow({row: wakerRow, at: woken, toRow: row, to: text("state") === "running" ? from : woken});
    }

    /**
     * @param {Answer} answer
     * @param {{from: number, to: number}} span
     */
    drawWindow(answer, span) {
        const all = Math.max(Number(answer.head.running_ns) || 0, 1), length = Math.max(span.to - span.from, 1), {head} = answer;
        const bar = (/** @type {number} */ part) => numberCell(make("span", "", percent(100 * part), meter([["amount", 100 * part]])));
        const sums = ["running", "woken", "preempted"].filter((key) => head[key + "_ns"] !== null).map((key) => [{running: "ran", woken: "waited since woken", preempted: "waited, another ran"}[key] || key, spanText(Number(head[key + "_ns"]))]);
        const keys = Array.from({length: Math.min(answer.n, KEYS_LISTED)}, (_, i) => [this.thing(answer.text("name", i)), numberCell(spanText(answer.number("ns", i))), bar(answer.number("ns", i) / all)]);
        const cpus = (head.cpus || []).map((/** @type {any} */ each) => [this.jump(each.row, span.from + length / 2, each.name), bar((each.busy_ns || 0) / length), numberCell(each.unknown_ns ? percent((100 * each.unknown_ns) / length) : ""), numberCell(each.samples || "")]);
        const nodes = (head.nodes || []).map((/** @type {any} */ each) => [`NUMA node ${each.node ?? "?"}`, numberCell(String(each.cpus)), bar((each.busy_ns || 0) / length / Math.max(each.cpus, 1))]);
        const pairs = (head.displaced || []).slice(0, KEYS_LISTED).map((/** @type {any} */ each) => [named(each.name), named(each.by ?? "not known"), numberCell(String(each.times)), numberCell(spanText(each.waited_ns))]);
        this.window.replaceChildren(make("h2", "", `The window, ${spanText(length)}`), definitions([...sums, ["samples", String(head.samples ?? "-")]]), smallTable(["name", "time", "share"], keys),
                                    smallTable(["CPU", "busy", "not known", "samples"], cpus), nodes.length ? smallTable(["node", "CPUs", "busy"], nodes) : "", pairs.length ? smallTable(["task", "displaced by", "times", "waited"], pairs) : "");
    }
}
