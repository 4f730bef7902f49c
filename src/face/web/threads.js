// SPDX-License-Identifier: BSD-3-Clause
// Some of the threads: the condition that the state has on them, how it is chosen, and what a page in a file knows of them: it has the numbers of each thread
// of variables and functions, from which it makes those of some.
import {answered, ask, byThread, commandOf, setMaker} from "./ask.js";
import {Answer} from "./packed.js";
import {state, want} from "./state.js";
import {make, attributes, button, byId, named, groupedBy} from "./parts.js";

/** @typedef {{number: number, name: string | null, process: number, rank: number | null, thread: number}} Thread as the session has it */

/** @returns {Thread[]} */
const threadsHere = () => answered({report: "session"})?.head.threads || [];

/** How many can be chosen one by one. */
const OFFERED_MOST = 512;
const OPERATORS = /** @type {Record<string, (a: number, b: number) => boolean>} */ ({"=": (a, b) => a === b, "==": (a, b) => a === b, "!=": (a, b) => a !== b,
    "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b});

/**
 * What a condition on rank, process and thread says of a thread; it fails with a sentence for one that only the recording itself can answer.
 * @param {string} text
 * @returns {(thread: Thread) => boolean}
 */
export function conditionOf(text) {
    const words = text.match(/<=|>=|!=|==|[=<>()]|\d+|[a-z]+|\S/g) || [];
    let at = 0;
    const refuse = () => new Error(`This page cannot choose threads by "${text}": hpcviewer DB does.`);
    /** @returns {(thread: Thread) => boolean} */
    const single = () => {
        const word = words[at++];
        if (word === "not") {
            const inner = single();
            return (thread) => !inner(thread);
        }
        if (word === "(") {
            const inner = any();
            if (words[at++] !== ")")
                throw refuse();
            return inner;
        }
        const compare = OPERATORS[words[at++]], value = Number(words[at++]);
        if (!["rank", "process", "thread"].includes(word) || !compare || Number.isNaN(value))
            throw refuse();
        return (thread) => compare(/** @type {any} */ (thread)[word] ?? 0, value);
    };
    const joined = (/** @type {string} */ word, /** @type {() => (thread: Thread) => boolean} */ part) => {
        const parts = [part()];
        while (words[at] === word) {
            at++;
            parts.push(part());
        }
        return (/** @type {Thread} */ thread) => (word === "and" ? parts.every((each) => each(thread)) : parts.some((each) => each(thread)));
    };
    const any = () => joined("or", () => joined("and", single));
    const made = any();
    if (at < words.length)
        throw refuse();
    return made;
}

/**
 * The shortest condition for some threads: ranks or processes as a whole where all of theirs are chosen. "": all are.
 * @param {Thread[]} all
 * @param {(thread: Thread) => boolean} is
 */
export function conditionFor(all, is) {
    if (all.every(is))
        return "";
    const hasRanks = all.some((each) => each.rank !== null && each.rank !== undefined), groups = [...groupedBy(all, (each) => String(hasRanks ? each.rank : each.process)).values()];
    const threads = (/** @type {Thread[]} */ some) => some.map((each) => "thread = " + each.thread).join(" or ");
    const terms = groups.flatMap((group) => {
        const chosen = group.filter(is), name = hasRanks ? "rank = " + group[0].rank : "process = " + group[0].process;
        if (!chosen.length || groups.length < 2)
            return chosen.length ? [threads(chosen)] : [];
        return [chosen.length === group.length ? name : `(${name} and ${chosen.length > 1 ? `(${threads(chosen)})` : threads(chosen)})`];
    });
    return terms.join(" or ");
}

// --- what a page in a file makes of the numbers of each thread ---------------------------------------------------------

/**
 * A table of numbers and texts.
 * @param {Answer} like whose program and metric it has
 * @param {any} head
 * @param {Record<string, (number | string | null)[]>} columns
 * @param {number} n
 */
function tableOfCells(like, head, columns, n) {
    const texts = /** @type {string[]} */ ([]), about = /** @type {any[]} */ ([]), parts = /** @type {Uint8Array[]} */ ([]);
    for (const [key, cells] of Object.entries(columns)) {
        const isText = cells.some((cell) => typeof cell === "string"), width = isText ? 4 : 8, bytes = new Uint8Array((n * width + 7) & ~7);
        const whole = isText ? new Uint32Array(cells.map((cell) => (cell === null ? 0xffffffff : texts.push(String(cell)) - 1))) : new Float64Array(cells.map((cell) => (cell === null ? NaN : Number(cell))));
        const raw = new Uint8Array(whole.buffer);
        for (let i = 0; i < n; i++)
            for (let plane = 0; plane < width; plane++)
                bytes[plane * n + i] = raw[width * i + plane];
        about.push({key, kind: isText ? "text" : "number", type: isText ? "text" : "f64"});
        parts.push(bytes);
    }
    const rest = new TextEncoder().encode(texts.join("\0")), data = new Uint8Array(parts.reduce((sum, part) => sum + part.length, rest.length));
    let at = 0;
    for (const part of [...parts, rest]) {
        data.set(part, at);
        at += part.length;
    }
    return new Answer({program: like.program, metric: like.metric, name: like.name, rows: n, columns: about, head, text_bytes: rest.length}, data);
}

/**
 * What rows that are split by threads have of some of these: rows without anything are left out, and so are samples that were dropped.
 * @param {Answer} split
 * @param {Set<string>} columns
 */
function ofSomeThreads(split, columns) {
    const rows = Array.from({length: split.n}, (_, row) => ({row, cells: (split.json("cells", row) || []).filter((/** @type {any} */ each) => columns.has(String(each.thread)))}));
    const kept = rows.filter(({row, cells}) => cells.length && split.text("class", row) !== "dropped").map((each) => ({...each, value: each.cells.reduce((/** @type {number} */ sum, /** @type {any} */ cell) => sum + cell.value, 0)}));
    return {kept: kept.filter((each) => each.value > 0).sort((a, b) => b.value - a.value || a.row - b.row), total: kept.reduce((sum, each) => sum + each.value, 0)};
}

/**
 * @param {import("./ask.js").Request} request
 * @returns {Promise<Answer>}
 */
async function makeOfThreads(request) {
    const from = byThread(request), is = conditionOf(request.profiles), threads = threadsHere();
    if (!from)
        throw new Error(`This page has these numbers of all threads together. hpcviewer DB shows them, or: ${commandOf(request.report === "nodes" ? {steps: [["choose", request.profiles], ["tree"]]} : request)}`);
    const split = await ask(from), names = /** @type {string[]} */ (split.head.columns || []).map(String);
    if (names.length < threads.length)
        throw new Error("This page does not tell these threads apart: hpcviewer DB does.");
    const columns = names.filter((_, i) => threads[i] && is(threads[i])), {kept, total} = ofSomeThreads(split, new Set(columns)), isVars = request.report === "vars";
    if (!columns.length)
        throw new Error("No thread is left.");
    const texts = ["variable", "class", "alloc_site", "function", "file", "module"].filter((key) => split.columns.has(key));
    const made = /** @type {Record<string, any[]>} */ (Object.fromEntries(texts.map((key) => [key, kept.map(({row}) => split.columns.get(key)?.text(row) ?? null)])));
    if (split.columns.has("line"))
        made.line = kept.map(({row}) => split.number("line", row));
    const whole = await ask(isVars ? {fields: true, report: "vars"} : {report: "functions"}), keys = isVars ? ["variable", "alloc_site"] : ["function", "module", "file", "line"];
    const key = (/** @type {Answer} */ of, /** @type {number} */ row) => keys.map((each) => (each === "line" ? of.number(each, row) : of.text(each, row))).join("\n");
    const rows = new Map(Array.from({length: whole.n}, (_, row) => [key(whole, row), row]));
    made.item = kept.map(({row}) => whole.columns.get("item")?.text(rows.get(key(split, row)) ?? -1) ?? null);
    const values = kept.map(({value}) => value), shares = values.map((value) => (100 * value) / total);
    if (request.by) {
        const ratios = kept.map(({cells, value}) => (Math.max(...cells.map((/** @type {any} */ each) => each.value)) * columns.length) / value);
        const cells = kept.map((each) => JSON.stringify(each.cells.map((/** @type {any} */ cell) => ({...cell, share: (100 * cell.value) / total, share_of_row: (100 * cell.value) / each.value}))));
        return tableOfCells(split, {...split.head, columns, total}, {...made, value: values, share: shares, max_over_mean: ratios, cells}, kept.length);
    }
    return tableOfCells(split, {...whole.head, total, total_value: total}, {...made, ...(isVars ? {value: values, share: shares} : {own: values, own_share: shares})}, kept.length);
}

setMaker(makeOfThreads);

// --- how they are chosen -----------------------------------------------------------------------------------------------

/** Shows which ranks and threads there are, to choose from. */
export function offerThreads() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("offer")), all = threadsHere(), hasRanks = all.some((each) => each.rank !== null && each.rank !== undefined);
    const field = attributes(make("input", ""), {"aria-label": "Condition on rank, process and thread", size: 48, placeholder: "rank < 4 and thread = 0"}), form = attributes(make("form", "threads"), {method: "dialog"});
    let is = (/** @type {Thread} */ _) => true;
    field.value = state.profiles;
    try {
        is = state.profiles ? conditionOf(state.profiles) : is;
    } catch {
        is = () => false;
    }
    const boxes = all.slice(0, OFFERED_MOST).map((thread) => Object.assign(attributes(make("input", ""), {type: "checkbox", checked: is(thread) || null}), {thread}));
    const tell = () => {
        field.value = conditionFor(all, (thread) => boxes[all.indexOf(thread)]?.checked ?? false);
    };
    const list = make("div", "thread-list");
    for (const group of groupedBy(boxes, (box) => String(hasRanks ? box.thread.rank : box.thread.process)).values()) {
        const first = group[0].thread, some = attributes(make("input", ""), {type: "checkbox", checked: group.every((box) => box.checked) || null});
        const title = make("label", "", some, ` ${hasRanks ? "rank " + first.rank : "process " + first.process}`);
        some.addEventListener("change", () => {
            for (const box of group)
                box.checked = some.checked;
            tell();
        });
        for (const box of group)
            box.addEventListener("change", () => {
                some.checked = group.every((each) => each.checked);
                tell();
            });
        list.append(make("div", "", title, ...group.map((box) => make("label", "", box, ` thread ${box.thread.thread}${box.thread.name ? " " : ""}`, named(box.thread.name || "")))));
    }
    form.append(make("p", "dim", all.length > OFFERED_MOST ? `The first ${OFFERED_MOST} of ${all.length}; a condition chooses any.` : "All views have the numbers of these alone, where they are known by thread."), list,
                make("label", "", "Condition ", field), make("div", "tools", button("Apply", () => {
        dialog.close();
        want({profiles: field.value.trim()});
    }), button("All threads", () => {
        dialog.close();
        want({profiles: ""});
    }), button("Cancel", () => dialog.close())));
    form.addEventListener("submit", () => want({profiles: field.value.trim()}));
    dialog.replaceChildren(make("h2", "", "Ranks and threads"), form);
    dialog.showModal();
}

/** The button for it; grey with the reason where costs have no threads. */
export function threadsButton() {
    const made = button("Threads\u2026", offerThreads);
    if (!threadsHere().length)
        attributes(made, {disabled: "", title: "This input does not say which thread a cost is of."});
    return made;
}

/** The choice as a step, which can be taken back. @returns {HTMLElement[]} */
export const threadsStep = () => (state.profiles ? [make("span", "step", "only ", named(state.profiles), attributes(button("\u00d7", () => want({profiles: ""}), "bare"), {"aria-label": "Undo only " + state.profiles}))] : []);
