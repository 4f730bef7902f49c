// SPDX-License-Identifier: BSD-3-Clause
// Beside the list: what is known of the stay that is chosen, with places to jump to; and what the window holds, without time.
import {ask, canAsk, forget, isServed} from "./ask.js";
import {make, attributes, button, named, percent, meter, definitions, smallTable, numberCell} from "./parts.js";
import {clockText, isOff, spanText, timeWords} from "./timeline-model.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./timeline-model.js").Words} Words */
/** @typedef {import("./parts.js").Child} Child */

const KEYS_LISTED = 10;

export class TimePanel {
    /**
     * @param {(from: number, to: number) => void} go
     * @param {(row: number, at: number) => void} choose
     * @param {(row: number) => void} reveal
     */
    constructor(go, choose, reveal) {
        this.go = go;
        this.choose = choose;
        this.reveal = reveal;
        /** @type {Answer | null} */ this.streams = null;
        this.stayKey = this.windowKey = "";
        this.stay = make("div", "time-stay");
        this.window = make("div", "time-window");
        this.element = attributes(make("section", "time-panel", this.stay, this.window), {"aria-label": "What is chosen, and the window", tabindex: 0});
    }

    /**
     * @param {Answer} streams
     * @param {{from: number, to: number}} span
     * @param {Words} words
     */
    show(streams, span, words) {
        this.streams = streams;
        if (isOff("panel"))
            return;
        const stayKey = `${words.row} ${words.at}`, windowKey = `${span.from} ${span.to} ${words.by}`;
        if (stayKey !== this.stayKey) {
            this.stayKey = stayKey;
            this.askFor({at: words.at, report: "stay", row: words.row}, words.row >= 0 && !Number.isNaN(words.at), this.stay, "A click on a row shows what happened there.", (answer) => stayKey === this.stayKey && this.drawStay(answer));
        }
        if (windowKey !== this.windowKey) {
            this.windowKey = windowKey;
            this.askFor({by: words.by || "task", from: span.from, report: "window", to: span.to}, true, this.window, "", (answer) => windowKey === this.windowKey && this.drawWindow(answer, span));
        }
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
            place.replaceChildren(make("p", "dim", isWanted ? "" : without));
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
     * A time to jump to.
     * @param {number} row
     * @param {number} t
     * @param {Child} [label]
     */
    jump(row, t, label) {
        return button(label || clockText(/** @type {Answer} */ (this.streams), t), () => {
            const {from, to} = timeWords();
            this.choose(row, t);
            if (t < from || t > to)
                this.go(t - (to - from) / 2, t + (to - from) / 2);
            this.reveal(row);
        }, "link mono");
    }

    /** @param {Answer} answer */
    drawStay(answer) {
        this.stay.replaceChildren(make("h3", "", "The choice"), ...this.stayParts(answer));
    }

    /**
     * @param {Answer} answer
     * @returns {HTMLElement[]}
     */
    stayParts(answer) {
        const pairs = Object.entries(answer.head).filter(([, value]) => value !== null && typeof value !== "object");
        return [definitions(pairs.map(([key, value]) => [key.replace(/_ns$/, "").replace(/_/g, " "), /_ns$/.test(key) ? spanText(Number(value)) : named(String(value))]))];
    }

    /**
     * @param {Answer} answer
     * @param {{from: number, to: number}} span
     */
    drawWindow(answer, span) {
        const rows = Array.from({length: Math.min(answer.n, KEYS_LISTED)}, (_, i) => i), ns = (/** @type {number} */ i) => answer.number("ns", i), all = rows.reduce((sum, i) => sum + ns(i), 0) || 1;
        this.window.replaceChildren(make("h3", "", `The window, ${spanText(span.to - span.from)}`), smallTable(["", "time", "share"], rows.map((i) =>
            [named(answer.text("name", i)), numberCell(spanText(ns(i))), numberCell(make("span", "", percent((100 * ns(i)) / all), meter([["amount", (100 * ns(i)) / all]])))])));
    }
}
