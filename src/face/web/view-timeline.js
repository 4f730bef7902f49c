// SPDX-License-Identifier: BSD-3-Clause
// The place of the time line among the views. The view itself is a script of its own (timeline.js), which pages have whose input says what
// ran when; elsewhere the reason stands here.

/** @type {import("./views.js").View} */
export const timeline = {
    name: "timeline", title: "Time line", stack: "data", isOfAll: true,
    canShow: () => ({item: "", why: "It is not known what ran when: hpcrun -e datacentric -e sched -t records it."}),
    asks: () => [], open() {}, draw() {},
};
