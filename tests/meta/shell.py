# SPDX-License-Identifier: BSD-3-Clause
"""Which commands a shell script calls, found by reading it: a scanner for as much of bash as the scripts of this tree
use. An expansion inside a word becomes NUL, so that nobody takes `$tool` for a name."""
import re

KEYWORDS = set("if then else elif fi do done while until ! { } time esac in".split())
BUILTINS = set(""". : [ [[ ]] alias bg break builtin cd command compgen continue declare dirs disown echo enable eval exec exit
    export false fc fg getopts hash help jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly
    return set shift shopt source test times trap true type typeset ulimit umask unalias unset wait""".split())
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
# Commands that start another one: options that take a word of their own, and words before the command.
HPCRUN = "\0hpcrun\0"
STARTERS = {
    "command": ("", 0), "exec": ("-a", 0), "env": ("-u -C --unset --chdir", 0), "nice": ("-n", 0), "nohup": ("", 0),
    "setsid": ("", 0), "stdbuf": ("-i -o -e", 0), "timeout": ("-k -s --kill-after --signal", 1), "time": ("-f -o", 0),
    "xargs": ("-n -P -I -L -d -a -s", 0), "taskset": ("-p", 1), "prlimit": ("-p --pid", 0), "chroot": ("", 1),
    "unshare": ("-S -G -R -w", 0), "sudo": ("-u -g", 0), "flock": ("-w -E", 1), "builtin": ("", 0),
    "setpriv": ("--reuid --regid --groups --securebits --inh-caps --bounding-set --ambient-caps", 0),
    "runuser": ("-u -g -G", 0), "nsenter": ("-t -S -G", 0), "catchsegv": ("", 0), "setarch": ("", 0),
    "strace": ("-e -o -p -P -E -s -a -I -u", 0), "ltrace": ("-e -o -p", 0), "valgrind": ("", 0), "ionice": ("-c -n", 0),
    HPCRUN: ("-e -c -o -f -fp -ms -lm -mp -m -fnb -js -ck --event --count --output --delay --duration --start-signal "
             "--stop-signal --lifetime --local --max-size --trace-size --leaks-at --machine --process-fraction", 0),
    "srun": ("-n -N -c -t -J -p -w", 0), "mpirun": ("-n -np -c --host --mca", 0), "mpiexec": ("-n -np", 0),
}


