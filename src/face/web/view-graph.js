// SPDX-License-Identifier: BSD-3-Clause
// What called what: as boxes from above, from below, or around one function; the tree of data; the graph of calls. Steps of the trail change what is shown, and
// the command that prints the same numbers.
import {ask, isServed} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, standIn, relatedTo, titleOf} from "./things.js";
import {make, attributes, button, named, choice, check, percent, short, say, write} from "./parts.js";
import {NODES} from "./nodes.js";
import {choose} from "./list.js";
import {threadsStep} from "./threads.js";
import {treeOf, folded, stepped, stepWords, recursive, leftHeavy, bottomUp, sandwich, hiding, keysOf, labelOf, FUNCTION, LOOP, LINE, GROUP, VARIABLE} from "./shape.js";
import {Icicle} from "./icicle.js";
import {CallGraph} from "./callgraph.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./shape.js").Tree} Tree */

const MODES = [["top-down", "top down"], ["left-heavy", "top down, names merged"], ["bottom-up", "bottom up"], ["sandwich", "callers and callees"], ["data", "data"], ["calls", "call graph"]];
const GRAPH_PERCENTS = [["", "of total"], ["parent", "of caller"], ["selection", "of choice"], ["absolute", "absolute"]];
/** Steps: the key, the word in the trail, what they do. */
const TREE_STEPS = [["f", "focus", "Focus", "Only call paths through it"], ["m", "merge", "Merge", "Its lines and its callees go to its callers; a cost without a line goes with it"],
               ["x", "drop", "Drop", "Without it and what it calls"], ["r", "collapse", "Collapse recursion", "Calls of itself are no calls"],
               ["h", "hide", "Hide", "No boxes for it and what it calls; all sums stay"]];

/** What the address says: words, as "bottom-up;loops;zoom=12". */
function graphWords() {
    const words = state.graph.split(";"), zoom = words.find((word) => word.startsWith("zoom="));
    return {mode: words[0] || "top-down", loops: words.includes("loops"), lines: words.includes("lines"), runtime: words.includes("runtime"), zoom: zoom ? Number(zoom.slice(5)) : -1};
}

/** @param {Partial<ReturnType<typeof graphWords>>} patch what changes; a zoom stays only where nothing else does */
function wantGraph(patch) {
    const next = {...graphWords(), zoom: -1, ...patch}, words = [next.mode === "top-down" ? "" : next.mode];
    for (const key of /** @type {("loops" | "lines" | "runtime")[]} */ (["loops", "lines", "runtime"]))
        if (next[key])
            words.push(key);
    if (next.zoom >= 0)
        words.push("zoom=" + next.zoom);
    want({graph: words.join(";")});
}

/** With steps a server is asked for all nodes, so that small ones are not missed. */
const request = () => about(isServed && state.trail.length ? {...NODES, min: 0} : NODES);

/** @typedef {{bar: HTMLElement, info: HTMLElement, trail: HTMLElement, box: HTMLElement, words: HTMLElement, icicle: Icicle, calls: CallGraph, inputs: Record<string, any>}} GraphParts */

/** @type {GraphParts | null} */ let graphParts = null;
/** @type {{key: string, nodes: Answer | null, base: Tree | null, tree: Tree | null}} */ let graphKept = {key: "", nodes: null, base: null, tree: null};
/** @type {{items: Map<string, number>, marks: Uint8Array, base: number}} Marks by the number of an item's text */ let graphMarks = {items: new Map(), marks: new Uint8Array(0), base: 0};
/** @type {Uint8Array} by the number of a name */ let graphHits = new Uint8Array(0);
const MARK_WORDS = ["", "hit", "related", "selected", "active"];

// --- numbers and names of a node ---------------------------------------------------------------------------------------

/** @param {number} node */
const rowIn = (node) => /** @type {Tree} */ (graphKept.tree).of[node];

/** @param {number} node */
function kindIn(node) {
    return keysOf(/** @type {Answer} */ (graphKept.nodes)).kind[rowIn(node)];
}

/**
 * A value as the page shows it now.
 * @param {number} value
 * @param {number} above of the caller
 */
function shownAs(value, above) {
    const {tree} = graphKept;
    if (state.percent === "absolute")
        return short(value);
    return percent((100 * value) / ((state.percent === "parent" ? above : state.percent === "selection" ? graphMarks.base : tree?.total) || tree?.total || 1));
}

