// SPDX-License-Identifier: BSD-3-Clause
// The source with what each line cost and which variables that was, and beside it the machine code of the function.
import {ask} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, standIn, rowOf, relatedTo, lineItem, markOf, variableRow, nameOf, kindOf, titleOf, whyNoLines} from "./things.js";
import {make, attributes, button, choice, check, percent, meter, baseName, write} from "./parts.js";
import {Grid} from "./grid.js";
import {choose} from "./list.js";
import {itemLink} from "./view-variable.js";
import {Machine} from "./machine.js";
import {highlighter} from "./highlight.js";

/** @typedef {import("./packed.js").Answer} Answer */

/**
 * @typedef {object} SourceLine
 * @property {number} number 0: lines that are left out
 * @property {string | null} text null: not known
 * @property {boolean} isInside it begins in a comment
 * @property {number} own share of the whole
 * @property {number} inclusive
 * @property {[string, number][]} data items of variables, and their part of the line
 */

const DATA_MAX = 3, LINE_LETTERS = 140;

/** @type {{file: string, lines: Answer | null, rows: SourceLine[], at: Map<number, number>, hot: number[], paint: ReturnType<typeof highlighter>, related: Map<string, number>, longest: number, isNarrow: boolean}} */
let opened = {file: "", lines: null, rows: [], at: new Map(), hot: [], paint: highlighter(""), related: new Map(), longest: 1, isNarrow: false};
/** @type {{grid: Grid, machine: Machine, bar: HTMLElement, files: HTMLElement, beside: HTMLElement, note: HTMLElement, split: HTMLElement} | null} */ let sourceParts = null;
/** @type {Answer | null} */ let filesOf = null;

/**
 * Whether a row of lines is a line of a file.
 * @param {Answer} lines
 * @param {number} row
 */
const isPlace = (lines, row) => lines.number("line", row) > 0 && lines.text("file", row) !== "";

/** @param {number} row */
const itemOfLine = (row) => {
    const t = tables();
    return t && opened.rows[row] && opened.rows[row].number ? lineItem(t, opened.file, opened.rows[row].number) : "";
};

/**
 * What lines cost, of one file.
 * @param {string} file
 */
function costsOf(file) {
    const t = tables(), {lines} = /** @type {import("./things.js").Tables} */ (t), costs = new Map(), isThere = lines.columns.get("file")?.finder(file);
    for (let i = 0; i < lines.n; i++) {
        if (!isThere?.(i))
            continue;
        const number = lines.number("line", i) || 0, own = lines.number("own_share", i) || 0, before = costs.get(number) || {own: 0, inclusive: 0, data: new Map()};
        before.own += own;
        before.inclusive += lines.number("inclusive_share", i) || 0;
        for (const each of lines.json("data", i) || []) {
            const row = t ? variableRow(t, each.variable, file, number) : -1, item = row >= 0 && t ? t.vars.text("item", row) : "";
            if (item)
                before.data.set(item, (before.data.get(item) || 0) + (own * each.value) / (lines.number("own", i) || 1));
        }
        costs.set(number, before);
    }
    return costs;
}

/**
 * The lines of a file, from the pieces that are there.
 * @param {string} file
 * @param {Answer | null} pieces
 */
function rowsOf(file, pieces) {
    const costs = costsOf(file), paint = highlighter(file);
    /** @type {SourceLine[]} */ const rows = [];
    const add = (/** @type {number} */ number, /** @type {string | null} */ text, /** @type {boolean} */ isInside) => {
        const cost = costs.get(number), own = cost ? cost.own : NaN;
        rows.push({number, text, isInside, own, inclusive: cost ? cost.inclusive : NaN, data: cost ? [...cost.data].sort((a, b) => b[1] - a[1]).slice(0, DATA_MAX).map(([item, value]) => [item, own ? value / own : 0]) : []});
    };
    let behind = 1;
    for (let piece = 0; pieces && piece < pieces.n; piece++) {
        const first = pieces.number("first", piece), texts = pieces.text("text", piece).split("\n");
        if (texts[texts.length - 1] === "")
            texts.pop();
        if (first > behind)
            add(0, `${first - behind} lines`, false);
        let isInside = false;
        texts.forEach((text, i) => {
            add(first + i, text, isInside);
            isInside = paint.endsInside(text, isInside);
        });
        behind = first + texts.length;
    }
    const known = new Set(rows.map((row) => row.number));
    for (const number of [...costs.keys()].sort((a, b) => a - b))
        if (!known.has(number))
            add(number, null, false);
    return rows;
}

/** @param {SourceLine} line */
function dataOf(line) {
    const links = make("span", "line-data"), t = tables();
    for (const [item, part] of line.data)
        links.append(itemLink(item), ` ${percent(100 * part)} `);
    const item = t && line.number ? lineItem(t, opened.file, line.number) : "", share = item ? opened.related.get(item) : undefined;
    if (share !== undefined)
        links.prepend(make("strong", "of-it", `${percent(100 * share)} of it `));
    return links;
}

