// SPDX-License-Identifier: BSD-3-Clause
// The list at the left: all things of a kind, to search and to choose from.
import {ask, answered} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, markOf, kindOf, titleOf, VARS, FUNCTIONS, LINES} from "./things.js";
import {make, attributes, check, choice, percent, named, place, short, size, write} from "./parts.js";
import {Grid} from "./grid.js";
import {Groups} from "./group.js";

/** @typedef {import("./packed.js").Answer} Answer */

/** Kinds with tables of their own, whose rows tell more than those of the report of things. */
const TABLES = /** @type {Record<string, import("./ask.js").Request>} */ ({variable: VARS, function: FUNCTIONS, line: LINES});
const KINDS = [["variable", "Variables"], ["function", "Functions"], ["line", "Lines"], ["file", "Files"], ["module", "Modules"], ["type", "Types"], ["field", "Fields"],
               ["site", "Allocation sites"], ["thread", "Threads"], ["region", "Regions"]];

const GROUPS = [["", "no groups"], ["module", "module"], ["file", "file"], ["class", "class"], ["function", "function"], ["type", "type"], ["alloc_site", "allocation site"]];
/** Columns that every list has, or whose cells are no texts and numbers. */
const NOT_OFFERED = ["share", "inclusive_share", "own_share", "item", "variable", "meaning", "advice"];

/** @param {import("./packed.js").Column} column */
const isOffered = (column) => !NOT_OFFERED.includes(column.key) && column.about.type !== "json" && !/_low$|_high$|_least$|_most$|_source$/.test(column.key) &&
    !(column.about.type === "same" && (column.about.value === null || typeof column.about.value === "object"));

/**
 * A cell by the kind of its column.
 * @param {import("./packed.js").Column} column
 * @param {number} row
 */
