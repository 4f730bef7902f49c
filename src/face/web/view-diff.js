// SPDX-License-Identifier: BSD-3-Clause
// What has changed: this recording beside another one, which is read from a file, by the rules of `hpcquery diff`. Nothing of that file is run.
import {answered, ask, canAsk, openRecording} from "./ask.js";
import {state, want, tell, hasWord, switchWord} from "./state.js";
import {about, tables, markOf, VARS, FUNCTIONS, LINES} from "./things.js";
import {make, attributes, button, check, choice, named, place, short} from "./parts.js";
import {Grid} from "./grid.js";
import {choose} from "./list.js";
import {matchEntries, libraryOf} from "./match.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./match.js").Entry} Entry */
/** @typedef {{total: number, cost: number, rows: {name: string, file: string, module: string, line: number, value: number, item: string, cells: Map<string, number> | null}[], threads: string[] | null}} Side */
/** @typedef {{name: string, where: string, item: string, before: number, after: number, noise: number}} Change before, after: NaN where a side does not have it */
/** @typedef {{name: string, find: (request: import("./ask.js").Request) => Promise<Answer>}} Other */

const DIFF_ROWS = [["", "Variables"], ["functions", "Functions"], ["lines", "Lines"]];
const THRESHOLD = 1, PAIRED_LEAST = 4, NORMAL = 1.959964;

/** Time that the shares are no part of. */
const KERNEL = "<kernel>";

/** @type {Other | null} */ let other = null;
/** @type {Grid | null} */ let diffGrid = null;
/** @type {Change[]} */ let changes = [];
/** @type {{bar: HTMLElement, head: HTMLElement, drop: HTMLElement, file: HTMLInputElement} | null} */ let diffParts = null;
let comparedAs = "";

/**
 * What 95 of 100 values lie within, for few of them.
 * src: Student, The probable error of a mean, 1908; Cornish and Fisher, 1938
 * @param {number} n degrees of freedom, 3 or more
 */
function student(n) {
    const z = NORMAL, cube = z * z * z;
    return n === 3 ? 3.182446 : n === 4 ? 2.776445 : z + (cube + z) / (4 * n) + (5 * cube * z * z + 16 * cube + 3 * z) / (96 * n * n);
}

/** @returns {"vars" | "functions" | "lines"} */
const diffKind = () => (state.rows === "functions" || state.rows === "lines" ? state.rows : "vars");

/**
 * One recording, as far as it is compared.
 * @param {Answer} answer
 * @param {Answer} vars
 * @param {Answer | null} split by threads
 * @param {"vars" | "functions" | "lines"} kind
 * @returns {Side}
 */
function sideOf(answer, vars, split, kind) {
    const isLine = kind === "lines", total = vars.head.total_value, samples = vars.head.total_samples, cost = total / samples;
    const keyOf = (/** @type {Answer} */ from, /** @type {number} */ i) => (kind === "vars" ? [from.text("variable", i), from.text("alloc_site", i)] :
        [from.text("function", i), from.text("file", i), isLine ? from.number("line", i) : "", from.text("module", i)]).join("\n");
    const cellsAt = new Map();
    for (let i = 0; split && i < split.n; i++)
        cellsAt.set(keyOf(split, i), i);
    const rows = Array.from({length: answer.n}, (_, i) => {
        const at = cellsAt.get(keyOf(answer, i)), file = answer.text("file", i), line = answer.number("line", i);
        const cells = split && at !== undefined ? new Map((split.json("cells", at) || []).map((/** @type {any} */ each) => [String(each.thread), Number(each.value)])) : null;
        const name = kind === "vars" ? answer.text("variable", i) : isLine ? place(file, line) : answer.text("function", i);
        return {name, file, module: answer.text("module", i), line, value: answer.number(kind === "vars" ? "value" : "own", i), item: answer.text("item", i), cells};
    });
    return {total: answer.head.total ?? total, cost: cost > 1 ? cost : 0, rows, threads: split ? split.head.columns.map(String) : null};
}

