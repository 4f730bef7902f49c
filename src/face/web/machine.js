// SPDX-License-Identifier: BSD-3-Clause
// The machine code of a function: what each instruction cost, where jumps go, and what kinds of instructions there are.
import {ask} from "./ask.js";
import {want} from "./state.js";
import {about, tables, lineItem, markOf} from "./things.js";
import {make, button, percent, meter, smallTable, numberCell, attributes, write} from "./parts.js";
import {Grid} from "./grid.js";
import {svg} from "./callgraph.js";

/** @typedef {import("./packed.js").Answer} Answer */
/** @typedef {{from: number, to: number, lane: number}} Jump rows, and the place of its line from the right */

const LANES = 8, LANE = 6, CODE_HEIGHT = 21;
const IS_JUMP = /^(j\w+|b(\.\w+)?|cbn?z|tbn?z|loop\w*|bc|bd\w+)\s.*?\b(?:0x)?([0-9a-f]+)\b[^0-9a-f]*$/i;
/**
 * Kinds of instructions, the first that fits.
 * @type {[string, RegExp][]}
 */
const KINDS_OF_CODE = [
    ["branches", /^(j\w+|call\w*|ret\w*|b|bl|blr|br|b\.\w+|cbn?z|tbn?z|loop\w*|syscall)\b/],
    ["vector", /^(v?\w+p[sd]\b|v?p(add|sub|mul|and|or|xor|cmp|shuf|unpck|sll|srl|sra|max|min|gather|broadcast|insr|extr|blend|perm)\w*|v?(movdq|movaps|movups|lddqu)\w*|v(broadcast|gather|perm|extract|insert|blend)\w*)|\b[yz]mm\d|\bv\d+\.\d+[bhsd]/],
    ["floating point", /^(v?\w+s[sd]\b|v?cvt\w+|v?u?comis[sd]|f\w+)|\bxmm\d/],
    ["integer", /./],
];

/**
 * Whether an instruction reads memory or writes it, by its operands in the form of objdump.
 * @param {string} text
 */
