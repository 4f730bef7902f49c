// SPDX-License-Identifier: BSD-3-Clause
// One variable: what it is, where it was allocated, who uses which part of it, and from where.
import {ask, answered} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, standIn, rowOf, whyNoVariables, lineItem, titleOf, kindOf, isByThread, subjectOfNumbers} from "./things.js";
import {make, attributes, button, named, percent, meter, size, short, place, smallTable, numberCell, definitions} from "./parts.js";
import {partsOf, wordsOf, spreadOf} from "./view-answer.js";
import {NODES, nodesOf, nodesAbove, heaviestBelow} from "./nodes.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./parts.js").Child} Child */

const PATHS_MAX = 4;     // allocation and access paths that are shown
const LINES_MAX = 12;
const CELLS = 64;    // columns of a heat map at most
const SHADES = 8;

/**
 * A link to a line, if it has samples.
 * @param {string} file
 * @param {number} line
 */
export function lineLink(file, line) {
    const t = tables(), item = t && line > 0 ? lineItem(t, file, line) : "", text = file.startsWith("<unknown file>") ? "" : place(file, line);
    return item ? attributes(button(text, () => want({active: item, code: "annotate"}), "link mono"), {title: file}) : make("span", "mono", text);
}

/**
 * A link to a thing.
 * @param {string} item
 * @param {string} [title]
 */
export const itemLink = (item, title) => button(named(title || titleOf(item)), () => want({active: item}), "link");

/** @param {number} part 0 to 1 */
const partCell = (part) => make("td", "n", percent(100 * part), meter([["other", 100 * part]]));

/**
 * @param {string} title
 * @param {...(Child)} children
 */
const section = (title, ...children) => make("section", "", make("h3", "", title), ...children);

/**
 * @param {Answer} vars
 * @param {number} row
 */
function summary(vars, row) {
    const parts = partsOf(vars, row), words = (/** @type {string} */ key) => vars.text(key, row);
    /** @type {Child[][]} */ const pairs = [["share", percent(vars.number("share", row))], ["time", wordsOf(parts)], ["samples", short(vars.number("samples", row))]];
    for (const [label, text] of [["class", words("class")], ["comes from", words("alloc_site")], ["type", words("type")], ["type known by", words("type_source")], ["threads", spreadOf(vars, row)], ["first touch", words("first_touch")]])
        if (text)
            pairs.push([label, text]);
    const blocks = vars.number("n_blocks", row), element = vars.number("element_bytes", row);
    if (blocks > 0)
        pairs.push(["size", `${size(vars.number("size_bytes", row))} in ${short(blocks)} block${blocks === 1 ? "" : "s"}${element > 0 ? `, elements of ${short(element)} bytes` : ""}`]);
    const texts = [words("meaning"), words("advice")].filter(Boolean).map((text) => make("p", "do", text + "."));
    return make("div", "", ...texts, meter(parts.map(([name, value]) => [name, (100 * value) / (vars.number("share", row) || 1)]), wordsOf(parts)), definitions(pairs));
}

/**
 * @param {Answer} vars
 * @param {number} row
 */
function linesOf(vars, row) {
    const lines = vars.json("lines", row) || [], value = vars.number("value", row);
    if (!lines.length)
        return null;
    const rows = lines.slice(0, LINES_MAX).map((/** @type {any} */ line) => {
        const loop = line.loop ? ` in loop ${line.loop.line}${line.loop.end_line > line.loop.line ? "-" + line.loop.end_line : ""}` : "";
        return [partCell(line.value / value), named(line.function || ""), make("span", "", lineLink(line.file || "", line.line), loop)];
    });
    return section("Used by", smallTable(["of it", "function", "line"], rows), lines.length > LINES_MAX ? make("p", "dim", `and ${lines.length - LINES_MAX} more`) : "");
}

/**
 * Fields in the order of their places, the hot ones dark.
 * @param {Answer} vars
 * @param {number} row
 */
function fieldsOf(vars, row) {
    const fields = [...(vars.json("fields", row) || [])].filter((each) => each.typed !== false);
    if (!fields.length)
        return null;
    const share = vars.number("share", row) || 1;
    fields.sort((a, b) => a.offset_bytes - b.offset_bytes);
    const rows = fields.map((field) => [partCell(field.share / share), named(field.field), named(field.type || ""), numberCell(field.offset_bytes), numberCell(field.size_bytes)]);
    return section("Fields", smallTable(["of it", "field", "type", "offset", "bytes"], rows));
}

/**
 * Functions from a node upwards or downwards as one line, each with the line in it that leads to the one before.
 * @param {Answer} nodes
 * @param {number[]} path the nearest first
 */
function pathOf(nodes, path) {
    const list = make("ol", "path");
    /** @type {(Node | string)[]} */ let place = [];
    for (const node of path) {
        const kind = nodes.text("kind", node), name = nodes.text("name", node), file = nodes.text("file", node), line = nodes.number("line", node);
        if (kind === "function" || kind === "inlined function") {
            list.append(make("li", "", named(name), " ", ...place));
            place = [];
        } else if (!place.length && line > 0) {
            place = [kind === "loop" ? "loop " : "", lineLink(file, line)];
        }
    }
    return list;
}

