// SPDX-License-Identifier: BSD-3-Clause
// A program that runs: the page goes over to newer numbers, and what is chosen stays. A line in the head says how far it is.
import {ask, fetchBytes, forgetAll, isServed} from "./ask.js";
import {tell} from "./state.js";
import {loadTables, forgetTables} from "./things.js";
import {make, attributes, button, byId, choice, say} from "./parts.js";

/** @typedef {{number: number, over: boolean, paused: boolean, words: string, says?: string, done?: boolean}} Live number: of the session that answers; says, done: what came of what was wanted */

/**
 * How far it is, {} where no program runs.
 * @param {boolean} takes whether what is newer is wanted
 * @returns {Promise<Live>}
 */
const askLive = async (takes) => JSON.parse(new TextDecoder().decode(await fetchBytes(JSON.stringify({report: "live", take: takes}))));

/**
 * Asks for something in the programs, as hpcrun --control does, and says what came of it.
 * @param {string} command
 */
async function controlLive(command) {
    const text = JSON.stringify({report: "live", control: command}), said = byId("live-said");
    const answer = await fetchBytes(text).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)), (error) => ({says: error.message, done: false}));
    said.textContent = answer.says || command;
    said.classList.toggle("failed", !answer.done);
    say(said.textContent || "");
}

/** Asks for the name of a phase; an empty one ends it. */
function askPhase() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("offer")), name = attributes(make("input", ""), {type: "text", maxlength: 55, "aria-label": "Name of the phase"});
    const form = attributes(make("form", "", name, attributes(make("button", "", "Begin"), {type: "submit"}), button("Cancel", () => dialog.close())), {method: "dialog"});
    form.addEventListener("submit", () => {
        controlLive("mark " + name.value.trim());
    });
    dialog.replaceChildren(make("h2", "", "A phase begins"), make("p", "", "Reports can be split by phases. Without a name none goes on."), form);
    dialog.showModal();
    name.focus();
}

/** Samples of a thread in a second of its CPU time, at most; never more than the measurement was started with. */
const RATES = [["", "as it is"], ["1000", "1000 / s"], ["500", "500 / s"], ["250", "250 / s"], ["100", "100 / s"], ["25", "25 / s"]];
let isPaused = false;

/** Buttons for what hpcrun --control can do, and the keys of the terminal. */
function makeControls() {
    const pause = attributes(button("Pause sampling", () => controlLive(isPaused ? "resume" : "pause")), {id: "live-pause", title: "P"});
    const rate = choice("Rate", RATES, "", (value) => {
        if (value)
            controlLive("rate " + value);
    });
    const phase = attributes(button("Phase", askPhase), {title: "K"}), save = attributes(button("Save", () => controlLive("snapshot")), {title: "W"});
    document.addEventListener("keydown", (event) => {
        const target = /** @type {HTMLElement} */ (event.target), press = (/** @type {Record<string, HTMLElement>} */ ({P: pause, K: phase, W: save}))[event.key];
        if (!press || !pause.isConnected || event.ctrlKey || event.metaKey || event.altKey || target.matches("input, textarea, select") || document.querySelector("dialog[open]"))
            return;
        event.preventDefault();
        press.click();
    });
    return attributes(make("span", "tools", pause, rate, phase, save, attributes(make("span", ""), {id: "live-said", role: "status"})), {id: "live-control"});
}

const LIVE_MS = 1000;
let isHeld = false, liveNumber = -1;

/** Asks everything anew; where lists were scrolled to stays. */
async function renewAnswers() {
    forgetAll();
    await Promise.all([ask({report: "session"}).catch(() => undefined), loadTables().catch(() => undefined)]);
    forgetTables();
    const scrolled = [...document.querySelectorAll("#app *")].filter((each) => each.scrollTop > 0).map((each) => /** @type {const} */ ([each, each.scrollTop]));
    tell(new Set(["data"]));
    setTimeout(() => {
        for (const [element, top] of scrolled)
            element.scrollTop = top;
    }, 50);
}

/**
 * Shows how far it is, and takes what is newer, until the server has ended.
 * @param {HTMLElement} words
 * @param {HTMLElement} hold
 */
async function lookAgain(words, hold) {
    /** @type {Live | null} */ const now = document.hidden ? null : await askLive(!isHeld).catch(() => null);
    if (now && now.words !== undefined) {
        words.textContent = isHeld && !now.over ? "held, " + now.words : now.words;
        if (now.over && !hold.hidden)
            say("The program " + now.words);
        hold.hidden = now.over && !isHeld;
        isPaused = now.paused;
        byId("live-pause").textContent = isPaused ? "Resume sampling" : "Pause sampling";
        byId("live-control").hidden = now.over;
        if (now.number !== liveNumber && !isHeld) {
            liveNumber = now.number;
            await renewAnswers();
        }
    }
    setTimeout(() => lookAgain(words, hold), LIVE_MS);
}

/** Begins, where the program runs. */
export async function beginLive() {
    /** @type {Live | null} */ const first = isServed ? await askLive(false).catch(() => null) : null;
    if (!first || first.words === undefined)
        return;
    const words = make("span", "", first.words), hold = button("Hold", () => {
        isHeld = !isHeld;
        hold.textContent = isHeld ? "Go on" : "Hold";
        hold.setAttribute("aria-pressed", String(isHeld));
    });
    liveNumber = first.number;
    document.querySelector("header")?.append(attributes(make("div", "tools", words, hold, makeControls()), {id: "live", role: "group", "aria-label": "The program that runs"}));
    lookAgain(words, hold);
}
