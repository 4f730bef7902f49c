// SPDX-License-Identifier: BSD-3-Clause
// Pieces that all views are made of. What the measured program chose is shown as text only.

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Adds to the style.
 * @param {string} text
 */
export function addStyle(text) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
}

/** Characters that cannot be seen, or that change the direction of what follows. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * A text with such characters as their numbers.
 * @param {string} text
 */
export function printable(text) {
    return text.replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/**
 * Another text in an element.
 * @param {Element} element
 * @param {string} text
 */
export function write(element, text) {
    element.textContent = printable(text);
}

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with a class ("" for none) and children: elements, or texts.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} classes
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, classes, ...children) {
    const element = document.createElement(tag);
    if (classes)
        element.className = classes;
    for (const child of children)
        if (child instanceof Node)
            element.append(child);
        else if (child !== null && child !== undefined && child !== false)
            element.append(printable(String(child)));
    return element;
}

/**
 * Sets attributes; null takes one away.
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, string | number | boolean | null>} values
 * @returns {E}
 */
export function attributes(element, values) {
    for (const [name, value] of Object.entries(values))
        if (value === null)
            element.removeAttribute(name);
        else
            element.setAttribute(name, printable(String(value)));
    return element;
}

/**
 * A name that the program chose.
 * @param {string} text
 */
export const named = (text) => make("bdi", "", text);

/**
 * @param {Child} label
 * @param {(event: MouseEvent) => void} action
 * @param {string} [classes]
 */
export function button(label, action, classes = "") {
    const element = make("button", classes, label);
    element.type = "button";
    element.addEventListener("click", action);
    return element;
}

/**
 * A choice of words: [[value, label], ...].
 * @param {string} label
 * @param {string[][]} words
 * @param {string} value
 * @param {(value: string) => void} action
 */
export function choice(label, words, value, action) {
    const list = make("select", "");
    for (const [each, title] of words)
        list.append(attributes(make("option", "", title), {value: each}));
    list.value = value;
    list.addEventListener("change", () => action(list.value));
    return make("label", "", label + " ", list);
}

/**
 * @param {string} label
 * @param {boolean} value
 * @param {(value: boolean) => void} action
 */
export function check(label, value, action) {
    const box = make("input", "");
    box.type = "checkbox";
    box.checked = value;
    box.addEventListener("change", () => action(box.checked));
    return make("label", "", box, " " + label);
}

/**
 * Percent as reports print them; "-" is not known.
 * @param {number} value 0 to 100
 */
export function percent(value) {
    return Number.isNaN(value) ? "-" : value.toFixed(1) + " %";
}

/**
 * A number in few digits.
 * @param {number} value
 */
export function short(value) {
    if (Number.isNaN(value))
        return "-";
    const size = Math.abs(value);
    for (const [least, unit] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]))
        if (size >= least)
            return Number((value / (least === 1e4 ? 1e3 : least)).toPrecision(3)) + " " + unit;
    return String(Number(value.toPrecision(4)));
}

/** @param {number} bytes */
export function size(bytes) {
    if (Number.isNaN(bytes))
        return "-";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    for (; bytes >= 1024 && at < units.length - 1; at++)
        bytes /= 1024;
    return (at ? bytes.toFixed(1) : String(bytes)) + " " + units[at];
}

/** @param {string} path */
export const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

/**
 * @param {string} file
 * @param {number} line NaN: not known
 */
export const place = (file, line) => (line > 0 ? `${baseName(file)}:${line}` : baseName(file));

/** The parts of time that bars show, with their words. A class has a pattern of its own beside its colour. */
export const CAUSES = [["memory", "waiting for memory"], ["execution", "execution"], ["unverified", "not verified"], ["touch", "first touches"], ["other", "other"]];

/**
 * A bar of parts, in percent of its length.
 * @param {(string | number)[][]} parts [[class, percent], ...]
 * @param {string} [words] for those who do not see it
 */
export function meter(parts, words) {
    const bar = make("span", "meter");
    attributes(bar, words ? {role: "img", "aria-label": words, title: words} : {"aria-hidden": "true"});
    for (const [name, value] of parts) {
        const part = make("i", String(name));
        part.style.width = Math.min(Math.max(Number(value) || 0, 0), 100) + "%";
        bar.append(part);
    }
    return bar;
}

/** @param {(Child | Child[])[][]} pairs label, words */
export function definitions(pairs) {
    const list = make("dl", "");
    for (const [label, words] of pairs)
        list.append(make("dt", "", /** @type {Child} */ (label)), make("dd", "", ...(Array.isArray(words) ? words : [words])));
    return list;
}

/**
 * The titles of a table. No thead: of each that is shown Chromium (156) keeps something for as long as the page is open.
 * @param {HTMLTableRowElement} row
 */
export const tableHead = (row) => make("tbody", "head", row);

/**
 * A small table whose rows are all in the page.
 * @param {string[]} titles
 * @param {(Child | HTMLTableCellElement)[][]} rows a td is taken as it is
 * @param {string} [caption]
 */
export function smallTable(titles, rows, caption) {
    const table = make("table", "small");
    if (caption)
        table.append(make("caption", "", caption));
    if (titles.length)
        table.append(tableHead(make("tr", "", ...titles.map((title) => attributes(make("th", "", title), {scope: "col"})))));
    const body = make("tbody", "");
    for (const row of rows)
        body.append(make("tr", "", ...row.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make("td", "", cell)))));
    table.append(body);
    return table;
}

/**
 * A cell with a number.
 * @param {Child} content
 */
export const numberCell = (content) => make("td", "n", content);

/**
 * Says something to those who do not see the page.
 * @param {string} words
 */
export function say(words) {
    write(byId("said"), words);
}

/**
 * What is there by a text of each, in the order of the first ones.
 * @template T
 * @param {T[]} all
 * @param {(each: T) => string} keyOfEach
 * @returns {Map<string, T[]>}
 */
export function groupedBy(all, keyOfEach) {
    /** @type {Map<string, T[]>} */ const found = new Map();
    for (const each of all) {
        const key = keyOfEach(each), same = found.get(key);
        if (same)
            same.push(each);
        else
            found.set(key, [each]);
    }
    return found;
}

/**
 * An action that is done once in the next frame, however often it is asked for.
 * @param {() => void} action
 * @returns {() => void}
 */
export function onceAFrame(action) {
    let isWaiting = false;
    return () => {
        if (isWaiting)
            return;
        isWaiting = true;
        requestAnimationFrame(() => {
            isWaiting = false;
            action();
        });
    };
}
