// SPDX-License-Identifier: BSD-3-Clause
// The view of the time line: what each CPU and each task did, at any zoom. It is a script of its own, which only pages have that have something to show in it: it
// fills in the view that view-timeline.js has.
import {ask, answered, canAsk, forget, isServed} from "./ask.js";
import {state, tell, want} from "./state.js";
import {kindOf, nameOf, tables} from "./things.js";
import {byId, make, addStyle, attributes, button, named, choice, check, percent, say, smallTable, onceAFrame, write} from "./parts.js";
import {brushFor, colourOf, fitted} from "./canvas.js";
import {timeline} from "./view-timeline.js";
import {axisTicks, blockHeight, clockText, isOff, pictureOf, rowSizes, rowsShown, rowTop, spanText, switchOff, timeWords, viewerCommand, wantTime, wantWindow, windowIn, windowNow} from "./timeline-model.js";
import {TimeRows} from "./timeline-rows.js";
import {EventList, RECORDED_EVENTS} from "./timeline-list.js";
import {TimePanel} from "./timeline-panel.js";
import {beginLive} from "./live.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {import("./ask.js").Request} Request */
/** @typedef {import("./timeline-model.js").Picture} Picture */

const STREAMS = {report: "streams"};
/** What colours can mean, and what that needs. */
const COLOURS = [["", "task, and CPU on tasks", ""], ["task", "task", ""], ["cpu", "CPU", ""], ["node", "memory node", "topology"], ["variable", "variable", "samples"],
                 ["function", "function", "samples"], ["local", "near or far memory", "samples"]];
const ROW_KINDS = [["", "CPUs and tasks"], ["cpus", "CPUs"], ["tasks", "tasks"]], TASK_ORDERS = [["", "the program's first"], ["number", "number"], ["run", "time run"], ["wait", "time waited"], ["name", "name"]];
/** A file holds one picture of everything, from which all others are drawn. */
const RECORDED_WIDTH = 16384, CHUNK = 16, STRIP_ROWS = 64, STRIP_HEIGHT = 34, AXIS_HEIGHT = 20, KEYS_SHOWN = 14, KEYS_OF_A_KIND = 7, PICTURES_KEPT = 12, RESTS = 150;

/** @typedef {{rows: TimeRows, strip: HTMLCanvasElement, axis: HTMLCanvasElement, bar: HTMLElement, times: HTMLElement, legend: HTMLElement, words: HTMLElement, note: HTMLElement, lower: HTMLElement, toggle: HTMLButtonElement, list: EventList, panel: TimePanel}} TimeParts */
/** @type {TimeParts | null} */ let timeParts = null;
/** @type {Picture | null} of everything, for the strip */ let wholePicture = null;
/** @type {{from: number, to: number}[]} windows before */ const zooms = [];
/** @type {Map<string, Picture>} by the text of what was asked */ const picturesKept = new Map();
let pictureKey = "", isLoading = false, barKey = "none", restTimer = 0;

const streamsNow = () => answered(STREAMS);
const lengthNow = () => Number(streamsNow()?.head.length_ns) || 1;

// --- asking ------------------------------------------------------------------------------------------------------------

/**
 * A picture, kept for some time: windows are many.
 * @param {Request} request
 * @returns {Promise<Picture>}
 */
async function pictureFor(request) {
    const key = JSON.stringify(request);
    let picture = picturesKept.get(key);
    if (!picture) {
        picture = pictureOf(await ask(request));
        if (isServed)
            forget(request);
    }
    picturesKept.delete(key);
    picturesKept.set(key, picture);
    for (const old of picturesKept.keys())
        if (picturesKept.size > PICTURES_KEPT)
            picturesKept.delete(old);
    return picture;
}

/**
 * What a kind of rows is coloured by.
 * @param {string} kind "cpu" or "task"
 */
const colourBy = (kind) => timeWords().by || (kind === "cpu" ? "task" : "cpu");

/**
 * The requests for the rows in sight: those of CPUs, and those of tasks.
 * @param {TimeRows} rows
 * @returns {Request[]}
 */
function pictureRequests(rows) {
    const streams = /** @type {Answer} */ (streamsNow()), [first, last] = rows.inSight, all = rows.rows.slice(Math.floor(first / CHUNK) * CHUNK, Math.ceil(last / CHUNK) * CHUNK);
    const {from, to} = windowNow(lengthNow()), kinds = ["cpu", "task"].map((kind) => ({by: colourBy(kind), rows: all.filter((row) => streams.text("kind", row) === kind).sort((a, b) => a - b)}));
    const joined = kinds[0].by === kinds[1].by ? [{by: kinds[0].by, rows: all.slice().sort((a, b) => a - b)}] : kinds;
    return joined.filter((each) => each.rows.length).map(({by, rows: some}) => (isServed ? {by, from, report: "timeline", rows: some, to, width: Math.round(rows.room)} : recordedRequest(by)));
}

/** @param {string} by */
const recordedRequest = (by) => ({by, report: "timeline", width: RECORDED_WIDTH});

