// SPDX-License-Identifier: BSD-3-Clause
// What the time line shows, as numbers: its part of the state, the rows in their order, where they are, the blocks of the topology, times as texts. Nothing here
// knows of the page.
import {state, want} from "./state.js";
import {quoted} from "./ask.js";

/** @typedef {import("./packed.js").Answer} Answer */

/**
 * @typedef {object} Words the part of the state that is about the time line; times in nanoseconds since the beginning
 * @property {number} from NaN: the beginning
 * @property {number} to NaN: the end
 * @property {number} a NaN: there is no such marker
 * @property {number} b
 * @property {"a" | "b"} on the active marker
 * @property {string} by what colours mean: "" is the task on CPUs, and the CPU on tasks
 * @property {string} only the key that is not grey
 * @property {number[]} hide rows
 * @property {number[]} pin rows
 * @property {string} show "" CPUs and tasks, "cpus", "tasks"
 * @property {string} sort tasks: "" those of the program first, "number", "run", "wait", "name"
 * @property {string} find rows with one of these names, numbers or processes, "sh,0-3,7"
 * @property {number} row that is chosen, -1: none
 * @property {number} at the time that is chosen there
 * @property {string} tasks of the list: which tasks alone, "app*,7"
 * @property {string} cpus the same
 * @property {string} events the same
 * @property {string} off what is not shown, and "compact": parts of a word each
 */

/** @type {Words} */
const NOTHING = {from: NaN, to: NaN, a: NaN, b: NaN, on: "a", by: "", only: "", hide: [], pin: [], show: "", sort: "", find: "", row: -1, at: NaN, tasks: "", cpus: "", events: "", off: ""};

/** @type {{text: string, words: Words}} */ let readBefore = {text: "", words: NOTHING};

/**
 * What the address says of the time line: "from=5;to=90;by=cpu".
 * @returns {Words}
 */
export function timeWords() {
    if (readBefore.text === state.time)
        return readBefore.words;
    const made = /** @type {any} */ ({...NOTHING});
    for (const pair of state.time.split(";")) {
        const [key, value = ""] = pair.split("="), usual = /** @type {any} */ (NOTHING)[key];
        if (Array.isArray(usual))
            made[key] = value.split(".").map(Number).filter((each) => Number.isInteger(each));
        else if (typeof usual === "number")
            made[key] = Number.isFinite(Number(value)) ? Number(value) : usual;
        else if (usual !== undefined)
            made[key] = readable(value);
    }
    readBefore = {text: state.time, words: made};
    return made;
}

/** @param {string} text */
function readable(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return "";
    }
}

/** @type {Partial<Words>} */ let wantedWords = {};
let wantedFrom = "";

/**
 * Asks for changes; those of one moment come together.
 * @param {Partial<Words>} patch
 */
export function wantTime(patch) {
    if (wantedFrom !== state.time)
        wantedWords = {};
    wantedFrom = state.time;
    wantedWords = {...wantedWords, ...patch};
    const next = /** @type {any} */ ({...timeWords(), ...wantedWords}), usual = /** @type {any} */ (NOTHING);
    const pairs = Object.keys(NOTHING).map((key) => [key, Array.isArray(next[key]) ? next[key].join(".") : typeof next[key] === "number" ? (Number.isNaN(next[key]) ? "" : String(next[key])) : encodeURIComponent(next[key])]);
    want({time: pairs.filter(([key, value]) => value !== "" && value !== String(usual[key])).map((pair) => pair.join("=")).join(";")});
}

/** @param {string} word of those in Words.off */
export const isOff = (word) => timeWords().off.split(".").includes(word);

/**
 * @param {string} word
 * @param {boolean} isNow
 */
export const switchOff = (word, isNow) => wantTime({off: [...timeWords().off.split(".").filter((each) => each && each !== word), ...(isNow ? [word] : [])].join(".")});

// --- the window --------------------------------------------------------------------------------------------------------

/** Nothing shorter is shown: times are whole nanoseconds. */
const LEAST_SPAN = 20;

/**
 * A window that lies in the recording.
 * @param {number} from
 * @param {number} to
 * @param {number} length of the recording
 * @returns {{from: number, to: number}}
 */
