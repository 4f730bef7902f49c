// SPDX-License-Identifier: BSD-3-Clause
// A program that runs: the page goes over to newer numbers, and what is chosen stays. A line in the head says how far it is.
import {ask, fetchBytes, forgetAll, isServed} from "./ask.js";
import {tell} from "./state.js";
import {loadTables, forgetTables} from "./things.js";
import {make, attributes, button, say} from "./parts.js";

/** @typedef {{number: number, over: boolean, words: string}} Live number: of the session that answers */

/**
 * How far it is, {} where no program runs.
 * @param {boolean} takes whether what is newer is wanted
 * @returns {Promise<Live>}
 */
const askLive = async (takes) => JSON.parse(new TextDecoder().decode(await fetchBytes(JSON.stringify({report: "live", take: takes}))));

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
    document.querySelector("header")?.append(attributes(make("div", "tools", words, hold), {id: "live", role: "group", "aria-label": "The program that runs"}));
    lookAgain(words, hold);
}
