// SPDX-License-Identifier: BSD-3-Clause
// The list of views. A view is one file and one row here.
import {answer} from "./view-answer.js";
import {variables} from "./view-variables.js";
import {variable} from "./view-variable.js";
import {matrix} from "./view-matrix.js";
import {treemap} from "./view-treemap.js";
import {diff} from "./view-diff.js";
import {graph} from "./view-graph.js";
import {source} from "./view-source.js";
import {metrics} from "./view-metrics.js";
import {trust} from "./view-trust.js";
import {timeline} from "./view-timeline.js";

/**
 * @typedef {object} View
 * @property {string} name its word in the state: the name of the report that it shows, where there is one
 * @property {string} title
 * @property {"data" | "code"} stack where it is
 * @property {(item: string) => import("./things.js").Stand} canShow what it shows for a thing ("" for none): the thing, another one, or "" with no reason for
 * all; or the reason why it shows nothing
 * @property {(panel: HTMLElement) => void} open makes its parts, once
 * @property {(item: string, mask: Set<string>) => void | Promise<void>} draw shows what canShow answered; mask: what changed since it was last drawn
 * @property {boolean} [isOfAll] what it shows is known of all threads together, not of some
 * @property {boolean} [isSorted] whether it has the order of the list
 * @property {(item: string) => import("./ask.js").Request[]} asks the requests whose numbers it shows, for the command line
 */

/** @type {View[]} */
export const views = [answer, variables, variable, matrix, treemap, diff, trust, graph, source, metrics, timeline];