export function windowIn(from, to, length) {
    const span = Math.min(Math.max(Math.round(to - from), LEAST_SPAN), Math.max(length, LEAST_SPAN)), start = Math.min(Math.max(Math.round(from), 0), Math.max(length - span, 0));
    return {from: start, to: start + span};
}

/**
 * @param {number} length
 * @param {Words} words
 */
export function windowNow(length, {from, to} = timeWords()) {
    return windowIn(Number.isNaN(from) ? 0 : from, Number.isNaN(to) ? length : to, length);
}

/** The words that are asked for, if not yet shown: keys come faster than frames. */
export const wordsWanted = () => (wantedFrom === state.time ? {...timeWords(), ...wantedWords} : timeWords());

/**
 * Goes to a window; the whole is said by saying nothing.
 * @param {number} from
 * @param {number} to
 * @param {number} length
 */
export function wantWindow(from, to, length) {
    const next = windowIn(from, to, length), isAll = next.from === 0 && next.to >= length;
    wantTime(isAll ? {from: NaN, to: NaN} : next);
}

// --- times as texts ----------------------------------------------------------------------------------------------------

/**
 * Seconds of the recording's clock with nine digits.
 * @param {Answer} streams
 * @param {number} t
 */
export function clockText(streams, t) {
    const ns = BigInt(String(streams.head.from || "0").replace(".", "")) + BigInt(Math.round(t)), size = ns < 0n ? -ns : ns;
    return `${ns < 0n ? "-" : ""}${size / 1000000000n}.${String(size % 1000000000n).padStart(9, "0")}`;
}

/**
 * A length of time in few digits, to the nanosecond where it is short.
 * @param {number} ns
 */