/** Asks for what is in sight; one question at a time, and then for what is in sight by then. */
async function loadPictures() {
    if (!timeParts || !streamsNow() || timeParts.rows.width === 0 || isLoading)
        return;
    const {rows} = timeParts, requests = pictureRequests(rows), key = JSON.stringify(requests);
    if (key === pictureKey)
        return;
    isLoading = true;
    let why = "";
    try {
        const made = await Promise.all(requests.map(pictureFor)), isSame = (/** @type {Picture} */ a) => made.some((b) => a.from === b.from && a.to === b.to && a.width === b.width && !made.includes(a));
        const first = made[0];
        rows.pictures = [...made, ...rows.pictures.filter((each) => isSame(each) && pictureKey.split("by").length === key.split("by").length)].slice(0, 8);
        rows.drawSoon();
        rows.describe();
        if (first)
            drawLegend(made);
    } catch (error) {
        why = error instanceof Error ? error.message : String(error);
    }
    pictureKey = key;
    write(timeParts.note, why || [lackingText(), recordedText()].filter(Boolean).join(" "));
    isLoading = false;
    loadPictures();
}

/** What prints the runs of the window: hpcquery sched runs. */
function commandRequests() {
    const streams = streamsNow(), {from, to} = timeWords(), text = (/** @type {number} */ t) => (streams && !Number.isNaN(t) ? clockText(streams, t) : undefined);
    return streams ? [{report: "runs", steps: [["sched", "runs"]], from: text(from), to: text(to), inputs: (streams.head.streams || []).map((/** @type {any} */ each) => each.path)}] : [];
}

/** What the recordings do not have, with what records it. */
function lackingText() {
    return (streamsNow()?.head.lacking || []).map((/** @type {any} */ each) => each.text.charAt(0).toUpperCase() + each.text.slice(1) + ".").join(" ");
}

/** What a page in a file leaves out. */
function recordedText() {
    const streams = streamsNow();
    if (isServed || !streams)
        return "";
    let n = 0;
    for (let row = 0; row < streams.n; row++)
        n += streams.text("kind", row) === "cpu" ? streams.number("events", row) || 0 : 0;
    const parts = RECORDED_WIDTH.toLocaleString("en"), listed = n > RECORDED_EVENTS ? `, and of ${n.toLocaleString("en")} events the first ${RECORDED_EVENTS.toLocaleString("en")}` : "";
    return `This page has one picture of the whole time, in ${parts} parts${listed}. ${viewerCommand(streams)} shows any window of it.`;
}

async function loadStrip() {
    const streams = streamsNow();
    if (!timeParts || !streams || !timeParts.rows.width)
        return;
    const request = isServed ? {by: colourBy("cpu"), report: "timeline", rows: stripRows(), width: 1000} : recordedRequest(colourBy("cpu"));
    wholePicture = await pictureFor(request).catch(() => null);
    drawStrip();
}

// --- strip and axis ----------------------------------------------------------------------------------------------------

/** The rows of the strip: CPUs, where there are any, since a task that waits would make a busy machine look idle. */
function stripRows() {
    const streams = /** @type {Answer} */ (streamsNow()), all = Array.from({length: streams.n}, (_, i) => i), cpus = all.filter((row) => streams.text("kind", row) === "cpu");
    return (cpus.length ? cpus : all).slice(0, isServed ? STRIP_ROWS : all.length);
}

/**
 * How busy the rows of the strip are, 0 to 1 for each pixel. A row without anything in the picture was idle.
 * @param {Picture | null} of
 * @param {number} width
 */
function stripShares(of, width) {
    const sums = new Float64Array(Math.ceil(width) + 1), some = stripRows();
    for (const row of some) {
        const [begin, end] = of?.rows.get(row) || [0, 0];
        for (let i = begin; of && i < end; i++) {
            const scale = width / of.width, left = of.x[i] * scale, right = (of.x[i] + of.n[i]) * scale;
            for (let x = Math.floor(left); x < right; x++)
                sums[x] += ((of.run[i] / 255) * (Math.min(x + 1, right) - Math.max(x, left))) / some.length;
        }
    }
    return sums;
}

function drawStrip() {
    if (!timeParts || !timeParts.rows.width || !streamsNow())
        return;
    const {strip, rows} = timeParts, width = rows.room, brush = brushFor(strip, width, STRIP_HEIGHT), shares = stripShares(wholePicture, width), length = lengthNow();
    strip.style.marginLeft = rows.nameWidth + "px";
    brush.fillStyle = colourOf("--soft");
    brush.fillRect(0, 0, width, STRIP_HEIGHT);
    brush.fillStyle = colourOf("--execution");
    for (let x = 0; x < width; x++)
        if (shares[x] > 0) {
            const high = Math.max(shares[x] * (STRIP_HEIGHT - 4), 1);
            brush.fillRect(x, STRIP_HEIGHT - high, 1, high);
        }
    const {from, to} = windowNow(length), left = (from * width) / length, right = Math.max((to * width) / length, left + 2);
    brush.fillStyle = colourOf("--edge");
    brush.globalAlpha = 0.35;
    brush.fillRect(0, 0, left, STRIP_HEIGHT);
    brush.fillRect(right, 0, width - right, STRIP_HEIGHT);
    brush.globalAlpha = 1;
    brush.strokeStyle = colourOf("--accent");
    brush.lineWidth = 2;
    brush.strokeRect(left + 1, 1, Math.max(right - left - 2, 1), STRIP_HEIGHT - 2);
    attributes(strip, {"aria-valuenow": Math.round((50 * (from + to)) / length), "aria-valuetext": `${spanText(from)} to ${spanText(to)} of ${spanText(length)}`});
}