/**
 * A path to an allocation as it is read. Above Python code stands the native code of the moment: the interpreter's is
 * left out, and what Python code called comes first if it has names.
 * @param {Answer} nodes
 * @param {number[]} path the nearest first
 */
function withoutInterpreter(nodes, path) {
    const modules = path.map((node) => nodes.text("module", node));
    const areInterpreter = modules.map((module) => /(^|\/)(lib)?python([0-9.][^/]*)?$/.test(module));
    const isNamed = (/** @type {number} */ node) => !nodes.text("name", node).startsWith("func_0x");
    const code = modules.lastIndexOf("[python]") + 1, first = areInterpreter.indexOf(true, code), last = areInterpreter.lastIndexOf(true);
    return code && first >= 0 ? [...path.slice(code, first).filter(isNamed), ...path.slice(0, code), ...path.slice(last + 1).filter(isNamed)] : path;
}

/**
 * @param {Answer} nodes
 * @param {string} item
 */
function pathsOf(nodes, item) {
    const own = [...nodesOf(nodes, item)];
    own.sort((a, b) => nodes.number("value", b) - nodes.number("value", a));
    const all = own.reduce((sum, node) => sum + nodes.number("value", node), 0);
    const allocations = own.slice(0, PATHS_MAX).map((node) => [node, withoutInterpreter(nodes, nodesAbove(nodes, node))]).filter(([, path]) => /** @type {number[]} */ (path).some((each) => nodes.text("kind", each) === "function"));
    const made = [];
    if (allocations.length)
        made.push(section(own.length > 1 ? `Allocated on ${own.length} paths` : "Allocated by", ...allocations.map(([node, path]) =>
            make("div", "", own.length > 1 ? make("span", "dim", percent((100 * nodes.number("value", /** @type {number} */ (node))) / all)) : "", pathOf(nodes, /** @type {number[]} */ (path))))));
    const accesses = own.flatMap((node) => heaviestBelow(nodes, node, PATHS_MAX)).sort((a, b) => b.value - a.value).slice(0, PATHS_MAX);
    if (accesses.length)
        made.push(section("Access paths", ...accesses.map(({path, value}) => make("div", "", make("span", "dim", percent((100 * value) / all)), pathOf(nodes, path)))));
    return made;
}

/**
 * A heat map of rows: cells as shades, and as numbers for those who do not see them.
 * @param {string} title
 * @param {{name: string, cells: number[]}[]} rows
 * @param {string} across what runs from left to right
 */
export function heatMap(title, rows, across) {
    const n = Math.max(...rows.map((row) => row.cells.length));
    const group = Math.ceil(n / CELLS), most = Math.max(1, ...rows.flatMap((row) => row.cells));
    const body = rows.map(({name, cells}) => {
        const line = attributes(make("div", "heat-row"), {role: "row"});
        line.append(attributes(make("span", "heat-name", name), {role: "rowheader"}));
        for (let i = 0; i < n; i += group) {
            const sum = Math.max(...cells.slice(i, i + group));
            line.append(attributes(make("i", "shade-" + (sum ? Math.max(1, Math.ceil((SHADES * sum) / most)) : 0)), {role: "cell", "aria-label": sum, title: `${name}: ${sum}`}));
        }
        return line;
    });
    return make("div", "heat", attributes(make("div", "", ...body), {role: "table", "aria-label": title}), make("p", "dim", across));
}

/**
 * @param {Answer} answer
 * @param {string} name
 * @param {string} site
 * @returns {number[]} rows about a variable
 */
function rowsAbout(answer, name, site) {
    const found = [], hasSite = answer.columns.has("alloc_site");
    for (let i = 0; i < answer.n; i++)
        if (answer.text("variable", i) === name && (!hasSite || answer.text("alloc_site", i) === site))
            found.push(i);
    return found;
}

/**
 * @param {Answer} patterns
 * @param {number[]} rows
 */
function patternOf(patterns, rows) {
    return rows.map((row) => {
        const threads = (patterns.json("threads", row) || []).filter((/** @type {any} */ each) => each.bins);
        const words = `Used ${patterns.text("used_as", row)}${patterns.text("order", row) ? ", " + patterns.text("order", row) : ""}: ${short(patterns.number("loads", row))} loads, ${short(patterns.number("stores", row))} stores.`;
        const map = threads.length ? heatMap("Offsets by threads", threads.map((/** @type {any} */ each) => ({name: "thread " + each.thread, cells: each.bins})),
                                             `from its first byte to its last, ${size(patterns.number("bin_bytes", row))} a column`) : "";
        return section("Where threads use it", make("p", "", words), map);
    });
}

/**
 * Who writes and reads which bytes of a cache line.
 * @param {Answer} sharing
 * @param {number[]} rows
 */