export function spanText(ns) {
    const size = Math.abs(ns);
    for (const [least, unit] of /** @type {[number, string][]} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]]))
        if (size >= least)
            return Number((ns / least).toPrecision(6)) + " " + unit;
    return Math.round(ns) + " ns";
}

/**
 * Times at which the axis has lines: round ones of the recording's clock, 1, 2 or 5 of a power of ten apart.
 * @param {Answer} streams
 * @param {number} from
 * @param {number} to
 * @param {number} n at most
 * @returns {{step: number, ticks: number[]}}
 */
export function axisTicks(streams, from, to, n) {
    const rough = Math.max((to - from) / Math.max(n, 1), 1), power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.round([1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) || rough), ticks = [];
    const begin = BigInt(String(streams.head.from || "0").replace(".", "")), phase = Number(((begin % BigInt(step)) + BigInt(step)) % BigInt(step));
    for (let t = Math.ceil((from + phase) / step) * step - phase; t <= to; t += step)
        ticks.push(t);
    return {step, ticks};
}

/**
 * The recordings, as words of a command line.
 * @param {Answer | null} streams
 */
export const inputWords = (streams) => (streams?.head.streams || [{path: "INPUT"}]).map((/** @type {any} */ each) => quoted(each.path)).join(" ");

/**
 * What shows the recordings with a server, so that any question has an answer.
 * @param {Answer | null} streams
 */
export const viewerCommand = (streams) => "hpcviewer " + inputWords(streams);

// --- rows --------------------------------------------------------------------------------------------------------------

/**
 * The height of a row, and the space between two: as in the original design of the topology's view, so that a block of k rows is k * H + (k - 1) * S high.
 * @returns {{H: number, S: number}}
 */
export const rowSizes = () => (isOff("compact") ? {H: 12, S: 2} : {H: 34, S: 20});

/** @param {number} n rows */
export function blockHeight(n) {
    const {H, S} = rowSizes();
    return n ? n * H + (n - 1) * S : 0;
}

/**
 * Where the row begins that stands at a place.
 * @param {number} place
 */
export function rowTop(place) {
    const {H, S} = rowSizes();
    return S / 2 + place * (H + S);
}

/** @typedef {{machine: number, pack: number, node: number, core: number, pu: number}} Seat where a CPU is; NaN: not known; pack: its package, if it is shown */
/** @type {WeakMap<Answer, Map<string, Seat>>} */ const seatsKept = new WeakMap();

/**
 * Recordings of machines with several packages, of which one has several nodes: there packages have blocks of their own.
 * @param {Answer} streams
 */
function nestedStreams(streams) {
    /** @type {Map<number, Map<number, Set<number>>>} */ const all = new Map();
    for (const {stream, package: pack, node} of streams.head.topology || []) {
        const packs = all.get(stream) || new Map();
        all.set(stream, packs.set(pack, (packs.get(pack) || new Set()).add(node)));
    }
    return new Set([...all].filter(([, packs]) => packs.size > 1 && [...packs.values()].some((nodes) => nodes.size > 1)).map(([stream]) => stream));
}

/**
 * Where CPUs are, by "STREAM:NUMBER".
 * @param {Answer} streams
 */
export function seatsOf(streams) {
    let seats = seatsKept.get(streams);
    if (!seats) {
        seats = new Map();
        const nested = nestedStreams(streams);
        for (const each of streams.head.topology || [])
            seats.set(`${each.stream}:${each.number}`, {machine: each.stream, pack: nested.has(each.stream) ? each.package ?? NaN : NaN, node: each.node ?? NaN, core: each.core, pu: each.pu});
        seatsKept.set(streams, seats);
    }
    return seats;
}

/**
 * @param {Answer} streams
 * @param {number} row
 */
export const seatOf = (streams, row) => (streams.text("kind", row) === "cpu" ? seatsOf(streams).get(`${streams.number("stream", row)}:${streams.number("number", row)}`) : undefined);

/**
 * Which rows are kept by a text such as "sh,0-3,7": a name's part, or numbers of CPUs, tasks or processes.
 * @param {Answer} streams
 * @param {string} text
 * @returns {(row: number) => boolean}
 */
function rowFilter(streams, text) {
    const words = text.toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
    if (!words.length)
        return () => true;
    return (row) => words.some((word) => {
        const [first, last] = /^\d+(-\d+)?$/.test(word) ? [word.split("-")[0], word.split("-").at(-1)].map(Number) : [NaN, NaN], isIn = (/** @type {string} */ key) => streams.number(key, row) >= first && streams.number(key, row) <= last;
        return Number.isNaN(first) ? streams.text("name", row).toLowerCase().includes(word) : isIn("number") || isIn("process");
    });
}

/**
 * @param {number} a
 * @param {number} b
 */
const byNumber = (a, b) => (a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b);

/**
 * Whether a task is one of the program that was measured.
 * @param {Answer} streams
 * @param {number} row
 */
const isOfProgram = (streams, row) => streams.number("own", row) > 0;

/**
 * The order of tasks: where nobody chose another, those of the program by number, then others, those that ran longest first. By number alone the first are threads
 * of the kernel.
 * @param {Answer} streams
 * @param {string} sort
 * @returns {(a: number, b: number) => number}
 */
function taskOrder(streams, sort) {
    const number = (/** @type {string} */ key, /** @type {number} */ a, /** @type {number} */ b) => byNumber(streams.number(key, a), streams.number(key, b));
    if (sort === "name")
        return (a, b) => (streams.text("name", a) < streams.text("name", b) ? -1 : 1);
    if (sort === "number")
        return (a, b) => number("number", a, b);
    if (sort)
        return (a, b) => byNumber(-streams.number(sort + "_ns", a), -streams.number(sort + "_ns", b));
    return (a, b) => {
        const isOwn = isOfProgram(streams, a);
        return Number(isOfProgram(streams, b)) - Number(isOwn) || (isOwn ? number("number", a, b) : byNumber(-streams.number("run_ns", a), -streams.number("run_ns", b)) || number("samples", b, a));
    };
}

/**
 * The rows that are shown, from top to bottom: pinned ones, then stream by stream CPUs and tasks.
 * @param {Answer} streams
 * @returns {number[]}
 */
export function rowsShown(streams) {
    const {hide, pin, show, sort, find} = timeWords(), keeps = rowFilter(streams, find), hidden = new Set(hide), pinned = pin.filter((row) => row < streams.n && !hidden.has(row));
    const all = [], isTree = !isOff("tree"), first = new Set(pinned);
    for (let row = 0; row < streams.n; row++)
        if (!hidden.has(row) && !first.has(row) && keeps(row) && (!show || (show === "cpus") === (streams.text("kind", row) === "cpu")))
            all.push({row, stream: streams.number("stream", row), isTask: streams.text("kind", row) === "cpu" ? 0 : 1, seat: isTree ? seatOf(streams, row) : undefined});
    const order = taskOrder(streams, sort);
    all.sort((a, b) => a.stream - b.stream || a.isTask - b.isTask || (a.seat && b.seat ? byNumber(a.seat.node, b.seat.node) || a.seat.core - b.seat.core || a.seat.pu - b.seat.pu : 0) ||
        (a.isTask ? order(a.row, b.row) : 0) || a.row - b.row);
    return [...pinned, ...all.map((each) => each.row)];
}

// --- the topology ------------------------------------------------------------------------------------------------------

/** @typedef {{level: 0 | 1 | 2 | 3, label: string, title: string, first: number, n: number, colour: number[], rows: number[], machine: number, node: number}} Block of the machine (0), a node (1), a core (2) or a package (3), where nodes are nested; first: the place of its first row */

/** @param {string} colour "#rrggbb" */
export const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) || 0);

