// SPDX-License-Identifier: BSD-3-Clause
// What is looked at: one frozen object, whose text is the fragment of the address, an argument of hpcquery --at and a line of a file. Views
// never change it: they call want(), and changes of one moment become one update.

/**
 * @typedef {object} State
 * @property {string} view the view of data that is open
 * @property {string} active the thing that views are about, "variable:a"; "" for none
 * @property {string[]} selected others that are marked
 * @property {string} metric
 * @property {string} metric2
 * @property {string} by
 * @property {string} min the least share shown, in percent
 * @property {string[]} derive formulas of columns that are added
 * @property {string} percent what numbers are a part of: "" (total), "parent", "selection", "absolute"
 * @property {string} cycles "1": cycles of calls are one thing
 * @property {string[]} hidden
 * @property {string} filter words of the search
 * @property {string} profiles
 * @property {string[]} trail steps that were taken
 * @property {string} code the view of code that is open
 * @property {string} list the kind of things in the list
 * @property {string} sort "KEY" or "-KEY": the order of the list
 * @property {string} split the share of the upper stack, in percent
 * @property {string} mode how a view shows it
 * @property {string} rows what matrices and comparisons have rows of: "vars", "functions", "lines"
 * @property {string} order of a matrix
 * @property {string} scale of a matrix: "" is of the row
 * @property {string} group what the list is grouped by
 * @property {string} columns of the list, joined by ";"
 * @property {string} map what boxes of the map are in
 * @property {string} only which differences, joined by ";": "increases", "noise" (beyond it); "swap": this recording was before; "inclusive": with what is called
 * @property {string} graph how graphs are shown, and which box is zoomed to
 * @property {string} source what is beside the source
 * @property {string} time the window of the time line, and what is chosen there: timeline-model.js
 */

const ONE = ["view", "active", "metric", "metric2", "by", "min", "profiles", "percent", "cycles", "filter"];
const MANY = ["selected", "derive", "trail", "hidden"];
/** The order in which the text has them: that of state.c. */
const KEYS = ["view", "active", "selected", "metric", "metric2", "by", "min", "derive", "profiles", "trail", "percent", "cycles", "hidden", "filter", "layout"];
/** Parts of the key "layout", which only this page knows. */
const LAYOUT = ["code", "list", "sort", "split", "mode", "rows", "order", "scale", "group", "columns", "map", "only", "graph", "source", "time"];

/** @type {State} */
export const START = Object.freeze({
    view: "advice", active: "", selected: [], metric: "", metric2: "", by: "", min: "", derive: [], percent: "", cycles: "", hidden: [],
    filter: "", profiles: "", trail: [], code: "tree", list: "variable", sort: "", split: "", mode: "",
    rows: "", order: "", scale: "", group: "", columns: "", map: "", only: "", graph: "", source: "", time: "",
});