/** @param {number} node */
function shareOf(node) {
    const {value, parent} = /** @type {Tree} */ (graphKept.tree);
    return shownAs(value[node], parent[node] < 0 ? value[node] : value[parent[node]]);
}

/** @param {number} node */
const nameIn = (node) => labelOf(/** @type {Answer} */ (graphKept.nodes), rowIn(node));

/** @param {number} node */
function wordsIn(node) {
    const {tree, nodes} = graphKept;
    if (!tree || !nodes)
        return "";
    const file = nodes.text("file", rowIn(node)), line = nodes.number("line", rowIn(node)), own = tree.self[node];
    return `${nameIn(node)}, ${shareOf(node)}${own > 0 ? `, ${shownAs(own, tree.value[node])} itself` : ""}${kindIn(node) === FUNCTION && file && !file.startsWith("<") ? `, ${file}${line > 0 ? ":" + line : ""}` : ""}`;
}

/**
 * The thing that a node is, or the nearest one above it.
 * @param {number} node
 */
function itemIn(node) {
    const {tree, nodes} = graphKept;
    for (let at = node; tree && nodes && at >= 0; at = tree.parent[at])
        if (nodes.text("item", tree.of[at]))
            return nodes.text("item", tree.of[at]);
    return "";
}

/** @param {number} node */
function colorOf(node) {
    const kind = kindIn(node);
    return kind === FUNCTION ? /** @type {Tree} */ (graphKept.tree).key[node] % 4 : kind === VARIABLE ? 4 : kind === LOOP || kind === LINE ? 6 : 5;
}

// --- marks -------------------------------------------------------------------------------------------------------------

/** @param {number} row */
function markIn(row) {
    const {nodes} = graphKept, items = nodes?.columns.get("item"), names = nodes?.columns.get("name");
    const mark = items && items.about.type !== "same" ? graphMarks.marks[items.words()[row]] || 0 : 0;
    return mark || (names && names.about.type !== "same" && graphHits[names.words()[row]] ? 1 : 0);
}

/** @typedef {{ids: Uint32Array, low: string[]}} Names of nodes, each once, in small letters */
/** @type {WeakMap<Answer, Names>} */ const namesKept = new WeakMap();

/**
 * The numbers of a column's texts.
 * @param {Answer} nodes
 * @param {string} key
 */
function wordsOfColumn(nodes, key) {
    const column = nodes.columns.get(key);
    return column && column.about.type !== "same" ? column.words() : null;
}

/** @param {Answer} nodes */
function namesIn(nodes) {
    let made = namesKept.get(nodes);
    if (!made) {
        const ids = Uint32Array.from(new Set(wordsOfColumn(nodes, "name") || [])).filter((id) => id < nodes.texts.length);
        namesKept.set(nodes, made = {ids, low: Array.from(ids, (id) => nodes.texts[id].toLowerCase())});
    }
    return made;
}

/**
 * What nodes of each mark cost together, each with what is below it: of those below one of the same mark nothing more is counted.
 * @param {Tree} base
 * @param {Uint8Array} marks by text
 * @param {ArrayLike<number>} texts the text of each row
 * @returns {number[]}
 */
function sumsByMark(base, marks, texts) {
    const {n, of, end, value} = base, sums = new Array(MARK_WORDS.length).fill(0), until = new Uint32Array(MARK_WORDS.length);
    for (let i = 0; i < n; i++) {
        const mark = marks[texts[of[i]]];
        if (mark && i >= until[mark]) {
            sums[mark] += value[i];
            until[mark] = end[i];
        }
    }
    return sums;
}