function sharingOf(sharing, rows) {
    if (!rows.length)
        return null;
    const lines = rows.slice(0, 8).map((row) => {
        const bytes = make("div", "cache-line");
        for (const each of sharing.json("accesses", row) || []) {
            const part = make("i", each.stores ? "writes" : "reads");
            part.style.left = (100 * (each.offset || 0)) / 64 + "%";
            part.style.width = (100 * (each.size || 8)) / 64 + "%";
            attributes(part, {title: `thread ${each.thread}: bytes ${each.offset} to ${(each.offset || 0) + (each.size || 8) - 1}, ${each.stores ? "writes" : "reads"}`});
            bytes.append(part);
        }
        return [numberCell(sharing.number("offset", row)), sharing.text("sharing", row), numberCell(sharing.number("samples", row)),
                `${sharing.number("threads", row)}, ${sharing.number("writers", row)} write`, sharing.text("verified", row), bytes.childElementCount ? bytes : ""];
    });
    return section("Cache lines that threads share", smallTable(["offset", "how", "samples", "threads", "verified", "bytes"], lines));
}

/**
 * @param {Answer} touch
 * @param {number[]} rows
 */
function touchersOf(touch, rows) {
    const made = rows.flatMap((row) => (touch.json("touchers", row) || []).map((/** @type {any} */ each) =>
        [make("td", "n", percent(each.faults_share ?? NaN)), `thread ${each.thread}`, each.node === null ? "" : `node ${each.node}`, named(each.function || ""), lineLink(each.file || "", each.line || 0)]));
    return made.length ? section("Pages touched first by", smallTable(["pages", "thread", "node", "function", "line"], made)) : null;
}

/**
 * @param {Answer} byThread
 * @param {number[]} rows
 */
function threadsOf(byThread, rows) {
    const cells = rows.flatMap((row) => byThread.json("cells", row) || []);
    if (cells.length < 2)
        return null;
    return section("Threads", smallTable(["of it", "thread"], cells.slice(0, 32).map((/** @type {any} */ each) => [partCell((each.share_of_row || 0) / 100), itemLink("thread:" + each.thread, "thread " + each.thread)])));
}

/** @type {HTMLElement | null} */ let variablePanel = null;
let variableDrawn = "";

/**
 * @param {import("./ask.js").Request} request
 * @returns {Promise<Answer | null>}
 */
const maybe = (request) => (state.profiles && !isByThread(request) ? Promise.resolve(null) : ask(about(request)).catch(() => null));

/** @type {import("./views.js").View} */
export const variable = {
    name: "items", title: "Variable", stack: "data",
    canShow(item) {
        const t = tables();
        if (!t || !t.vars.n)
            return {item: "", why: whyNoVariables()};
        return item ? standIn(t, item, "variable") : {item: t.vars.text("item", 0), why: ""};
    },
    asks(item) {
        const t = tables(), row = t ? rowOf(t, item) : -1;
        const parts = ["patterns", "sharing", "first-touch"].filter((report) => {
            const made = t && row >= 0 ? answered(about({report})) : null;
            return made && t && rowsAbout(made, t.vars.text("variable", row), t.vars.text("alloc_site", row)).length;
        });
        if (state.profiles)
            return [about({report: "vars"})];
        return [{report: "items", subject: item}, ...parts.map((report) => about(report === "first-touch" ? {report} : {report, subject: t ? t.vars.text("variable", row) : ""}))];
    },
    open(made) {
        variablePanel = made;
    },
    async draw(item, mask) {
        const t = tables(), row = t ? rowOf(t, item) : -1, isSame = variableDrawn === item + subjectOfNumbers();
        if (!variablePanel || !t || row < 0 || (isSame && !mask.has("data")))
            return;
        variableDrawn = item + subjectOfNumbers();
        const name = t.vars.text("variable", row), site = t.vars.text("alloc_site", row);
        const stand = kindOf(state.active) !== "variable" && state.active ? make("p", "dim", `What ${titleOf(state.active)} uses most:`) : "";
        variablePanel.replaceChildren(stand, make("h2", "", named(name)), summary(t.vars, row), linesOf(t.vars, row) || "", fieldsOf(t.vars, row) || "");
        const [nodes, patterns, sharing, touch, byThread] = await Promise.all([NODES, {report: "patterns"}, {report: "sharing"}, {report: "first-touch"}, {by: "thread", report: "vars"}].map(maybe));
        if (variableDrawn !== item + subjectOfNumbers())
            return;
        variablePanel.append(...(patterns ? patternOf(patterns, rowsAbout(patterns, name, site)) : []), (sharing && sharingOf(sharing, rowsAbout(sharing, name, site))) || "",
                     (touch && touchersOf(touch, rowsAbout(touch, name, site))) || "", (byThread && threadsOf(byThread, rowsAbout(byThread, name, site))) || "", ...(nodes ? pathsOf(nodes, item) : []));
        if (state.profiles)
            variablePanel.append(make("p", "dim", "How it is accessed, shared and touched first is known of all threads together: undo the choice of threads to see it."));
        if (!isSame)
            variablePanel.parentElement?.scrollTo(0, 0);
    },
};