class Scan:
    """calls: the names that stand where a command begins; functions: {name: words before the command it is given, or
    None}; sourced: base names of the files that it reads in."""

    def __init__(self, text):
        self.text, self.at, self.heredocs = text, 0, []
        self.calls, self.functions, self.sourced, self.commands = [], {}, set(), []
        self.values, self.inner = {}, []
        self.parse(None)
        for words, line in self.commands:
            self.resolve(words, line)

    # --- characters -----------------------------------------------------------------------------------------------

    def peek(self, n=1):
        return self.text[self.at:self.at + n]

    def line(self):
        return self.text.count("\n", 0, self.at) + 1

    def skip_to(self, text):
        end = self.text.find(text, self.at)
        self.at = len(self.text) if end < 0 else end + len(text)

    def arithmetic(self):
        depth = 0
        while self.at < len(self.text):
            if self.peek(2) == "$(" and self.peek(3) != "$((":
                self.expansion()
                continue
            char = self.peek()
            self.at += 1
            depth += (char == "(") - (char == ")")
            if depth == 0 and char == ")":
                return

    def expansion(self):
        """At a `$` or backquote: what the expansion is when it is known, else NUL."""
        if self.peek() == "`":
            self.at += 1
            start = self.at
            self.skip_to("`")
            self.inner.append((self.text[start:self.at - 1], self.line()))
            return "\0"
        if self.peek(3) == "$((":
            self.at += 1
            self.arithmetic()
            return "\0"
        if self.peek(2) == "$(":
            self.at += 2
            self.parse(")")
            return "\0"
        if self.peek(2) == "$'":
            self.at += 2
            while self.at < len(self.text) and self.peek() != "'":
                self.at += 2 if self.peek() == "\\" else 1
            self.at += 1
            return "\0"
        if self.peek(2) == "${":
            return self.braces()
        name = re.compile(r"\$(\w+|[@*#?$!-])").match(self.text, self.at)
        self.at = name.end() if name else self.at + 1
        return f"\0{name.group(1)}\0" if name else "$"

    def braces(self):
        head = re.compile(r"\$\{([#!]?[\w@*]+)(\[[@*]\]\})?(:?-)?").match(self.text, self.at)
        self.at = head.end() if head else self.at + 2
        if head and head.group(2):
            return f"\0{head.group(1)}\0"
        inside = ""
        while self.at < len(self.text) and self.peek() != "}":
            inside += self.piece()
        self.at += 1
        if head and head.group(3):
            return inside
        return f"\0{head.group(1)}\0" if head and self.at == head.end() + 1 else "\0"

    def quoted(self):
        self.at += 1
        found = ""
        while self.at < len(self.text) and self.peek() != '"':
            if self.peek() == "\\":
                found += self.text[self.at + 1:self.at + 2].replace("\n", "")
                self.at += 2
            elif self.peek() in "$`":
                found += self.expansion()
            else:
                found += self.peek()
                self.at += 1
        self.at += 1
        return found

    def piece(self):
        """The next part of a word, quotes taken off."""
        char = self.peek()
        if char == "'":
            start = self.at + 1
            self.at += 1
            self.skip_to("'")
            return self.text[start:self.at - 1]
        if char == '"':
            return self.quoted()
        if char in "$`":
            return self.expansion()
        if char == "\\":
            self.at += 2
            return self.text[self.at - 1:self.at].replace("\n", "")
        if self.peek(2) in ("<(", ">("):
            self.at += 2
            self.parse(")")
            return "\0"
        self.at += 1
        return char

    def word(self):
        found = ""
        while self.at < len(self.text):
            char = self.peek()
            if char in " \t\n;&|)" or char in "<>" and self.peek(2) not in ("<(", ">("):
                break
            if char == "(":
                if not re.fullmatch(ASSIGNMENT.pattern, found):
                    break
                self.array(found)
                return found + "\0"
            found += self.piece()
        return found

    def blanks(self, newlines=False):
        while self.at < len(self.text):
            if self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek() in (" \t\n" if newlines else " \t"):
                self.at += 1
            elif self.peek() == "#":
                self.at = (self.text + "\n").find("\n", self.at)
            else:
                return

    def array(self, head):
        self.at += 1
        words = []
        while self.at < len(self.text):
            self.blanks(newlines=True)
            if self.peek() == ")":
                break
            before = self.at
            words.append(self.word())
            self.at += self.at == before
        self.at += 1
        if words:
            self.values.setdefault(re.match(r"\w+", head).group(), []).append(words)

    # --- commands -------------------------------------------------------------------------------------------------

    def redirection(self):
        """Past a redirection at this place; false when there is none."""
        found = re.compile(r"(\d*|\{\w+\})(<<<|<<-?|&>>?|<>|>\||>>|[<>]&|[<>](?!\())").match(self.text, self.at)
        if not found:
            return False
        self.at = found.end()
        self.blanks()
        is_literal = self.peek() in "'\"\\"
        word = self.word()
        if found.group(2) in ("<<", "<<-"):
            self.heredocs.append((word, is_literal))
        return True

    def end_of_line(self):
        self.at += 1
        for word, _ in self.heredocs:
            end = re.compile(rf"^\t*{re.escape(word)}$", re.M).search(self.text, self.at)
            body = self.text[self.at:end.start()] if end else ""
            if re.match(r"#!.*\b(ba|da|z)?sh\b", body):
                self.inner.append((body, self.line()))
            self.at = min(end.end() + 1, len(self.text)) if end else len(self.text)
        self.heredocs = []

    def case(self):
        self.blanks()
        self.word()
        self.blanks(newlines=True)
        self.word()  # in
        while self.at < len(self.text):
            self.blanks(newlines=True)
            if re.compile(r"esac\b").match(self.text, self.at):
                self.at += 4
                return
            while self.at < len(self.text) and self.peek() != ")":
                self.piece()
            self.at += 1
            self.parse(";;")

    def parse(self, end):
        """Commands up to the end of the text, or up to `)`, or up to `;;` or esac."""
        words = []

        def finish():
            nonlocal words
            if words:
                self.commands.append((words, self.line()))
            words = []

        while self.at < len(self.text):
            self.blanks()
            char = self.peek()
            if char == "\n":
                finish()
                self.end_of_line()
            elif end == ";;" and self.peek(2) == ";;":
                finish()
                self.at += 2
                return
            elif char == ")":
                finish()
                self.at += 1
                if end == ")":
                    return
            elif self.redirection():
                continue
            elif char and char in ";&|":
                finish()
                self.at += 1
            elif char == "(":
                self.parenthesis(words)
                words = []
            elif char:
                if end == ";;" and not words and re.compile(r"esac\b").match(self.text, self.at):
                    return
                words = self.next_word(words)
        finish()

    def parenthesis(self, words):
        if words and self.peek(2) == "()" or words and re.compile(r"\(\s*\)").match(self.text, self.at):
            self.skip_to(")")
            self.define(words[-1])
        elif self.peek(2) == "((":
            self.arithmetic()
        else:
            self.at += 1
            self.parse(")")

    def define(self, name):
        """A function: given words are a command when its body runs "$@"."""
        body = self.text[self.at:]
        close = re.search(r"^\}", body, re.M)
        body = body[:close.start()] if close else body
        given = re.search(r'(?:^|[;&|(]|&&|\|\||\bthen|\bdo|!|exec|\]\*?\}")\s*(?:\w+=\S*\s+)*"\$@"', body, re.M)
        given = given or re.search(r'(?:hpcrun"| -- )[^\n]*"\$@"', body)
        given = given or re.search(r'\b(?:exec|env|timeout|nice|time|setpriv|unshare|taskset)\b[^\n]*"\$@"', body)
        before = len(re.findall(r"\bshift\b(?! \d)", body[:given.start()])) if given else 0
        before += sum(int(n) for n in re.findall(r"\bshift (\d)", body[:given.start()])) if given else 0
        self.functions[name] = before if given else None

    def next_word(self, words):
        word = self.word()
        if not words and word in ("for", "select"):
            self.blanks()
            if self.peek(2) == "((":
                self.arithmetic()
            else:
                while self.at < len(self.text) and self.peek() not in ";\n":
                    before = self.at
                    self.word()
                    self.blanks()
                    self.at += self.at == before
            return []
        if not words and word == "case":
            self.case()
            return []
        if not words and word == "[[":
            while self.at < len(self.text) and self.peek(3) != " ]]":
                self.piece()
            self.at += 3
            return []
        if not words and (word in KEYWORDS or word == "function"):
            return []
        return words + [word]

    # --- which command it is ----------------------------------------------------------------------------------------

    def text_of(self, text, line):
        inner = Scan(text)
        self.calls += [(name, line) for name, _ in inner.calls if name not in inner.functions]

    def resolve(self, words, line):
        while words and ASSIGNMENT.match(words[0]):
            name, value = re.split(r"(?:\[[^]]*\])?\+?=", words[0], maxsplit=1)
            if value and "\0" not in value:
                self.values.setdefault(name, []).append(value.split())
            words = words[1:]
        if not words:
            return
        name = HPCRUN if words[0].endswith("/hpcrun") else words[0]
        words = [name] + words[1:]
        self.calls.append((name, line))
        if name in STARTERS:
            self.resolve_started(words, line)
        elif name in ("need", "type"):
            self.calls += [(word, line) for word in words[1:]]
        elif name in (".", "source") and len(words) > 1:
            self.sourced.add(words[1].split("/")[-1])
        elif name in ("trap", "eval") and len(words) > 1:
            self.text_of(words[1], line)
        elif name in ("sh", "bash", "dash", "zsh") and "-c" in words[:-1]:
            self.text_of(words[words.index("-c") + 1], line)
        elif name == "find":
            for i, word in enumerate(words[:-1]):
                if word in ("-exec", "-execdir"):
                    self.resolve(words[i + 1:], line)
        elif self.functions.get(name) is not None:
            self.resolve(words[1 + self.functions[name]:], line)

    def resolve_started(self, words, line):
        options, n_before = STARTERS[words[0]]
        options = options.split()
        at = 1
        while at < len(words):
            word = words[at]
            if words[0] == HPCRUN and word in ("--status", "--collect", "--doctor", "--print-plan"):
                return
            if word in options:
                at += 2
            elif word.startswith("-") or words[0] in ("env", "sudo") and ASSIGNMENT.match(word):
                at += 1
            elif n_before:
                n_before -= 1
                at += 1
            else:
                break
        self.resolve(words[at:], line)


def commands(text):
    """(names that the script calls with their lines, functions that it defines, base names of files it reads in)."""
    scan = Scan(text)
    for inner, line in scan.inner:
        scan.text_of(inner, line)
    found = []
    for name, line in scan.calls:
        variable = re.fullmatch("\0(\\w+)\0", name)
        if variable:  # what the variable was set to, where that is written in the script
            found += [(words[0], line) for words in scan.values.get(variable.group(1), []) if words]
        else:
            found.append((name, line))
    return found, scan.functions, scan.sourced