function drawAxis() {
    const streams = streamsNow();
    if (!timeParts || !streams || !timeParts.rows.width)
        return;
    const {axis, rows} = timeParts, {from, to} = rows.span, brush = brushFor(axis, rows.room, AXIS_HEIGHT), {step, ticks} = axisTicks(streams, from, to, rows.room / 130);
    axis.style.marginLeft = rows.nameWidth + "px";
    brush.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    brush.textBaseline = "middle";
    const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(Math.max(step, 1)))));
    for (const t of ticks) {
        const x = rows.xOf(t), text = clockText(streams, t);
        brush.fillStyle = colourOf("--edge");
        brush.fillRect(x, 0, 1, 6);
        brush.fillStyle = colourOf("--ink");
        if (x + 70 < rows.room)
            brush.fillText(text.slice(0, text.length - 9 + digits).replace(/\.$/, ""), x + 3, AXIS_HEIGHT / 2 + 2);
    }
    attributes(axis, {role: "img", "aria-label": `From ${clockText(streams, from)} to ${clockText(streams, to)} s: ${spanText(to - from)}`});
}

/** @param {HTMLCanvasElement} strip */
function watchStrip(strip) {
    let grip = NaN;
    const timeOf = (/** @type {MouseEvent} */ event) => {
        const box = strip.getBoundingClientRect();
        return ((event.clientX - box.left) * lengthNow()) / Math.max(box.width, 1);
    };
    const move = (/** @type {PointerEvent} */ event) => {
        const {from, to} = windowNow(lengthNow()), start = timeOf(event) - grip;
        if (!Number.isNaN(grip))
            wantWindow(start, start + to - from, lengthNow());
    };
    strip.addEventListener("pointerdown", (event) => {
        const {from, to} = windowNow(lengthNow()), t = timeOf(event);
        grip = t >= from && t <= to ? t - from : (to - from) / 2;
        strip.setPointerCapture?.(event.pointerId);
        move(event);
    });
    strip.addEventListener("pointermove", move);
    strip.addEventListener("pointerup", () => (grip = NaN));
    strip.addEventListener("keydown", (event) => {
        const by = (/** @type {Record<string, number>} */ ({ArrowLeft: -0.2, ArrowRight: 0.2, ArrowDown: -0.2, ArrowUp: 0.2}))[event.key];
        if (by) {
            event.preventDefault();
            event.stopPropagation();
            timeParts?.rows.pan(by);
        }
    });
}

// --- what is said around the rows --------------------------------------------------------------------------------------

/**
 * @param {string} label
 * @param {(t: number) => void} action
 */
function timeInput(label, action) {
    const streams = /** @type {Answer} */ (streamsNow()), input = attributes(make("input", "mono time-input"), {"aria-label": label + " in seconds", title: "Seconds of the recording's clock, or from its beginning with +"});
    input.addEventListener("change", () => {
        const parts = /^(\+?)(-?)(\d*)\.?(\d{0,9})\d*$/.exec(input.value.trim());
        if (!parts || !input.value.trim()) {
            action(NaN);
            return;
        }
        const ns = (BigInt(parts[3] || "0") * 1000000000n + BigInt(parts[4].padEnd(9, "0"))) * (parts[2] ? -1n : 1n);
        action(Number(parts[1] ? ns : ns - BigInt(String(streams.head.from || "0").replace(".", ""))));
    });
    return input;
}

function drawBars() {
    const streams = streamsNow(), parts = timeParts;
    if (!parts || !streams)
        return;
    const {a, b, on, by, show, sort, find, hide, off} = timeWords(), span = windowNow(lengthNow()), key = [by, show, sort, find, hide, off, (streams.head.topology || []).length].join("\n");
    drawTimes(parts, span, a, b, on);
    if (key === barKey || (parts.bar.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement && document.activeElement.type === "text"))
        return;
    barKey = key;
    const finder = attributes(make("input", ""), {type: "text", placeholder: "Rows: names, PIDs, 0-3", "aria-label": "Which rows: names, PIDs and numbers of CPUs, with commas between them"});
    finder.value = find;
    finder.addEventListener("input", () => wantTime({find: finder.value}));
    const has = (/** @type {string} */ need) => !need || (need === "topology" ? (streams.head.topology || []).length > 0 : (streams.columns.get("samples")?.numbers || []).some((each) => each > 0));
    const usable = COLOURS.map(([word, title, need]) => [word, title + (!has(need) ? ` (no ${need})` : isServed || canAsk(recordedRequest(word || "task")) ? "" : " (not in this page)"), need]), colours = choice("Colours", usable, by, (word) => wantTime({by: word, only: ""}));
    usable.forEach(([, title], i) => (/** @type {HTMLSelectElement} */ (colours.lastElementChild).options[i].disabled = title.endsWith(")")));
    parts.bar.replaceChildren(colours, choice("Rows", ROW_KINDS, show, (word) => wantTime({show: word})), choice("Tasks by", TASK_ORDERS, sort, (word) => wantTime({sort: word})), finder,
                              check("low rows", isOff("compact"), (isLow) => switchOff("compact", isLow)), check("list", !isOff("list"), (isOn) => switchOff("list", !isOn)), check("panel", !isOff("panel"), (isOn) => switchOff("panel", !isOn)),
                              hide.length ? button(`hidden (${hide.length})`, () => wantTime({hide: []})) : "", ...saveButtons(), isServed ? button("Recordings\u2026", showRecordings) : "");
    parts.toggle.hidden = !(streams.head.topology || []).length;
    parts.toggle.textContent = isOff("tree") ? ">" : "<";
    attributes(parts.toggle, {"aria-label": isOff("tree") ? "Show the topology" : "Hide the topology", "aria-expanded": !isOff("tree"), title: "Topology (T)"});
}

