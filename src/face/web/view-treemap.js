// SPDX-License-Identifier: BSD-3-Clause
// Variables as boxes, each as large as its share, within boxes of their class, type, allocation site or memory node.
import {answered} from "./ask.js";
import {state, want} from "./state.js";
import {about, tables, markOf, VARS} from "./things.js";
import {make, attributes, choice, named, percent, say, write} from "./parts.js";
import {orderOf} from "./grid.js";
import {searchOf, choose} from "./list.js";
import {brushFor, colourOf, fitted, shadeOf, inkOn, STEPS} from "./canvas.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {{row: number, value: number}} Leaf row -1: many small ones */
/** @typedef {{name: string, value: number, leaves: Leaf[]}} Family */
/** @typedef {{x: number, y: number, w: number, h: number}} Box */
/** @typedef {Box & Leaf & {family: string}} Tile */

const MAPS = [["", "class"], ["type", "type"], ["alloc_site", "allocation site"], ["node", "memory node of the threads"]];
const TITLE = 16, TILES_MAX = 2000, LISTED_MAX = 300;

/** @type {{view: HTMLElement, canvas: HTMLCanvasElement, list: HTMLElement, words: HTMLElement, bar: HTMLElement} | null} */ let map = null;
/** @type {Tile[]} */ let tiles = [];
/** @type {(Box & {name: string, value: number})[]} */ let frames = [];
let tileAt = 0, laidOut = "";
/** @type {Answer | null} */ let laidOutOf = null;

/**
 * Shares a box out among values, the largest first, so that parts are nearly square.
 * src: Bruls, Huizing, van Wijk, Squarified treemaps, 2000
 * @param {number[]} values falling
 * @param {Box} box
 * @returns {Box[]}
 */
export function squarified(values, box) {
    let {x, y, w, h} = box, rest = values.reduce((sum, each) => sum + each, 0);
    /** @type {Box[]} */ const made = [];
    for (let first = 0; first < values.length && rest > 0;) {
        const side = Math.min(w, h), scale = (w * h) / rest;
        let sum = 0, end = first, worst = Infinity;
        for (; end < values.length; end++) {
            const next = sum + values[end], thick = (next * scale) / side;
            const ratio = Math.max(...[values[first], values[end]].map((each) => Math.max((each * scale) / (thick * thick), (thick * thick) / (each * scale))));
            if (ratio > worst)
                break;
            worst = ratio;
            sum = next;
        }
        const thick = (sum * scale) / (side || 1);
        for (let i = first, at = 0; i < end; i++) {
            const long = (side * values[i]) / sum;
            made.push(w >= h ? {x, y: y + at, w: thick, h: long} : {x: x + at, y, w: long, h: thick});
            at += long;
        }
        if (w >= h) {
            x += thick;
            w -= thick;
        } else {
            y += thick;
            h -= thick;
        }
        rest -= sum;
        first = end;
    }
    return made;
}

/**
 * What variables are in: names, and how much of a row each has.
 * @param {Answer} vars
 * @param {number} row
 * @returns {[string, number][]}
 */
function familiesOf(vars, row) {
    if (state.map !== "node")
        return [[vars.text(state.map || "class", row) || "not known", 1]];
    const counts = /** @type {number[]} */ (vars.json("node_samples", row) || []), all = counts.reduce((sum, each) => sum + each, 0);
    return all ? counts.flatMap((n, node) => (n ? [/** @type {[string, number]} */ (["node " + node, n / all])] : [])) : [["not known", 1]];
}

/**
 * @param {Answer} vars
 * @returns {Family[]}
 */
function grouped(vars) {
    /** @type {Map<string, Family>} */ const found = new Map();
    const shares = vars.columns.get("share")?.numbers || new Float64Array(0), keeps = searchOf(vars, state.filter);
    let n = 0;
    for (const row of orderOf(shares, vars.n, true)) {
        if (!(shares[row] > 0) || (keeps && !keeps(row)))
            continue;
        n++;
        for (const [name, part] of familiesOf(vars, row)) {
            const family = found.get(name) || {name, value: 0, leaves: []}, last = family.leaves[family.leaves.length - 1];
            family.value += shares[row] * part;
            if (n <= TILES_MAX)
                family.leaves.push({row, value: shares[row] * part});
            else if (last && last.row < 0)
                last.value += shares[row] * part;
            else
                family.leaves.push({row: -1, value: shares[row] * part});
            found.set(name, family);
        }
    }
    return [...found.values()].sort((a, b) => b.value - a.value);
}

/**
 * @param {Answer} vars
 * @param {number} width
 * @param {number} height
 */
