// SPDX-License-Identifier: BSD-3-Clause
// What pictures on a canvas need: sharp pixels, the colours of the style, texts that fit, and the shades of a scale.
import {watch, tell} from "./state.js";
import {printable} from "./parts.js";

/**
 * A canvas of that many pixels of the style, and what draws on it.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function brushFor(canvas, width, height) {
    const dots = Math.min(devicePixelRatio || 1, 3), w = Math.max(1, Math.round(width * dots)), h = Math.max(1, Math.round(height * dots));
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.width = width + "px";
        canvas.style.height = height + "px";
    }
    const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    brush.setTransform(dots, 0, 0, dots, 0, 0);
    brush.clearRect(0, 0, width, height);
    return brush;
}

/** @type {Map<string, string>} */ const colours = new Map();
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"])
    matchMedia(query).addEventListener("change", () => tell(new Set(["theme"])));
watch((_, mask) => mask.has("theme") && colours.clear());

/**
 * What a colour of the style is now: "--memory", or mixed with that of empty bars, "--memory 40%".
 * @param {string} name
 */
export function colourOf(name) {
    let colour = colours.get(name);
    if (!colour) {
        const probe = document.createElement("i"), [base, part] = name.split(" ");
        probe.style.color = part ? `color-mix(in srgb, var(${base}) ${part}, var(--track))` : `var(${base})`;
        document.body.append(probe);
        colour = getComputedStyle(probe).color;
        probe.remove();
        colours.set(name, colour);
    }
    return colour;
}

/** @type {Map<string, number>} */ const digitWidths = new Map();

/**
 * As much of a text as fits, with three dots for what does not.
 * @param {CanvasRenderingContext2D} brush
 * @param {string} text
 * @param {number} width
 */
export function fitted(brush, text, width) {
    text = printable(text);
    const key = brush.font;
    let each = digitWidths.get(key);
    if (!each) {
        each = brush.measureText("0").width;
        digitWidths.set(key, each);
    }
    const all = brush.measureText(text.slice(0, Math.ceil(2 * width / each) + 1)).width;
    if (all <= width)
        return text;
    const n = Math.floor((width * Math.min(text.length, Math.ceil(2 * width / each) + 1)) / all) - 1;
    return n < 2 ? "" : text.slice(0, n) + "\u2026";
}

/** Steps of a scale of shades; more could not be told apart. */
export const STEPS = 8;

/**
 * The shade of a part of the scale; whatever is not zero can be seen.
 * @param {number} part 0 to 1
 */
export const shadeOf = (part) => colourOf(part > 0 ? `--memory ${16 + 12 * Math.max(0, Math.min(STEPS - 1, Math.ceil(part * STEPS) - 1))}%` : "--track");

/**
 * Whether white or black is read better on a colour.
 * @param {string} colour "rgb(...)" or "color(srgb ...)"
 */
export function inkOn(colour) {
    const parts = (colour.match(/[\d.]+/g) || []).map(Number), unit = colour.startsWith("color(") ? 1 : 255;
    const [r, g, b] = parts.map((part) => (part / unit <= 0.04045 ? part / unit / 12.92 : ((part / unit + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
