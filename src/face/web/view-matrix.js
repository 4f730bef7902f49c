// SPDX-License-Identifier: BSD-3-Clause
// What each thread, rank or processor has of each variable, function or line; and on which memory nodes pages were, and threads.
import {ask, answered, canAsk} from "./ask.js";
import {state, want} from "./state.js";
import {about, isForeign, tables, markOf, functionItem, lineItem} from "./things.js";
import {make, choice, percent, place, say, write} from "./parts.js";
import {orderOf} from "./grid.js";
import {searchOf, choose} from "./list.js";
import {Heat} from "./heat.js";
import {STEPS} from "./canvas.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./heat.js").Matrix} Matrix */
/** @typedef {import("./heat.js").Cell} Cell */
/**
 * What a row costs because its columns differ: how far the largest is above the mean, as a part of the whole. A small row that one thread
 * has alone comes behind a large one that two threads share badly.
 * @param {ArrayLike<number>} shares
 * @param {ArrayLike<number>} ratios
 * @returns {Float64Array}
 */
const excessOf = (shares, ratios) => Float64Array.from({length: shares.length}, (_, i) => shares[i] * Math.max(ratios[i] - 1, 0));

/** @typedef {{matrix: Matrix, shares: ArrayLike<number>, ratios: ArrayLike<number>, names: ArrayLike<number>, nBusy: number, answer: Answer, orders: Map<string, Uint32Array>}} Ordered rows, and what they are ordered by */

const MATRIX_ROWS = [["", "Variables"], ["functions", "Functions"], ["lines", "Lines"], ["numa", "Memory nodes"], ["pages", "Pages of variables"]];
const SPLITS = [["", "thread"], ["rank", "rank"], ["process", "process"], ["cpu", "CPU"], ["core", "core"], ["package", "package"], ["node", "memory node"], ["region", "region"], ["phase", "phase"]];
const MATRIX_ORDERS = [["", "imbalance"], ["share", "share"], ["name", "name"]];
const SHADE_SCALES = [["", "of the row"], ["all", "of all"]];

/** @type {Heat | null} */ let heat = null;
/** @type {{bar: HTMLElement, words: HTMLElement, key: HTMLElement, note: HTMLElement} | null} */ let pieces = null;
/** @type {WeakMap<Answer, Ordered>} */ const matrices = new WeakMap();
/** @type {Ordered | null} */ let pictured = null;

const isOfNodes = () => state.rows === "numa" || state.rows === "pages";

/** @returns {import("./ask.js").Request} */
const matrixRequest = () => about(isOfNodes() ? {report: "numa"} : {report: state.rows || "vars", by: state.by || "thread"});

/**
 * The thing that a row of a split table is about.
 * @param {Answer} answer
 * @param {number} row
 */
export function itemOf(answer, row) {
    const t = tables(), item = answer.text("item", row);
    if (item || !t)
        return item;
    if (answer.columns.has("variable")) {
        const same = t.byName.get(answer.text("variable", row)) || [], site = answer.text("alloc_site", row);
        return same.length ? t.vars.text("item", same.find((each) => t.vars.text("alloc_site", each) === site) ?? same[0]) : "";
    }
    return answer.number("line", row) > 0 && state.rows === "lines" ? lineItem(t, answer.text("file", row), answer.number("line", row)) :
        functionItem(t, answer.text("function", row), answer.text("module", row));
}

/**
 * @param {Answer} answer
 * @param {number} row
 * @param {boolean} isLine
 */
export function nameAt(answer, row, isLine) {
    const name = answer.text("variable", row) || answer.text("function", row), line = answer.number("line", row);
    return isLine && line > 0 ? `${place(answer.text("file", row), line)} ${name}` : name;
}

/** Rows by which is found out what works, and which part of the column with the most one has that does. */
const BUSY_ROWS = 50, BUSY_PART = 0.01;