/** @param {SourceLine} line */
function codeOf(line) {
    if (line.number && line.text !== null)
        return make("code", "", ...opened.paint.parts(line.text, line.isInside));
    return make("span", "dim", line.text === null ? "(no copy of the source)" : line.text);
}

/** @returns {import("./grid.js").GridColumn[]} */
function sourceColumns() {
    const {rows} = opened, ranks = (/** @type {(row: SourceLine) => number} */ of) => Float64Array.from(rows, of);
    const width = Math.min(rows.reduce((most, row) => Math.max(most, (row.text || "").length), 40), LINE_LETTERS);
    /** @type {import("./grid.js").GridColumn[]} */ const columns = [
        {key: "line", title: "line", classes: "n dim", width: "3.4rem", isText: true, ranks: ranks((row) => row.number), cell: (row) => rows[row].number || ""},
        {key: "own", title: "share", classes: "n", width: "7rem", help: "Of the whole, without what it calls", ranks: ranks((row) => row.own), cell: (row) => {
            const {own} = rows[row];
            return own > 0 ? make("span", "line-cost", meter([["amount", (100 * own) / opened.longest]]), percent(own)) : "";
        }},
        {key: "inclusive", title: "with calls", classes: "n", width: "5.4rem", help: "With what it calls, where that is more", ranks: ranks((row) => row.inclusive),
         cell: (row) => (rows[row].inclusive > (rows[row].own || 0) * 1.000001 ? "\u2192 " + percent(rows[row].inclusive) : "")},
        {key: "data", title: "data, of the share", width: "minmax(17rem, 24rem)", isText: true, ranks: ranks((row) => (row.data.length ? row.own : NaN)), cell: (row) => dataOf(rows[row])},
        {key: "source", title: "source", classes: "line-source", width: `minmax(${width}ch, auto)`, isText: true, ranks: ranks((row) => row.number), cell: (row) => codeOf(rows[row])},
    ];
    const n = tables()?.vars.n ? 2 : 1;
    columns.splice(3, 2 - n); // the data
    if (opened.isNarrow) // the source is seen first, the rest by scrolling
        columns.push(...columns.splice(2, n));
    return columns;
}

/** @param {number} step 1: the next costly line, -1: the one before */
function toCostly(step) {
    const {hot, at} = opened, t = tables(), row = t ? rowOf(t, state.active) : -1, now = t && row >= 0 && kindOf(state.active) === "line" ? hot.indexOf(at.get(t.lines.number("line", row)) ?? -1) : -1;
    const next = now < 0 ? (step > 0 ? 0 : hot.length - 1) : (now + step + hot.length) % hot.length;
    if (hot.length)
        want({active: itemOfLine(hot[next]), selected: []});
}

/**
 * The files with samples, and their shares.
 * @param {Answer} lines
 */
function filesIn(lines) {
    const names = lines.columns.get("file"), numbers = lines.columns.get("line")?.numbers || [], own = lines.columns.get("own_share")?.numbers || [], ids = names?.words();
    /** @type {Map<number, {row: number, sum: number}>} */ const files = new Map();
    for (let i = 0; ids && i < lines.n; i++) {
        if (!(numbers[i] > 0))
            continue;
        const file = files.get(ids[i]);
        if (file)
            file.sum += own[i] || 0;
        else
            files.set(ids[i], {row: i, sum: own[i] || 0});
    }
    return [...files.values()].map(({row, sum}) => /** @type {[string, number]} */ ([lines.text("file", row), sum])).filter(([name]) => name).sort((a, b) => b[1] - a[1]);
}

/** @param {string} file */
function openFileAt(file) {
    const t = tables();
    for (let i = 0; t && i < t.lines.n; i++)
        if (t.lines.text("file", i) === file && isPlace(t.lines, i)) {
            want({active: t.lines.text("item", i), selected: []});
            return;
        }
}

/**
 * @param {string} file
 * @returns {Promise<[Answer | null, string]>}
 */
async function piecesOf(file) {
    try {
        return [await ask({report: "source", subject: file}), ""];
    } catch (error) {
        return [null, "Only lines with samples are listed: there is no copy of this file here. " + (error instanceof Error ? error.message : "")];
    }
}

let sourceWidth = 0;
/** Whether there is little room. Before the view was laid out that is guessed by the window: to ask would lay out everything. */
const isNarrow = () => (sourceWidth || (innerWidth < 992 ? innerWidth : innerWidth - 370)) < 720;

/** Puts the columns into the order that fits. */
function fitColumns() {
    if (opened.isNarrow === isNarrow())
        return;
    opened.isNarrow = !opened.isNarrow;
    sourceParts?.grid.fill(sourceColumns(), opened.rows.length);
}

/** How often a line was opened. */
let opening = 0;

