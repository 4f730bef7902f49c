// SPDX-License-Identifier: BSD-3-Clause
// Comments, texts, numbers and words of languages, line by line, as far as a few expressions go.
import {make} from "./parts.js";

const LANGUAGE_WORDS = {
    c: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for friend goto if inline int long namespace new noexcept nullptr operator private protected public register restrict return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while",
    fortran: "allocatable allocate call case contains cycle deallocate dimension do else elseif end enddo endif endfunction endsubroutine exit function if implicit in inout integer intent interface kind logical module none only out parameter pointer print private procedure program public real recursive return select stop subroutine target then type use where while write",
    python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield",
};
const NUMERAL = "\\b(?:0[xX][\\da-fA-F]+|\\d[\\d_]*\\.?\\d*(?:[eEdD][+-]?\\d+)?)\\w*";
const QUOTED = "\"(?:[^\"\\\\]|\\\\.)*\"?|'(?:[^'\\\\]|\\\\.)*'?";
/**
 * Names of files, their words, what begins a comment.
 * @type {[RegExp, keyof LANGUAGE_WORDS, string][]}
 */
const LANGUAGES = [[/\.(py|pyx)$/i, "python", "#.*"], [/\.(f|f77|f90|f95|f03|f08|for|ftn)$/i, "fortran", "!.*"], [/^/, "c", "/\\*.*?(?:\\*/|$)|//.*|^\\s*#\\s*\\w+"]];

/**
 * What makes parts of a line of a file, and what says whether a comment goes on behind one.
 * @param {string} file
 */
export function highlighter(file) {
    const [, language, comment] = /** @type {typeof LANGUAGES[0]} */ (LANGUAGES.find(([names]) => names.test(file))), isC = language === "c";
    const words = new Set(LANGUAGE_WORDS[language].split(" ")), all = new RegExp(`(${comment})|(${QUOTED})|(${NUMERAL})|([A-Za-z_]\\w*)`, "g");
    /**
     * @param {string} line
     * @param {boolean} isInside
     * @param {((text: string, name: string) => void) | null} add
     * @returns {boolean} whether it ends inside a comment
     */
    const walk = (line, isInside, add) => {
        let at = 0;
        if (isInside) {
            const end = line.indexOf("*/");
            at = end < 0 ? line.length : end + 2;
            add?.(line.slice(0, at), "s-comment");
            if (end < 0)
                return true;
        }
        let isOpen = false;
        all.lastIndex = at;
        for (let found = all.exec(line); found; found = all.exec(line)) {
            const [whole, remark, text, number, word] = found, isDirective = isC && remark && !remark.startsWith("/");
            const name = remark ? (isDirective ? "s-word" : "s-comment") : text ? "s-text" : number ? "s-number" : words.has(language === "fortran" ? word.toLowerCase() : word) ? "s-word" : "";
            isOpen = isC && Boolean(remark) && remark.startsWith("/*") && !(remark.length > 3 && remark.endsWith("*/"));
            if (!name || !add)
                continue;
            add(line.slice(at, found.index), "");
            add(whole, name);
            at = found.index + whole.length;
        }
        add?.(line.slice(at), "");
        return isOpen;
    };
    return {
        /**
         * @param {string} line
         * @param {boolean} isInside
         * @returns {(Node | string)[]}
         */
        parts(line, isInside) {
            /** @type {(Node | string)[]} */ const made = [];
            walk(line.replace(/\t/g, "        "), isInside, (text, name) => text && made.push(name ? make("span", name, text) : text));
            return made;
        },
        /**
         * @param {string} line
         * @param {boolean} isInside
         */
        endsInside: (line, isInside) => isC && (isInside || line.includes("/*")) && walk(line, isInside, null),
    };
}
