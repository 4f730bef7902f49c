// SPDX-License-Identifier: BSD-3-Clause
// To come.
import {about} from "./things.js";
import {make} from "./parts.js";

/** @type {import("./views.js").View} */
export const source = {
    name: "annotate", title: "Source", stack: "code",
    canShow: () => ({item: "", why: ""}),
    asks: () => [about({report: "annotate"})],
    open(panel) {
        panel.append(make("p", "dim", "To come."));
    },
    draw() {},
};
