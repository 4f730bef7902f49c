// SPDX-License-Identifier: BSD-3-Clause
// The page of a report: a table of variables with their details, flame graphs, sources and notes. What comes from the
// measured program is shown by textContent only. Rows and boxes are made when they are to be seen.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;
const tree = data.tree;
const ROWS_AT_ONCE = 100;
const LINES_AT_ONCE = 200;
const PATH_AT_MOST = 60; // functions and loops of a path in the details
const ROW_PIXELS = 22;
const LEAST_WIDTH = 0.0015; // of the graph: narrower boxes are left out
const NAMED_PIXELS = 26; // narrower boxes show no name
const LEVELS_AHEAD = 40;
const SHORT_NAME = 28; // characters that are not wrapped

// --- pieces of the page --------------------------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);

// Characters that cannot be seen, or that change the direction of what follows, as their numbers.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function printable(text) {
    return text.replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// An element with a class ("" = none) and children: elements, or texts.
function make(tag, classes, ...children) {
    const element = document.createElement(tag);
    if (classes)
        element.className = classes;
    for (const child of children)
        element.append(child instanceof Node ? child : printable(String(child)));
    return element;
}

// A name that the program chose.
const named = (text, tag = "bdi") => make(tag, "", text);

function button(label, action, classes = "") {
    const element = make("button", classes, label);
    element.type = "button";
    element.addEventListener("click", action);
    return element;
}

function cells(tag, ...contents) {
    return make("tr", "", ...contents.map((content) => (content instanceof Node && content.tagName === "TD" ? content : make(tag, "", content))));
}

const percent = (part) => (100 * part).toFixed(1) + " %";
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);
const place = (file, line) => (line ? baseName(file) + ":" + line : baseName(file));

// A bar of parts: [[class, percent], ...].
function meter(parts) {
    const bar = make("span", "meter");
    bar.setAttribute("aria-hidden", "true");
    for (const [name, value] of parts) {
        const part = make("i", name);
        part.style.width = Math.min(Math.max(value, 0), 100) + "%";
        bar.append(part);
    }
    return bar;
}

function definitions(list, pairs) {
    for (const [label, words] of pairs)
        list.append(make("dt", "", label), make("dd", "", words));
}

// --- the tree ------------------------------------------------------------------------------------------------------

const nNodes = tree.depth.length;
const endOf = new Uint32Array(nNodes);  // the first node behind the subtree
const parentOf = new Int32Array(nNodes).fill(-1);
{
    const open = [];
    for (let i = 0; i < nNodes; i++) {
        while (open.length > tree.depth[i])
            endOf[open.pop()] = i;
        if (open.length)
            parentOf[i] = open[open.length - 1];
        open.push(i);
    }
    while (open.length)
        endOf[open.pop()] = nNodes;
}
const isHidden = (node) => tree.kind[node] === "l" || tree.kind[node] === "s";

// The name that the database's frame has for a node.
function nodeName(node) {
    return texts[tree.name[node]];
}

// A root of a graph: the nodes without parents, code first, data second.
function rootBox(isData) {
    let root = 0;
    if (isData)
        root = endOf[0] < nNodes ? endOf[0] : -1;
    return root < 0 ? null : {nodes: [root], name: nodeName(root), kind: tree.kind[root], value: tree.value[root], above: null, below: null};
}

// The boxes below a box, the largest first. Nodes of one name are one box. Without lines, what lies below loops, lines
// and call sites counts as if these were not there.
function boxesBelow(box, withLines) {
    if (box.below)
        return box.below;
    const found = new Map();
    const add = (node) => {
        const name = nodeName(node);
        const known = found.get(name);
        if (known) {
            known.nodes.push(node);
            known.value += tree.value[node];
        } else {
            found.set(name, {nodes: [node], name, kind: tree.kind[node], value: tree.value[node], above: box, below: null});
        }
    };
    for (const node of box.nodes)
        for (let i = node + 1; i < endOf[node]; )
            if (isHidden(i) && !withLines) {
                i++; // its children are next
            } else {
                add(i);
                i = endOf[i];
            }
    box.below = [...found.values()].sort((a, b) => b.value - a.value);
    return box.below;
}

// --- queries -------------------------------------------------------------------------------------------------------

