// SPDX-License-Identifier: BSD-3-Clause
// The frame around the views: head, list, two stacks of tabs with a movable border, and the keys that are the same everywhere. This file alone may
// name all others.
import {ask, fetchBytes, isServed, openHome, setDatabase, commandOf} from "./ask.js";
import {state, want, watch, tell, openState, textOf} from "./state.js";
import {loadFirstRows, loadTables, forgetTables, tables, titleOf, kindOf, whyNoVariables} from "./things.js";
import {make, attributes, addStyle, button, byId, named, choice, say} from "./parts.js";
import {views} from "./views.js";
import {List} from "./list.js";
import {threadsButton, threadsStep} from "./threads.js";

/** @typedef {import("./views.js").View} View */

const STACKS = /** @type {const} */ ({data: "view", code: "code"});
/** What changes no view: only what is around them. */
const FRAME_KEYS = ["view", "code", "list", "group", "columns", "split"];
/** @type {Map<View, {tab: HTMLElement, panel: HTMLElement, isOpen: boolean, mask: Set<string>, undrawn: Set<string>, nDrawing: number}>} undrawn: what changed since something was drawn whole */ const shown = new Map();
/** @type {List} */ let list;

// --- views -----------------------------------------------------------------------------------------------------------

/**
 * @param {"data" | "code"} stack
 * @returns {View}
 */
function viewOf(stack) {
    const all = views.filter((view) => view.stack === stack);
    return all.find((view) => view.name === state[STACKS[stack]]) || all[0];
}

/** @param {View} view */
function stand(view) {
    if (state.profiles && view.isOfAll)
        return {item: "", why: `${view.title} is known of all threads together, not of those for which ${state.profiles}: undo that choice to see it.`};
    return tables() ? view.canShow(state.active) : {item: "", why: ""};
}

/** @param {View} view */
async function drawView(view) {
    const about = shown.get(view);
    if (!about)
        return;
    const {panel} = about, found = stand(view), body = /** @type {HTMLElement} */ (panel.lastElementChild), note = /** @type {HTMLElement} */ (panel.firstElementChild);
    const mask = new Set([...about.undrawn, ...about.mask]), now = textOf(state);
    about.mask = new Set();
    if (panel.dataset.state && [...mask].every((each) => FRAME_KEYS.includes(each) || (each === "sort" && !view.isSorted))) {
        if (!about.nDrawing)
            panel.dataset.state = now;
        return;
    }
    about.nDrawing++;
    about.undrawn = mask;
    note.hidden = !found.why;
    body.hidden = Boolean(found.why);
    note.replaceChildren(make("p", "", found.why));
    if (!found.why) {
        if (!about.isOpen)
            view.open(body);
        about.isOpen = true;
        try {
            await view.draw(found.item, mask);
            if (about.undrawn === mask)
                about.undrawn = new Set();
        } catch (error) {
            note.hidden = false;
            body.hidden = true;
            note.replaceChildren(make("p", "", error instanceof Error ? error.message : String(error)));
        }
    }
    about.nDrawing--;
    if (now === textOf(state))
        panel.dataset.state = now;
    else if (!about.mask.size)
        panel.dataset.state = textOf(state);
}

/** @param {Set<string>} mask */
function drawViews(mask) {
    for (const [view, about] of shown) {
        for (const each of mask)
            about.mask.add(each);
        const isShown = viewOf(view.stack) === view, found = stand(view);
        attributes(about.tab, {"aria-selected": isShown, tabindex: isShown ? 0 : -1, "aria-disabled": found.why ? "true" : null, title: found.why || null});
        about.panel.hidden = !isShown;
        if (isShown)
            drawView(view);
    }
}

/**
 * @param {"data" | "code"} stack
 * @returns {HTMLElement}
 */
function makeStack(stack) {
    const tabs = attributes(make("div", "tabs"), {role: "tablist", "aria-label": stack === "data" ? "Views of data" : "Views of code"});
    const element = make("section", "stack", tabs);
    for (const view of views.filter((each) => each.stack === stack)) {
        const tab = button(view.title, () => want({[STACKS[stack]]: view.name}), "tab");
        attributes(tab, {role: "tab", id: "tab-" + view.name, "aria-controls": "panel-" + view.name});
        const panel = make("div", "panel", make("div", "why"), make("div", "body body-" + view.name));
        attributes(panel, {role: "tabpanel", id: "panel-" + view.name, "aria-labelledby": "tab-" + view.name, tabindex: 0});
        shown.set(view, {tab, panel, isOpen: false, mask: new Set(["all"]), undrawn: new Set(), nDrawing: 0});
        tabs.append(tab);
        element.append(panel);
    }
    tabs.addEventListener("keydown", (event) => {
        const all = /** @type {HTMLElement[]} */ ([...tabs.children]), at = all.indexOf(/** @type {HTMLElement} */ (event.target));
        const to = (/** @type {Record<string, number>} */ ({ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1}))[event.key];
        if (to === undefined || at < 0)
            return;
        event.preventDefault();
        const next = all[(to + all.length) % all.length];
        next.focus();
        next.click();
    });
    element.id = "stack-" + stack;
    return element;
}

