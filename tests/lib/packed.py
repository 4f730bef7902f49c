# SPDX-License-Identifier: BSD-3-Clause
"""Reads packed answers (src/table/table.h, table_print_packed), as the viewer's script does."""
import json
import math
import struct

WIDTHS = {"f64": 8, "u8": 1}  # others have four bytes a row
ABSENT, PLACE = 2**32 - 1, 2**32 - 2
PACKED_ONLY = ("item", "of_cpu_time")  # what only viewers are told


def numbers_of(data, n, width):
    """Whole numbers out of planes of bytes."""
    return [sum(data[plane * n + i] << 8 * plane for plane in range(width)) for i in range(n)]


def add_up(differences):
    """Values whose zigzag differences these are."""
    values, last = [], 0
    for by in differences:
        last = (last + (by >> 1 ^ -(by & 1))) % 2**32
        values.append(last)
    return values


def double_of(bits):
    number = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return None if math.isnan(number) else number


class Answer:
    """header: as it is; columns: {key: [value of each row]}, None where absent."""

    def __init__(self, data):
        if data[:4] != b"LOC1":
            raise ValueError("no packed answer")
        (n_header,) = struct.unpack("<I", data[4:8])
        if n_header % 8:
            raise ValueError(f"the header has {n_header} bytes")
        self.header = json.loads(data[8:8 + n_header])
        self.n = self.header["rows"]
        texts = data[len(data) - self.header["text_bytes"]:].decode().split("\0")
        if texts.pop() or len(texts) != self.header["texts"]:
            raise ValueError(f"{len(texts)} texts, {self.header['texts']} in the header")
        self.columns, at = {}, 8 + n_header
        for column in self.header["columns"]:
            if column["key"] in self.columns:
                raise ValueError(f"two columns {column['key']}")
            width = 0 if column["type"] == "same" else WIDTHS.get(column["type"], 4)
            self.columns[column["key"]] = self.values(column, data[at:at + width * self.n], width, texts)
            at += -(-width * self.n // 8) * 8
        for i, item in enumerate(self.columns.get("item", ())):
            if item == PLACE:
                self.columns["item"][i] = f"line:{self.columns['file'][i]}:{self.columns['line'][i]}"
        if at != len(data) - self.header["text_bytes"]:
            raise ValueError(f"the columns end at {at}, the texts begin at {len(data) - self.header['text_bytes']}")

    def values(self, column, data, width, texts):
        kind = column["type"]
        if kind == "same":
            return [column["value"]] * self.n
        values = numbers_of(data, self.n, width)
        if column.get("delta"):
            values = add_up(values)
        if kind == "f64":
            return [double_of(value) for value in values]
        if kind == "u8":
            return [None if value == 255 else bool(value) for value in values]
        known = {"u32": lambda value: value, "scaled": lambda value: value * column["scale"], "text": lambda value: value if value == PLACE and column["key"] == "item" else texts[value],
                 "json": lambda value: json.loads(texts[value])}[kind]
        return [None if value == ABSENT else known(value) for value in values]


def clean(value):
    """A value of JSON as packed columns have it: bytes that are not UTF-8 have become U+FFFD."""
    if isinstance(value, dict) and list(value) == ["bytes"]:
        text = bytes.fromhex(value["bytes"]).decode(errors="surrogateescape")
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return value


def flatten(row, prefix=""):
    """The cells of a row of JSON, those of objects in it as "object.member"."""
    cells = {}
    for key, value in row.items():
        value = clean(value)
        if isinstance(value, dict):
            cells.update(flatten(value, f"{prefix}{key}."))
        else:
            cells[prefix + key] = value
    return cells


def differences(answer, value):
    """Sentences on where a packed answer differs from the same one as JSON."""
    head = dict(value)
    rows = head.pop(answer.header["name"])
    about = {"program": head.pop("program"), "metric": head.pop("metric"), **({"head": head} if head else {})}
    for key in ("program", "metric", "head"):
        if about.get(key) != (answer.header.get(key) or (None if key == "head" else answer.header.get(key))):
            yield f"{key} is {answer.header.get(key)} in packed form, {about.get(key)} in JSON"
    if len(rows) != answer.n:
        yield f"{answer.n} rows in packed form, {len(rows)} in JSON"
    for i, row in enumerate(rows[:answer.n]):
        cells = flatten(row)
        for key in cells.keys() | answer.columns.keys():
            found = answer.columns[key][i] if key in answer.columns else None
            wanted = cells.get(key)
            if key not in answer.columns and wanted is None:
                continue  # an object that is not known
            is_same = found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
            if not is_same and not (key in PACKED_ONLY and key not in cells):
                yield f"row {i}: {key} is {found!r} in packed form, {wanted!r} in JSON"
