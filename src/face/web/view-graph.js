// SPDX-License-Identifier: BSD-3-Clause
// To come.
import {about} from "./things.js";
import {make} from "./parts.js";

/** @type {import("./views.js").View} */
export const graph = {
    name: "tree", title: "Graph", stack: "code",
    canShow: () => ({item: "", why: ""}),
    asks: () => [about({report: "tree"})],
    open(panel) {
        panel.append(make("p", "dim", "To come."));
    },
    draw() {},
};