// --- the border between the stacks -----------------------------------------------------------------------------------

function makeBorder() {
    const border = attributes(make("div", "border"), {role: "separator", tabindex: 0, "aria-label": "Border between data and code", "aria-valuemin": 10, "aria-valuemax": 90});
    const move = (/** @type {number} */ to) => want({split: String(Math.round(Math.min(Math.max(to, 10), 90)))});
    border.addEventListener("pointerdown", (event) => {
        border.setPointerCapture(event.pointerId);
        const drag = (/** @type {PointerEvent} */ at) => {
            const box = /** @type {HTMLElement} */ (border.parentElement).getBoundingClientRect();
            const isBeside = getComputedStyle(/** @type {HTMLElement} */ (border.parentElement)).flexDirection === "row";
            move(100 * (isBeside ? (at.clientX - box.left) / box.width : (at.clientY - box.top) / box.height));
        };
        border.addEventListener("pointermove", drag);
        border.addEventListener("pointerup", () => border.removeEventListener("pointermove", drag), {once: true});
    });
    border.addEventListener("keydown", (event) => {
        const step = (/** @type {Record<string, number>} */ ({ArrowUp: -5, ArrowLeft: -5, ArrowDown: 5, ArrowRight: 5}))[event.key];
        if (step) {
            event.preventDefault();
            move(splitNow() + step);
        }
    });
    return border;
}

/** The share of the upper stack: the time line needs more than others, where nobody moved the border. */
const splitNow = () => Number(state.split || (viewOf("data").name === "timeline" && !stand(viewOf("data")).why ? 70 : 50));

function drawBorder() {
    const split = splitNow();
    byId("stacks").style.setProperty("--split", split + "%");
    attributes(/** @type {HTMLElement} */ (document.querySelector(".border")), {"aria-valuenow": split});
}

// --- head ------------------------------------------------------------------------------------------------------------

/**
 * Shows a text to copy.
 * @param {string} label
 * @param {string} text
 */
function offer(label, text) {
    const dialog = /** @type {HTMLDialogElement} */ (byId("offer"));
    const field = make("textarea", "");
    field.value = text;
    field.readOnly = true;
    field.rows = 4;
    attributes(field, {"aria-label": label});
    dialog.replaceChildren(make("h2", "", label), field, button("Close", () => dialog.close()));
    dialog.showModal();
    field.select();
    navigator.clipboard?.writeText(text).catch(() => undefined);
}

/** The commands that print what the open views show. */
function commands() {
    return Object.keys(STACKS).flatMap((stack) => {
        const view = viewOf(/** @type {"data" | "code"} */ (stack)), found = stand(view);
        return found.why ? [] : view.asks(found.item).map((request) => commandOf(request));
    });
}

const KEY_WORDS = [
    ["/", "search"], ["?", "this list"], ["Alt + Left, Alt + Right", "back, forward"], ["U", "up: from a line to its function, from a function to all"],
    ["Escape", "nothing is chosen; closes what is open"], ["1 to 9", "open the view of that number"], ["L", "to the list"],
    ["Tab", "to the next part"], ["Arrows, Home, End, Page", "within lists, graphs and tabs"], ["Enter, Space", "choose"], ["Ctrl or Shift + Enter, or click", "mark one more"],
    ["C", "the hpcquery commands that print the same numbers"], ["D", "light or dark"],
];

function showHelp() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("offer"));
    const keys = make("dl", "");
    for (const [key, means] of KEY_WORDS)
        keys.append(make("dt", "", make("kbd", "", key)), make("dd", "", means));
    dialog.replaceChildren(make("h2", "", "Keys"), keys, button("Close", () => dialog.close()));
    dialog.showModal();
}

function switchTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    tell(new Set(["theme"]));
}

/** From a thing to what it is in; "" is all. */
function goUp() {
    const t = tables(), kind = kindOf(state.active);
    if (!t || !state.active)
        return;
    const above = kind === "line" || kind === "loop" ? views.find((view) => view.name === "tree")?.canShow(state.active).item || "" : "";
    want({active: above === state.active ? "" : above});
}

function drawActive() {
    const place = byId("active");
    if (!state.active) {
        place.replaceChildren(make("span", "dim", "nothing is chosen"));
        return;
    }
    place.replaceChildren(make("span", "dim", kindOf(state.active) + " "), named(titleOf(state.active)), button("\u00d7", () => want({active: "", selected: []}), "bare"));
    place.lastElementChild?.setAttribute("aria-label", "Choose nothing");
}

