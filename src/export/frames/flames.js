// SPDX-License-Identifier: BSD-3-Clause
// A flame graph that fits the window, zooms by click and keyboard, and searches. Frames keep the place that they have in
// the file, a picture of 1200 pixels: x and width for their cost, y for their depth. form-flamegraph.c writes it.
'use strict';
(function () {
const WIDTH = 1200, TOP = 64, ROW = 18, MARGIN = 10, CHARACTER = 7.3, NEAR = 1e-4, NARROW = 700;
const svg = document.documentElement;
const input = document.querySelector('input');
const status = document.getElementById('status'), info = document.getElementById('info');
const whole = {x: 0, width: WIDTH, depth: -1, up: null};

function read(group) {
    const rect = group.querySelector('rect'), title = group.querySelector('title').textContent;
    const number = name => parseFloat(rect.getAttribute(name)), end = title.lastIndexOf(' \u2014 ');
    return {group, rect, text: group.querySelector('text'), x: number('x'), width: number('width'),
            depth: Math.round((number('y') - TOP) / ROW), title, name: end < 0 ? title : title.slice(0, end), up: null, below: []};
}

const frames = Array.from(document.querySelectorAll('g.f'), read);
const path = [];
for (const frame of frames) {
    path.length = frame.depth;
    frame.up = frame.depth ? path[frame.depth - 1] : null;
    path[frame.depth] = frame;
    if (frame.up)
        frame.up.below.push(frame);
}
let zoomed = whole, focused = frames[0];

// As much of the name as there is room for.
function label(frame, width) {
    const room = Math.floor((width - 8) / CHARACTER);
    if (room < 3)
        return '';
    const characters = Array.from(frame.name);
    return characters.length <= room ? frame.name : characters.slice(0, room - 1).join('') + '\u2026';
}

function draw() {
    const room = Math.max(200, svg.clientWidth || WIDTH) - 2 * MARGIN, scale = room / zoomed.width, above = new Set();
    for (let frame = zoomed.up; frame; frame = frame.up)
        above.add(frame);
    info.setAttribute('x', room < NARROW ? MARGIN : 480);
    info.setAttribute('y', room < NARROW ? 61 : 46);
    for (const frame of frames) {
        const isAbove = above.has(frame);
        const isInside = frame.depth >= zoomed.depth && frame.x >= zoomed.x - NEAR &&
                         frame.x + frame.width <= zoomed.x + zoomed.width + NEAR;
        const x = isAbove ? MARGIN : MARGIN + (frame.x - zoomed.x) * scale, width = isAbove ? room : frame.width * scale;
        frame.isShown = (isAbove || isInside) && width >= .3;
        frame.group.style.display = frame.isShown ? '' : 'none';
        frame.group.classList.toggle('up', isAbove);
        if (!frame.isShown)
            continue;
        frame.rect.setAttribute('x', x.toFixed(2));
        frame.rect.setAttribute('width', width.toFixed(2));
        frame.text.setAttribute('x', (x + 4).toFixed(2));
        frame.text.textContent = label(frame, width);
    }
}

function say(frame) {
    info.textContent = frame ? frame.title : '';
}

function focus(frame) {
    if (!frame)
        return;
    focused.group.setAttribute('tabindex', '-1');
    focused = frame;
    frame.group.setAttribute('tabindex', '0');
    frame.group.focus();
    say(frame);
}

function zoom(frame) {
    zoomed = frame;
    draw();
}

// Marks frames by a part of their name; what is below a marked one counts once.
function search() {
    const words = input.value.trim().toLowerCase();
    let sum = 0, end = -1, n = 0;
    for (const frame of frames) {
        const isFound = words !== '' && frame.name.toLowerCase().includes(words);
        frame.group.classList.toggle('found', isFound);
        n += isFound;
        if (isFound && frame.x >= end - NEAR) {
            sum += frame.width;
            end = frame.x + frame.width;
        }
    }
    status.textContent = words === '' ? '' : `${n} ${n === 1 ? 'frame' : 'frames'}, ${(100 * sum / WIDTH).toFixed(2)} %`;
}

function widest(list) {
    return list.filter(frame => frame.isShown).reduce((a, b) => !a || b.width > a.width ? b : a, null);
}

function beside(frame, step) {
    const row = frames.filter(other => other.depth === frame.depth && other.isShown).sort((a, b) => a.x - b.x);
    return row[row.indexOf(frame) + step];
}

function leave(isInput) {
    if (isInput && input.value !== '') {
        input.value = '';
        search();
    } else {
        zoom(whole);
        focus(focused);
    }
}

// Whether the key means something here.
function press(key, isInput, isControl) {
    if (key === 'Escape')
        leave(isInput);
    else if (isInput && key === 'Enter')
        focus(frames.find(frame => frame.isShown && frame.group.classList.contains('found')));
    else if (isInput)
        return false;
    else if (key === '/' || isControl) {
        input.focus();
        input.select();
    } else if (key === 'ArrowDown')
        focus(widest(focused.below));
    else if (key === 'ArrowUp')
        focus(focused.up);
    else if (key === 'ArrowLeft' || key === 'ArrowRight')
        focus(beside(focused, key === 'ArrowLeft' ? -1 : 1));
    else if (key === 'Enter' || key === ' ')
        zoom(focused);
    else
        return false;
    return true;
}

for (const frame of frames) {
    frame.group.addEventListener('click', () => { zoom(frame); focus(frame); });
    frame.group.addEventListener('mouseenter', () => say(frame));
    frame.group.addEventListener('mouseleave', () => say(null));
    frame.group.addEventListener('focus', () => say(frame));
}
input.addEventListener('input', search);
window.addEventListener('resize', draw);
document.addEventListener('keydown', event => {
    if ((event.ctrlKey && event.key !== 'f') || event.altKey || event.metaKey)
        return;
    if (press(event.key, event.target === input, event.ctrlKey))
        event.preventDefault();
});
svg.removeAttribute('viewBox');
document.getElementById('tools').style.display = '';
focused.group.setAttribute('tabindex', '0');
draw();
})();