const quoted = (text) => '"' + text.replace(/[\\"]/g, "\\$&") + '"';

// The query for a box: its path from the root, and all below it.
function queryOfBox(box, withLines) {
    const path = [];
    for (let at = box; at; at = at.above)
        path.push(at);
    path.reverse();
    const pattern = [], conditions = ['p0."depth" = 0'];
    path.forEach((at, i) => {
        if (i && !withLines) {
            pattern.push(`("*", s${i})`);
            conditions.push(`s${i}."kind" =~ "l(oop|ine)$"`);
        }
        pattern.push(`(".", p${i})`);
        conditions.push(`p${i}."name" = ${quoted(at.name)}`);
    });
    return `MATCH ${pattern.join("->")}->("*") WHERE ${conditions.join(" AND ")}`;
}

const variablesByName = new Map(); // name -> nodes
for (let i = 0; i < nNodes; i++)
    if (tree.kind[i] === "v") {
        const name = tree.name[i];
        if (!variablesByName.has(name))
            variablesByName.set(name, []);
        variablesByName.get(name).push(i);
    }

// The query for a row: its nodes, and all below them. Rows that are no variables have none.
function queryOfRow(row) {
    if (!row.nodes.length)
        return "";
    const name = tree.name[row.nodes[0]];
    const all = variablesByName.get(name) || [];
    const isAll = all.length === row.nodes.length && row.nodes.every((node) => tree.name[node] === name);
    if (isAll)
        return `MATCH (".", v)->("*") WHERE v."kind" = "variable" AND v."name" = ${quoted(texts[name])}`;
    return `MATCH (".", v)->("*") WHERE ${row.nodes.map((node) => `v."id" = ${tree.id[node]}`).join(" OR ")}`;
}

let beforeQuery = null;

function showQuery(text) {
    const field = byId("query-text"), state = byId("query-state");
    beforeQuery = document.activeElement;
    field.value = text;
    byId("query").hidden = false;
    field.focus();
    field.select();
    let isCopied = false;
    try {
        isCopied = document.execCommand("copy");
    } catch {
        isCopied = false;
    }
    state.textContent = isCopied ? "copied" : "copy it from here";
}

function closeQuery() {
    byId("query").hidden = true;
    if (beforeQuery && beforeQuery.isConnected)
        beforeQuery.focus();
}

// --- tabs ----------------------------------------------------------------------------------------------------------

const tabs = [...document.querySelectorAll('[role="tab"]')];
const opened = {}; // by panel: what makes it when it is first shown

function openTab(tab) {
    for (const other of tabs) {
        const isThis = other === tab;
        other.setAttribute("aria-selected", isThis);
        other.tabIndex = isThis ? 0 : -1;
        byId(other.getAttribute("aria-controls")).hidden = !isThis;
    }
    const open = opened[tab.getAttribute("aria-controls")];
    if (open)
        open();
}

function onTabKey(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1, Home: -tabs.indexOf(event.target), End: tabs.length - 1 - tabs.indexOf(event.target)}[event.key];
    if (step === undefined)
        return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
    next.focus();
    openTab(next);
}

// --- the table of variables ----------------------------------------------------------------------------------------

const rows = data.rows;
rows.forEach((row, i) => {
    row.number = i;
    row.title = texts[row.name];
    row.from = texts[row.origin] || "";
    row.found = (row.title + "\n" + row.from).toLowerCase();
});
const columns = [
    {title: data.few ? "samples" : "share", classes: "n", key: (row) => row.share, put: putShare},
    ...(data.causes ? [
        {title: "memory", classes: "n", key: (row) => (row.unknown ? -1 : row.memory), put: (row) => (row.unknown ? "unknown" : percent(row.memory / 100))},
        {title: "execution", classes: "n in-bar", key: (row) => row.execution, put: (row) => percent(row.execution / 100)},
        {title: "unverified", classes: "n in-bar", key: (row) => row.unverified, put: (row) => percent(row.unverified / 100)},
    ] : []),
    {title: "variable", classes: "name", key: (row) => row.title, put: (row) => make("div", row.title.length > SHORT_NAME ? "cut" : "short", named(row.title))},
    {title: "class", classes: "optional", key: (row) => texts[row.class] || "", put: (row) => texts[row.class] || ""},
    ...data.derived.map(([title, description], i) => ({
        title: texts[title], classes: "n measured", description: texts[description],
        key: (row) => row.derived[i][0] ?? -1, put: (row) => texts[row.derived[i][1]],
    })),
    {title: "size", classes: "n optional", key: (row) => row.bytes, put: (row) => texts[row.size] || "-"},
    {title: "blocks", classes: "n optional", key: (row) => row.count, put: (row) => texts[row.blocks] || "-"},
    {title: "comes from", classes: "origin", key: (row) => row.from, put: (row) => make("div", "cut", named(row.from))},
];
let sortedBy = null, isDescending = true, shownRows = rows, nShown = 0, chosenRow = null;

function putShare(row) {
    const cell = document.createDocumentFragment();
    cell.append(data.few ? String(row.share) : percent(row.share / 100));
    if (!data.few)
        cell.append(meter(partsOf(row)));
    return cell;
}

function partsOf(row) {
    return data.causes ? [["memory", row.memory], ["execution", row.execution], ["unverified", row.unverified]] : [["all", row.share]];
}

function makeRow(row) {
    const line = make("tr", texts[row.class] === "-" ? "special" : "", ...columns.map((column) => make("td", column.classes, column.put(row))));
    line.tabIndex = -1;
    line.dataset.row = row.number;
    line.setAttribute("aria-selected", row === chosenRow);
    return line;
}

function addRows() {
    const body = byId("table").tBodies[0];
    const next = shownRows.slice(nShown, nShown + ROWS_AT_ONCE);
    const isFirst = nShown === 0;
    body.append(...next.map(makeRow));
    nShown += next.length;
    if (isFirst && body.rows.length)
        body.rows[0].tabIndex = 0;
    const more = byId("more-rows");
    more.replaceChildren();
    if (nShown < shownRows.length)
        more.append(button(`Show ${Math.min(ROWS_AT_ONCE, shownRows.length - nShown)} more of ${shownRows.length - nShown}`, () => {
            const at = nShown;
            addRows();
            focusRow(body.rows[at]);
        }));
    else if (!shownRows.length)
        more.append("No variable has this in its name or place.");
    else if (data.more && !byId("search").value)
        more.append(`${data.more} more rows were left out (--top, --min).`);
}

function putTable() {
    const word = byId("search").value.toLowerCase();
    shownRows = word ? rows.filter((row) => row.found.includes(word)) : [...rows];
    if (sortedBy) {
        const order = (a, b) => {
            const x = sortedBy.key(a), y = sortedBy.key(b);
            const less = typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
            return (isDescending ? -less : less) || a.number - b.number;
        };
        shownRows.sort(order);
    }
    nShown = 0;
    byId("table").tBodies[0].replaceChildren();
    addRows();
}

function sortBy(column) {
    const isText = rows.length > 0 && typeof column.key(rows[0]) === "string";
    isDescending = sortedBy === column ? !isDescending : !isText;
    sortedBy = column;
    putTitles();
    putTable();
}

function putTitles() {
    const line = make("tr");
    for (const column of columns) {
        const cell = make("th", column.classes);
        const title = button(column.title, () => {
            const at = columns.indexOf(column);
            sortBy(column);
            byId("table").tHead.rows[0].cells[at].firstChild.focus();
        });
        cell.scope = "col";
        title.title = column.description || "Sort by this";
        if (column === sortedBy) {
            cell.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
            title.append(isDescending ? " \u25be" : " \u25b4");
        }
        cell.append(title);
        line.append(cell);
    }
    byId("table").tHead.replaceChildren(line);
}

function focusRow(line) {
    if (!line)
        return;
    for (const other of byId("table").tBodies[0].querySelectorAll('tr[tabindex="0"]'))
        other.tabIndex = -1;
    line.tabIndex = 0;
    line.focus();
}

function onTableKey(event) {
    const line = event.target.closest("tbody tr");
    if (!line || event.target !== line)
        return;
    const body = line.parentNode;
    const target = {ArrowDown: line.nextSibling, ArrowUp: line.previousSibling, Home: body.firstChild, End: body.lastChild}[event.key];
    if (target) {
        event.preventDefault();
        focusRow(target);
    } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        chooseRow(rows[line.dataset.row]);
        byId("detail").focus();
    }
}

