# SPDX-License-Identifier: BSD-3-Clause
"""Nobody but the governor decides how often the program is interrupted: in the preloaded library an event is opened, its
period changed and a timer armed in one function each, and the period comes from governor_*_sig."""
import re

import tree

# system call or request, and the functions that may make it
ALLOWED = (
    ("SYS_perf_event_open", {"src/runtime/events/events.c": {"event_open_attr"}}),
    # a watchpoint's period is 1: it stops itself after one access
    ("PERF_EVENT_IOC_PERIOD", {"src/runtime/events/events-sig.c": {"event_period_set_sig"},
                               "src/runtime/events/watch-sig.c": {"arm_sig"}}),
    ("SYS_timer_settime", {"src/runtime/events/events-sig.c": {"timer_arm_sig"}}),
    ("SYS_setitimer", {}),
)
# who may set a period in an attribute, and where it comes from
PERIODS = {"set_period": r"governor_period_sig", "open_at_random": r"governor_first_sig|event_count_begin_sig|plan->attr\.sample_period",
           "clock_attr": r"period_ns",  # constants, of which a static assertion says that they are long enough
           "open_drain": r"n_bytes / 3",  # of so many records that a third of the ring is full
           "watchpoint_attr_sig": r"PERF_TYPE_BREAKPOINT"}  # it stops after one access
# lists of what a sandbox's filter is asked about, and wrappers of the program's own calls
ASKED = {"sandbox_would_end_start_sig", "syscall"}


def functions_with(text, word):
    lines = tree.without_comments(text).split("\n")
    for name, start, n_lines in tree.functions(text):
        body = lines[start - 1:start + n_lines + 1]
        if any(re.search(rf"\b{word}\b", line) for line in body):
            yield name, "\n".join(body)


def main():
    offenders, checked = [], 0
    for path in tree.sources(".c", under=("src",)):
        if not str(path).startswith("src/runtime/"):
            continue
        text = tree.read(path)
        for word, allowed in ALLOWED:
            for name, _ in functions_with(text, word):
                checked += 1
                if name not in allowed.get(str(path), set()) | ASKED and not str(path).startswith("src/runtime/wrap/"):
                    offenders.append(f"{path}: {name} uses {word}, which is for {allowed or 'nobody'}")
        for name, body in functions_with(text, "sample_period"):
            for value in re.findall(r"sample_period = ([^;,]+)[;,]", body):
                checked += 1
                if name not in PERIODS or not re.search(PERIODS[name], body):
                    offenders.append(f"{path}: {name} sets the period {value}, which the governor has not decided")
    tree.finish(offenders, checked)


main()