function accessOf(text) {
    const name = text.split(/\s/, 1)[0];
    if (/^(lea|nop|j|call|ret|prefetch)/.test(name) || !/[([]/.test(text))
        return /^(pop|ret|ldp?)/.test(name) ? "loads" : /^(push|call|stp?)\b/.test(name) ? "stores" : "";
    return /^st/.test(name) || (/\)\s*$/.test(text) && !/^(cmp|test|u?comi|mul|div|imul|idiv|bt)/.test(name) && /,/.test(text)) ? "stores" : "loads";
}

/**
 * Jumps within the function, each with a lane in which no other one is.
 * @param {Answer} code
 * @returns {Jump[]}
 */
export function jumpsOf(code) {
    const rows = new Map();
    for (let i = 0; i < code.n; i++)
        rows.set(code.text("address", i).replace(/^0x0*/, ""), i);
    /** @type {Jump[]} */ const jumps = [];
    for (let i = 0; i < code.n; i++) {
        const found = IS_JUMP.exec(code.text("instruction", i)), to = found ? rows.get(found[3].toLowerCase().replace(/^0+/, "")) : undefined;
        if (to !== undefined)
            jumps.push({from: i, to, lane: 0});
    }
    /** @type {Jump[][]} */ const lanes = [];
    for (const jump of [...jumps].sort((a, b) => Math.abs(a.from - a.to) - Math.abs(b.from - b.to))) {
        const low = Math.min(jump.from, jump.to), high = Math.max(jump.from, jump.to);
        let lane = 0;
        while (lane < LANES - 1 && (lanes[lane] || []).some((each) => Math.min(each.from, each.to) <= high && Math.max(each.from, each.to) >= low))
            lane++;
        (lanes[lane] ||= []).push(jump);
        jump.lane = lane;
    }
    return jumps;
}

export class Machine {
    constructor() {
        this.grid = new Grid({label: "Machine code", height: CODE_HEIGHT, marks: (row) => this.mark(row), choose: (row) => this.choose(row)});
        this.note = make("p", "dim");
        this.mix = make("div", "code-mix");
        this.kinds = make("details", "", make("summary", "", "Kinds of instructions"), this.mix);
        this.element = make("div", "machine", this.note, this.grid.element, this.kinds);
        /** @type {Answer | null} */ this.code = null;
        /** @type {Jump[]} */ this.jumps = [];
        this.name = "";
        this.file = "";
        this.line = NaN;
        this.chosen = -1;
        this.turn = 0; /* how often code was asked for */
    }

    /**
     * @param {string} name of the function
     * @param {string} file
     * @param {number} line that is looked at
     */
    async show(name, file, line) {
        const isSame = this.line === line && this.file === file, turn = ++this.turn;
        this.file = file;
        this.line = line;
        /** @type {Answer | null} */ let code = null;
        let why = "";
        try {
            code = await ask(about({instructions: true, report: "annotate", subject: name}));
        } catch (error) {
            why = error instanceof Error ? error.message : String(error);
        }
        if (turn !== this.turn) /* another was asked for meanwhile, and may be there already */
            return;
        if (code !== this.code || !code) {
            this.code = code;
            this.chosen = -1;
            write(this.note, code && !code.head.has_costs ? "What instructions cost is not in this database: make it with hpcprof --instructions." : why);
            this.grid.element.hidden = this.kinds.hidden = !code;
            if (!code)
                return;
            this.jumps = jumpsOf(code);
            this.grid.sort = "";
            this.grid.fill(this.columns(code), code.n);
            this.mix.replaceChildren(this.mixOf(code));
        }
        if (!isSame && (this.chosen < 0 || code.number("line", this.chosen) !== line))
            this.chosen = -1;
        if (this.chosen < 0)
            this.goToLine(code);
        this.grid.draw();
    }

    /**
     * Shows the costliest instruction of the line.
     * @param {Answer} code
     */
    goToLine(code) {
        let best = -1;
        for (let i = 0; i < code.n; i++)
            if (code.number("line", i) === this.line && (best < 0 || (code.number("own", i) || 0) > (code.number("own", best) || 0)))
                best = i;
        if (best >= 0)
            this.grid.show(best, false);
    }

    /** @param {number} row */
    itemAt(row) {
        const t = tables();
        return t && this.code ? lineItem(t, this.code.text("file", row), this.code.number("line", row)) : "";
    }

    /** @param {number} row */
    mark(row) {
        const mark = markOf(tables(), this.itemAt(row)), code = this.code;
        return mark || (code && code.number("line", row) === this.line && code.text("file", row) === this.file ? "related" : "");
    }

    /** @param {number} row */
    choose(row) {
        this.chosen = row;
        if (this.itemAt(row))
            want({active: this.itemAt(row), selected: []});
        this.grid.draw();
    }

    /**
     * The lines of jumps beside one instruction.
     * @param {number} row
     */
    gutter(row) {
        const width = LANES * LANE + 10, middle = CODE_HEIGHT / 2, picture = svg("svg", {width, height: CODE_HEIGHT, "aria-hidden": true});
        for (const {from, to, lane} of this.jumps) {
            const low = Math.min(from, to), high = Math.max(from, to), x = width - 10 - LANE * lane;
            if (row < low || row > high)
                continue;
            const isEnd = row === from || row === to, y0 = row === low && isEnd ? middle : 0, y1 = row === high && isEnd ? middle : CODE_HEIGHT;
            const tip = row === to ? `M${width - 5},${middle - 3}L${width},${middle}L${width - 5},${middle + 3}` : "";
            const name = row === this.chosen || from === this.chosen || to === this.chosen ? "jump chosen" : "jump";
            picture.append(svg("path", {"class": name, d: `M${x},${y0}V${y1}${isEnd ? `M${x},${middle}H${width}` : ""}${tip}`}));
        }
        return picture;
    }

    /** @param {number} row */
    instruction(row) {
        const text = this.code ? this.code.text("instruction", row) : "", jump = this.jumps.find((each) => each.from === row);
        const words = make("code", "", text);
        return jump ? make("span", "", words, " ", attributes(button("\u2192", () => this.follow(jump.to), "link"), {"aria-label": "Go to where it jumps"})) : words;
    }

    /** @param {number} row */
    follow(row) {
        this.chosen = row;
        this.grid.show(row, false);
        this.grid.draw();
    }

    /**
     * @param {Answer} code
     * @returns {import("./grid.js").GridColumn[]}
     */
    columns(code) {
        const plain = Float64Array.from({length: code.n}, (_, i) => i), shares = code.columns.get("own_share")?.numbers;
        const most = shares ? shares.reduce((a, b) => Math.max(a, b || 0), 0) || 1 : 1;
        /** @type {import("./grid.js").GridColumn[]} */ const made = [{key: "address", title: "address", classes: "n mono", width: "5.5rem", isText: true, ranks: plain, cell: (row) => code.text("address", row).replace(/^0x/, "")}];
        if (shares)
            made.push({key: "own", title: "share", classes: "n", width: "8rem", ranks: shares, cell: (row) => (shares[row] > 0 ? make("span", "line-cost", meter([["amount", (100 * shares[row]) / most]]), percent(shares[row])) : "")});
        made.push({key: "jumps", title: "", width: LANES * LANE + 10 + "px", isText: true, ranks: plain, help: "Jumps", cell: (row) => this.gutter(row)},
                  {key: "line", title: "line", classes: "n dim", width: "3.4rem", isText: true, ranks: code.columns.get("line")?.numbers || plain, cell: (row) => (code.number("line", row) > 0 ? code.number("line", row) : "")},
                  {key: "instruction", title: "instruction", width: "minmax(18rem, 1fr)", isText: true, ranks: plain, cell: (row) => this.instruction(row)},
                  {key: "data", title: "data", width: "minmax(9rem, 1fr)", isText: true, ranks: plain, cell: (row) => (code.json("data", row) || []).map((/** @type {any} */ each) => each.variable).join(", ")});
        return tables()?.vars.n ? made : made.slice(0, -1); // the data
    }

    /** @param {Answer} code */
    mixOf(code) {
        /** @type {Map<string, number[]>} */ const sums = new Map();
        for (const name of ["loads", "stores", ...KINDS_OF_CODE.map(([each]) => each)])
            sums.set(name, [0, 0]);
        let all = 0;
        for (let i = 0; i < code.n; i++) {
            const text = code.text("instruction", i).replace(/^(lock|rep\w*|bnd|notrack|data16)\s+/, ""), own = code.number("own", i) || 0, kind = KINDS_OF_CODE.find(([, is]) => is.test(text));
            all += own;
            for (const name of [accessOf(text), kind ? kind[0] : ""])
                if (sums.has(name)) {
                    const sum = sums.get(name) || [];
                    sum[0]++;
                    sum[1] += own;
                }
        }
        return smallTable(["kind", "instructions", ...(all ? ["of the cost"] : [])], [...sums].map(([name, [n, own]]) => [name, numberCell(`${n} (${percent((100 * n) / (code.n || 1))})`), ...(all ? [numberCell(percent((100 * own) / all))] : [])]),
                          "Of the instructions above; loads and stores are of other kinds, too");
    }
}