function lineOf(row) {
    return row ? byId("table").tBodies[0].querySelector(`tr[data-row="${row.number}"]`) : null;
}

function chooseRow(row) {
    const before = lineOf(chosenRow), after = lineOf(row);
    chosenRow = row;
    if (before)
        before.setAttribute("aria-selected", "false");
    if (after)
        after.setAttribute("aria-selected", "true");
    const detail = byId("detail");
    detail.hidden = !row;
    detail.parentNode.classList.toggle("with-detail", row !== null);
    detail.replaceChildren(...(row ? detailOf(row) : []));
    detail.scrollTop = 0;
    if (row && getComputedStyle(detail).position === "static")
        detail.scrollIntoView();
}

function closeDetail() {
    const row = chosenRow;
    chooseRow(null);
    focusRow(lineOf(row) || byId("table").tBodies[0].rows[0]);
}

// From elsewhere: the table with this row chosen.
function showRow(row) {
    byId("search").value = "";
    putTable();
    openTab(tabs[0]);
    while (!lineOf(row) && nShown < shownRows.length)
        addRows();
    chooseRow(row);
    focusRow(lineOf(row));
}

// --- details of a row ----------------------------------------------------------------------------------------------

function table(titles, lines) {
    const made = make("table");
    if (titles)
        made.append(make("thead", "", cells("th", ...titles)));
    made.append(make("tbody", "", ...lines));
    return made;
}

const number = (content) => make("td", "n", content);

// A link to a line of a source that is here, else only its name.
function sourceLink(file, line) {
    const text = place(texts[file], line);
    if (!line || !data.files.some((each) => each.file === file))
        return make("span", "mono", text);
    const link = button(text, () => showSource(file, line), "link mono");
    link.title = printable(texts[file]);
    return link;
}

function partTable(titles, entries) { // entries: [[part, content, ...], ...]
    return table(titles, entries.map(([part, ...rest]) => cells("td", make("td", "n", percent(part), meter([["all", 100 * part]])), ...rest)));
}

