// SPDX-License-Identifier: BSD-3-Clause
// The list at the left: all things of a kind, to search and to choose from.
import {ask, answered, canAsk} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, markOf, kindOf, titleOf, VARS, FUNCTIONS, LINES} from "./things.js";
import {make, attributes, choice, percent, named, place} from "./parts.js";
import {Grid} from "./grid.js";

/** @typedef {import("./packed.js").Answer} Answer */

/** Kinds with tables of their own, whose rows tell more than those of the report of things. */
const TABLES = /** @type {Record<string, import("./ask.js").Request>} */ ({variable: VARS, function: FUNCTIONS, line: LINES});
const KINDS = [["variable", "Variables"], ["function", "Functions"], ["line", "Lines"], ["file", "Files"], ["module", "Modules"], ["type", "Types"], ["field", "Fields"],
               ["site", "Allocation sites"], ["thread", "Threads"], ["region", "Regions"]];

/** @param {string} kind */
export const requestOf = (kind) => about(TABLES[kind] || {report: "items", subject: kind});

/**
 * What a search looks at.
 * @param {Answer} answer
 * @param {string} word
 * @returns {((row: number) => boolean) | null}
 */
export function searchOf(answer, word) {
    if (!word)
        return null;
    const low = word.toLowerCase(), keys = ["variable", "item", "function", "alloc_site", "file", "type"].filter((key) => answer.columns.get(key)?.isText);
    const hits = new Uint8Array(answer.texts.length); // 0: not looked at, 1: no, 2: yes
    const isHit = (/** @type {number} */ id) => {
        if (id >= hits.length)
            return false;
        if (!hits[id])
            hits[id] = answer.texts[id].toLowerCase().includes(low) ? 2 : 1;
        return hits[id] === 2;
    };
    const columns = keys.map((key) => /** @type {import("./packed.js").Column} */ (answer.columns.get(key)));
    return (row) => columns.some((column) => (column.about.type === "same" ? String(column.about.value ?? "").toLowerCase().includes(low) : isHit(column.words()[row])));
}

/**
 * Chooses a thing, or marks one more.
 * @param {string} item
 * @param {MouseEvent | KeyboardEvent} event
 */
export function choose(item, event) {
    if (!item)
        return;
    if (!(event.ctrlKey || event.metaKey || event.shiftKey)) {
        want({active: item, selected: []});
    } else if (item !== state.active) {
        const others = state.selected.filter((each) => each !== item);
        want({selected: others.length === state.selected.length ? [...others, item] : others});
    }
}

export class List {
    constructor() {
        this.kind = "";
        /** @type {Answer | null} */ this.answer = null;
        this.grid = new Grid({label: "List of things", height: 24, choose: (row, event) => choose(this.itemAt(row), event),
                              marks: (row) => markOf(tables(), this.itemAt(row)), onSort: (sort) => want({sort})});
        this.note = make("p", "dim");
        this.kinds = choice("List", KINDS.filter(([kind]) => canAsk(requestOf(kind))), state.list, (list) => want({list, sort: ""}));
        this.element = attributes(make("section", "list", make("div", "tools", this.kinds), this.grid.element, this.note), {"aria-label": "List", id: "list"});
    }

    /** @param {number} row */
    itemAt(row) {
        return this.answer ? this.answer.text("item", row) : "";
    }

    focus() {
        this.grid.element.focus();
    }

    /** @param {Set<string>} mask */
    async draw(mask) {
        const select = /** @type {HTMLSelectElement} */ (this.kinds.querySelector("select"));
        select.value = state.list;
        const request = requestOf(state.list);
        if (!answered(request)) {
            try {
                await ask(request);
            } catch (error) {
                this.answer = null;
                this.grid.fill([], 0);
                this.note.textContent = error instanceof Error ? error.message : "";
                return;
            }
        }
        const answer = answered(requestOf(state.list));
        if (answer && (answer !== this.answer || this.kind !== state.list)) {
            this.answer = answer;
            this.kind = state.list;
            this.grid.sort = state.sort;
            this.grid.fill(this.columns(answer), answer.n);
            mask = new Set(["filter", "sort", "active"]);
        }
        if (!answer)
            return;
        if (mask.has("filter") || mask.has("sort") || mask.has("all"))
            this.grid.arrange(state.sort, searchOf(answer, state.filter));
        this.note.textContent = state.filter ? `${this.grid.order.length} of ${answer.n} have "${state.filter}"` : `${answer.n}`;
        if (mask.has("active") && kindOf(state.active) === this.kind)
            this.showActive(answer);
        else
            this.grid.mark();
    }

    /** @param {Answer} answer */
    showActive(answer) {
        for (let row = 0; row < answer.n; row++)
            if (answer.text("item", row) === state.active) {
                this.grid.show(row);
                break;
            }
        this.grid.mark();
    }

    /**
     * @param {Answer} answer
     * @returns {import("./grid.js").GridColumn[]}
     */
    columns(answer) {
        const share = answer.columns.get("share") || answer.columns.get("inclusive_share"), own = answer.columns.get("own_share");
        const name = answer.columns.get("item");
        /** @type {import("./grid.js").GridColumn[]} */ const made = [];
        for (const [column, title] of /** @type {[import("./packed.js").Column | undefined, string][]} */ ([[share, own ? "all" : "share"], [own, "own"]]))
            if (column)
                made.push({key: column.key, title, classes: "n", width: "4.2rem", ranks: column.numbers, cell: (row) => percent(column.number(row)),
                           help: title === "own" ? "Without what it calls" : "Share of the whole, in percent"});
        if (name)
            made.push({key: "item", title: KINDS.find(([kind]) => kind === this.kind)?.[1].toLowerCase() || "name", isText: true, width: "minmax(7rem, 1fr)", ranks: name.ranks,
                       cell: (row) => named(this.titleAt(answer, row))});
        return made;
    }

    /**
     * @param {Answer} answer
     * @param {number} row
     */
    titleAt(answer, row) {
        const item = answer.text("item", row);
        if (this.kind === "line")
            return place(answer.text("file", row), answer.number("line", row)) || answer.text("function", row);
        return item ? titleOf(item) : answer.text("variable", row) || answer.text("function", row);
    }
}
