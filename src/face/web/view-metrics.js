// SPDX-License-Identifier: BSD-3-Clause
// Two metrics side by side, formulas over all of them, and what numbers are a part of.
import {answered, ask, canAsk, isServed} from "./ask.js";
import {state, want, hasWord, switchWord} from "./state.js";
import {tables, markOf, kindOf, ofChosen, VARS, FUNCTIONS, LINES} from "./things.js";
import {make, attributes, button, check, choice, named, percent, meter, place, short, write} from "./parts.js";
import {Grid} from "./grid.js";
import {searchOf, choose} from "./list.js";
import {threadsButton} from "./threads.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {{answer: Answer, values: Float64Array, parts: Float64Array, name: string}} Metric a metric's values in the order of the first one's rows */

const METRIC_ROWS = [["vars", "Variables"], ["", "Functions"], ["lines", "Lines"]];
const PERCENTS = [["", "percent of total"], ["parent", "percent of parent"], ["selection", "percent of selection"], ["absolute", "absolute"]];
const PARENTS = /** @type {Record<string, string>} */ ({vars: "class", functions: "file", lines: "function"});

/** @type {Grid | null} */ let metricGrid = null;
/** @type {{bar: HTMLElement, formulas: HTMLElement, note: HTMLElement} | null} */ let metricParts = null;
/** @type {Metric[]} */ let shownMetrics = [];

/** The kind of rows: its own, but that of what is chosen when nobody said which. */
const metricKind = () => (["vars", "functions", "lines"].includes(state.rows) ? state.rows : kindOf(state.active) === "variable" && tables()?.vars.n ? "vars" : "functions");

/** @returns {string[]} */
const metricNames = () => (answered({report: "session"})?.head.metrics || []).map((/** @type {any} */ each) => each.name);

/** The metric at the left; its name in requests is "" for the one that is the default. */
const firstMetric = () => state.metric || answered({report: "session"})?.metric || "";

/** The metric at the right: the one that was chosen, else another one that can be had. */
function secondMetric() {
    const others = metricNames().filter((name) => name !== firstMetric());
    return others.includes(state.metric2) ? state.metric2 : others.find((name) => canAsk(metricRequest(name))) || "";
}

/**
 * @param {string} name
 * @returns {import("./ask.js").Request}
 */
function metricRequest(name) {
    const request = {vars: VARS, lines: LINES}[metricKind()] || FUNCTIONS;
    return {...ofChosen(request), ...(name === answered({report: "session"})?.metric ? {} : {metric: name}), ...(state.derive.length && isServed ? {derive: state.derive} : {})};
}

/**
 * The key that a row has in all answers.
 * @param {Answer} answer
 * @param {number} row
 */
const rowKey = (answer, row) => answer.text("item", row) || [answer.text("variable", row), answer.text("alloc_site", row), answer.text("function", row), answer.text("file", row), answer.number("line", row)].join("\n");

/** @param {Answer} answer */
const valuesOf = (answer) => (answer.columns.get(metricKind() === "vars" ? "value" : hasWord("inclusive") ? "inclusive" : "own")?.numbers || new Float64Array(answer.n));

/**
 * What numbers are a part of, and then how large.
 * @param {Answer} first whose rows are shown
 * @param {Answer} answer
 * @param {string} name
 * @returns {Metric}
 */
function metricOf(first, answer, name) {
    const own = valuesOf(answer), rows = new Map(), values = new Float64Array(first.n).fill(NaN), parts = new Float64Array(first.n).fill(NaN), sums = new Map();
    for (let i = 0; i < answer.n; i++)
        rows.set(rowKey(answer, i), i);
    const parent = (/** @type {Answer} */ from, /** @type {number} */ i) => from.text(PARENTS[metricKind()], i), isChosen = (/** @type {string} */ item) => item && (item === state.active || state.selected.includes(item));
    let chosen = 0;
    for (let i = 0; i < first.n; i++)
        values[i] = own[answer === first ? i : rows.get(rowKey(first, i)) ?? -1] ?? NaN;
    for (let i = 0; i < answer.n; i++) { // what the first metric has nothing of is a part, too
        sums.set(parent(answer, i), (sums.get(parent(answer, i)) || 0) + (own[i] || 0));
        if (isChosen(answer.text("item", i)))
            chosen += own[i] || 0;
    }
    const shares = answer.columns.get(metricKind() === "vars" ? "share" : hasWord("inclusive") ? "inclusive_share" : "own_share")?.numbers;
    const total = answer.head.total ?? answer.head.total_value ?? own.reduce((sum, each) => sum + (each || 0), 0);
    for (let i = 0; i < first.n; i++)
        parts[i] = !state.percent && shares ? shares[answer === first ? i : rows.get(rowKey(first, i)) ?? -1] ?? NaN : (100 * values[i]) / (state.percent === "parent" ? sums.get(parent(first, i)) : state.percent === "selection" ? chosen : total);
    return {answer, values, parts: parts.map((each) => (Number.isFinite(each) ? each : NaN)), name};
}