function layOut(vars, width, height) {
    const families = grouped(vars), boxes = squarified(families.map((each) => each.value), {x: 0, y: 0, w: width, h: height});
    frames = boxes.map((box, i) => ({...box, name: families[i].name, value: families[i].value}));
    tiles = frames.flatMap((box, i) => {
        const head = box.h > 3 * TITLE && box.w > 40 ? TITLE : 0, inner = {x: box.x + 2, y: box.y + head + 1, w: Math.max(box.w - 4, 1), h: Math.max(box.h - head - 3, 1)};
        return squarified(families[i].leaves.map((leaf) => leaf.value), inner).map((each, k) => ({...each, ...families[i].leaves[k], family: families[i].name}));
    });
    tileAt = Math.min(tileAt, Math.max(tiles.length - 1, 0));
}

/**
 * Which part of a variable's time waits for memory, or may.
 * @param {Answer} vars
 * @param {number} row
 */
function waits(vars, row) {
    const share = vars.number("share", row), known = vars.number("memory_share", row), most = vars.number("memory_high", row);
    return Math.min(1, (Number.isNaN(known) ? most : known) / share) || 0;
}

/**
 * @param {Answer} vars
 * @param {Tile} tile
 */
function wordsOfTile(vars, tile) {
    if (tile.row < 0)
        return `small ones, ${percent(tile.value)} in ${tile.family}`;
    const isKnown = !Number.isNaN(vars.number("memory_share", tile.row));
    return `${vars.text("variable", tile.row)}, ${percent(tile.value)} of all, in ${tile.family}; ${isKnown ? "waits" : "may wait"} for memory in ${percent(100 * waits(vars, tile.row))} of its time`;
}

/**
 * @param {CanvasRenderingContext2D} brush
 * @param {Answer} vars
 * @param {Tile} tile
 */
function drawTile(brush, vars, tile) {
    const colour = shadeOf(tile.row < 0 ? 0 : waits(vars, tile.row)), mark = tile.row < 0 ? "" : markOf(tables(), vars.text("item", tile.row));
    brush.fillStyle = colour;
    brush.fillRect(tile.x, tile.y, tile.w, tile.h);
    brush.lineWidth = 1;
    brush.strokeStyle = colourOf("--edge");
    brush.strokeRect(tile.x + 0.5, tile.y + 0.5, Math.max(tile.w - 1, 0.5), Math.max(tile.h - 1, 0.5));
    if (tile.w > 34 && tile.h > 20) {
        brush.fillStyle = inkOn(colour);
        brush.fillText(fitted(brush, tile.row < 0 ? "small" : vars.text("variable", tile.row), tile.w - 12), tile.x + 7, tile.y + 12);
        if (tile.h > 36)
            brush.fillText(fitted(brush, percent(tile.value), tile.w - 12), tile.x + 7, tile.y + 26);
    }
    if (!mark)
        return;
    brush.strokeStyle = inkOn(colour);
    brush.lineWidth = mark === "active" ? 4 : 2;
    brush.setLineDash(mark === "related" ? [3, 3] : mark === "selected" ? [8, 3] : []);
    brush.strokeRect(tile.x + 2.5, tile.y + 2.5, Math.max(tile.w - 5, 1), Math.max(tile.h - 5, 1));
    brush.setLineDash([]);
}

/** @param {Answer} vars */
function drawMap(vars) {
    if (!map)
        return;
    const width = map.view.clientWidth || 600, height = map.view.clientHeight || 300, key = [width, height, state.map, state.filter].join(" ");
    if (vars !== laidOutOf || key !== laidOut) {
        layOut(vars, width, height);
        listTiles(vars);
        laidOutOf = vars;
        laidOut = key;
    }
    const brush = brushFor(map.canvas, width, height), font = getComputedStyle(map.view).fontFamily;
    brush.textBaseline = "middle";
    for (const frame of frames) {
        brush.fillStyle = colourOf("--soft");
        brush.fillRect(frame.x, frame.y, frame.w, frame.h);
        brush.font = `bold 12px ${font}`;
        brush.fillStyle = colourOf("--ink");
        if (frame.h > 3 * TITLE && frame.w > 40)
            brush.fillText(fitted(brush, `${frame.name} ${percent(frame.value)}`, frame.w - 8), frame.x + 4, frame.y + TITLE / 2 + 1);
    }
    brush.font = `12px ${font}`;
    for (const tile of tiles)
        if (tile.w > 0.4 && tile.h > 0.4)
            drawTile(brush, vars, tile);
    if (document.activeElement === map.view && tiles[tileAt]) {
        const {x, y, w, h} = tiles[tileAt];
        brush.lineWidth = 3;
        brush.strokeStyle = colourOf("--accent");
        brush.strokeRect(x + 1.5, y + 1.5, Math.max(w - 3, 2), Math.max(h - 3, 2));
    }
}