function linesOf(row) {
    const entries = row.lines.slice(0, 12).map(([name, file, line, part, first, last]) => {
        const where = make("span", "", sourceLink(file, line));
        if (first)
            where.append(` in loop ${first}${last > first ? "-" + last : ""}`);
        return [part, named(texts[name]), where];
    });
    return entries.length ? [make("h3", "", "Accessed by"), partTable(null, entries)] : [];
}

function fieldsOf(row) {
    if (!row.fields)
        return [];
    const entries = row.fields.slice(0, 30).map(([name, type, part, offset, size]) =>
        [part, named(texts[name]), named(texts[type] || "no type is known"), number(offset), number(size || "-")]);
    return [make("h3", "", "Fields"), partTable(["share", "field", "type", "offset", "bytes"], entries)];
}

// Functions and loops from a node upwards to where stop holds, the innermost first.
function pathFrom(node, stop) {
    const list = make("ol", "");
    let at = null;
    for (let i = node; i >= 0 && !stop(i); i = parentOf[i]) {
        const kind = tree.kind[i];
        if (list.childElementCount === PATH_AT_MOST) {
            list.append(make("li", "dim", "and so on"));
            break;
        }
        if (kind === "s") {
            at = at === null ? i : at; // the innermost position: below a call its line
        } else if (kind === "l") {
            list.append(make("li", "", `loop at line ${tree.line[i]}`));
        } else if (kind === "f" || kind === "i") {
            const item = make("li", "", named(texts[tree.name[i]]));
            if (at !== null && tree.line[at])
                item.append(" ", sourceLink(tree.file[at], tree.line[at]));
            list.append(item);
            at = null;
        }
    }
    return list;
}

// Where the blocks were allocated: the path above each of the row's nodes.
function allocationsOf(row) {
    const isBlock = row.nodes.some((node) => parentOf[node] >= 0 && tree.kind[parentOf[node]] !== "g");
    if (!isBlock)
        return [];
    const all = row.nodes.reduce((sum, node) => sum + tree.value[node], 0);
    const paths = [...row.nodes].sort((a, b) => tree.value[b] - tree.value[a]).slice(0, 8);
    const made = [make("h3", "", row.nodes.length > 1 ? `Allocated on ${row.nodes.length} paths` : "Allocated by")];
    for (const node of paths) {
        if (row.nodes.length > 1)
            made.push(make("span", "dim", percent(tree.value[node] / all)));
        made.push(pathFrom(parentOf[node], (i) => tree.kind[i] === "g"));
    }
    return made;
}

// The statements below the row's nodes that cost the most, with the paths to them.
function accessesOf(row) {
    const leaves = [];
    let all = 0;
    for (const node of row.nodes) {
        all += tree.value[node];
        for (let i = node + 1; i < endOf[node]; i++)
            if (endOf[i] === i + 1)
                leaves.push(i);
    }
    if (!leaves.length)
        return [];
    leaves.sort((a, b) => tree.value[b] - tree.value[a]);
    const inRow = new Set(row.nodes);
    const made = [make("h3", "", `Access paths${leaves.length > 5 ? `, 5 of ${leaves.length}` : ""}`)];
    for (const leaf of leaves.slice(0, 5)) {
        const path = pathFrom(leaf, (i) => inRow.has(i));
        if (path.childElementCount) // else it was counted where blocks are allocated
            made.push(make("span", "dim", percent(tree.value[leaf] / all)), path);
    }
    return made.length > 1 ? made : [];
}

function threadsOf(row) {
    if (!row.threads || !row.threads.length)
        return [];
    const [n, nWith, mean, most, variation] = row.spread;
    const words = `${nWith} of ${n} threads; the most is ${mean > 0 ? (most / mean).toFixed(1) : "?"} times the mean, variation ${variation.toFixed(2)}`;
    const lines = row.threads.slice(0, 16).map(([thread, value]) =>
        cells("td", named(texts[data.threads[thread]]), make("td", "n", percent(value / (mean * n)), meter([["all", (100 * value) / most]]))));
    return [make("h3", "", "Threads"), make("p", "dim", words), table(null, lines)];
}

function nodesOf(row) {
    if (!row.numa)
        return [];
    const all = row.numa.reduce((sum, n) => sum + n, 0);
    const entries = row.numa.map((n, i) => [n / all, `NUMA node ${i}`, number(`${n} samples`)]).filter(([part]) => part >= 0.0005);
    return [make("h3", "", "NUMA nodes that the accessing threads ran on"), partTable(null, entries)];
}