/**
 * How many columns work: idle helper threads of a library, and launchers, have next to nothing of what costs most.
 * @param {ArrayLike<number>} shares
 * @param {number} n rows
 * @param {(row: number) => Map<number, Cell>} cells
 */
function busyOf(shares, n, cells) {
    /** @type {Map<number, number>} */ const sums = new Map();
    for (const row of orderOf(shares, n, true).subarray(0, BUSY_ROWS))
        for (const [column, {share}] of cells(row))
            sums.set(column, (sums.get(column) || 0) + share);
    const most = Math.max(0, ...sums.values());
    return [...sums.values()].filter((sum) => sum >= BUSY_PART * most).length || 1;
}

/**
 * Names of threads by their numbers, "12.3"; other names stay as they are.
 * @param {string} a
 * @param {string} b
 */
function byNumbers(a, b) {
    const [first, second] = [a, b].map((name) => name.split(".").map(Number)), at = first.findIndex((each, i) => each !== second[i]);
    return at < 0 ? first.length - second.length : (first[at] - second[at]) || 0;
}

/**
 * A table that is split by threads or places; cells are read when their row is seen.
 * @param {Answer} answer
 * @param {string} by
 * @param {boolean} isLine
 * @returns {Ordered}
 */
function ofSplit(answer, by, isLine) {
    const columns = /** @type {string[]} */ (answer.head.columns || []).map(String).sort(byNumbers), at = new Map(columns.map((name, i) => [name, i]));
    /** @type {Map<number, Map<number, Cell>>} */ const read = new Map();
    const shares = answer.columns.get("share")?.numbers || new Float64Array(answer.n), ofAll = answer.columns.get("max_over_mean")?.numbers;
    const cells = (/** @type {number} */ row) => {
        let found = read.get(row);
        if (!found) {
            found = new Map((answer.json("cells", row) || []).map((/** @type {any} */ each) =>
                [at.get(String(each[by] ?? "?")) ?? 0, {value: each.value, share: each.share, ofRow: each.share_of_row}]));
            read.set(row, found);
        }
        return found;
    };
    const nBusy = ofAll ? busyOf(shares, answer.n, cells) : columns.length, ratios = Float64Array.from({length: answer.n}, (_, row) => (ofAll ? (ofAll[row] * nBusy) / columns.length : 0));
    const note = (/** @type {number} */ row) => `${percent(answer.number("share", row))}${ofAll ? ` \u00d7${ratios[row].toFixed(2)}` : ""}`;
    const matrix = {n: answer.n, columns, across: by, name: (/** @type {number} */ row) => nameAt(answer, row, isLine), cells, note,
                    items: (/** @type {number} */ row, /** @type {number} */ column) => [itemOf(answer, row), column >= 0 && by === "thread" ? "thread:" + columns[column] : ""]};
    const names = answer.columns.get(isLine ? "file" : answer.columns.has("variable") ? "variable" : "function");
    return {matrix, answer, orders: new Map(), shares, ratios, nBusy, names: names?.ranks || new Float64Array(answer.n)};
}

/**
 * Rows that are known as cells.
 * @param {Answer} answer
 * @param {string[]} columns
 * @param {string} across
 * @param {{name: string, item: string, cells: number[], share: number}[]} rows numbers of samples or pages
 * @returns {Ordered}
 */
