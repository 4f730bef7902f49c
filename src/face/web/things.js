// SPDX-License-Identifier: BSD-3-Clause
// The things that views are about, by the identities that reports give them: "variable:a", "line:/src/cg.c:52". What stands for a thing as one of another
// kind, and what belongs to it, follows from the tables of variables, functions and lines.
import {ask, askFirst, answered, canonical} from "./ask.js";
import {Answer} from "./packed.js";
import {state} from "./state.js";
import {baseName, groupedBy} from "./parts.js";

/**
 * The kind of a thing.
 * @param {string} item
 */
export const kindOf = (item) => item.slice(0, Math.max(item.indexOf(":"), 0));

/**
 * Its name.
 * @param {string} item
 */
export const nameOf = (item) => item.slice(item.indexOf(":") + 1);

/**
 * What people call it: of a place only the last part of the path.
 * @param {string} item
 */
export function titleOf(item) {
    const kind = kindOf(item), name = nameOf(item);
    return ["line", "loop", "file", "module"].includes(kind) ? baseName(name) : name;
}

/**
 * A request about the metric that is chosen.
 * @param {import("./ask.js").Request} request
 */
export const about = (request) => ofChosen(state.metric ? {...request, metric: state.metric} : request);

/** Reports that are known by thread. */
const BY_THREAD = ["vars", "functions", "lines", "annotate", "nodes"];

/** @param {import("./ask.js").Request} request */
export const isByThread = (request) => BY_THREAD.includes(request.report);

/**
 * The request about the threads that are chosen, where it can be one.
 * @param {import("./ask.js").Request} request
 * @returns {import("./ask.js").Request}
 */
export const ofChosen = (request) => (state.profiles && isByThread(request) ? {...request, profiles: state.profiles} : request);

/** What numbers are about: those of another metric, or of other threads, are others. */
export const subjectOfNumbers = () => state.metric + "\n" + state.profiles;

export const VARS = {fields: true, report: "vars"};
export const FUNCTIONS = {report: "functions"};
export const LINES = {report: "lines"};

/** Tables that cannot be had, by the texts of their requests: why, and an empty one in their place. @type {Map<string, {why: string, table: Answer}>} */
const lacking = new Map();

/** @param {import("./ask.js").Request} request */
const tableOf = (request) => answered(about(request)) || lacking.get(canonical(about(request)))?.table;

/** The three tables, or null until they came. */
export function tables() {
    if (index && index.subject === subjectOfNumbers())
        return index;
    const vars = tableOf(VARS), functions = tableOf(FUNCTIONS), lines = tableOf(LINES);
    return vars && functions && lines ? indexOf(vars, functions, lines) : null;
}

/** Why there are no variables; "" where there are some, or nobody knows yet. */
export function whyNoVariables() {
    const t = tables();
    if (!t || t.vars.n)
        return "";
    return lacking.get(canonical(about(VARS)))?.why || "Nothing was sampled at data: hpcrun -e datacentric measures it.";
}

/** Why there are no lines; "" where there are some, or nobody knows yet. */
export const whyNoLines = () => lacking.get(canonical(about(LINES)))?.why || "";

/** Whether it was not hpcprof that wrote the input: it answers functions and lines alone. */
export function isForeign() {
    const session = answered({report: "session"});
    return session !== null && session.head.threads === undefined;
}

/**
 * Tables that are large where there are many, and how much of them the first picture needs.
 * @type {[import("./ask.js").Request, number][]}
 */
const FIRST_ROWS = [[VARS, 100], [FUNCTIONS, 5000], [LINES, 5000]];

/** Asks for the three tables. What has no data accesses has none of variables. */
export const loadTables = () => loadEach((request) => ask(request));

/** Asks for their first rows alone, where a server answers; says whether these are all. */
export async function loadFirstRows() {
    let areAll = true;
    await loadEach(async (request, top) => {
        areAll = (await askFirst(request, top)) && areAll;
    });
    return areAll;
}

/** @param {(request: import("./ask.js").Request, top: number) => Promise<any>} load */
async function loadEach(load) {
    await Promise.all(FIRST_ROWS.map(([request, top]) => load(about(request), top).catch((error) => {
        lacking.set(canonical(about(request)), {why: error.message, table: new Answer({program: "", rows: 0, columns: [], text_bytes: 0}, new Uint8Array(0))});
    })));
}

/**
 * Rows by a text of theirs.
 * @param {Answer} answer
 * @param {(row: number) => string} key
 * @returns {Map<string, number[]>}
 */
const rowsBy = (answer, key) => groupedBy(Array.from({length: answer.n}, (_, i) => i), key);

/**
 * What tells the function of a row of functions or lines.
 * @param {Answer} answer
 * @param {number} row
 */
const functionKey = (answer, row) => answer.text("function", row) + "\n" + answer.text("module", row);