const cellOf = (column, row) => (column.isText ? named(column.text(row) || "") : /share$|percent$/.test(column.key) ? percent(column.number(row)) :
    /bytes$/.test(column.key) ? size(column.number(row)) : short(column.number(row)));

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
    const columns = keys.map((key) => /** @type {import("./packed.js").Column} */ (answer.columns.get(key)));
    columns.forEach((column) => column.words()); // gives places their texts
    const hits = new Uint8Array(answer.texts.length); // 0: not looked at, 1: no, 2: yes
    const isHit = (/** @type {number} */ id) => {
        if (id >= hits.length)
            return false;
        if (!hits[id])
            hits[id] = answer.texts[id].toLowerCase().includes(low) ? 2 : 1;
        return hits[id] === 2;
    };
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
        /** @type {Groups | null} */ this.groups = null;
        /** @type {Grid} */ this.grid = new Grid({label: "List of things", height: 24, choose: (row, event) => this.choose(row, event), marks: (row) => (this.isGroup(row) ? "group" : markOf(tables(), this.itemAt(row))),
                              onSort: (sort) => want({sort}), regroup: (order) => (this.groups ? this.groups.arrange(order, this.groupOrder()) : order)});
        this.note = make("p", "dim");
        this.kinds = choice("List", KINDS, state.list, (list) => want({list, sort: ""}));
        this.bar = make("div", "tools");
        this.element = attributes(make("section", "list", make("div", "tools", this.kinds), this.bar, this.grid.element, this.note), {"aria-label": "List", id: "list"});
    }

    /** @param {number} row */
    itemAt(row) {
        return this.answer && !this.isGroup(row) ? this.answer.text("item", row) : "";
    }

    /** @param {number} row */
    isGroup(row) {
        return Boolean(this.groups) && row >= (this.answer?.n ?? 0);
    }

    /** @returns {"falls" | "rises" | "name"} */
    groupOrder() {
        const key = this.grid.sort.replace(/^-/, ""), isText = this.answer?.columns.get(key)?.isText;
        return isText ? "name" : key && !this.grid.sort.startsWith("-") ? "rises" : "falls";
    }

    /**
     * @param {number} row
     * @param {MouseEvent | KeyboardEvent} event
     */
    choose(row, event) {
        if (!this.isGroup(row)) {
            choose(this.itemAt(row), event);
            return;
        }
        this.groups?.fold(row);
        this.grid.arrange(this.grid.sort, this.grid.keeps);
    }

    /**
     * Groups and columns that this kind of things can have.
     * @param {Answer} answer
     */
    fillBar(answer) {
        const groups = GROUPS.filter(([key]) => !key || (answer.columns.has(key) && key !== this.kind)), offered = [...answer.columns.values()].filter((column) => isOffered(column) && column.key !== this.kind), chosen = state.columns.split(";");
        const boxes = offered.map((column) => check(column.title.replace(/_/g, " "), chosen.includes(column.key), (on) => {
            const keys = state.columns.split(";").filter((key) => key && key !== column.key);
            want({columns: [...keys, ...(on ? [column.key] : [])].join(";")});
        }));
        const menu = make("details", "menu", make("summary", "", "Columns"), make("div", "", ...boxes)), isOpen = this.bar.querySelector("details")?.open;
        menu.open = Boolean(isOpen);
        this.bar.replaceChildren(groups.length > 1 ? choice("Groups", groups, groups.some(([key]) => key === state.group) ? state.group : "", (group) => want({group})) : "", boxes.length ? menu : "");
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
                this.grid.element.hidden = true;
                this.grid.fill([], 0);
                write(this.note, error instanceof Error ? error.message : "");
                return;
            }
        }
        const answer = answered(requestOf(state.list));
        if (answer && (answer !== this.answer || this.kind !== state.list || mask.has("group") || mask.has("columns"))) {
            this.answer = answer;
            this.kind = state.list;
            this.groups = state.group && state.group !== this.kind && answer.columns.has(state.group) ? new Groups(answer, state.group, answer.columns.has("own_share") ? "own_share" : "share") : null;
            this.fillBar(answer);
            this.grid.sort = state.sort;
            this.grid.element.hidden = false;
            this.grid.fill(this.columns(answer), answer.n);
            mask = new Set(["filter", "sort", "active"]);
        }
        if (!answer)
            return;
        if (mask.has("filter") || mask.has("sort") || mask.has("all"))
            this.grid.arrange(state.sort, searchOf(answer, state.filter));
        write(this.note, state.filter ? `${this.grid.order.reduce((n, row) => n + (row < answer.n ? 1 : 0), 0)} of ${answer.n} have "${state.filter}"` : `${answer.n} ${(KINDS.find(([kind]) => kind === this.kind)?.[1] || "").toLowerCase()}`);
        const shares = this.kind === "variable" && !state.sort && !this.groups ? answer.columns.get("share")?.numbers : null;
        if (shares?.some((share, i) => share > shares[i - 1]))
            this.note.textContent += ", by what may wait for memory";
        if (state.profiles && !TABLES[this.kind])
            this.note.textContent += ", with the numbers of all threads";
        if (mask.has("active") && kindOf(state.active) === this.kind)
            this.showActive(answer);
        else
            this.grid.mark();
    }

    /** @param {Answer} answer */
    showActive(answer) {
        for (let row = 0; row < answer.n; row++)
            if (answer.text("item", row) === state.active) {
                if (this.groups?.unfold(row))
                    this.grid.arrange(this.grid.sort, this.grid.keeps);
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
                made.push({key: column.key, title, classes: "n", width: "4.2rem", ranks: column.numbers, cell: (row) => (this.isGroup(row) ? this.sumAt(column, row) : percent(answer.text("class", row) === "kernel" ? NaN : column.number(row))),
                           help: title === "own" ? "Without what it calls" : "Share of the whole, in percent"});
        if (name)
            made.push({key: "item", title: KINDS.find(([kind]) => kind === this.kind)?.[1].toLowerCase() || "name", isText: true, width: "minmax(7rem, 1fr)", ranks: name.ranks,
                       cell: (row) => (this.isGroup(row) ? this.groupAt(row) : named(this.titleAt(answer, row)))});
        for (const key of state.columns.split(";")) {
            const column = answer.columns.get(key);
            if (column && isOffered(column))
                made.push({key, title: column.title.replace(/_/g, " "), isText: column.isText, classes: column.isText ? "" : "n", width: column.isText ? "8rem" : "5.5rem", ranks: column.ranks,
                           cell: (row) => (this.isGroup(row) ? "" : cellOf(column, row))});
        }
        return made;
    }

    /**
     * The sum of a group: not of what contains each other.
     * @param {import("./packed.js").Column} column
     * @param {number} row
     */
    sumAt(column, row) {
        return this.groups && column.key !== "inclusive_share" ? percent(this.groups.sums[row - this.groups.n]) : "";
    }

    /** @param {number} row */
    groupAt(row) {
        const groups = /** @type {Groups} */ (this.groups), at = row - groups.n, isFolded = groups.folded.has(at);
        return make("span", "", attributes(make("span", "", isFolded ? "\u25b8 " : "\u25be "), {"aria-hidden": true}), named(groups.names[at].slice(groups.names[at].lastIndexOf("/") + 1)),
                    make("span", "dim", ` ${groups.counts[at]}`), make("span", "unseen", isFolded ? " in it, folded" : " in it"));
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