/** @param {number[][]} colours */
const meanOf = (colours) => [0, 1, 2].map((i) => Math.floor(colours.reduce((sum, each) => sum + each[i], 0) / colours.length));

/**
 * The colour of a stream, by its number: tree_color_of_number in src/streams/topology.c.
 * @param {number} number
 */
export function colourOfNumber(number) {
    const hue = ((number % 1536) * 949) % 1536, part = hue % 256, up = Math.floor(64 + (part * 3) / 4), down = Math.floor(64 + ((255 - part) * 3) / 4);
    return [[255, up, 64], [down, 255, 64], [64, 255, up], [64, down, 255], [up, 64, 255], [255, 64, down]][Math.floor(hue / 256)];
}

/** @param {number[]} colour */
export const inkFor = ([r, g, b]) => (299 * r + 587 * g + 114 * b > 128000 ? "#000" : "#fff");

/**
 * The blocks beside the rows of CPUs: parents stand before what is in them.
 * @param {Answer} streams
 * @param {number[]} rows as they are shown
 * @returns {Block[]}
 */
export function blocksOf(streams, rows) {
    /** @type {Block[]} */ const blocks = [];
    /** @type {Block[]} */ let open = [];
    let key = ["", "", "", ""];
    const name = (/** @type {number} */ number) => (Number.isNaN(number) ? "?" : String(number)), pinned = timeWords().pin.length;
    rows.forEach((row, place) => {
        const seat = place < pinned ? undefined : seatOf(streams, row);
        if (!seat) {
            open = [];
            key = ["", "", "", ""];
            return;
        }
        const pack = Number.isNaN(seat.pack) ? "" : String(seat.pack), at = `${seat.machine} ${pack}`, next = [String(seat.machine), at, `${at} ${name(seat.node)}`, `${at} ${name(seat.node)} ${seat.core}`];
        next.forEach((each, depth) => {
            if (depth === 1 && !pack)
                return;
            if (each === key[depth] && open[depth]) {
                open[depth].n++;
                open[depth].rows.push(row);
                return;
            }
            const label = ["M", `P ${pack}`, `NN ${name(seat.node)}`, `C ${seat.core}`][depth], title = ["Machine", `Package ${pack}`, `NUMA Node ${name(seat.node)}`, `Core ${seat.core} in NUMA Node ${name(seat.node)}`][depth];
            open[depth] = {level: /** @type {0 | 1 | 2 | 3} */ ([0, 3, 1, 2][depth]), label, title, first: place, n: 1, colour: [], rows: [row], machine: seat.machine, node: seat.node};
            open.length = depth + 1;
            blocks.push(open[depth]);
        });
        key = next;
    });
    paint(streams, blocks);
    return blocks;
}

/**
 * A core is the mean of its CPUs, a node that of its cores, a machine its stream's.
 * @param {Answer} streams
 * @param {Block[]} blocks
 */