/** @type {{inputs: Record<string, HTMLInputElement>, length: HTMLElement, delta: HTMLElement, picks: Record<string, HTMLElement>} | null} */ let timeInputs = null;

/** @param {TimeParts} parts */
function makeTimes(parts) {
    const pick = (/** @type {"a" | "b"} */ which) => attributes(button(which.toUpperCase(), () => wantTime({on: which}), "marker marker-" + which), {title: "The marker that a choice moves"});
    const now = () => windowNow(lengthNow()), inputs = {
        from: timeInput("from", (t) => goTo(Number.isNaN(t) ? 0 : t, now().to)), to: timeInput("to", (t) => goTo(now().from, Number.isNaN(t) ? lengthNow() : t)),
        a: timeInput("A", (t) => wantTime({a: t})), b: timeInput("B", (t) => wantTime({b: t})),
    };
    const picks = {a: pick("a"), b: pick("b")}, length = make("span", "dim"), delta = make("strong", "time-delta");
    timeInputs = {inputs, length, delta, picks};
    parts.times.replaceChildren(attributes(button("\u2212", () => parts.rows.zoom(2)), {"aria-label": "Zoom out"}), attributes(button("+", () => parts.rows.zoom(0.5)), {"aria-label": "Zoom in"}), button("All (0)", () => goTo(0, lengthNow())),
                                make("label", "", "from ", inputs.from), make("label", "", "to ", inputs.to), length, picks.a, inputs.a, picks.b, inputs.b, delta);
    return timeInputs;
}

/**
 * @param {TimeParts} parts
 * @param {{from: number, to: number}} span
 * @param {number} a
 * @param {number} b
 * @param {"a" | "b"} on
 */
function drawTimes(parts, span, a, b, on) {
    const {inputs, length, delta, picks} = timeInputs || makeTimes(parts), streams = /** @type {Answer} */ (streamsNow());
    for (const [key, t] of Object.entries({from: span.from, to: span.to, a, b}))
        inputs[key].value = Number.isNaN(t) ? "" : clockText(streams, t);
    length.textContent = spanText(span.to - span.from);
    delta.textContent = Number.isNaN(a + b) ? "" : `A,B delta ${spanText(b - a)} (${Math.round(b - a)} ns)`;
    for (const which of ["a", "b"])
        attributes(picks[which], {"aria-pressed": on === which});
}

/**
 * The key that is not grey: the one that was chosen in the legend, or the variable or function that is chosen in the other views.
 * @param {Picture} picture
 */
function onlyIn(picture) {
    const {only, by} = timeWords(), name = only || (kindOf(state.active) === by ? nameOf(state.active) : "");
    return picture.keys.some((key) => key.name === name) ? name : "";
}

/**
 * The keys of a picture, largest first.
 * @param {Picture} picture
 * @param {string} title of whose colours they are, "" where all rows have the same
 */
function legendOf(picture, title) {
    const {only} = timeWords(), keys = picture.keys.filter((key) => key.ns > 0), all = keys.reduce((sum, key) => sum + key.ns, 0), some = keys.slice(0, title ? KEYS_OF_A_KIND : KEYS_SHOWN);
    return [title && keys.length ? make("span", "", title) : "", ...some.map((key) => {
        const patch = make("i", "key");
        patch.style.background = key.colour;
        return attributes(button(make("span", "", patch, named(key.name), ` ${percent((100 * key.ns) / all)}`), () => wantTime({only: only === key.name ? "" : key.name}), "bare"),
                          {"aria-pressed": only === key.name, title: `${spanText(key.ns)} in the window`});
    }), keys.length > some.length ? make("span", "dim", `and ${keys.length - some.length} more`) : ""];
}

/** What is drawn beside colours. */
const MARKS = [["woken", "woken, waits"], ["preempted", "waits, another has the CPU"], ["unknown", "not known"], ["tick", "event"], ["sample", "sample"], ["lost", "events lost"]];

/**
 * Rows of CPUs and of tasks may be coloured by different things: then each has its part.
 * @param {Picture[]} pictures
 */
function drawLegend(pictures) {
    const kinds = colourBy("cpu") === colourBy("task") ? [""] : ["cpu", "task"];
    timeParts?.legend.replaceChildren(...kinds.flatMap((kind) => {
        const picture = pictures.find((each) => each.by === colourBy(kind || "cpu"));
        return picture ? legendOf(picture, kind === "cpu" ? "On CPUs:" : kind ? "On tasks:" : "") : [];
    }), make("span", "time-marks", ...MARKS.map(([word, title]) => make("span", "", make("i", "key mark-" + word), title))));
}