/** Finds out what is marked, and how much it costs: the thing itself, what belongs to it, what was searched for. */
function findMarks() {
    const {nodes, base} = graphKept, t = tables(), info = graphParts?.info;
    if (!nodes || !base || !info)
        return;
    const items = wordsOfColumn(nodes, "item"), words = wordsOfColumn(nodes, "name"), nTexts = nodes.texts.length;
    if (graphHits.length !== nTexts || !graphMarks.items.size)
        graphMarks.items = new Map(items ? [...new Set(items)].map((id) => [nodes.texts[id], id]) : []);
    const marks = new Uint8Array(nTexts), mark = (/** @type {string} */ item, /** @type {number} */ as) => {
        const id = graphMarks.items.get(item);
        if (id !== undefined)
            marks[id] = Math.max(marks[id], as);
    };
    if (t && state.active) {
        const related = relatedTo(t, state.active);
        for (const map of [related.variables, related.lines, related.functions])
            for (const item of map.keys())
                mark(item, 2);
    }
    for (const item of state.selected)
        mark(item, 3);
    mark(state.active, 4);
    graphMarks.marks = marks;
    graphHits = new Uint8Array(nTexts);
    const low = state.filter.toLowerCase(), names = namesIn(nodes), made = [];
    if (low)
        names.ids.forEach((id, i) => (graphHits[id] = names.low[i].includes(low) ? 1 : 0));
    const part = (/** @type {number} */ value) => (state.percent === "absolute" ? short(value) : percent((100 * value) / (base.total || 1)));
    if (low && words)
        made.push(`"${state.filter}" is in ${part(sumsByMark(base, graphHits, words)[1])}.`);
    graphMarks.base = 0;
    if (state.active && items) {
        const [, , others, , own] = sumsByMark(base, marks, items);
        graphMarks.base = own || others;
        if (own)
            made.push(`${titleOf(state.active)}: ${part(own)}.`);
        if (others)
            made.push(`What belongs to ${titleOf(state.active)} (dotted) is in ${part(others)}.`);
    }
    write(info, made.join(" "));
}

// --- trail -------------------------------------------------------------------------------------------------------------

/** @param {string} step */
function addStep(step) {
    if (!state.trail.includes(step))
        want({trail: [...state.trail, step], graph: wordsWithoutZoom()});
}

const wordsWithoutZoom = () => state.graph.split(";").filter((word) => !word.startsWith("zoom=")).join(";");

function drawTrail() {
    const place = graphParts?.trail;
    if (!place)
        return;
    place.hidden = !state.trail.length && !state.profiles;
    place.replaceChildren(make("span", "dim", "Steps:"), ...threadsStep(), ...state.trail.map((step) => {
        const word = step.slice(0, step.indexOf(" ")), away = button("\u00d7", () => want({trail: state.trail.filter((each) => each !== step), graph: wordsWithoutZoom()}), "bare");
        attributes(away, {"aria-label": "Undo " + step});
        return make("span", "step", word + " ", named(step.slice(word.length + 1)), away);
    }), button("Undo all", () => want({trail: [], profiles: "", graph: wordsWithoutZoom()})));
}

// --- what is drawn -----------------------------------------------------------------------------------------------------

/** The names from the root to the node that is zoomed to; in newer numbers it has another one. */
function zoomedPlace() {
    const {tree} = graphKept, place = [];
    for (let at = zoomedNode(); tree && at >= 0; at = tree.parent[at])
        place.unshift(nameIn(at));
    return place;
}

/**
 * The node at a place, -1: it is not there any more.
 * @param {string[]} place
 */
function nodeAtPlace(place) {
    const {n, parent} = /** @type {Tree} */ (graphKept.tree);
    let found = -1, depth = 0;
    for (let i = 0; i < n && depth < place.length; i++)
        if (parent[i] === found && nameIn(i) === place[depth]) {
            found = i;
            depth++;
        }
    return depth < place.length ? -1 : found;
}

/**
 * @param {Answer} nodes
 * @param {string} item of the function in the middle
 */
function makeTree(nodes, item) {
    const words = graphWords(), {mode, loops, lines, runtime} = words;
    const key = [mode, loops, lines, runtime, mode === "sandwich" ? item : "", state.cycles && mode === "calls", ...state.trail].join("\n");
    if (graphKept.tree && graphKept.key === key && graphKept.nodes === nodes)
        return false;
    let base = state.trail.filter((step) => !step.startsWith("hide ")).reduce(stepped, treeOf(nodes, mode === "data"));
    base = folded(base, mode === "calls" ? {loops: false, lines: false, runtime} : {loops, lines, runtime});
    const isSame = graphKept.nodes === nodes, place = isSame || graphKept.key !== key ? [] : zoomedPlace();
    graphKept = {key, nodes, base, tree: base};
    if (!isSame)
        graphMarks.items.clear();
    if (mode === "left-heavy" || mode === "data")
        graphKept.tree = leftHeavy(base);
    else if (mode === "bottom-up")
        graphKept.tree = bottomUp(base);
    else if (mode === "sandwich")
        graphKept.tree = sandwich(base, middleOf(base, item));
    graphKept.tree = hiding(/** @type {Tree} */ (graphKept.tree), state.trail.filter((step) => step.startsWith("hide ")).map((step) => step.slice(5)));
    if (place.length) {
        const at = nodeAtPlace(place);
        wantGraph({zoom: at < 0 ? -1 : mode === "bottom-up" || mode === "sandwich" ? at : nodes.number("node", graphKept.tree.of[at])});
    }
    return true;
}