/** @param {string} text */
const escaped = (text) => (/^[A-Za-z0-9\-._~:/@!$'()*,;?]*$/.test(text) ? text : escapedBytes(text));

/** @param {string} text */
const escapedBytes = (text) => Array.from(new TextEncoder().encode(text), (byte) => {
    const c = String.fromCharCode(byte);
    return byte < 128 && /[A-Za-z0-9\-._~:/@!$'()*,;?]/.test(c) ? c : "%" + byte.toString(16).toUpperCase().padStart(2, "0");
}).join("");

/** @type {WeakMap<State, string>} */ const textsOfStates = new WeakMap();

/**
 * @param {State} state
 * @returns {string}
 */
export function textOf(state) {
    let text = textsOfStates.get(state);
    if (text === undefined)
        textsOfStates.set(state, text = makeText(state));
    return text;
}

/** @param {State} state */
function makeText(state) {
    const any = /** @type {any} */ (state);
    const layout = LAYOUT.filter((key) => any[key] !== /** @type {any} */ (START)[key]).map((key) => `${key}:${any[key]}`).join(",");
    const pairs = [];
    for (const key of KEYS) {
        const value = key === "layout" ? layout : any[key];
        for (const each of Array.isArray(value) ? value : value ? [value] : [])
            pairs.push(`${key}=${escaped(each)}`);
    }
    return pairs.join("&");
}

/**
 * Reads a text; what it does not know is left out.
 * @param {string} text
 * @returns {State}
 */
export function stateOf(text) {
    const made = /** @type {any} */ ({...START, selected: [], derive: [], trail: [], hidden: []});
    for (const pair of text.replace(/^#/, "").split("&")) {
        const at = pair.indexOf("=");
        const key = pair.slice(0, at);
        let value = "";
        try {
            value = decodeURIComponent(pair.slice(at + 1).replace(/\+/g, " "));
        } catch {
            continue;
        }
        if (ONE.includes(key))
            made[key] = value;
        else if (MANY.includes(key))
            made[key].push(value);
        else if (key === "layout")
            for (const part of value.split(",")) {
                const colon = part.indexOf(":");
                if (LAYOUT.includes(part.slice(0, colon)))
                    made[part.slice(0, colon)] = part.slice(colon + 1);
            }
    }
    for (const key of MANY)
        Object.freeze(made[key]);
    return Object.freeze(made);
}

/** The state now. Nobody but apply() replaces it. @type {State} */
export let state = START;

/** @typedef {Set<string>} Mask what changed: names of the state, "data" when answers came, "all" */
/** @type {((state: State, mask: Mask) => void)[]} */ const watchers = [];
/** @type {Partial<State>} */ let wanted = {};
let isWaiting = false, isQuiet = false;
/** Changes that are no step of their own for Back. */
const QUIET = ["time", "filter", "split", "selected", "sort", "min"];

/** @param {(state: State, mask: Mask) => void} watcher */
export function watch(watcher) {
    watchers.push(watcher);
}

/** @param {Mask} mask */
export function tell(mask) {
    for (const watcher of watchers)
        watcher(state, mask);
}

/**
 * Asks for a change, which comes with the next frame together with all others.
 * @param {Partial<State>} patch
 */
export function want(patch) {
    Object.assign(wanted, patch);
    if (isWaiting)
        return;
    isWaiting = true;
    requestAnimationFrame(apply);
}

/**
 * @param {any} a
 * @param {any} b
 */
const isSame = (a, b) => a === b || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((each, i) => each === b[i]));

/** Browsers do not take more than 200 addresses in ten seconds, some half of it. */
const ADDRESS_MS = 100;
let writer = 0, writtenAt = -ADDRESS_MS, isStep = false;

function writeAddress() {
    history[isStep ? "pushState" : "replaceState"](null, "", "#" + textOf(state));
    writer = 0;
    isStep = false;
    writtenAt = performance.now();
}

function apply() {
    const before = /** @type {any} */ (state), patch = /** @type {any} */ (wanted);
    wanted = {};
    isWaiting = false;
    const mask = new Set(Object.keys(patch).filter((key) => !isSame(before[key], patch[key])));
    if (!mask.size)
        return;
    const next = /** @type {any} */ ({...before});
    for (const key of mask)
        next[key] = Array.isArray(patch[key]) ? Object.freeze([...patch[key]]) : patch[key];
    state = Object.freeze(next);
    const onlyQuiet = [...mask].every((key) => QUIET.includes(key));
    isStep ||= !(onlyQuiet && isQuiet);
    isQuiet = onlyQuiet;
    writer ||= setTimeout(writeAddress, Math.max(0, ADDRESS_MS - performance.now() + writtenAt));
    tell(mask);
}

/** Takes the state from the address: at the start, for Back and Forward, and where somebody changed it. */
function takeAddress() {
    const next = addressed(), before = /** @type {any} */ (state);
    const mask = new Set(Object.keys(next).filter((key) => !isSame(before[key], /** @type {any} */ (next)[key])));
    state = next;
    isQuiet = isStep = false;
    clearTimeout(writer);
    writer = 0;
    if (location.hash && location.hash !== "#" + textOf(state))
        history.replaceState(null, "", "#" + textOf(state));
    if (mask.size)
        tell(mask);
}

/** @type {Partial<State>} what there is before an address says anything */ let first = {};

/** What the address says, if anything. */
const addressed = () => (location.hash ? stateOf(location.hash) : Object.freeze({...START, ...first}));

/** @param {Partial<State>} [begin] what there is where the address does not say anything */
export function openState(begin = {}) {
    first = begin;
    state = addressed();
    if (location.hash)
        history.replaceState(null, "", "#" + textOf(state)); // an address that somebody wrote by hand
    addEventListener("popstate", takeAddress);
    addEventListener("hashchange", takeAddress);
}

/**
 * Whether a word is set of those in state.only.
 * @param {string} word
 */
export const hasWord = (word) => state.only.split(";").includes(word);

/**
 * @param {string} word
 * @param {boolean} isOn
 */
export const switchWord = (word, isOn) => want({only: [...state.only.split(";").filter((each) => each && each !== word), ...(isOn ? [word] : [])].join(";")});