// --- files -------------------------------------------------------------------------------------------------------------

/**
 * @param {string} name
 * @param {Blob} content
 */
function saveFile(name, content) {
    const link = attributes(make("a", ""), {download: name, href: URL.createObjectURL(content)});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The rows in sight with their names and the axis, as they are drawn. */
function pictureOfRows() {
    const {rows, axis} = /** @type {TimeParts} */ (timeParts), canvas = make("canvas", ""), [first, last] = rows.inSight, {H} = rowSizes();
    const brush = brushFor(canvas, rows.width, rows.height + AXIS_HEIGHT);
    brush.fillStyle = colourOf("--paper");
    brush.fillRect(0, 0, rows.width, rows.height + AXIS_HEIGHT);
    brush.drawImage(axis, rows.nameWidth, 0, rows.room, AXIS_HEIGHT);
    for (const each of [rows.canvas, rows.layer])
        brush.drawImage(each, rows.nameWidth, AXIS_HEIGHT, rows.room, rows.height);
    brush.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    brush.textBaseline = "middle";
    brush.fillStyle = colourOf("--ink");
    for (let place = first; place < last; place++)
        brush.fillText(fitted(brush, rows.streams?.text("name", rows.rows[place]) || "", rows.nameWidth - 8), 4, AXIS_HEIGHT + rowTop(place) - rows.top + H / 2);
    return canvas;
}

/**
 * What is in a file that is an answer, which has it in base 64.
 * @param {Answer} answer
 */
const fileOf = (answer) => Uint8Array.from(atob(answer.text("base64", 0)), (each) => each.charCodeAt(0));

/**
 * Saves the window that is seen as a file of another tool. Of several recordings trace.dat has that of the row that is chosen.
 * @param {string} form
 */
function saveWindow(form) {
    const {rows} = /** @type {TimeParts} */ (timeParts), span = windowNow(lengthNow()), chosen = timeWords().row, stream = chosen < 0 ? 0 : rows.streams?.number("stream", chosen) || 0;
    const request = {report: "file", subject: form, from: Math.round(span.from), to: Math.round(span.to), ...(form === "trace-dat" ? {stream} : {})};
    ask(request).then((answer) => saveFile(answer.text("name", 0), new Blob([fileOf(answer)], {type: answer.text("type", 0)})), (error) => say(String(error))).finally(() => forget(request));
}

/** What a session keeps of the view: what takeSession reads, with times on the recordings' clock. */
function keptView() {
    const streams = /** @type {Answer} */ (streamsNow()), {from, to, a, b, on, by, hide, pin, tasks, cpus, events} = timeWords(), begin = BigInt(String(streams.head.from || "0").replace(".", ""));
    const time = (/** @type {number} */ t) => (Number.isNaN(t) ? undefined : String(begin + BigInt(Math.round(t)))), marker = (/** @type {number} */ t) => (Number.isNaN(t) ? undefined : {ns: time(t)});
    const row = (/** @type {number} */ each) => ({stream_id: streams.number("stream", each), [streams.text("kind", each)]: streams.number("number", each)});
    const rows = [...pin.map((each) => ({...row(each), pinned: true})), ...hide.map((each) => ({...row(each), hidden: true}))], has = !Number.isNaN(a) || !Number.isNaN(b);
    return {from_ns: time(from), to_ns: time(to), task: tasks || undefined, cpu: cpus || undefined, event: events || undefined, rows: rows.length ? rows : undefined,
            markers: has ? {active: on, a: marker(a), b: marker(b)} : undefined, colors: by || undefined};
}

/** Saves recordings and view, for hpcviewer --session and hpcquery sched --session. */
function saveSession() {
    const request = {report: "file", subject: "session"}, decoder = new TextDecoder();
    ask(request).then((answer) => {
        const kept = JSON.parse(decoder.decode(fileOf(answer)));
        saveFile(answer.text("name", 0), new Blob([JSON.stringify({...kept, ...keptView()}, null, 1), "\n"], {type: "application/json"}));
    }, (error) => say(String(error))).finally(() => forget(request));
}

/** What is seen, as files. */
const saveButtons = () => [
    attributes(button("PNG", () => pictureOfRows().toBlob((blob) => blob && saveFile("time-line.png", blob))), {title: "Save the rows in sight as a picture"}),
    attributes(button("CSV", () => timeParts?.list.csv().then((text) => saveFile("events.csv", new Blob([text], {type: "text/csv"})), (error) => say(String(error)))), {title: "Save the events of the list as a table"}),
    ...isServed ? [
        attributes(button("trace.dat", () => saveWindow("trace-dat")), {title: "Save this window of the first recording for KernelShark and trace-cmd"}),
        attributes(button("Perfetto", () => saveWindow("chrome")), {title: "Save this window for ui.perfetto.dev"}),
        attributes(button("Session", saveSession), {title: "Save recordings, window, markers, rows and filters: hpcviewer --session FILE opens them again"}),
    ] : [],
];

// --- recordings --------------------------------------------------------------------------------------------------------

const TWINS_MEAN = "Couplebreak: a switch and a waking are events of the task that they are about, too. Such a twin stands behind its origin, in rows, list and filters.";

/**
 * The numbers of rows after a change, of those before: a recording may have other tasks now.
 * @param {Answer} before
 * @param {Answer} now
 */
function rowsMoved(before, now) {
    const key = (/** @type {Answer} */ of, /** @type {number} */ row) => `${of.number("stream", row)} ${of.text("kind", row)} ${of.number("number", row)}`;
    const places = new Map(Array.from({length: now.n}, (_, row) => [key(now, row), row]));
    return (/** @type {number[]} */ rows) => rows.flatMap((row) => (row >= 0 && row < before.n ? places.get(key(before, row)) ?? [] : []));
}

/** Forgets what was drawn of the recordings, and asks for their rows anew. */
async function readAnew() {
    const before = /** @type {Answer} */ (streamsNow()), {hide, pin, row} = timeWords();
    forget(STREAMS);
    const moved = rowsMoved(before, await ask(STREAMS));
    picturesKept.clear();
    wholePicture = null;
    pictureKey = "";
    barKey = "none";
    if (timeParts) {
        timeParts.rows.pictures = [];
        timeParts.list.key = timeParts.panel.stayKey = timeParts.panel.windowKey = "none";
    }
    wantTime({hide: moved(hide), pin: moved(pin), row: moved([row])[0] ?? -1});
    tell(new Set(["all", "data"]));
}

/**
 * Of one recording: what is to be shown of its topology, "none", "own" or "given:FILE", and the cells that say and change it.
 * @param {any} of
 */
function topologyChoice(of) {
    const file = attributes(make("input", "mono"), {type: "text", "aria-label": "topology file", placeholder: "FILE.xml of lstopo", title: "The path on the machine on which hpcviewer runs"});
    const state = make("strong", ""), views = [["none", "by number (DEFAULT)"], ...(of.own_topology ? [["own", "tree (NUMATREE), its own: " + of.own_topology]] : []), ["given", "tree (NUMATREE) of the file"]];
    const list = choice("view", views, of.topology, () => undefined), view = /** @type {HTMLSelectElement} */ (list.querySelector("select"));
    const say = (/** @type {boolean} */ isLoaded) => {
        state.textContent = isLoaded ? "LOADED" : "NOT LOADED";
        state.className = isLoaded ? "time-loaded" : "time-unloaded";
    };
    const clear = () => {
        file.value = "";
        say(false);
    };
    const load = () => { // to where the applied file lies; the name is typed
        file.value = (of.given_topology || of.own_topology || "").replace(/[^/]*$/, "");
        view.value = "given";
        file.focus();
    };
    file.value = of.given_topology || "";
    file.addEventListener("input", () => (view.value = "given"));
    say(of.topology !== "none" || Boolean(of.given_topology));
    return {cells: [list, make("span", "time-file", file, " ", button("Clear", clear), " ", button("Load...", load)), state], wanted: () => (view.value === "given" ? "given:" + file.value.trim() : view.value)};
}

/** What of each recording is shown, and how: applied together. Where one is refused, it stays as it was. */
function showRecordings() {
    const streams = /** @type {Answer} */ (streamsNow()), dialog = /** @type {HTMLDialogElement} */ (byId("offer")), said = attributes(make("p", "failed"), {role: "alert"});
    const topologies = streams.head.streams.map(topologyChoice), twins = streams.head.streams.map((/** @type {any} */ each) => each.couplebreak);
    const rows = streams.head.streams.map((/** @type {any} */ each, /** @type {number} */ i) => [named(`[${i}] ${each.path}`), check("couplebreak", twins[i], (isOn) => (twins[i] = isOn)), ...topologies[i].cells]);
    const apply = async () => {
        said.textContent = "";
        for (const stream of rows.keys()) {
            const change = {couplebreak: twins[stream] ? "on" : "off", report: "streams", stream, topology: topologies[stream].wanted()};
            await ask(change).catch((error) => (said.textContent += (error instanceof Error ? error.message : String(error)) + " ")).finally(() => forget(change));
        }
        await readAnew();
        if (isOff("tree") && /** @type {Answer} */ (streamsNow()).head.streams.some((/** @type {any} */ each) => each.topology !== "none"))
            switchOff("tree", false);
        if (!said.textContent)
            dialog.close();
    };
    dialog.replaceChildren(make("h2", "", "Recordings: NUMA topology views, couplebreak"), make("p", "", TWINS_MEAN), smallTable(["recording", "twins", "view", "topology file", "state"], rows), said, button("Apply", apply), " ", button("Close", () => dialog.close()));
    dialog.showModal();
}

/**
 * Shows what a session has kept of the view.
 * @param {Answer} streams
 */
function takeSession(streams) {
    const [kept] = streams.head.view || [], number = (/** @type {any} */ ns) => (ns === null ? NaN : Number(ns)), rows = (/** @type {string} */ text) => (text ? text.split(".").map(Number) : []);
    if (!kept)
        return;
    const to = number(kept.to_ns), length = lengthNow(), span = windowIn(number(kept.from_ns) || 0, Number.isNaN(to) ? length : to, length), by = COLOURS.some(([word]) => word === kept.by) ? kept.by : "";
    wantTime({...(span.from === 0 && span.to >= length ? {} : span), a: number(kept.a_ns), b: number(kept.b_ns), on: kept.on === "b" ? "b" : "a", by, hide: rows(kept.hide), pin: rows(kept.pin), tasks: kept.task || "", cpus: kept.cpu || "", events: kept.event || ""});
}

// --- what people do ----------------------------------------------------------------------------------------------------

/**
 * @param {number} from
 * @param {number} to
 */
function goTo(from, to) {
    zooms.push(windowNow(lengthNow()));
    if (zooms.length > 100)
        zooms.shift();
    wantWindow(from, to, lengthNow());
}

/**
 * Chooses a row and a time, to which the active marker goes.
 * @param {number} row
 * @param {number} at
 */
function chooseTime(row, at) {
    wantTime({row, at, [timeWords().on]: at});
}

/**
 * To the next event of the chosen row, or to the one before.
 * @param {number} step
 */
async function toEvent(step) {
    const {row, at} = timeWords(), list = timeParts?.list, t = list && row >= 0 ? await list.beside(row, at, step) : NaN;
    if (Number.isNaN(t))
        return;
    chooseTime(row, t);
    const {from, to} = windowNow(lengthNow());
    if (t < from || t > to)
        wantWindow(t - (to - from) / 2, t + (to - from) / 2, lengthNow());
}

/** @param {number} step */
function toRow(step) {
    const {row, at} = timeWords(), rows = timeParts?.rows;
    if (!rows || !rows.rows.length)
        return;
    const next = rows.rows[Math.min(Math.max(rows.rows.indexOf(row) + step, 0), rows.rows.length - 1)];
    wantTime({row: next, at: Number.isNaN(at) ? Math.round((rows.span.from + rows.span.to) / 2) : at});
}

function frameSelection() {
    const {a, b, row, at} = timeWords(), found = timeParts?.rows.runAt(row, at);
    if (!Number.isNaN(a + b) && a !== b)
        goTo(Math.min(a, b) - Math.abs(b - a) / 10, Math.max(a, b) + Math.abs(b - a) / 10);
    else if (found) {
        const {picture, i} = found, each = (picture.to - picture.from) / picture.width, from = picture.from + picture.x[i] * each, to = from + picture.n[i] * each;
        goTo(from - (to - from) / 4, to + (to - from) / 4);
    }
}

function goBack() {
    const before = zooms.pop();
    if (before)
        wantWindow(before.from, before.to, lengthNow());
}

function setMarker() {
    const {on, at} = timeWords(), t = timeParts?.rows.pointer ?? NaN, now = Number.isNaN(t) ? at : Math.round(t);
    if (!Number.isNaN(now))
        wantTime({[on]: now, on: on === "a" ? "b" : "a"});
}

/**
 * By the place of a key, so that they work on any keyboard; others by what they write.
 * @type {Record<string, () => void>}
 */
const TIME_KEYS = {
    KeyW: () => timeParts?.rows.zoom(0.5), KeyS: () => timeParts?.rows.zoom(2), KeyA: () => timeParts?.rows.pan(-0.25), KeyD: () => timeParts?.rows.pan(0.25),
    "+": () => timeParts?.rows.zoom(0.5), "-": () => timeParts?.rows.zoom(2), ArrowLeft: () => timeParts?.rows.pan(-0.1), ArrowRight: () => timeParts?.rows.pan(0.1),
    ArrowUp: () => toRow(-1), ArrowDown: () => toRow(1), 0: () => goTo(0, lengthNow()), Backspace: goBack, m: setMarker, f: frameSelection, n: () => void toEvent(1), p: () => void toEvent(-1),
    t: () => switchOff("tree", !isOff("tree")), l: () => switchOff("list", !isOff("list")), x: () => timeWords().row >= 0 && wantTime({hide: [...timeWords().hide, timeWords().row], row: -1}),
    "/": () => /** @type {HTMLElement | null} */ (timeParts?.bar.querySelector("input[type=text]"))?.focus(),
};
const TIME_KEY_WORDS = "Drag: zoom to it; Shift and drag: measure; Ctrl and wheel: zoom at the pointer; Shift and wheel, A, D, Left, Right: move; W, S, +, -: zoom; 0: all; Backspace: the window before; Up, Down: the row; " +
    "N, P: its next or previous event; M: the active marker to the pointer, and the other one is active; F: frame the choice; X: hide the row; /: find rows; T: topology; L: list; Enter in the list: the event, of a twin its origin. " +
    "Hollow boxes wait: green since they were woken, red and dashed while another task has the CPU. Dots: not known. Hatched: events were lost. A triangle is a sample, a dashed line a twin.";

/** @param {KeyboardEvent} event */
function onTimeKey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input[type=text], input.time-input, select, textarea"))
        return;
    const isInGrid = target.closest(".grid") !== null || target.closest("button") !== null && /^(Arrow|Enter| )/.test(event.key);
    const action = TIME_KEYS[event.code] || (isInGrid && /^Arrow/.test(event.key) ? null : TIME_KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]);
    if (!action)
        return;
    event.preventDefault();
    event.stopPropagation();
    action();
}

