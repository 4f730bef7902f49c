// SPDX-License-Identifier: BSD-3-Clause
// The first screen: what to change, as cards; what the profiler cost and lost, in a line.
import {ask, answered} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, lineItem, markOf, titleOf} from "./things.js";
import {make, attributes, button, named, percent, meter, CAUSES} from "./parts.js";

/** @typedef {import("./packed.js").Answer} Answer */

const ADVICE = {report: "advice"};

/**
 * The parts of a variable's share, in percent of the whole; what is not known stays with "not verified".
 * @param {Answer} vars
 * @param {number} row
 * @returns {[string, number][]}
 */
export function partsOf(vars, row) {
    const share = vars.number("share", row) || 0;
    const [memory, execution, unverified, touch] = ["memory_share", "execution_share", "unverified_share", "first_touch_share"].map((key) => vars.number(key, row) || 0);
    const other = Math.max(share - memory - execution - unverified - touch, 0);
    return [["memory", memory], ["execution", execution], ["unverified", unverified], ["touch", touch], ["other", other]];
}

/** @param {[string, number][]} parts */
export const wordsOf = (parts) => parts.filter(([, value]) => value >= 0.05).map(([name, value]) => `${CAUSES.find(([each]) => each === name)?.[1]} ${percent(value)}`).join(", ");

/**
 * How it spreads over ranks, processes or threads; those that do nothing, such as helpers of a library, are not in the mean.
 * @param {Answer} vars
 * @param {number} row
 */
export function spreadOf(vars, row) {
    for (const [key, word] of [["processes", "process"], ["threads", "thread"]]) {
        const [n, used, mean, most] = ["n", "with_value", "mean", "max"].map((part) => vars.number(`${key}.${part}`, row));
        if (!(n > 1) || !(used > 0))
            continue;
        const ratio = most / ((mean * n) / used), words = `${word}${word === "process" ? "es" : "s"}`;
        if (used === 1)
            return `1 of ${n} ${words} uses it`;
        return `${used} of ${n} ${words} use it, ${ratio < 1.2 ? "evenly" : `one ${ratio.toFixed(1)} times as much as the mean`}`;
    }
    return "";
}

/**
 * The row of vars that an advice is about.
 * @param {Answer} vars
 * @param {string} name
 * @param {string} site
 */
function rowNamed(vars, name, site) {
    let found = -1;
    for (let i = 0; i < vars.n; i++)
        if (vars.text("variable", i) === name && (found < 0 || vars.text("alloc_site", i) === site))
            found = i;
    return found;
}

/**
 * The line at a place such as "loop cg.c:52" or "spmv cg.c:52-60".
 * @param {string} text
 */
function lineAt(text) {
    const t = tables(), found = /([^\s:]+):(\d+)(?:-(\d+))?\s*$/.exec(text);
    if (!t || !found)
        return "";
    let best = "", most = 0;
    for (let i = 0; i < t.lines.n; i++) {
        const line = t.lines.number("line", i), file = t.lines.text("file", i);
        const isIn = (file === found[1] || file.endsWith("/" + found[1])) && line >= Number(found[2]) && line <= Number(found[3] || found[2]);
        if (isIn && t.lines.number("own", i) >= most) {
            best = lineItem(t, file, line);
            most = t.lines.number("own", i);
        }
    }
    return best;
}

/** A part of the kernel from which on it is said what parts are of. */
const LARGE_KERNEL = 10;

/** What the kernel takes, in percent of the CPU time; 0 where that is not known. */
export const kernelPart = () => Number(tables()?.vars.head.cpu_time?.kernel_percent) || 0;

/**
 * What the numbers of a card are parts of: samples are taken in user mode only.
 * @param {Answer} advice
 * @param {number} i
 */
const wholeOf = (advice, i) => (advice.number("of_cpu_time", i) === 1 ? "CPU time" : kernelPart() >= LARGE_KERNEL ? "time in user mode" : "time");

/**
 * @param {Answer} advice
 * @param {number} i
 */