/** @param {import("./packed.js").Answer} session */
function makeHead(session) {
    const metrics = (session.head.metrics || []).map((/** @type {any} */ each) => each.name);
    const command = session.head.command || session.program || "Locus";
    const title = attributes(make("h1", "", named(command.replace(/^\S*\//, ""))), {title: command});
    const search = attributes(make("input", ""), {type: "search", id: "search", placeholder: "Search (/)", "aria-label": "Search in all views"});
    search.value = state.filter;
    search.addEventListener("input", () => want({filter: search.value}));
    const tools = make("div", "tools", attributes(make("span", ""), {id: "active"}), search);
    if (metrics.length > 1)
        tools.append(choice("Metric", metrics.map((/** @type {string} */ name) => [name === session.metric ? "" : name, name]), state.metric, (metric) => want({metric})));
    tools.append(attributes(make("span", ""), {id: "only"}), threadsButton(), button("Command", () => offer("The same numbers by hpcquery", commands().join("\n"))), button("Keys", showHelp), button("Light or dark", switchTheme));
    return make("header", "", title, tools);
}

// --- keys ------------------------------------------------------------------------------------------------------------

/** @param {KeyboardEvent} event */
function onKey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input:not([type=checkbox], [type=radio]), textarea, select") || document.querySelector("dialog[open]"))
        return;
    if (event.key === "/") {
        event.preventDefault();
        byId("search").focus();
    } else if (event.key === "?") {
        showHelp();
    } else if (event.key === "Escape") {
        want({active: "", selected: []});
    } else if (/^[1-9]$/.test(event.key) && views[Number(event.key) - 1]) {
        const view = views[Number(event.key) - 1];
        want({[STACKS[view.stack]]: view.name});
        shown.get(view)?.tab.focus();
    } else if (event.key === "u" || event.key === "U") {
        goUp();
    } else if (event.key === "l" || event.key === "L") {
        list.focus();
    } else if (event.key === "c" || event.key === "C") {
        offer("The same numbers by hpcquery", commands().join("\n"));
    } else if (event.key === "d" || event.key === "D") {
        switchTheme();
    }
}

// --- start -----------------------------------------------------------------------------------------------------------

/** @param {Set<string>} mask */
function draw(mask) {
    const search = /** @type {HTMLInputElement} */ (byId("search"));
    if (search.value !== state.filter)
        search.value = state.filter;
    if (mask.has("active") && state.active)
        say(kindOf(state.active) + " " + titleOf(state.active));
    drawActive();
    byId("only").replaceChildren(...threadsStep());
    drawBorder();
    list.draw(mask);
    drawViews(mask);
}

addStyle(STYLE);

/** Waits until the server has opened what it shows: says how far that is, and offers to end it; false: it was ended. */
async function waitUntilOpen() {
    const opening = (/** @type {object} */ more) => fetchBytes(JSON.stringify({report: "opening", ...more})).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
    const words = make("p", ""), bar = attributes(make("progress", ""), {max: "1", "aria-label": "How far it has been read"});
    let isLeft = false, wake = () => {};
    const end = button("Cancel", () => {
        isLeft = true;
        wake();
    });
    const box = attributes(make("div", "", words, bar, end), {id: "opening", role: "group", "aria-label": "A large recording is being opened"});
    for (let now = await opening({}); !now.open; now = await opening(isLeft ? {end: true} : {})) {
        if (now.ended) {
            document.title = "Locus";
            byId("first").replaceChildren(attributes(make("p", "failed over", "The reading was ended, and hpcviewer with it."), {role: "alert"}));
            return false;
        }
        if (!box.isConnected)
            byId("first").replaceChildren(box);
        words.textContent = `${now.path}: ${now.doing}, ${Math.floor(100 * now.share)} %`;
        bar.setAttribute("value", now.share);
        document.title = `${Math.floor(100 * now.share)} % ${now.path}`;
        if (!isLeft)
            await new Promise((resolve) => setTimeout(wake = () => resolve(undefined), 250));
    }
    return true; // what was read before Cancel came is shown
}

async function start() {
    await openHome();
    if (isServed && !await waitUntilOpen())
        return;
    openState();
    const session = await ask({report: "session"});
    const path = session.head.path || "DB";
    setDatabase(!isServed && /\/hpcviewer-[^/]+\/database$/.test(path) ? "DB" : path); // hpcviewer made it for itself, and took it away
    document.title = (session.head.command || session.program || "Locus").slice(0, 200);
    list = new List();
    const stacks = attributes(make("div", "stacks", makeStack("data"), makeBorder(), makeStack("code")), {id: "stacks"});
    const offered = attributes(make("dialog", ""), {id: "offer"});
    byId("app").replaceChildren(makeHead(session), make("main", "", list.element, stacks), offered);
    const areAll = await loadFirstRows();
    if (whyNoVariables() && tables()?.functions.n)
        openState({list: "function", split: "25"});
    byId("first").remove();
    byId("app").hidden = false;
    watch((_, mask) => {
        if (mask.has("metric") || mask.has("profiles"))
            loadTables().catch(() => undefined).then(() => tell(new Set(["data"])));
        draw(mask);
    });
    draw(new Set(["all"]));
    document.addEventListener("keydown", onKey);
    addEventListener("resize", () => drawViews(new Set(["size"])));
    document.body.dataset.ready = "1";
    if (areAll)
        tables()?.prepare();
    else
        loadTables().then(() => {
            forgetTables();
            tell(new Set(["data"]));
            tables()?.prepare();
        });
    document.dispatchEvent(new Event("begun"));
}

start().catch((error) => {
    const why = make("p", "failed", error instanceof Error ? error.message : String(error));
    attributes(why, {role: "alert"});
    document.body.prepend(why);
});