/**
 * By how much a sum may differ when nothing has changed; NaN: not known.
 * @param {Side[]} sides
 * @param {Entry[]} same
 * @param {number[]} values
 */
function noiseOf(sides, same, values) {
    const [a, b] = sides, threads = a.threads && b.threads && a.threads.join() === b.threads.join() ? a.threads : [], n = threads.length;
    const bySamples = a.cost > 0 && b.cost > 0 ? NORMAL * Math.sqrt(a.cost * Math.abs(values[0]) + b.cost * Math.abs(values[1])) : NaN;
    if (n < PAIRED_LEAST)
        return bySamples;
    const differences = threads.map((thread) => same.reduce((sum, {side, row}) => sum + (side ? 1 : -1) * (sides[side].rows[row].cells?.get(thread) || 0), 0));
    const mean = differences.reduce((sum, each) => sum + each, 0) / n, squares = differences.reduce((sum, each) => sum + (each - mean) ** 2, 0);
    const byThreads = student(n - 1) * Math.sqrt((squares / (n - 1)) * n);
    return Number.isNaN(bySamples) ? byThreads : Math.max(bySamples, byThreads);
}

/**
 * @param {Side[]} sides
 * @param {"vars" | "functions" | "lines"} kind
 * @returns {Change[]} all that have values, the largest change first
 */
export function compare(sides, kind) {
    const entries = sides.flatMap((of, side) => of.rows.flatMap((row, i) => (row.value && row.name !== KERNEL ? [{name: row.name, place: row.file || row.module, library: kind === "lines" ? "" : libraryOf(row.module), side, row: i}] : [])));
    const made = matchEntries(entries).map((same) => {
        const values = [0, 1].map((side) => same.reduce((sum, entry) => sum + (entry.side === side ? sides[side].rows[entry.row].value : 0), 0));
        const first = same.find((entry) => entry.side === 0) || same[0], row = sides[first.side].rows[first.row], mine = same.find((entry) => sides[entry.side].rows[entry.row].item);
        const [before, after] = values.map((value, side) => (same.some((entry) => entry.side === side) ? value : NaN));
        return {name: row.name, where: kind === "lines" ? "" : place(row.file, row.line), item: mine ? sides[mine.side].rows[mine.row].item : "", before, after, noise: noiseOf(sides, same, values)};
    });
    return made.sort((a, b) => Math.abs(changeOf(b)) - Math.abs(changeOf(a)));
}

/** @param {Change} row */
const changeOf = (row) => (row.after || 0) - (row.before || 0);