function detailOf(row) {
    const tools = make("div", "tools");
    const query = queryOfRow(row);
    if (query)
        tools.append(button("Copy query", () => showQuery(query)), button("Show in flame graph", () => showBoxOf(row.nodes[0])));
    tools.append(button("Close", closeDetail));
    const facts = make("dl", "");
    const pairs = [[data.few ? "samples" : "share", data.few ? row.share : percent(row.share / 100)]];
    if (data.causes)
        pairs.push(["memory", row.unknown ? "unknown" : percent(row.memory / 100)], ["execution", percent(row.execution / 100)], ["unverified", percent(row.unverified / 100)]);
    pairs.push(["samples", Math.round(row.samples)]);
    for (const [label, text] of [["class", row.class], ["comes from", row.origin], ["size", row.size], ["blocks", row.blocks], ["type", row.type], ["type known by", row.by]])
        if (text && texts[text] !== "-")
            pairs.push([label, texts[text]]);
    data.derived.forEach(([title], i) => pairs.push([texts[title], texts[row.derived[i][1]]]));
    definitions(facts, data.few ? pairs.slice(1) : pairs);
    const words = [row.meaning, row.special, row.advice].filter(Boolean).map((text) => make("p", "", texts[text]));
    return [make("h2", "", named(row.title)), tools, ...words, data.few ? "" : meter(partsOf(row)), facts,
            ...linesOf(row), ...fieldsOf(row), ...accessesOf(row), ...allocationsOf(row), ...threadsOf(row), ...nodesOf(row)];
}

// --- the flame graph -----------------------------------------------------------------------------------------------

// levels: by distance from the root, boxes with where they begin and end, as parts of the width.
const flame = {root: null, zoomed: null, chosen: null, levels: [], isDrawn: false, word: "", withLines: false};

function makeRoot() {
    flame.withLines = byId("with-lines").checked;
    flame.root = rootBox(byId("tree-data").checked);
    flame.zoomed = flame.chosen = flame.root;
}

// The levels down to the zoomed box, which fills the width as all above it do.
function layOut() {
    flame.levels = [];
    for (let at = flame.zoomed; at; at = at.above)
        flame.levels.push([{box: at, from: 0, to: 1}]);
    flame.levels.reverse();
    flame.zoomLevel = flame.levels.length - 1;
    flame.isComplete = !flame.root;
    byId("field").style.height = flame.levels.length * ROW_PIXELS + "px"; // so that the box can be scrolled to
}

function needLevels(n) {
    while (!flame.isComplete && flame.levels.length < n) {
        const next = [];
        for (const {box, from, to} of flame.levels[flame.levels.length - 1]) {
            let at = from;
            for (const below of boxesBelow(box, flame.withLines)) {
                const width = box.value > 0 ? ((to - from) * below.value) / box.value : 0;
                if (width < LEAST_WIDTH)
                    break; // those that follow are smaller
                next.push({box: below, from: at, to: at + width});
                at += width;
            }
        }
        if (next.length)
            flame.levels.push(next);
        else
            flame.isComplete = true;
    }
}

const isHit = (name) => flame.word !== "" && name.toLowerCase().includes(flame.word);

function hueOf(name) {
    let hash = 0;
    for (let i = 0; i < Math.min(name.length, 64); i++)
        hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    return hash % 4;
}

function makeBox(at, level) {
    const {box, from, to} = at;
    const kind = box.kind === "f" || box.kind === "i" ? hueOf(box.name) : box.kind;
    const made = make("div", `box box-${kind}`);
    if ((to - from) * byId("boxes").clientWidth > NAMED_PIXELS)
        made.textContent = printable(box.name.slice(0, 300));
    if (level < flame.zoomLevel)
        made.classList.add("above");
    if (isHit(box.name))
        made.classList.add("hit");
    if (box === flame.chosen)
        made.classList.add("at");
    made.style.left = 100 * from + "%";
    made.style.width = 100 * (to - from) + "%";
    made.style.top = level * ROW_PIXELS + "px";
    made.title = printable(box.name.slice(0, 300)) + " " + percent(box.value / flame.root.value);
    made.box = box;
    return made;
}

function drawBoxes() {
    const view = byId("boxes"), field = byId("field");
    const first = Math.max(0, Math.floor(view.scrollTop / ROW_PIXELS) - 2);
    const last = Math.ceil((view.scrollTop + view.clientHeight) / ROW_PIXELS) + 2;
    needLevels(last + LEVELS_AHEAD);
    field.style.height = flame.levels.length * ROW_PIXELS + "px";
    const made = [];
    for (let level = first; level < Math.min(last, flame.levels.length); level++)
        for (const at of flame.levels[level])
            made.push(makeBox(at, level));
    field.replaceChildren(...made);
}

// What the search matches: the nodes that are not below others that match, by value.
function shareOfHits() {
    const first = flame.root.nodes[0];
    const matches = new Map();
    let value = 0, n = 0;
    for (let i = first; i < endOf[first]; ) {
        const name = isHidden(i) ? null : tree.name[i];
        if (name !== null && !matches.has(name))
            matches.set(name, isHit(texts[name]));
        const isMatch = name === null ? flame.withLines && isHit(nodeName(i)) : matches.get(name);
        value += isMatch ? tree.value[i] : 0;
        n += isMatch ? 1 : 0;
        i = isMatch ? endOf[i] : i + 1;
    }
    return n ? `'${byId("search").value}' is in ${percent(value / flame.root.value)} of the tree. ` : `'${byId("search").value}' is nowhere in the tree. `;
}

