// SPDX-License-Identifier: BSD-3-Clause
// How far the figures can be trusted: what became of each sample, notes of the measurement, and what was left out.
import {ask, answered} from "./ask.js";
import {isForeign} from "./things.js";
import {make, smallTable, numberCell, percent, definitions, meter} from "./parts.js";

const TRUST = {report: "trust"};

/** @type {HTMLElement | null} */ let trustPanel = null;

/** @type {import("./views.js").View} */
export const trust = {
    name: "trust", title: "Trust", stack: "data", isOfAll: true,
    canShow: () => ({item: "", why: isForeign() ? "This input is no database of hpcprof: it does not say what became of its samples." : ""}),
    asks: () => [],
    open(panel) {
        trustPanel = panel;
    },
    async draw(_, mask) {
        const made = await ask(TRUST), session = answered({report: "session"});
        if (!trustPanel || (trustPanel.firstChild && !mask.has("data")))
            return;
        trustPanel.replaceChildren();
        const events = new Map();
        for (let i = 0; i < made.n; i++) {
            const event = made.text("event", i);
            events.set(event, [...(events.get(event) || []), i]);
        }
        const foot = (made.head.foot || []).map((/** @type {any} */ each) => [each.label, each.words]);
        const notes = (session?.head.notes || []).map((/** @type {any} */ each) => make("li", "", each.text));
        trustPanel.append(definitions(foot), notes.length ? make("h2", "", "Notes of the measurement") : "", make("ul", "", ...notes));
        for (const [event, rows] of events) {
            const all = rows.reduce((/** @type {number} */ sum, /** @type {number} */ row) => sum + made.number("samples", row), 0);
            trustPanel.append(smallTable(["fate", "samples", "share", "bar", "meaning"], rows.map((/** @type {number} */ row) => {
                const share = (100 * made.number("samples", row)) / all;
                return [made.text("fate", row), numberCell(made.number("samples", row)), numberCell(percent(share)), meter([["other", share]]), made.text("meaning", row)];
            }), `What became of the samples of ${event}`));
        }
    },
};
