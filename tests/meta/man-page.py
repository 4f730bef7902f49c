# SPDX-License-Identifier: BSD-3-Clause
"""Every tool has a man page, and page and --help name the same options; those of verbs have a help of their own."""
import re
import subprocess

import tree


def make_variable(name):
    text = (tree.BUILD / "Makefile").read_text(encoding="utf-8")
    value = re.search(rf"^{name} = ((?:.*\\\n)*.*)$", text, re.M)
    return value.group(1).replace("\\\n", " ").replace("$(EXEEXT)", "").split() if value else []


def options_of_help(tool, *verb):
    done = subprocess.run([str(tree.BUILD / tool), *verb, "--help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  (-\S.*?)(?:  |$)", done.stdout, re.M)
    return {word for line in listed for word in re.findall(r"(?:^|, )(-[\w-]+)", line)}


def verbs_of(tool):
    """The words that can come first, each of which has a help of its own."""
    done = subprocess.run([str(tree.BUILD / tool), "--list-commands"], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def options_of_page(tool):
    text = (tree.BUILD / f"doc/man/{tool}.1").read_text(encoding="utf-8").replace("\\-", "-")
    heads = re.findall(r"^\.TP\n(\\fB-.*)$", text, re.M)
    return {name for head in heads for name in re.findall(r"\\fB(-[\w-]+)\\fR", head)}


def check(tool):
    if not (tree.BUILD / f"doc/man/{tool}.1").exists():
        return [f"{tool} has no man page: add doc/man/{tool}.1 to nodist_man_MANS"]
    in_help, in_page = options_of_help(tool), options_of_page(tool)
    for verb in verbs_of(tool):
        in_help |= options_of_help(tool, verb)
    found = [f"{tool}: {o} is in --help only" for o in sorted(in_help - in_page)]
    found += [f"{tool}: {o} is in the man page only" for o in sorted(in_page - in_help)]
    found += [f"{tool} has no {o}" for o in ("--help", "--version") if o not in in_help]
    return found


def main():
    tools = [t for t in make_variable("bin_PROGRAMS") if (tree.BUILD / t).exists()]
    offenders = [line for tool in tools for line in check(tool)]
    tree.finish(offenders, len(tools))


main()