/** @param {number} value */
const points = (value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(1);

/** @param {number} value */
const signed = (value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + short(Math.abs(value));

/**
 * A bar to the left for less, to the right for more, with arrows and patterns.
 * @param {number} part of the longest, -1 to 1
 */
function changeBar(part) {
    const bar = make("span", "change"), half = make("i", part < 0 ? "less" : "more");
    half.style.width = 50 * Math.abs(part) + "%";
    half.style.left = part < 0 ? 50 * (1 + part) + "%" : "50%";
    bar.append(half);
    return attributes(bar, {"aria-hidden": "true"});
}

/**
 * @param {Side[]} sides
 * @returns {import("./grid.js").GridColumn[]}
 */
function diffColumns(sides) {
    const all = sides[0].total, most = Math.max(...changes.map((row) => Math.abs(changeOf(row)))) || 1;
    /**
     * @param {(row: Change) => number | string} value
     */
    const ranks = (value) => {
        const values = changes.map(value), sorted = typeof values[0] === "string" ? new Map([...new Set(values)].sort().map((each, i) => [each, i])) : null;
        return Float64Array.from(values, (each) => (sorted ? sorted.get(each) || 0 : Number(each)));
    };
    const wordsAt = (/** @type {Change} */ row) => `${signed(changeOf(row))} ${changeOf(row) < 0 ? "\u25bc" : "\u25b2"}`;
    return [
        {key: "change", title: "change", classes: "n", width: "6.5rem", ranks: ranks((row) => Math.abs(changeOf(row))), help: "After less before; sorted by how much", cell: (i) => wordsAt(changes[i])},
        {key: "percent", title: "of all", classes: "n", width: "5rem", ranks: ranks(changeOf), help: "In percent of all that there was before; sorted by sign", cell: (i) => points((100 * changeOf(changes[i])) / all) + " %"},
        {key: "bar", title: "", width: "minmax(5rem, 9rem)", ranks: ranks(changeOf), cell: (i) => changeBar(changeOf(changes[i]) / most)},
        {key: "name", title: "name", isText: true, classes: "name", width: "minmax(9rem, 2fr)", ranks: ranks((row) => row.name), cell: (i) => named(changes[i].name)},
        {key: "before", title: "before", classes: "n", width: "5.2rem", ranks: ranks((row) => row.before), cell: (i) => short(changes[i].before)},
        {key: "after", title: "after", classes: "n", width: "5.2rem", ranks: ranks((row) => row.after), cell: (i) => short(changes[i].after)},
        {key: "share", title: "points", classes: "n", width: "5rem", ranks: ranks((row) => pointsOf(row, sides)), help: "Share after less share before, in points of percent", cell: (i) => points(pointsOf(changes[i], sides))},
        {key: "noise", title: "noise", classes: "n", width: "8rem", ranks: ranks((row) => row.noise), help: "95 of 100 differences stay below when nothing has changed",
         cell: (i) => short(changes[i].noise) + (isNoise(changes[i]) ? " (noise?)" : "")},
        {key: "where", title: "place", isText: true, width: "minmax(6rem, 1fr)", ranks: ranks((row) => row.where), cell: (i) => named(changes[i].where)},
    ];
}

/**
 * @param {Change} row
 * @param {Side[]} sides
 */
const pointsOf = (row, sides) => (100 * (row.after || 0)) / sides[1].total - (100 * (row.before || 0)) / sides[0].total;

/** @param {Change} row */
const isNoise = (row) => Math.abs(changeOf(row)) <= row.noise;

/** Compares anew what is asked for now. */
async function compareNow() {
    const kind = diffKind(), request = about({vars: VARS, functions: FUNCTIONS, lines: LINES}[kind]), split = about({report: kind, by: "thread"});
    if (!other)
        return null;
    const read = async (/** @type {(request: import("./ask.js").Request) => Promise<Answer>} */ find) =>
        sideOf(await find(request), await find(about(VARS)), await find(split).catch(() => null), kind);
    const sides = [await read(other.find), await read((each) => (canAsk(each) ? ask(each) : Promise.reject(new Error("This page does not hold that."))))];
    if (hasWord("swap"))
        sides.reverse();
    changes = compare(sides, kind);
    return sides;
}

/** @param {Side[]} sides */
function keepsOf(sides) {
    const least = ((state.min === "" ? THRESHOLD : Number(state.min) || 0) / 100) * sides[0].total, word = state.filter.toLowerCase();
    return (/** @type {number} */ i) => {
        const change = changeOf(changes[i]);
        return (hasWord("increases") ? change : Math.abs(change)) > least && !(hasWord("noise") && isNoise(changes[i])) && (!word || (changes[i].name + changes[i].where).toLowerCase().includes(word));
    };
}

/** @param {File} file */
async function load(file) {
    if (!diffParts)
        return;
    try {
        other = {name: file.name, find: openRecording(await file.text())};
        await other.find(about(VARS));
    } catch (error) {
        other = null;
        diffParts.drop.lastElementChild?.replaceChildren(make("strong", "", `${file.name}: ${error instanceof Error ? error.message : error}`));
    }
    comparedAs = "";
    tell(new Set(["data"]));
}

/** @param {HTMLElement} bar */
function fillBar(bar) {
    const least = make("input", "");
    least.type = "number";
    attributes(least, {min: 0, max: 100, step: 0.1, "aria-label": "Least change in percent of all before"});
    least.value = state.min === "" ? String(THRESHOLD) : state.min;
    least.addEventListener("change", () => want({min: least.value}));
    bar.replaceChildren(choice("Rows", DIFF_ROWS, diffKind() === "vars" ? "" : state.rows, (rows) => want({rows})), make("label", "", "more than ", least, " % of all"),
                        check("only more", hasWord("increases"), (on) => switchWord("increases", on)), check("beyond noise", hasWord("noise"), (on) => switchWord("noise", on)),
                        check("this page is what was before", hasWord("swap"), (on) => switchWord("swap", on)),
                        button("Another file", () => diffParts?.file.click()));
}

/** @param {HTMLElement} panel */
function openDiff(panel) {
    const file = attributes(make("input", ""), {type: "file", accept: ".html,.htm", "aria-label": "Page to compare with", class: "unseen", tabindex: -1});
    file.addEventListener("change", () => file.files && file.files[0] && load(file.files[0]));
    const drop = make("div", "drop", make("p", "", "Compare with another recording: choose its page (hpcviewer -o, hpcrun --report), or drop it here. It is not run."),
                      button("Choose a page", () => file.click()), make("p", "failed-words"));
    panel.addEventListener("dragover", (event) => event.preventDefault());
    panel.addEventListener("drop", (event) => {
        event.preventDefault();
        const dropped = event.dataTransfer?.files[0];
        if (dropped)
            load(dropped);
    });
    diffGrid = new Grid({label: "Differences", height: 28, choose: (i, event) => choose(changes[i].item, event), marks: (i) => markOf(tables(), changes[i].item)});
    diffParts = {bar: make("div", "tools"), head: make("p", ""), drop, file};
    panel.append(file, diffParts.bar, diffParts.head, drop, diffGrid.element);
}

/** @type {Side[] | null} */ let comparedSides = null;

/** @type {import("./views.js").View} */
export const diff = {
    name: "diff", title: "Compare", stack: "data", isOfAll: true,
    canShow: () => ({item: "", why: ""}),
    asks: () => [],
    open: openDiff,
    async draw(_, mask) {
        if (!diffParts || !diffGrid)
            return;
        const isReady = Boolean(other);
        diffParts.drop.hidden = isReady;
        for (const each of [diffParts.bar, diffParts.head, diffGrid.element])
            each.hidden = !isReady;
        if (!other || !answered(about(VARS)))
            return;
        const key = [other.name, diffKind(), state.metric, hasWord("swap")].join("\n");
        if (mask.has("active") || mask.has("selected"))
            diffGrid.mark();
        if (key === comparedAs && [...mask].every((each) => ["active", "selected", "size", "code", "sort", "list"].includes(each)))
            return;
        if (key !== comparedAs) {
            const sides = await compareNow();
            if (!sides)
                return;
            comparedSides = sides;
            comparedAs = key;
            diffGrid.fill(diffColumns(sides), changes.length);
        }
        if (!comparedSides)
            return;
        fillBar(diffParts.bar);
        diffGrid.arrange(diffGrid.sort, keepsOf(comparedSides));
        const [before, after] = comparedSides, metric = state.metric || answered(about(VARS))?.metric || "";
        const words = `${metric}: ${short(before.total)} before, ${short(after.total)} after (${points((100 * (after.total - before.total)) / before.total)} %). ` +
            `${diffGrid.order.length} of ${changes.length} rows. Before: ${hasWord("swap") ? "this page" : other.name}; after: ${hasWord("swap") ? other.name : "this page"}.`;
        diffParts.head.replaceChildren(words, diffKind() === "vars" ? " Names in < > are no variables: hpcquery diff --by variable leaves them out." : "",
                                         before.threads && after.threads ? "" : " Noise is by the number of samples alone: a page without rows by thread does not know more; hpcquery diff may find more noise.");
    },
};