// --- the view ----------------------------------------------------------------------------------------------------------

/** @param {HTMLElement} panel */
function openTimeline(panel) {
    const words = make("p", "dim time-words"), note = make("p", "dim time-lacks"), strip = make("canvas", "time-strip"), axis = make("canvas", "time-axis");
    const follow = onceAFrame(() => {
        if (wholePicture)
            drawStrip();
        else
            loadStrip();
        drawAxis();
        loadPictures();
    });
    const rows = new TimeRows({go: goTo, choose: chooseTime, scrolled: follow, only: onlyIn, tell: (text) => write(words, text), measure: (a, b) => wantTime({a: Math.round(a), b: Math.round(b)})});
    const toggle = button("<", () => switchOff("tree", !isOff("tree")), "time-toggle"), list = new EventList(chooseTime, (twin) => rows.join(twin)), side = new TimePanel({go: goTo, choose: chooseTime, arrow: (arrow) => rows.point(arrow)});
    attributes(strip, {role: "slider", tabindex: 0, "aria-label": "The window in the whole recording", "aria-valuemin": 0, "aria-valuemax": 100});
    watchStrip(strip);
    const lower = make("div", "time-lower", list.element);
    timeParts = {rows, strip, axis, bar: make("div", "tools"), times: make("div", "tools"), legend: make("div", "legend time-legend"), words, note, lower, toggle, list, panel: side};
    panel.append(timeParts.bar, timeParts.times, make("div", "time-main", make("div", "time-box", toggle, rows.tree, make("div", "time-right", strip, axis, rows.view)), side.element), words, timeParts.legend, lower, note,
                 make("details", "dim", make("summary", "", "Keys"), make("p", "", TIME_KEY_WORDS)));
    panel.addEventListener("keydown", onTimeKey);
}