const rowOfNode = new Map();
for (const row of rows)
    for (const node of row.nodes)
        if (!rowOfNode.has(node))
            rowOfNode.set(node, row);

function putChosen() {
    const box = flame.chosen, out = byId("chosen");
    if (!box) {
        out.replaceChildren(make("p", "dim", "There is no such tree: nothing of it was sampled."));
        return;
    }
    const below = boxesBelow(box, flame.withLines).reduce((sum, each) => sum + each.value, 0);
    const node = box.nodes[0];
    const words = [tree.words[box.kind], `${percent(box.value / flame.root.value)} of all`];
    if (box.above)
        words.push(`${percent(box.value / box.above.value)} of what is above`);
    words.push(`${percent(Math.max(box.value - below, 0) / flame.root.value)} by itself`);
    const tools = make("div", "tools", button("Copy query", () => showQuery(queryOfBox(box, flame.withLines))));
    if (rowOfNode.has(node))
        tools.append(button("Show variable", () => showRow(rowOfNode.get(node))));
    const where = make("span", "dim", words.join(", ") + " ");
    if (texts[tree.file[node]])
        where.append(sourceLink(tree.file[node], tree.line[node]));
    out.replaceChildren(make("b", "", named(box.name)), flame.word ? shareOfHits() : "", where, tools);
}

function levelOf(box) {
    let level = 0;
    for (let at = box.above; at; at = at.above)
        level++;
    return level;
}

function chooseBox(box) {
    flame.chosen = box;
    const view = byId("boxes"), top = levelOf(box) * ROW_PIXELS;
    if (top < view.scrollTop)
        view.scrollTop = top;
    if (top + 2 * ROW_PIXELS > view.scrollTop + view.clientHeight)
        view.scrollTop = top + 2 * ROW_PIXELS - view.clientHeight;
    drawBoxes();
    putChosen();
}

function zoomTo(box) {
    flame.zoomed = box;
    layOut();
    chooseBox(box);
}

function drawFlame() {
    if (!flame.isDrawn) {
        flame.isDrawn = true;
        makeRoot();
        layOut();
    }
    drawBoxes();
    putChosen();
}
opened.flame = drawFlame;

function remakeFlame() {
    flame.isDrawn = false;
    byId("boxes").scrollTop = 0;
    drawFlame();
}

// The neighbours of a box in its level that are drawn.
function neighbour(box, step) {
    const level = flame.levels[levelOf(box)] || [];
    const at = level.findIndex((each) => each.box === box);
    return at >= 0 && level[at + step] ? level[at + step].box : null;
}

function firstBelow(box) {
    needLevels(levelOf(box) + 2);
    const level = flame.levels[levelOf(box) + 1] || [];
    const found = level.find((each) => each.box.above === box);
    return found ? found.box : null;
}

function onFlameKey(event) {
    const box = flame.chosen;
    if (!box || event.ctrlKey || event.altKey || event.metaKey)
        return;
    const moves = {ArrowDown: () => firstBelow(box), ArrowUp: () => box.above, ArrowLeft: () => neighbour(box, -1), ArrowRight: () => neighbour(box, 1)};
    if (moves[event.key]) {
        event.preventDefault();
        const next = moves[event.key]();
        if (next)
            chooseBox(next);
    } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        zoomTo(box);
    } else if (event.key === "Escape" && flame.zoomed !== flame.root) {
        event.preventDefault();
        event.stopPropagation();
        zoomTo(flame.zoomed.above);
    }
}

// The data graph with the box of a variable's node zoomed.
function showBoxOf(node) {
    byId("tree-data").checked = true;
    openTab(tabs[1]);
    remakeFlame();
    const path = [];
    for (let i = node; i >= 0; i = parentOf[i])
        if (flame.withLines || !isHidden(i))
            path.push(i);
    path.reverse();
    let box = flame.root;
    for (const step of path.slice(1))
        box = boxesBelow(box, flame.withLines).find((each) => each.nodes.includes(step)) || box;
    zoomTo(box);
    byId("boxes").focus();
}

// --- sources -------------------------------------------------------------------------------------------------------

let costly = [], atCostly = -1;
const allCosts = data.files.reduce((sum, file) => sum + file.value, 0);