/** @returns {import("./grid.js").GridColumn[]} */
function metricColumns() {
    const first = shownMetrics[0].answer, isLine = metricKind() === "lines", names = first.columns.get(metricKind() === "vars" ? "variable" : "function");
    /** @type {import("./grid.js").GridColumn[]} */ const columns = [];
    for (const {name, values, parts} of shownMetrics) {
        const isAbsolute = state.percent === "absolute", ranks = isAbsolute ? values : parts, most = parts.reduce((sum, each) => (each > sum ? each : sum), 0) || 1;
        columns.push({key: name, title: name, classes: "n", width: "8.5rem", ranks, cell: (row) => (isAbsolute ? short(values[row]) : percent(parts[row]))},
                     {key: name + " bar", title: "", width: "minmax(3rem, 7rem)", ranks, cell: (row) => meter([["amount", (100 * parts[row]) / most]])});
    }
    if (shownMetrics.length > 1) {
        const [a, b] = shownMetrics, ratios = b.values.map((value, i) => value / a.values[i]);
        columns.push({key: "ratio", title: "right / left", classes: "n", width: "6rem", ranks: ratios, help: `${b.name} for each ${a.name}`, cell: (row) => (Number.isFinite(ratios[row]) ? short(ratios[row]) : "-")});
    }
    for (const [key, column] of first.columns)
        if (key.startsWith("derived."))
            columns.push({key, title: key.slice(8), classes: "n", width: "7rem", ranks: column.numbers, cell: (row) => short(column.number(row))});
    columns.push({key: "name", title: "name", isText: true, width: "minmax(9rem, 2fr)", ranks: names?.ranks || new Float64Array(first.n), cell: (row) => named(names?.text(row) || "")},
                 {key: "place", title: metricKind() === "vars" ? "comes from" : "place", isText: true, width: "minmax(8rem, 1fr)",
                  ranks: (first.columns.get("alloc_site") || first.columns.get("file"))?.ranks || new Float64Array(first.n),
                  cell: (row) => named(first.text("alloc_site", row) || place(first.text("file", row), isLine || first.number("line", row) > 0 ? first.number("line", row) : 0))});
    return columns;
}

/** Formulas that are shown, and a field for one more. */
function formulasOf() {
    if (!isServed)
        return [make("span", "dim", "Formulas need the recording itself: hpcviewer DB, or hpcquery functions --derive 'NAME = EXPRESSION' DB.")];
    const field = attributes(make("input", ""), {"aria-label": "Formula", placeholder: "wait% = 100 * 'EADDR memory (usec)' / 'EADDR (usec)'", size: 44}), form = make("form", "tools", field);
    form.append(button("Add", () => form.requestSubmit()));
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (field.value.trim())
            want({derive: [...state.derive, field.value.trim()]});
    });
    return [...state.derive.map((formula) => make("span", "", named(formula), attributes(button("\u00d7", () => want({derive: state.derive.filter((each) => each !== formula)}), "bare"), {"aria-label": "Take away " + formula}))), form];
}

function metricBar() {
    const names = metricNames(), others = names.filter((name) => name !== firstMetric());
    return [choice("Rows", METRIC_ROWS, metricKind() === "functions" ? "" : metricKind(), (rows) => want({rows: rows || "functions"})),
            others.length ? choice("beside it", [...(others.some((name) => canAsk(metricRequest(name))) ? [] : [["", "nothing"]]), ...others.map((name) => [name, name + (canAsk(metricRequest(name)) ? "" : " (not in this page)")])], secondMetric(), (metric2) => want({metric2})) : "",
            choice("as", PERCENTS, state.percent, (to) => want({percent: to})), threadsButton(), metricKind() === "vars" ? "" : check("with what it calls", hasWord("inclusive"), (on) => switchWord("inclusive", on))];
}

/** @type {import("./views.js").View} */
export const metrics = {
    name: "metrics", title: "Metrics", stack: "code",
    canShow: () => ({item: "", why: ""}),
    asks: () => [firstMetric(), secondMetric()].filter(Boolean).map(metricRequest),
    open(panel) {
        const itemAt = (/** @type {number} */ row) => shownMetrics[0].answer.text("item", row);
        metricGrid = new Grid({label: "Metrics", height: 28, choose: (row, event) => choose(itemAt(row), event), marks: (row) => markOf(tables(), itemAt(row))});
        metricParts = {bar: make("div", "tools"), formulas: make("div", "tools formulas"), note: make("p", "why")};
        panel.append(metricParts.bar, metricParts.formulas, metricParts.note, metricGrid.element);
    },
    async draw(_, mask) {
        if (!metricGrid || !metricParts)
            return;
        const isMark = shownMetrics.length && [...mask].every((each) => ["active", "selected", "size", "split", "view", "sort", "list", "theme"].includes(each));
        if (isMark && state.percent !== "selection" && shownMetrics[0].answer === answered(metricRequest(firstMetric()))) {
            metricGrid.mark();
            return;
        }
        const requests = [firstMetric(), secondMetric()].filter(Boolean).map(metricRequest), key = JSON.stringify(requests), troubles = /** @type {string[]} */ ([]);
        const found = await Promise.all(requests.map((request) => ask(request).catch((error) => {
            troubles.push(error.message);
            return null;
        })));
        if (key !== JSON.stringify([firstMetric(), secondMetric()].filter(Boolean).map(metricRequest)))
            return;
        metricParts.bar.replaceChildren(...metricBar());
        metricParts.formulas.replaceChildren(...formulasOf());
        const hasNothing = state.percent === "selection" && !state.active ? "Nothing is chosen. " : "";
        write(metricParts.note, hasNothing + [...new Set(troubles)].join(" ") + (metricNames().length < 2 ? "This recording has one metric." : ""));
        metricParts.note.hidden = !metricParts.note.textContent;
        metricGrid.element.hidden = !found[0];
        const first = found[0];
        if (!first)
            return;
        shownMetrics = found.flatMap((answer, i) => (answer ? [metricOf(first, answer, [firstMetric(), secondMetric()][i])] : []));
        metricGrid.fill(metricColumns(), first.n);
        metricGrid.arrange(metricGrid.sort || "-" + shownMetrics[0].name, searchOf(first, state.filter));
    },
};