function card(advice, i) {
    const t = tables(), name = advice.text("variable", i), site = advice.text("alloc_site", i), row = t ? rowNamed(t.vars, name, site) : -1;
    const item = t && row >= 0 ? t.vars.text("item", row) : "", text = advice.text("advice", i), where = advice.text("place", i), gain = advice.number("gain_at_most", i);
    const title = item ? button(named(name), () => want({active: item, view: "items"}), "link") : named(name);
    const element = attributes(make("li", "card"), {"data-item": item});
    const share = advice.number("share", i), head = make("div", "card-head", make("span", "figure", percent(share)), wholeOf(advice, i) === "CPU time" ? make("span", "dim", "of the CPU time") : "", title, site && site !== name ? make("span", "dim", " " + site) : "");
    element.append(head);
    if (t && row >= 0)
        element.append(t.vars.number("share", row) > 0 ? meter(partsOf(t.vars, row), wordsOf(partsOf(t.vars, row))) : meter([["other", share]]));
    element.append(make("p", "do", text.replace(/\.$/, "") + "."));
    const line = lineAt(where), facts = make("p", "facts");
    if (!Number.isNaN(gain))
        facts.append(make("strong", "", `Gains at most ${percent(gain)}`), ` of the ${wholeOf(advice, i)}${advice.text("bound", i) === "not verified" ? ", not verified" : ""}. `);
    if (where)
        facts.append(line ? button(where, () => want({active: line, code: "annotate"}), "link") : make("span", "", where));
    element.append(facts);
    const spread = t && row >= 0 ? spreadOf(t.vars, row) : "";
    if (spread)
        facts.append(" ", spread + ".");
    if (advice.text("tried", i))
        element.append(make("p", "facts", `Tried (hpcrun --try): ${advice.text("tried", i)}: ${advice.text("tried_as", i)}.`));
    if (advice.text("evidence", i))
        element.append(make("details", "", make("summary", "", "Why"), make("p", "", advice.text("evidence", i) + ".")));
    return element;
}

/** The legend of all bars. */
export function legend() {
    const line = make("p", "legend", "Bars: ");
    for (const [name, words] of CAUSES)
        line.append(make("span", "key " + name), words + " ");
    return line;
}

/** @type {{cards: HTMLElement, head: HTMLElement, key: HTMLElement} | null} */ let parts = null;

/** @type {import("./views.js").View} */
export const answer = {
    name: "advice", title: "Answer", stack: "data", isOfAll: true,
    canShow: () => ({item: "", why: ""}),
    asks: () => [about(ADVICE)],
    open(panel) {
        parts = {head: make("div", "first-head"), cards: make("ol", "cards"), key: legend()};
        panel.append(parts.head, parts.cards, parts.key);
    },
    async draw() {
        let why = "";
        const session = answered({report: "session"}), made = await ask(about(ADVICE)).catch((error) => {
            why = state.metric ? error.message : "This input has no data accesses, and so no advice about data: see the graph and the sources.";
            return null;
        });
        if (!parts)
            return;
        parts.cards.replaceChildren(...(made ? Array.from({length: made.n}, (_, i) => card(made, i)) : []));
        if (!made || !made.n)
            parts.cards.replaceChildren(make("li", "card", make("p", "", why || "Nothing stands out that a change of data or of a loop would mend: see Variables and the graph.")));
        for (const each of /** @type {NodeListOf<HTMLElement>} */ (parts.cards.querySelectorAll(".card")))
            each.classList.toggle("active", Boolean(each.dataset.item) && markOf(null, each.dataset.item || "") === "active");
        parts.key.hidden = !parts.cards.querySelector(".meter");
        const lines = session && session.head.lines ? session.head.lines : [];
        parts.head.replaceChildren(...lines.map((/** @type {any} */ each) => make("p", "", make("span", "dim", each.label + " "), each.words)));
        attributes(parts.cards, {"aria-label": `What to change${state.active ? ", about " + titleOf(state.active) + " and others" : ""}`});
    },
};
