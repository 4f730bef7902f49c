// SPDX-License-Identifier: BSD-3-Clause
// The one way to data. A single file has the answers in it; a served page asks its server. Both know a request by its text.
import {decode, Answer} from "./packed.js";

/** @typedef {Record<string, any>} Request what session_ask_json takes */

/** @type {Map<string, Promise<Answer>>} */ const asked = new Map();
/** @type {Map<string, Answer>} */ const answers = new Map();
/** @type {Map<string, HTMLElement>} */ const recorded = new Map();
let secret = "";

const OVER = "hpcviewer has ended, or the tunnel to it is closed. What was shown stays; for the rest start hpcviewer again and open the address that it prints.";

/** Whether a server answers; else the answers are in the page. */
export let isServed = false;

/**
 * The text of a request, with sorted keys and without what is not said.
 * @param {Request} request
 */
export function canonical(request) {
    const keys = Object.keys(request).filter((key) => request[key] !== undefined && request[key] !== "" && request[key] !== false).sort();
    return JSON.stringify(Object.fromEntries(keys.map((key) => [key, request[key]])));
}

/**
 * @param {HTMLElement | null} section
 * @returns {Promise<ArrayBuffer>}
 */
async function inflated(section) {
    const bytes = bytesOf(section?.textContent || "");
    section?.remove();
    if (section?.dataset.form !== "deflate")
        return /** @type {ArrayBuffer} */ (bytes.buffer);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** @type {WeakMap<Document, Promise<ArrayBuffer>>} the small answers of each page */ const small = new WeakMap();

/**
 * @param {HTMLElement} section
 * @returns {Promise<Answer>}
 */
async function openSection(section) {
    const {form} = section.dataset, text = section.textContent || "", page = section.ownerDocument;
    if (form === "error")
        throw new Error(text);
    if (form !== "part")
        return decode(await inflated(section));
    const all = small.get(page) || inflated(page.getElementById("small")), [at, n] = text.split(" ").map(Number);
    small.set(page, all);
    return decode((await all).slice(at, at + n));
}

/**
 * The answers of another page, from its text, of which nothing is run.
 * @param {string} text
 * @returns {(request: Request) => Promise<Answer>}
 */
export function openRecording(text) {
    /** @type {Map<string, Promise<Answer>>} */ const opened = new Map();
    const sections = /** @type {HTMLElement[]} */ ([...new DOMParser().parseFromString(text, "text/html").querySelectorAll("script.answer")]);
    const byRequest = new Map(sections.map((section) => [section.dataset.ask, section]));
    if (!byRequest.size)
        throw new Error("It holds no answers: it is no page of hpcviewer.");
    return (request) => {
        const key = canonical(request), section = byRequest.get(key), answer = opened.get(key) || (section ? openSection(section) : Promise.reject(new Error(`It does not hold ${key}.`)));
        opened.set(key, answer);
        return answer;
    };
}

/**
 * @param {string} key
 * @returns {Promise<Answer>}
 */
async function fetchAnswer(key) {
    return decode(await fetchBytes(key));
}

/**
 * What the server answers to the text of a request.
 * @param {string} key
 * @returns {Promise<ArrayBuffer>}
 */
export async function fetchBytes(key) {
    const response = await fetch("/ask", {method: "POST", body: key, headers: {Authorization: "Bearer " + secret}}).catch(() => {
        throw new Error(OVER);
    });
    if (!response.ok || /^text/.test(response.headers.get("Content-Type") || ""))
        throw new Error(await response.text());
    return response.arrayBuffer();
}

/**
 * The request whose answer has the numbers of each thread, where one is about some threads, and a page in a file has such numbers.
 * @param {Request} request
 * @returns {Request | null}
 */
export function byThread({profiles, report, by, metric}) {
    const is = profiles && ["vars", "functions"].includes(report) && (!by || by === "thread");
    return is ? {by: "thread", metric, report} : null;
}

/** @typedef {(request: Request) => Promise<Answer>} Maker */
/** @type {Maker} makes the answer about some threads of what a page holds */ let maker = (_) => Promise.reject(new Error(OVER));

/** @param {Maker} made */
export function setMaker(made) {
    maker = made;
}

/** What no command prints. */
const ONLY_VIEWERS = ["source", "nodes", "trust", "session"];

/**
 * @param {string} key
 * @returns {Promise<Answer>}
 */
async function find(key) {
    const section = recorded.get(key);
    if (section)
        return openSection(section);
    if (isServed)
        return fetchAnswer(key);
    const request = JSON.parse(key);
    if (request.profiles)
        return maker(request);
    throw new Error("This page does not hold that. hpcviewer DB shows it" + (ONLY_VIEWERS.includes(request.report) ? ", where the database has it." : ", or: " + commandOf(request)));
}

/**
 * Asks, and keeps the answer. It fails with a sentence.
 * @param {Request} request
 * @returns {Promise<Answer>}
 */
export function ask(request) {
    const key = canonical(request);
    let answer = asked.get(key);
    if (!answer) {
        answer = find(key);
        answer.then((made) => answers.set(key, made), () => undefined);
        asked.set(key, answer);
    }
    return answer;
}

/**
 * Asks a server for the first rows alone: they stand for the whole until somebody asks for that. Says whether they are the whole.
 * @param {Request} request
 * @param {number} top how many
 * @returns {Promise<boolean>}
 */
export async function askFirst(request, top) {
    const key = canonical(request);
    if (!isServed || asked.has(key)) {
        await ask(request);
        return true;
    }
    const made = await ask({...request, top});
    if (!made.more)
        asked.set(key, Promise.resolve(made));
    if (!answers.has(key))
        answers.set(key, made);
    return !made.more;
}

/**
 * Lets go of an answer that is not needed again.
 * @param {Request} request
 */
export function forget(request) {
    const key = canonical(request);
    asked.delete(key);
    answers.delete(key);
}

/** What is not asked anew, since it is of no use in pieces: time lines. */
const KEPT_REPORTS = ["streams", "timeline", "window", "stay", "events"];

/** Lets go of all answers: there are newer ones. */
export function forgetAll() {
    for (const key of [...asked.keys()])
        if (!KEPT_REPORTS.includes(JSON.parse(key).report)) {
            asked.delete(key);
            answers.delete(key);
        }
}

/**
 * The answer, if it came already.
 * @param {Request} request
 * @returns {Answer | null}
 */
export function answered(request) {
    return answers.get(canonical(request)) || null;
}

/**
 * Whether an answer can be had at all.
 * @param {Request} request
 * @returns {boolean}
 */
export function canAsk(request) {
    const each = isServed ? null : byThread(request);
    return isServed || recorded.has(canonical(request)) || asked.has(canonical(request)) || Boolean(each && canAsk(each));
}

/**
 * A word of a command line.
 * @param {string} word
 */
export const quoted = (word) => (/^[\w%+,./:=@-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");

let database = "DB";

/** @param {string} path */
export function setDatabase(path) {
    database = path;
}

/**
 * The command that prints the same numbers.
 * @param {Request} request
 */
export function commandOf(request) {
    /** @type {any[]} */ const words = ["hpcquery", ...(request.steps || [[request.report]]).flatMap((/** @type {string[]} */ step, /** @type {number} */ i) => (i ? [":", ...step] : step))];
    const isOperand = ["annotate", "items"].includes(request.report), inputs = request.inputs || [database];
    for (const [key, value] of Object.entries(request))
        if (["report", "steps", "inputs"].includes(key) || value === undefined || value === false || value === "" || (key === "subject" && isOperand))
            continue;
        else if (value === true)
            words.push("--" + key);
        else
            for (const each of Array.isArray(value) ? value : [value])
                words.push(`--${key === "subject" ? "variable" : key}=${each}`);
    if (isOperand && request.subject)
        words.push(request.subject);
    return [...words, ...inputs].map((word) => quoted(String(word))).join(" ");
}

/**
 * Exchanges the token of the address for a secret of this page.
 * @param {string} token
 */
async function takeToken(token) {
    const response = await fetch("/open", {method: "POST", body: token});
    if (!response.ok)
        throw new Error(await response.text());
    return response.text();
}

/** Holds a request open, by which the server knows that the page is there. */
function stayAlive() {
    fetch("/alive", {headers: {Authorization: "Bearer " + secret}}).then((response) => response.text()).catch(() => undefined).then(() => {
        if (!document.querySelector(".over"))
            document.body.prepend(Object.assign(document.createElement("p"), {className: "failed over", role: "alert", textContent: OVER}));
    });
}

/** Finds out who answers. Fails with a sentence when that is nobody. */
export async function openHome() {
    for (const section of document.querySelectorAll("script.answer"))
        recorded.set(/** @type {HTMLElement} */ (section).dataset.ask || "", /** @type {HTMLElement} */ (section));
    isServed = recorded.size === 0;
    if (!isServed)
        return;
    const token = /^#token=([0-9a-f]+)(?:&(.*))?$/.exec(location.hash);
    if (token) {
        history.replaceState(null, "", location.pathname + (token[2] ? "#" + token[2] : ""));
        secret = await takeToken(token[1]);
        sessionStorage.setItem("secret", secret);
    } else {
        secret = sessionStorage.getItem("secret") || "";
    }
    if (!secret)
        throw new Error("This address was used, or is incomplete: press Enter where hpcviewer runs, and open the address that it prints.");
    stayAlive();
}