function ofRows(answer, columns, across, rows) {
    const sums = rows.map((row) => row.cells.reduce((sum, each) => sum + each, 0)), all = sums.reduce((sum, each) => sum + each, 0) || 1;
    const used = columns.filter((_, i) => rows.some((row) => row.cells[i] > 0)).length || 1;
    const ratios = rows.map((row, i) => (Math.max(0, ...row.cells) * used) / (sums[i] || 1));
    const cells = rows.map((row, i) => new Map(row.cells.flatMap((value, column) =>
        (value ? [/** @type {[number, Cell]} */ ([column, {value, share: Number.isNaN(row.share) ? (100 * value) / all : (row.share * value) / sums[i], ofRow: (100 * value) / sums[i]}])] : []))));
    const shares = rows.map((row, i) => (Number.isNaN(row.share) ? (100 * sums[i]) / all : row.share)), sorted = [...rows.keys()].sort((a, b) => (rows[a].name < rows[b].name ? -1 : 1));
    const names = new Float64Array(rows.length);
    sorted.forEach((row, i) => {
        names[row] = i;
    });
    return {answer, orders: new Map(), shares, ratios, names, nBusy: used, matrix: {n: rows.length, columns, across, name: (row) => rows[row].name, cells: (row) => cells[row],
                                                    note: (row) => `${percent(shares[row])} \u00d7${ratios[row].toFixed(2)}`, items: (row) => [rows[row].item]}};
}

/**
 * Regions have their variables; here variables have their regions.
 * @param {Answer} answer
 */
function ofRegions(answer) {
    /** @type {Map<string, {name: string, item: string, cells: number[], share: number}>} */ const rows = new Map();
    const t = tables(), by = answer.columns.has("phase") ? "phase" : "region";
    for (let i = 0; i < answer.n; i++)
        for (const each of answer.json("variables", i) || []) {
            const key = `${each.variable}\n${each.alloc_site}`, same = t?.byName.get(each.variable) || [];
            const item = t && same.length ? t.vars.text("item", same.find((row) => t.vars.text("alloc_site", row) === each.alloc_site) ?? same[0]) : "";
            const row = rows.get(key) || {name: each.variable, item: each.item || item, cells: new Array(answer.n).fill(0), share: 0};
            row.cells[i] += each.value ?? each.samples;
            row.share += each.share;
            rows.set(key, row);
        }
    return ofRows(answer, Array.from({length: answer.n}, (_, i) => answer.text(by, i) || "outside"), by, [...rows.values()]);
}

/** @param {Answer} answer */
function ofNodes(answer) {
    const n = answer.head.n_nodes || 0, columns = Array.from({length: n}, (_, i) => "node " + i);
    if (state.rows === "numa")
        return ofRows(answer, columns, "node of the pages", (answer.head.matrix || []).map((/** @type {any} */ row, /** @type {number} */ i) =>
            ({name: "threads on node " + i, item: "", cells: Array.isArray(row) ? row : row.samples || [], share: NaN})));
    return ofRows(answer, columns, "node of the pages", Array.from({length: answer.n}, (_, i) =>
        ({name: answer.text("variable", i), item: itemOf(answer, i), cells: answer.json("pages_on", i) || [], share: NaN})));
}

/** @param {Answer} answer */
function matrixOf(answer) {
    const key = answer, before = isOfNodes() ? null : matrices.get(key);
    if (before)
        return before;
    const found = isOfNodes() ? ofNodes(answer) : answer.columns.has("cells") ? ofSplit(answer, state.by || "thread", state.rows === "lines") : ofRegions(answer);
    matrices.set(key, found);
    return found;
}

/**
 * The largest cell, in percent of the whole: a cell is never larger than its row.
 * @param {Ordered} of
 */
function mostOf(of) {
    let most = 0;
    for (const row of orderOf(of.shares, of.matrix.n, true)) {
        if (of.shares[row] <= most)
            break;
        for (const cell of of.matrix.cells(row).values())
            most = Math.max(most, cell.share);
    }
    return most || 100;
}

/** @param {Ordered} of */
function arranged(of) {
    const order = of.orders.get(state.order) || orderOf(state.order === "name" ? of.names : state.order === "share" ? of.shares : excessOf(of.shares, of.ratios), of.matrix.n, state.order !== "name");
    of.orders.set(state.order, order);
    const keeps = of.answer.n === of.matrix.n ? searchOf(of.answer, state.filter) : null;
    if (keeps)
        return order.filter(keeps);
    return state.filter ? order.filter((row) => of.matrix.name(row).toLowerCase().includes(state.filter.toLowerCase())) : order;
}