/**
 * The function in the middle: the one that is chosen, or the costliest.
 * @param {Tree} base
 * @param {string} item
 */
function middleOf(base, item) {
    const {nodes, of, key, self, n} = base, own = new Map();
    let best = -1;
    for (let i = 0; i < n; i++) {
        if (item && nodes.text("item", of[i]) === item)
            return key[i];
        if (keysOf(nodes).kind[of[i]] === FUNCTION) {
            own.set(key[i], (own.get(key[i]) || 0) + self[i]);
            if (best < 0 || own.get(key[i]) > own.get(best))
                best = key[i];
        }
    }
    return best;
}

/** The node that is zoomed to: by its number in the profile, or, where several have one, by its place. */
function zoomedNode() {
    const {mode, zoom} = graphWords(), {tree, nodes} = graphKept;
    if (zoom < 0 || !tree || !nodes)
        return -1;
    if (mode === "bottom-up" || mode === "sandwich")
        return zoom < tree.n ? zoom : -1;
    const numbers = nodes.columns.get("node")?.numbers;
    return numbers ? tree.of.findIndex((row) => numbers[row] === zoom) : -1;
}

/** @param {number} node -1, or the one that is zoomed to: out */
function zoomTo(node) {
    const {mode} = graphWords(), {tree, nodes} = graphKept, here = zoomedNode();
    if (!tree || !nodes)
        return;
    const to = node >= 0 && node !== here ? node : here < 0 ? -1 : tree.parent[here], isAll = to < 0 || tree.value[to] >= tree.total;
    wantGraph({zoom: isAll ? -1 : mode === "bottom-up" || mode === "sandwich" ? to : nodes.number("node", tree.of[to])});
}

/** @param {number} node */
function showBox(node) {
    const {tree} = graphKept;
    if (!graphParts || !tree || node >= tree.n)
        return;
    const kind = kindIn(node), name = nameIn(node), act = make("div", "tools");
    act.append(button("Zoom (Z)", () => zoomTo(node)));
    if (kind === FUNCTION || (kind === GROUP && graphWords().mode !== "data"))
        for (const [key, word, title, help] of TREE_STEPS)
            if (word !== "collapse" || recursiveNames().includes(name))
                act.append(attributes(button(`${title} (${key.toUpperCase()})`, () => addStep(`${word} ${name}`)), {title: help}));
    graphParts.box.replaceChildren(make("span", "box-words", named(wordsIn(node))), act);
}

/** @type {WeakMap<Tree, string[]>} */ const recursiveKept = new WeakMap();

function recursiveNames() {
    const {base} = graphKept;
    if (!base)
        return [];
    const names = recursiveKept.get(base) || recursive(base);
    recursiveKept.set(base, names);
    return names;
}

/**
 * @param {string} key
 * @param {number} node
 */
function pressed(key, node) {
    const step = TREE_STEPS.find(([each]) => each === key), kind = kindIn(node);
    if (!step || (kind !== FUNCTION && kind !== GROUP))
        return false;
    addStep(`${step[1]} ${nameIn(node)}`);
    say(`${step[2]} ${nameIn(node)}`);
    return true;
}

/** The bar of choices. */
function makeBar() {
    const words = graphWords(), inputs = {
        mode: choice("Graph", MODES, words.mode, (mode) => wantGraph({mode})),
        percent: choice("Numbers", GRAPH_PERCENTS, state.percent, (each) => want({percent: each})),
        loops: check("loops", words.loops, (loops) => wantGraph({loops})),
        lines: check("lines", words.lines, (lines) => wantGraph({lines})),
        runtime: check("runtime", words.runtime, (runtime) => wantGraph({runtime})),
        cycles: check("cycles as one", Boolean(state.cycles), (cycles) => want({cycles: cycles ? "1" : ""})),
        least: choice("from", [["", "2 %"], ["0.1", "0.1 %"], ["0.5", "0.5 %"], ["5", "5 %"], ["10", "10 %"]], state.min, (min) => want({min})),
    };
    return {bar: make("div", "tools", ...Object.values(inputs)), inputs};
}