/** The tables, and their rows by what names them: found when somebody asks, since nothing of it is needed for the first picture. */
export class Tables {
    /**
     * @param {Answer} vars
     * @param {Answer} functions
     * @param {Answer} lines
     */
    constructor(vars, functions, lines) {
        this.subject = subjectOfNumbers();
        this.vars = vars;
        this.functions = functions;
        this.lines = lines;
        /** @type {Map<string, any>} */ this.made = new Map();
    }

    /**
     * @template T
     * @param {string} name
     * @param {() => T} action
     * @returns {T}
     */
    once(name, action) {
        if (!this.made.has(name))
            this.made.set(name, action());
        return this.made.get(name);
    }

    get rows() {
        return this.once("rows", () => {
            /** @type {Map<string, number>} */ const rows = new Map();
            for (const table of [this.vars, this.functions, this.lines])
                for (let i = 0; i < table.n; i++) {
                    const item = table.text("item", i);
                    if (item && !rows.has(item))
                        rows.set(item, i);
                }
            return rows;
        });
    }

    get byPlace() {
        return this.once("byPlace", () => {
            /** @type {Map<string, number>} */ const byPlace = new Map();
            for (let i = this.lines.n - 1; i >= 0; i--)
                byPlace.set(this.lines.text("file", i) + ":" + this.lines.number("line", i), i);
            return byPlace;
        });
    }

    get byName() {
        return this.once("byName", () => rowsBy(this.vars, (row) => this.vars.text("variable", row)));
    }

    get functionsByName() {
        return this.once("functionsByName", () => rowsBy(this.functions, (row) => this.functions.text("function", row)));
    }

    /** Makes the parts that the first click needs, one by one, while nothing else is to be done. */
    prepare() {
        for (const part of /** @type {const} */ (["rows", "byPlace", "byName", "functionsByName", "linesOf"]))
            setTimeout(() => this[part], 200);
    }

    get linesOf() {
        return this.once("linesOf", () => rowsBy(this.lines, (row) => functionKey(this.lines, row)));
    }
}

/** @type {Tables | null} */ let index = null;

/**
 * @param {Answer} vars
 * @param {Answer} functions
 * @param {Answer} lines
 */
function indexOf(vars, functions, lines) {
    index = new Tables(vars, functions, lines);
    return index;
}

/**
 * The row of a thing in the table of its kind, -1: it has none.
 * @param {Tables} t
 * @param {string} item
 */
export const rowOf = (t, item) => t.rows.get(item) ?? -1;

/**
 * The row of a variable that a line names: of several with one name, the one that has the line.
 * @param {Tables} t
 * @param {string} name
 * @param {string} file
 * @param {number} line
 */
export function variableRow(t, name, file, line) {
    const same = t.byName.get(name) || [];
    const has = (/** @type {number} */ row) => (t.vars.json("lines", row) || []).some((/** @type {any} */ each) => each.file === file && each.line === line);
    return same.length < 2 ? same[0] ?? -1 : same.find(has) ?? same[0];
}

/**
 * @param {Tables} t
 * @param {string} file
 * @param {number} line
 * @returns {string} the line's identity, "" if it has no samples
 */
export function lineItem(t, file, line) {
    const row = t.byPlace.get(file + ":" + line);
    return row === undefined ? "" : t.lines.text("item", row);
}

/**
 * @param {Tables} t
 * @param {string} name
 * @param {string} module "" for any
 * @returns {string}
 */
export function functionItem(t, name, module) {
    const same = t.functionsByName.get(name) || [];
    const row = same.find((each) => !module || t.functions.text("module", each) === module) ?? same[0];
    return row === undefined ? "" : t.functions.text("item", row);
}

/** @typedef {{item: string, why: string}} Stand what stands for a thing; item "" and why: nothing does */

/**
 * @param {string} item
 * @returns {Stand}
 */
const is = (item) => ({item, why: ""});
/**
 * @param {string} why
 * @returns {Stand}
 */
const none = (why) => ({item: "", why});

/**
 * The costliest variable of a type, of an allocation site, or that has a field; "" where there is none.
 * @param {Tables} t
 * @param {string} item
 */