/** @param {Answer | null} session */
function barOf(session) {
    const report = state.rows || "vars";
    /** @type {string[] | null} */ let words = null;
    for (let i = 0; session && i < session.n; i++)
        if (session.text("report", i) === report)
            words = session.json("by", i);
    const by = SPLITS.filter(([word]) => !words || !words.length || words.includes(word || "thread")).map(([word, title]) =>
        [word, title + (canAsk(about({report, by: word || "thread"})) ? "" : " (not in this page)")]);
    return [choice("Rows", MATRIX_ROWS, state.rows === "vars" ? "" : state.rows, (rows) => want({rows})), isOfNodes() ? "" : choice("by", by, state.by, (word) => want({by: word})),
            choice("Order", MATRIX_ORDERS, state.order, (order) => want({order})), choice("Shade", SHADE_SCALES, state.scale, (scale) => want({scale}))];
}

/**
 * @param {number} most
 * @param {Ordered} of
 */
function keyOf(most, {nBusy, matrix}) {
    const cells = Array.from({length: STEPS + 1}, (_, i) => make("span", "", make("i", "key shade-" + i), i ? ((most * i) / STEPS).toFixed(most < 10 ? 1 : 0) : "0"));
    const mean = nBusy < matrix.columns.length ? `the ${nBusy} of ${matrix.columns.length} that work` : "all";
    return [make("span", "", `percent ${state.scale ? "of all" : "of the row"}: `), ...cells, make("span", "words", `\u00d7 is the largest column over the mean of ${mean}; the order by imbalance is by what it has above that, of the whole.`)];
}

/** @type {import("./views.js").View} */
export const matrix = {
    name: "matrix", title: "Matrix", stack: "data",
    canShow: () => ({item: "", why: isForeign() ? "This input is no database of hpcprof: it is not read by threads." : ""}),
    asks: () => [matrixRequest()],
    open(panel) {
        const words = make("p", "dim heat-words");
        heat = new Heat({label: "Matrix", marks: (item) => markOf(tables(), item), tell: (text) => {
            write(words, text);
            if (document.activeElement?.classList.contains("heat-view"))
                say(text);
        }, choose: ([item, column], event) => ((event.ctrlKey || event.metaKey) && column ? choose(column, new MouseEvent("click")) : choose(item, event))});
        pieces = {bar: make("div", "tools"), words, key: make("p", "legend"), note: make("p", "why")};
        panel.append(pieces.bar, pieces.note, heat.element, words, pieces.key);
    },
    async draw(_, mask) {
        if (!heat || !pieces)
            return;
        const request = matrixRequest();
        if (mask.has("all") || ["rows", "by", "order", "scale", "metric", "profiles"].some((key) => mask.has(key)))
            pieces.bar.replaceChildren(...barOf(answered({report: "session"})));
        let answer = answered(request), why = "";
        if (!answer)
            answer = await ask(request).catch((error) => {
                why = error.message;
                return null;
            });
        if (JSON.stringify(request) !== JSON.stringify(matrixRequest()))
            return;
        if (isOfNodes() && state.profiles)
            why = "Memory nodes are known of all threads together: undo the choice of threads to see them.";
        if (answer && isOfNodes() && (answer.head.note || !(answer.head.n_nodes > 1)))
            why = answer.head.note || "There is one memory node.";
        write(pieces.note, why);
        pieces.note.hidden = !why;
        for (const each of [heat.element, pieces.words, pieces.key])
            each.hidden = Boolean(why);
        if (!answer || why)
            return;
        if (pictured?.answer !== answer || isOfNodes() || !["active", "selected", "size", "theme"].some((key) => mask.has(key)) || mask.size > 1) {
            pictured = matrixOf(answer);
            const most = state.scale ? mostOf(pictured) : 100;
            pieces.key.replaceChildren(...keyOf(most, pictured));
            heat.fill(pictured.matrix, arranged(pictured), !state.scale, most);
        }
        heat.drawSoon();
    },
};