function paint(streams, blocks) {
    for (const block of blocks)
        if (block.level === 2)
            block.colour = meanOf(block.rows.map((row) => channelsOf(streams.text("colour", row))));
    for (const block of blocks)
        if (block.level === 1)
            block.colour = meanOf(blocks.filter((each) => each.level === 2 && each.first >= block.first && each.first < block.first + block.n).map((each) => each.colour));
        else if (block.level === 0)
            block.colour = colourOfNumber(streams.number("stream", block.rows[0]));
    for (const block of blocks)
        if (block.level === 3)
            block.colour = meanOf(blocks.filter((each) => each.level === 1 && each.first >= block.first && each.first < block.first + block.n).map((each) => each.colour));
}

/**
 * What memory a block has, and how far others are: "64 GiB, 21 to NUMA Node 0"; "" is not known.
 * @param {Answer} streams
 * @param {Block} block
 * @param {(bytes: number) => string} bytesText
 */
export function memoryOf(streams, block, bytesText) {
    const all = (streams.head.nodes || []).filter((/** @type {any} */ each) => each.stream === block.machine), inside = new Set(block.rows.map((row) => seatOf(streams, row)?.node));
    const some = block.level === 0 ? all : all.filter((/** @type {any} */ each) => inside.has(each.node)), sum = some.reduce((/** @type {number} */ bytes, /** @type {any} */ each) => bytes + (Number(each.memory_bytes) || 0), 0);
    const kind = (/** @type {any} */ each) => [each.kind, each.memory_bytes ? bytesText(Number(each.memory_bytes)) : ""].filter(Boolean).join(" ");
    if (block.level !== 1 || !some.length)
        return block.level === 2 || !sum ? "" : bytesText(sum);
    const [own] = some, numbers = (/** @type {string | null} */ text) => (text ? text.split(".").map(Number) : []), far = numbers(own.distances);
    return [kind(own), ...numbers(own.near).map((node) => `also near: NUMA Node ${node} ${kind(all.find((/** @type {any} */ each) => each.node === node) || {})}`.trim()),
            ...far.map((distance, i) => (all[i] && all[i].node !== own.node && distance ? `${distance} to NUMA Node ${all[i].node}` : ""))].filter(Boolean).join(", ");
}

// --- pictures ----------------------------------------------------------------------------------------------------------

/** Bits of the flags of a run of pixels. */
export const LOST = 1, TWIN = 2, SAMPLE = 4, WOKEN = 8, PREEMPTED = 16;

/** @typedef {{name: string, colour: string, ns: number, key: number}} Key what a colour stands for */
/** @typedef {{by: string, from: number, to: number, width: number, keys: Key[], rows: Map<number, [number, number]>, x: Uint32Array, n: Uint32Array, key: Float64Array, run: Uint8Array, wait: Uint8Array, unknown: Uint8Array, events: Uint8Array, flags: Uint8Array}} Picture
 * of a window; rows: where the runs of each are */

/**
 * @param {Answer} answer
 * @returns {Picture}
 */
export function pictureOf(answer) {
    const n = answer.n, row = answer.columns.get("row")?.numbers || [], rows = new Map();
    const words = (/** @type {string} */ key) => Uint32Array.from(answer.columns.get(key)?.numbers || []), bytes = (/** @type {string} */ key) => {
        const from = answer.columns.get(key)?.numbers || new Float64Array(n), made = new Uint8Array(n);
        for (let i = 0; i < n; i++)
            made[i] = Number.isNaN(from[i]) ? 255 : from[i]; // 255 of one byte is written as what is not known
        return made;
    };
    for (let i = 0, first = 0; i < n; i = first) {
        while (first < n && row[first] === row[i])
            first++;
        rows.set(row[i], [i, first]);
    }
    const keys = (answer.head.keys || []).map((/** @type {any} */ each) => ({name: each.name, colour: `rgb(${channelsOf(each.colour).join(", ")})`, ns: Number(each.ns), key: each.key}));
    return {by: String(answer.head.by), from: Number(answer.head.from_ns) || 0, to: Number(answer.head.to_ns), width: Number(answer.head.width), keys, rows, x: words("x"), n: words("n"), key: answer.columns.get("key")?.numbers || new Float64Array(n).fill(NaN),
            run: bytes("run"), wait: bytes("wait"), unknown: bytes("unknown"), events: bytes("events"), flags: bytes("flags")};
}