function costliestOf(t, item) {
    const kind = kindOf(item), name = nameOf(item), key = kind === "type" ? "type" : kind === "site" ? "alloc_site" : kind === "field" ? "variable" : "";
    for (let i = 0; key && i < t.vars.n; i++) {
        const text = t.vars.text(key, i);
        if (text && (text === name || (kind === "field" && name.startsWith(text) && /^[.[-]/.test(name.slice(text.length)))))
            return t.vars.text("item", i);
    }
    return "";
}

/**
 * @param {Tables} t
 * @param {string} item
 * @returns {Stand}
 */
function lineOf(t, item) {
    const kind = kindOf(item), row = rowOf(t, item), data = costliestOf(t, item);
    if (data)
        return lineOf(t, data);
    if (kind === "line")
        return is(item);
    if (kind === "variable") {
        const first = row >= 0 ? (t.vars.json("lines", row) || [])[0] : null;
        const line = first ? lineItem(t, first.file, first.line) : "";
        return line ? is(line) : none("No line of the source is known that uses it.");
    }
    if (kind === "function" && row >= 0) {
        const first = (t.linesOf.get(functionKey(t.functions, row)) || []).find((each) => t.lines.number("line", each) > 0);
        return first === undefined ? none("It has no line numbers: compile with -g.") : is(t.lines.text("item", first));
    }
    if (kind === "file" || kind === "module")
        for (let i = 0; i < t.lines.n; i++)
            if (t.lines.text(kind, i) === nameOf(item) && t.lines.number("line", i) > 0)
                return is(t.lines.text("item", i));
    return kind === "loop" ? is("line:" + nameOf(item)) : none("It is no place in the source.");
}

/**
 * @param {Tables} t
 * @param {string} item
 * @returns {Stand}
 */
function functionOf(t, item) {
    const data = costliestOf(t, item);
    if (kindOf(item) === "function")
        return is(item);
    if (data)
        return functionOf(t, data);
    if (kindOf(item) === "variable") {
        const first = (rowOf(t, item) >= 0 && (t.vars.json("lines", rowOf(t, item)) || [])[0]) || null;
        const found = first ? functionItem(t, first.function, "") : "";
        return found ? is(found) : none("No function is known that uses it.");
    }
    const line = lineOf(t, item), row = line.item ? rowOf(t, line.item) : -1;
    if (row < 0)
        return none(line.why || "No function is known there.");
    const found = functionItem(t, t.lines.text("function", row), t.lines.text("module", row));
    return found ? is(found) : none("No function is known there.");
}

/**
 * @param {Tables} t
 * @param {string} item
 * @returns {Stand}
 */
function variableOf(t, item) {
    if (kindOf(item) === "variable")
        return is(item);
    const own = costliestOf(t, item);
    if (own)
        return is(own);
    const table = kindOf(item) === "function" ? t.functions : t.lines;
    const row = kindOf(item) === "function" ? rowOf(t, item) : rowOf(t, lineOf(t, item).item);
    const data = row >= 0 ? (table.json("data", row) || [])[0] : null;
    const found = data ? variableRow(t, data.variable, table.text("file", row), table.number("line", row)) : -1;
    return found >= 0 ? is(t.vars.text("item", found)) : none("No variable was accessed there.");
}

/**
 * What stands for a thing as one of another kind.
 * @param {Tables} t
 * @param {string} item
 * @param {"variable" | "function" | "line"} kind
 * @returns {Stand}
 */
export function standIn(t, item, kind) {
    return kind === "variable" ? variableOf(t, item) : kind === "function" ? functionOf(t, item) : lineOf(t, item);
}

/** Lets go of what was made of tables, when newer ones came. */
export function forgetTables() {
    index = null;
    kept.clear();
}

/** @typedef {{variables: Map<string, number>, lines: Map<string, number>, functions: Map<string, number>}} Related identities, with their share of the thing, 0 to 1 */

/** @type {Map<string, Related>} */ const kept = new Map();

/**
 * What belongs to a thing: the lines and functions of a variable, the variables of a line or function.
 * @param {Tables} t
 * @param {string} item
 * @returns {Related}
 */
export function relatedTo(t, item) {
    const key = item + "\n" + subjectOfNumbers(), before = kept.get(key);
    if (before)
        return before;
    /** @type {Related} */ const found = {variables: new Map(), lines: new Map(), functions: new Map()};
    const kind = kindOf(item), row = rowOf(t, item);
    const add = (/** @type {Map<string, number>} */ map, /** @type {string} */ of, /** @type {number} */ share) => of && map.set(of, (map.get(of) || 0) + share);
    if (row >= 0 && kind === "variable") {
        const value = t.vars.number("value", row);
        for (const line of t.vars.json("lines", row) || []) {
            add(found.lines, lineItem(t, line.file, line.line), line.value / value);
            add(found.functions, functionItem(t, line.function, ""), line.value / value);
        }
    } else if (row >= 0 && (kind === "line" || kind === "function")) {
        const table = kind === "line" ? t.lines : t.functions;
        for (const data of table.json("data", row) || []) {
            const variable = variableRow(t, data.variable, table.text("file", row), table.number("line", row));
            if (variable >= 0)
                add(found.variables, t.vars.text("item", variable), data.value / table.number("own", row));
        }
        if (kind === "line")
            add(found.functions, functionOf(t, item).item, 1);
        else
            for (const each of t.linesOf.get(functionKey(t.functions, row)) || [])
                add(found.lines, t.lines.text("item", each), t.lines.number("own", each) / t.functions.number("own", row));
    }
    kept.set(key, found);
    return found;
}

/**
 * The class of a thing's marks, for rows and boxes: "active", "selected", "related" or "".
 * @param {Tables | null} t
 * @param {string} item
 */
export function markOf(t, item) {
    if (!item)
        return "";
    if (item === state.active)
        return "active";
    if (state.selected.includes(item))
        return "selected";
    if (!t || !state.active)
        return "";
    const related = relatedTo(t, state.active);
    return related.variables.has(item) || related.lines.has(item) || related.functions.has(item) ? "related" : "";
}