function makeLine(number, text, entries) {
    const line = make("div", entries ? "row hot" : "row");
    const cost = make("span", "cost"), withCalls = make("span", "calls");
    const touched = make("span", "data");
    if (entries) {
        const value = entries.reduce((sum, entry) => sum + entry[2], 0);
        const total = entries.reduce((sum, entry) => sum + entry[3], 0);
        cost.textContent = value ? percent(value / allCosts) : "";
        withCalls.textContent = total > value ? percent(total / allCosts) : "";
        cost.style.setProperty("--part", Math.min(100, (100 * value) / costly[0].value) + "%");
        const parts = new Map();
        for (const entry of entries)
            for (const [row, part] of entry[4])
                parts.set(row, (parts.get(row) || 0) + part);
        for (const [row, part] of [...parts].sort((a, b) => b[1] - a[1]).slice(0, 4))
            if (rows[row])
                touched.append(button(`${rows[row].title.slice(0, 80)} ${Math.round(value ? (100 * part) / value : 0)} %`, () => showRow(rows[row]), "link"));
    }
    line.dataset.line = number;
    line.tabIndex = -1;
    line.append(make("span", "no", number || "?"), cost, withCalls, text === null ? make("span", "text dim", "(" + entries.map((entry) => texts[entry[1]]).join(", ").slice(0, 200) + ")") : codeOf(text), touched);
    return line;
}

// Tabs stay tabs.
function codeOf(text) {
    const span = make("span", "text");
    span.textContent = text.split("\t").map(printable).join("\t");
    return span;
}

function titlesOfLines() {
    return make("div", "row titles", make("span", "no", "line"), make("span", "cost", "share"), make("span", "calls", "with calls"),
                make("span", "", "source"), make("span", "data", "data, of the share"));
}

function putFile(file) {
    const byLine = new Map();
    for (const entry of file.lines) {
        if (!byLine.has(entry[0]))
            byLine.set(entry[0], []);
        byLine.get(entry[0]).push(entry);
    }
    costly = [...byLine].map(([line, entries]) => ({line, value: entries.reduce((sum, entry) => sum + entry[2], 0)})).sort((a, b) => b.value - a.value);
    atCostly = -1;
    const made = [];
    let behind = 1;
    for (const [first, text] of file.text) {
        const lines = text.split("\n");
        if (lines[lines.length - 1] === "")
            lines.pop();
        if (first > behind)
            made.push(make("div", "gap", `${first - behind} lines`));
        for (let i = 0; i < lines.length; i += LINES_AT_ONCE)
            made.push(make("div", "piece", ...lines.slice(i, i + LINES_AT_ONCE).map((line, k) => makeLine(first + i + k, line, byLine.get(first + i + k)))));
        behind = first + lines.length;
    }
    if (!file.text.length)
        made.push(make("div", "piece", ...[...byLine].map(([line, entries]) => makeLine(line, null, entries))));
    byId("file-note").textContent = file.text.length ? "" : "The database has no copy of this file: only its lines with samples are listed.";
    byId("code").replaceChildren(titlesOfLines(), ...made);
    byId("code").scrollTop = 0;
}

// Scrolls to a line in its box; the window stays.
function showLine(line) {
    const found = byId("code").querySelector(`.row[data-line="${line}"]`);
    const top = scrollY;
    if (found)
        found.scrollIntoView({block: "center"});
    scrollTo(0, top);
    return found;
}

function goToLine(line) {
    const found = showLine(line);
    if (!found)
        return;
    byId("code").scrollIntoView({block: "nearest"});
    found.focus({preventScroll: true});
}

function nextCostly() {
    if (!costly.length)
        return;
    atCostly = (atCostly + 1) % Math.min(costly.length, 20);
    goToLine(costly[atCostly].line);
}

let shownFile = -1;

function openFile(i) {
    if (i === shownFile || !data.files[i])
        return;
    shownFile = i;
    byId("file").value = String(i);
    putFile(data.files[i]);
}

function drawSources() {
    const list = byId("file");
    if (!list.options.length)
        data.files.forEach((file, i) => {
            const name = texts[file.file] || "(file not known)";
            const choice = make("option", "", `${percent(file.value / allCosts)}  ${name.length > 90 ? "\u2026" + name.slice(-90) : name}`);
            choice.value = String(i);
            list.append(choice);
        });
    if (shownFile < 0) {
        openFile(0);
        showLine(costly.length ? costly[0].line : 0);
    }
}
opened.sources = drawSources;

function showSource(file, line) {
    openTab(tabs[2]);
    openFile(data.files.findIndex((each) => each.file === file));
    goToLine(line);
}

// --- notes ---------------------------------------------------------------------------------------------------------

function putNotes() {
    definitions(byId("head"), data.head.map(([label, words]) => [texts[label], texts[words]]));
    definitions(byId("foot"), data.foot.map(([label, words]) => [texts[label], texts[words]]));
    for (const [name, taken, fates] of data.fates) {
        const all = fates.reduce((sum, fate) => sum + fate[2], 0);
        const lines = fates.map(([fate, sentence, n, isSample]) =>
            cells("td", texts[fate], number(n), number(isSample && taken ? percent(n / taken) : "-"), make("td", "", meter([["all", all ? (100 * n) / all : 0]])), texts[sentence]));
        byId("fates").append(make("h2", "", `What became of the ${taken} samples of ${texts[name]}`), table(["fate", "samples", "share", "", "meaning"], lines));
    }
}