function drawBar() {
    const words = graphWords(), inputs = /** @type {any} */ (graphParts?.inputs), isCalls = words.mode === "calls";
    inputs.mode.lastElementChild.value = words.mode;
    inputs.percent.lastElementChild.value = state.percent;
    inputs.least.lastElementChild.value = state.min;
    for (const key of /** @type {("loops" | "lines" | "runtime")[]} */ (["loops", "lines", "runtime"]))
        inputs[key].firstElementChild.checked = words[key];
    inputs.cycles.firstElementChild.checked = Boolean(state.cycles);
    inputs.loops.hidden = inputs.lines.hidden = inputs.percent.hidden = isCalls;
    inputs.cycles.hidden = inputs.least.hidden = !isCalls;
}

/** @param {number} key */
function chooseCall(key) {
    const {base, nodes} = graphKept, at = base ? base.key.indexOf(key) : -1;
    if (base && nodes && at >= 0 && nodes.text("item", base.of[at]))
        want({active: nodes.text("item", base.of[at]), selected: []});
}

/** @type {import("./views.js").View} */
export const graph = {
    name: "tree", title: "Graph", stack: "code",
    canShow(item) {
        const t = tables(), found = t && item ? standIn(t, item, "function") : null;
        return {item: found ? found.item : "", why: ""};
    },
    asks() {
        const {mode} = graphWords(), steps = [...(state.profiles ? [["choose", state.profiles]] : []), ...state.trail.flatMap(stepWords)], isData = mode === "data";
        const last = mode === "bottom-up" ? [["callers"], ["tree"]] : mode === "calls" ? [state.cycles ? ["callgraph", "collapsed"] : ["callgraph"], ["table"]] : [["tree"]];
        if (!steps.length && last.length === 1)
            return [about({report: isData ? "datatree" : "tree"})];
        return [{steps: [...steps, ...last], tree: isData ? "data" : "code", metric: state.metric || graphKept.nodes?.metric || undefined}];
    },
    open(panel) {
        const {bar, inputs} = makeBar(), info = attributes(make("p", "graph-info"), {"aria-live": "polite"}), trail = make("div", "trail tools"), box = make("div", "graph-box");
        const icicle = new Icicle({label: nameIn, words: wordsIn, share: shareOf, color: colorOf, mark: (node) => MARK_WORDS[markIn(rowIn(node))], zoom: zoomTo, show: showBox,
                                   press: pressed, choose: (node, event) => choose(itemIn(node), event)});
        const calls = new CallGraph({choose: chooseCall, label: (row) => labelOf(/** @type {Answer} */ (graphKept.nodes), row), mark: (row) => MARK_WORDS[markIn(row)]});
        graphParts = {bar, inputs, info, trail, box, words: info, icicle, calls};
        panel.append(bar, trail, info, box, icicle.element, calls.element);
    },
    async draw(item, mask) {
        const nodes = await ask(request());
        if (!graphParts || nodes !== (await ask(request())))
            return;
        const {icicle, calls} = graphParts, isCalls = graphWords().mode === "calls", isNew = makeTree(nodes, item), tree = /** @type {Tree} */ (graphKept.tree);
        drawBar();
        if (isNew || mask.has("trail") || mask.has("profiles"))
            drawTrail();
        findMarks();
        icicle.element.hidden = graphParts.box.hidden = isCalls;
        calls.element.hidden = !isCalls;
        if (isCalls)
            calls.fill(/** @type {Tree} */ (graphKept.base), Number(state.min || 2), Boolean(state.cycles), recursiveNames(), state.trail.length > 0);
        else if (isNew || ["graph", "all", "percent"].some((each) => mask.has(each)))
            icicle.fill(tree, zoomedNode());
        else if (mask.has("theme") || (mask.has("active") && state.percent === "selection"))
            icicle.draw();
        else
            icicle.mark();
        if (!isCalls)
            showBox(icicle.at);
        if (!tree.n && !isCalls)
            graphParts.info.textContent = state.trail.length ? "Nothing is left after these steps." : graphWords().mode === "data" ? "This input has no tree of data." : "This input has no calls.";
    },
};