/** @param {Answer} vars */
function listTiles(vars) {
    const rows = tiles.slice().sort((a, b) => b.value - a.value).slice(0, LISTED_MAX).map((tile) =>
        make("li", "", tile.row < 0 ? "small ones" : named(vars.text("variable", tile.row)), ` ${percent(tile.value)}, ${tile.family}`));
    map?.list.replaceChildren(...rows);
}

/**
 * The nearest box in a direction.
 * @param {number} dx
 * @param {number} dy
 */
function nextTile(dx, dy) {
    const from = tiles[tileAt], mx = from.x + from.w / 2, my = from.y + from.h / 2;
    let best = tileAt, least = Infinity;
    tiles.forEach((tile, i) => {
        const along = (tile.x + tile.w / 2 - mx) * dx + (tile.y + tile.h / 2 - my) * dy, aside = Math.abs((tile.x + tile.w / 2 - mx) * dy) + Math.abs((tile.y + tile.h / 2 - my) * dx);
        const far = along + 2 * aside;
        if (i !== tileAt && along > 0.5 && far < least) {
            best = i;
            least = far;
        }
    });
    return best;
}

/**
 * @param {number} at
 * @param {boolean} isLoud
 */
function pointTile(at, isLoud) {
    const vars = answered(about(VARS)), tile = tiles[at];
    if (!vars || !tile || !map)
        return;
    write(map.words, wordsOfTile(vars, tile));
    if (isLoud) {
        tileAt = at;
        say(wordsOfTile(vars, tile));
        drawMap(vars);
    }
}

/**
 * @param {number} at
 * @param {MouseEvent | KeyboardEvent} event
 */
function chooseTile(at, event) {
    const vars = answered(about(VARS)), tile = tiles[at];
    if (vars && tile && tile.row >= 0)
        choose(vars.text("item", tile.row), event);
}

/** @param {KeyboardEvent} event */
function onMapKey(event) {
    const step = (/** @type {Record<string, number[]>} */ ({ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}))[event.key];
    if (event.altKey || event.metaKey || !tiles.length)
        return;
    if (step || event.key === "Home" || event.key === "End") {
        event.preventDefault();
        pointTile(step ? nextTile(step[0], step[1]) : event.key === "Home" ? 0 : tiles.length - 1, true);
    } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        chooseTile(tileAt, event);
    }
}

/** @type {import("./views.js").View} */
export const treemap = {
    name: "treemap", title: "Map", stack: "data",
    canShow() {
        const t = tables();
        return {item: "", why: t && !t.vars.n ? "This input has no variables: it was not measured with data addresses (hpcrun -e datacentric)." : ""};
    },
    asks: () => [about(VARS)],
    open(panel) {
        const canvas = attributes(make("canvas", ""), {"aria-hidden": "true"}), list = make("ul", "unseen"), words = make("p", "dim heat-words");
        const view = attributes(make("div", "map-view", canvas, list), {role: "application", tabindex: 0, "aria-label": "Map of variables"});
        const bar = make("div", "tools");
        map = {view, canvas, list, words, bar};
        const tileOf = (/** @type {MouseEvent} */ event) => {
            const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
            return tiles.findIndex((tile) => x >= tile.x && x < tile.x + tile.w && y >= tile.y && y < tile.y + tile.h);
        };
        view.addEventListener("pointermove", (event) => pointTile(tileOf(event), false));
        view.addEventListener("focus", () => pointTile(tileAt, true));
        view.addEventListener("click", (event) => {
            const at = tileOf(event);
            pointTile(at, true);
            chooseTile(at, event);
        });
        view.addEventListener("keydown", onMapKey);
        const key = Array.from({length: STEPS + 1}, (_, i) => make("span", "", make("i", "key shade-" + i), String(Math.round((100 * i) / STEPS))));
        panel.append(bar, view, words, make("p", "legend", "percent of its time that waits, or may wait, for memory: ", ...key));
        new ResizeObserver(() => requestAnimationFrame(() => {
            const vars = answered(about(VARS));
            if (vars && view.clientWidth && !laidOut.startsWith(`${view.clientWidth} ${view.clientHeight} `))
                drawMap(vars);
        })).observe(view);
    },
    draw() {
        const vars = answered(about(VARS));
        if (!vars || !map)
            return;
        map.bar.replaceChildren(choice("Boxes of", MAPS, state.map, (to) => want({map: to})));
        drawMap(vars);
    },
};
