// SPDX-License-Identifier: BSD-3-Clause
// All variables as a table: what each costs, why, and where it comes from.
import {answered} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, markOf, whyNoVariables, VARS} from "./things.js";
import {make, percent, named, meter, size, short} from "./parts.js";
import {Grid} from "./grid.js";
import {searchOf, choose} from "./list.js";
import {partsOf, wordsOf, legend, kernelPart} from "./view-answer.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./grid.js").GridColumn} GridColumn */

/** @type {Grid | null} */ let grid = null;
/** @type {Answer | null} */ let filled = null;

/**
 * Columns of numbers: key, title, how they are shown, width, help.
 * @type {[string, string, (value: number) => string, string, string][]}
 */
const NUMBERS = [
    ["memory_share", "memory", percent, "4.9rem", "Waiting for memory, in percent of the whole"],
    ["execution_share", "execution", percent, "5.4rem", "Computing, not waiting"],
    ["unverified_share", "unverified", percent, "5.7rem", "Not known whether it waited"],
    ["first_touch_share", "touches", percent, "5rem", "The kernel found and cleared pages that were used for the first time"],
    ["samples", "samples", short, "4.7rem", "How many samples"],
    ["size_bytes", "size", size, "5rem", "Bytes of all blocks"],
    ["n_blocks", "blocks", short, "3.8rem", "How many blocks"],
];

/**
 * Whether it may wait for memory, but nobody knows how much.
 * @param {Answer} vars
 * @param {number} row
 */
const isUnknown = (vars, row) => Number.isNaN(vars.number("memory_share", row)) && vars.number("memory_high", row) >= 0.05;

/**
 * @param {Answer} vars
 * @returns {GridColumn[]}
 */
function columnsOf(vars) {
    /**
     * @param {string} key
     * @returns {ArrayLike<number>}
     */
    const ranks = (key) => vars.columns.get(key)?.ranks || new Float64Array(vars.n);
    const longest = vars.n ? vars.number("share", 0) || 1 : 1;
    /** @type {GridColumn[]} */ const columns = [
        {key: "share", title: "share", classes: "n", width: "4.5rem", ranks: ranks("share"), cell: (row) => percent(vars.text("class", row) === "kernel" ? NaN : vars.number("share", row))},
        {key: "bar", title: "", width: "minmax(3.2rem, 9rem)", ranks: ranks("memory_high"), help: "Sort by what may wait for memory", cell: (row) => {
            const parts = partsOf(vars, row);
            return meter(parts.map(([name, value]) => [name, (100 * value) / longest]), wordsOf(parts));
        }},
        {key: "variable", title: "variable", isText: true, classes: "name", width: "minmax(8rem, 2fr)", ranks: ranks("variable"), cell: (row) => named(vars.text("variable", row))},
        {key: "class", title: "class", isText: true, width: "6rem", ranks: ranks("class"), cell: (row) => vars.text("class", row)},
    ];
    for (const [key, title, show, width, help] of NUMBERS)
        if (vars.columns.has(key) && (key !== "first_touch_share" || vars.columns.get(key)?.numbers?.some((each) => each > 0)))
            columns.push({key, title, help, classes: "n", width, ranks: ranks(key), cell: (row) => (key === "memory_share" && isUnknown(vars, row) ? "unknown" : show(vars.number(key, row)))});
    columns.push({key: "alloc_site", title: "comes from", isText: true, width: "minmax(9rem, 2fr)", ranks: ranks("alloc_site"), cell: (row) => make("span", "", vars.text("class", row) === "kernel" && kernelPart() ?
        make("span", "dim", percent(kernelPart()) + " of the CPU time, without samples: ") : "", named(vars.text("alloc_site", row)))});
    return columns;
}

/** @type {import("./views.js").View} */
export const variables = {
    name: "vars", title: "Variables", stack: "data", isSorted: true,
    canShow: () => ({item: "", why: whyNoVariables()}),
    asks: () => [about({report: "vars"})],
    open(panel) {
        grid = new Grid({label: "Variables", height: 28, marks: (row) => (filled ? markOf(tables(), filled.text("item", row)) : ""), onSort: (sort) => want({sort}),
                         choose: (row, event) => filled && choose(filled.text("item", row), event)});
        panel.append(grid.element, legend());
    },
    draw(_, mask) {
        const vars = answered(about(VARS));
        if (!vars || !grid)
            return;
        const isNew = vars !== filled;
        if (isNew) {
            filled = vars;
            grid.sort = state.sort;
            grid.fill(columnsOf(vars), vars.n);
        }
        if (isNew || mask.has("filter") || mask.has("sort") || mask.has("all"))
            grid.arrange(state.sort, searchOf(vars, state.filter));
        const row = tables()?.rows.get(state.active);
        if ((isNew || mask.has("active")) && row !== undefined && state.active.startsWith("variable:"))
            grid.show(row);
        grid.mark();
    },
};