// Where a row comes from, and the line that accesses it most.
function whereOf(row) {
    const parts = [];
    if (texts[row.class] !== "-" && row.from)
        parts.push("it comes from ", named(row.from));
    if (row.lines.length) {
        const [name, file, line, part] = row.lines[0];
        parts.push(parts.length ? ", and " : "", `${percent(part)} of its samples are in `, named(texts[name]), " ", sourceLink(file, line));
    }
    return parts.length ? make("div", "dim", "Where: ", ...parts, ".") : "";
}

// What `hpcquery advice` says: the row, what to do there, and the figures that it follows from.
function putAdvice() {
    for (const {variable, alloc_site: site, share, memory_share: waited, advice, evidence, tried, tried_as: came} of data.advice.advice) {
        const found = rows.filter((each) => each.title === variable);
        const row = found.length > 1 ? found.find((each) => each.from.includes(site)) || found[0] : found[0];
        const name = typeof variable === "string" ? variable : "a name that is not UTF-8";
        const because = waited === undefined ? evidence : `${evidence}; ${percent(waited / 100)} of all samples waited for memory here`;
        const sentence = advice.charAt(0).toUpperCase() + advice.slice(1).replace(/\.$/, "");
        const title = row ? button(name.slice(0, 300), () => showRow(row), "link mono") : named(name);
        const line = make("li", "", title, `, ${percent(share / 100)} of the samples: `, make("strong", "", sentence));
        line.append(make("div", "dim", "Why: " + because + "."), row ? whereOf(row) : "");
        if (tried)
            line.append(make("div", "", `Tried (hpcrun --try): ${tried}: ${came}.`));
        byId("advice").querySelector("ol").append(line);
    }
    byId("advice").hidden = data.advice.advice.length === 0;
}

function putLegend() {
    const legend = byId("legend");
    if (data.causes)
        legend.append("bars:", make("span", "key memory"), "waiting for memory", make("span", "key execution"),
                      "computation (data is only its input)", make("span", "key unverified"), "not verified. ");
    if (data.kernel) {
        const [share, system, user] = data.kernel;
        legend.append(`<kernel>: ${percent(share / 100)} of the CPU time, ${system.toFixed(2)} s in system calls and page faults; the rows are the other ${user.toFixed(2)} s. `);
    }
}

// --- start ---------------------------------------------------------------------------------------------------------

function switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
}

function onKey(event) {
    const isTyping = event.target.matches("input[type=search], textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        byId("search").focus();
    } else if (event.key === "Escape" && !byId("query").hidden) {
        closeQuery();
    } else if (event.key === "Escape" && !byId("rows").hidden && chosenRow && !isTyping) {
        closeDetail();
    }
}

function start() {
    const program = texts[data.title];
    document.title = printable(program).slice(0, 200);
    if (data.time)
        byId("title").append("Which data does ", named(program), " spend its time on?");
    else
        byId("title").append(`${printable(texts[data.metric])}: on which data of `, named(program), "?");
    putNotes();
    putAdvice();
    putLegend();
    putTitles();
    putTable();
    for (const tab of tabs) {
        tab.addEventListener("click", () => openTab(tab));
        tab.addEventListener("keydown", onTabKey);
    }
    byId("table").addEventListener("keydown", onTableKey);
    byId("table").addEventListener("click", (event) => {
        const line = event.target.closest("tbody tr");
        if (line) {
            focusRow(line);
            chooseRow(rows[line.dataset.row]);
        }
    });
    byId("search").addEventListener("input", () => {
        flame.word = byId("search").value.toLowerCase();
        putTable();
        if (!byId("flame").hidden)
            drawFlame();
    });
    byId("boxes").addEventListener("keydown", onFlameKey);
    byId("boxes").addEventListener("scroll", () => requestAnimationFrame(drawBoxes));
    byId("boxes").addEventListener("click", (event) => {
        const made = event.target.closest(".box");
        if (made)
            zoomTo(made.box);
    });
    for (const id of ["tree-code", "tree-data", "with-lines"])
        byId(id).addEventListener("change", remakeFlame);
    byId("zoom-out").addEventListener("click", () => flame.zoomed && zoomTo(flame.zoomed.above || flame.root));
    byId("file").addEventListener("change", () => {
        openFile(Number(byId("file").value));
        showLine(costly.length ? costly[0].line : 0);
    });
    byId("next-line").addEventListener("click", nextCostly);
    byId("query-close").addEventListener("click", closeQuery);
    byId("theme").addEventListener("click", switchTheme);
    document.addEventListener("keydown", onKey);
    addEventListener("resize", () => !byId("flame").hidden && requestAnimationFrame(drawBoxes));
}

start();