const NO_ROW = "No row is called that: names, PIDs and numbers of CPUs stand with commas between them.";

/** @param {Set<string>} mask */
function drawTimeline(mask) {
    const streams = streamsNow(), parts = timeParts;
    if (!parts || !streams)
        return;
    const {rows, list, panel, lower} = parts, words = timeWords();
    rows.span = windowNow(lengthNow());
    const t = tables();
    parts.bar.parentElement?.classList.toggle("alone", t !== null && isTimeAlone(t, streams));
    if (mask.has("time") || mask.has("all") || mask.has("data"))
        rows.fill(streams, rowsShown(streams));
    if (!rows.rows.length || parts.words.textContent === NO_ROW)
        write(parts.words, rows.rows.length ? "" : NO_ROW);
    rows.drawSoon();
    drawBars();
    drawAxis();
    if (!wholePicture || mask.has("all"))
        loadStrip();
    else
        drawStrip();
    list.element.hidden = isOff("list");
    panel.element.hidden = isOff("panel");
    lower.hidden = isOff("list");
    loadPictures();
    drawLegend(rows.pictures);
    panel.showStay(streams, words);
    clearTimeout(restTimer);
    restTimer = setTimeout(() => { // when the window rests
        list.show(streams, windowNow(lengthNow()), timeWords());
        panel.showWindow(windowNow(lengthNow()), timeWords());
    }, RESTS);
    if (mask.has("time") && words.row >= 0) {
        rows.reveal(words.row);
        if (document.activeElement === rows.view)
            say(`${streams.text("name", words.row)}${Number.isNaN(words.at) ? "" : " at " + clockText(streams, words.at)}`);
    }
}