/** @param {string} item a line */
async function openFile(item) {
    const t = tables(), row = t ? rowOf(t, item) : -1, parts = sourceParts;
    if (!t || !parts || row < 0)
        return;
    const file = t.lines.text("file", row), number = t.lines.number("line", row), turn = ++opening;
    if (filesOf !== t.lines) {
        filesOf = t.lines;
        parts.files.replaceChildren(choice("File", filesIn(t.lines).map(([name, share]) => [name, `${percent(share)}  ${baseName(name)}`]), file, openFileAt));
    }
    /** @type {HTMLSelectElement} */ (parts.files.firstElementChild?.lastElementChild).value = file;
    if (opened.file !== file || opened.lines !== t.lines) {
        const [pieces, why] = await piecesOf(file), rows = rowsOf(file, pieces);
        if (turn !== opening) /* another was opened meanwhile, and may be there already */
            return;
        const hot = rows.map((_, i) => i).filter((i) => rows[i].own > 0).sort((a, b) => rows[b].own - rows[a].own);
        opened = {file, lines: t.lines, rows, hot, at: new Map(rows.map((each, i) => [each.number, i])), paint: highlighter(file), related: new Map(), longest: hot.length ? rows[hot[0]].own : 1, isNarrow: isNarrow()};
        write(parts.note, why);
        parts.grid.sort = "";
        parts.grid.fill(sourceColumns(), rows.length);
    }
    opened.related = state.active && kindOf(state.active) === "variable" ? relatedTo(t, state.active).lines : new Map();
    const at = opened.at.get(number);
    if (at !== undefined)
        parts.grid.show(at, false);
    parts.grid.draw();
}

/** @type {import("./views.js").View} */
export const source = {
    name: "annotate", title: "Source", stack: "code",
    canShow(item) {
        const t = tables();
        if (!t)
            return {item: "", why: ""};
        let first = 0;
        while (first < t.lines.n && !isPlace(t.lines, first))
            first++;
        if (first === t.lines.n)
            return {item: "", why: whyNoLines() || "No line of a source is known: compile with -g."};
        if (!item)
            return {item: t.lines.text("item", first), why: ""};
        const line = standIn(t, item, "line");
        if (line.item && rowOf(t, line.item) >= 0 && isPlace(t.lines, rowOf(t, line.item)))
            return line;
        const code = standIn(t, item, "function");
        return code.item ? code : {item: "", why: line.why || "No line of it is known."};
    },
    asks: (item) => {
        const t = tables(), row = t ? rowOf(t, item) : -1, isLine = kindOf(item) === "line";
        if (!t || row < 0)
            return [];
        const file = isLine ? t.lines.text("file", row) : "", name = isLine ? t.lines.text("function", row) : nameOf(item);
        return [about({report: "annotate", subject: file || name}), ...(state.source === "machine" ? [about({instructions: true, report: "annotate", subject: name})] : [])];
    },
    open(panel) {
        const grid = new Grid({label: "Source", height: 21, marks: (row) => markOf(tables(), itemOfLine(row)), choose: (row, event) => choose(itemOfLine(row), event)});
        const files = make("span", ""), note = make("p", "dim"), beside = check("machine code", false, (isOn) => want({source: isOn ? "machine" : ""})), machine = new Machine();
        const bar = make("div", "tools", files, button("Next costly line (N)", () => toCostly(1)), button("Previous (P)", () => toCostly(-1)), beside);
        const split = make("div", "source-split", grid.element, machine.element);
        sourceParts = {grid, machine, bar, files, beside, note, split};
        attributes(grid.element, {"data-kind": "source"});
        panel.append(bar, note, split);
        new ResizeObserver(([entry]) => {
            sourceWidth = entry.contentRect.width;
            if (sourceWidth && opened.file)
                fitColumns();
        }).observe(bar);
        panel.addEventListener("keydown", (event) => {
            const key = event.key.toLowerCase();
            if ((key === "n" || key === "p") && !event.ctrlKey && !event.altKey && !event.metaKey && !(event.target instanceof HTMLSelectElement)) {
                event.preventDefault();
                toCostly(key === "n" ? 1 : -1);
            }
        });
    },
    async draw(item, mask) {
        const parts = sourceParts, t = tables();
        if (!parts || !t)
            return;
        const isLine = kindOf(item) === "line", row = rowOf(t, item), isBeside = state.source === "machine" || !isLine;
        /** @type {HTMLInputElement} */ (parts.beside.firstElementChild).checked = isBeside;
        parts.split.classList.toggle("has-machine", isBeside);
        parts.machine.element.hidden = !isBeside;
        parts.grid.element.hidden = !isLine;
        if (!isLine)
            write(parts.note, `No line of ${titleOf(item)} is known: compile with -g.`);
        if (isLine && (opened.lines !== t.lines || [...mask].some((each) => ["all", "active", "data", "metric"].includes(each))))
            await openFile(item);
        else if (isLine)
            parts.grid.mark();
        fitColumns();
        if (isBeside)
            await parts.machine.show(isLine ? t.lines.text("function", row) : nameOf(item), isLine ? t.lines.text("file", row) : "", isLine ? t.lines.number("line", row) : NaN);
    },
};