let hasAsked = false;

/**
 * Whether there is nothing to show but the time line: the samples that perf sched record writes are the scheduler's events, of which nothing says what data they meet.
 * @param {{vars: Answer, functions: Answer}} t
 * @param {Answer} streams
 */
function isTimeAlone({vars, functions}, streams) {
    const hasSamples = (streams.columns.get("samples")?.numbers || []).some((each) => each > 0), names = Array.from({length: vars.n}, (_, i) => vars.text("variable", i));
    return streams.n > 0 && (functions.n === 0 || (!hasSamples && names.every((name) => name === "<not data-centric>")));
}

Object.assign(timeline, {
    canShow() {
        const streams = streamsNow();
        if (!streams && !hasAsked) {
            hasAsked = true;
            ask(STREAMS).then(() => {
                tell(new Set(["data"]));
                const t = tables(), now = streamsNow(), isNew = !location.hash;
                if (isNew && now)
                    takeSession(now);
                if (isNew && t && now && isTimeAlone(t, now))
                    want({view: "timeline", split: "80"});
            }, () => undefined);
        }
        return {item: "", why: streams && streams.n ? "" : streams ? lackingText() : "The rows of the time line are on their way."};
    },
    asks: commandRequests,
    open: openTimeline,
    draw: (/** @type {string} */ _, /** @type {Set<string>} */ mask) => drawTimeline(mask),
});

/** A page that is served has this script, too: it begins to look at a program that runs when main.js has begun. */
addStyle(TIME_STYLE);
document.addEventListener("begun", beginLive);

/** For tests: the sizes by which blocks and rows are laid out. */
export const timeSizes = {rowSizes, rowTop, blockHeight};
