# SPDX-License-Identifier: BSD-3-Clause
"""liblocus by ctypes: its structures and functions, as locus/frame.h, ops.h and query.h have them. The library is the one that
LOCUS_LIBRARY names, else the one of the prefix that this package is installed in, else what the loader finds."""
import array
import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_void_p

NOT_FOUND = -7
NO_COLUMN = c_size_t(-1).value
NAME = "liblocus.so.0"


class Error(Exception):
    """What the library refuses, as a sentence; code: a number of enum error_code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code

    @classmethod
    def of(cls, error):
        """The exception of an error that the library has filled."""
        return cls(error.code, text(error.text))


class ErrorText(Structure):
    """struct error"""
    _fields_ = [("code", c_int), ("text", ctypes.c_char * 1024)]


class View(Structure):
    """struct frame_view"""
    _fields_ = [("profiles", POINTER(c_uint32)), ("n_profiles", c_size_t), ("aggregate", c_int), ("percentile", c_double)]


class ProfileText(Structure):
    """struct frame_profile"""
    _fields_ = [("name", c_char_p), ("rank", c_int64), ("thread", c_int64), ("process", c_int64), ("node", c_int64)]


class Cell(Structure):
    """struct frame_cell"""
    _fields_ = [("profile", c_uint32), ("value", c_double)]


class Operation(Structure):
    """struct frame_operation"""
    _fields_ = [("name", c_char_p), ("n_frames", c_size_t), ("operands", c_char_p), ("summary", c_char_p), ("run", c_void_p)]


class FoundDifference(Structure):
    """struct frame_difference"""
    _fields_ = [("node", c_uint32), ("before", c_double), ("after", c_double)]


class Path(Structure):
    """struct query_path"""
    _fields_ = [("first", c_size_t), ("n", c_size_t)]


class Paths(Structure):
    """struct query_paths"""
    _fields_ = [("nodes", POINTER(c_uint32)), ("n_nodes", c_size_t), ("cap_nodes", c_size_t), ("items", POINTER(Path)),
                ("n", c_size_t), ("cap_items", c_size_t), ("is_cut", c_bool)]


FRAME, NUMBERS = c_void_p, POINTER(c_uint32)
# name: (result, operands); those that return a code have struct error as last operand, which check adds.
FUNCTIONS = {
    "frame_open": (c_int, c_char_p, POINTER(FRAME)),
    "frame_open_fields": (c_int, c_char_p, POINTER(FRAME)),
    "frame_save": (c_int, FRAME, POINTER(c_void_p), POINTER(c_size_t)),
    "frame_close": (None, FRAME),
    "frame_n_nodes": (c_size_t, FRAME),
    "frame_is_tree": (c_bool, FRAME),
    "frame_roots": (NUMBERS, FRAME, POINTER(c_size_t)),
    "frame_children": (NUMBERS, FRAME, c_uint32, POINTER(c_size_t)),
    "frame_parents": (NUMBERS, FRAME, c_uint32, POINTER(c_size_t)),
    "frame_depths": (NUMBERS, FRAME),
    "frame_kind": (c_int, FRAME, c_uint32),
    "frame_kind_name": (c_char_p, c_int),
    "frame_name": (c_char_p, FRAME, c_uint32),
    "frame_file": (c_char_p, FRAME, c_uint32),
    "frame_module": (c_char_p, FRAME, c_uint32),
    "frame_line": (c_uint32, FRAME, c_uint32),
    "frame_n_attributes": (c_size_t, FRAME),
    "frame_attribute_name": (c_char_p, FRAME, c_size_t),
    "frame_attribute_is_text": (c_bool, FRAME, c_size_t),
    "frame_attribute_text": (c_char_p, FRAME, c_size_t, c_uint32),
    "frame_attribute_number": (c_double, FRAME, c_size_t, c_uint32),
    "frame_n_profiles": (c_size_t, FRAME),
    "frame_profile": (POINTER(ProfileText), FRAME, c_uint32),
    "frame_n_columns": (c_size_t, FRAME),
    "frame_column_name": (c_char_p, FRAME, c_size_t),
    "frame_column_sums": (c_int, FRAME, c_size_t),
    "frame_column_is_hidden": (c_bool, FRAME, c_size_t),
    "frame_find_column": (c_size_t, FRAME, c_char_p, POINTER(ErrorText)),
    "frame_default_column": (c_size_t, FRAME),
    "frame_column_pair": (c_size_t, FRAME, c_size_t),
    "frame_values": (c_int, FRAME, c_size_t, POINTER(View), POINTER(POINTER(c_double))),
    "frame_cells": (c_int, FRAME, c_size_t, c_uint32, POINTER(POINTER(Cell)), POINTER(c_size_t)),
    "frame_find_profiles": (c_int, FRAME, c_char_p, POINTER(NUMBERS), POINTER(c_size_t)),
    "frame_squash": (c_int, FRAME, POINTER(c_bool), POINTER(FRAME)),
    "frame_mask": (c_int, FRAME, POINTER(c_bool), POINTER(FRAME)),
    "frame_equal": (c_int, FRAME, FRAME, c_double, POINTER(c_bool), c_char_p),
    "frame_diff": (c_int, FRAME, FRAME, c_char_p, c_double, POINTER(FRAME), POINTER(POINTER(FoundDifference)), POINTER(c_size_t)),
    "frame_hot_path": (c_int, FRAME, c_size_t, POINTER(View), c_uint32, c_double, POINTER(NUMBERS), POINTER(c_size_t)),
    "frame_operations": (POINTER(Operation), POINTER(c_size_t)),
    "frame_run": (c_int, c_char_p, POINTER(FRAME), c_size_t, POINTER(c_char_p), c_size_t, POINTER(FRAME)),
    "query_run": (c_int, FRAME, c_char_p, POINTER(View), POINTER(POINTER(c_bool))),
    "query_paths": (c_int, FRAME, c_char_p, POINTER(View), c_size_t, c_bool, POINTER(Paths)),
    "query_paths_fini": (None, POINTER(Paths)),
    "query_select": (c_int, FRAME, NUMBERS, c_size_t, c_int, POINTER(c_void_p)),
}


def _load():
    """Frames are used by one thread at a time, and may be freed at any: a PyDLL keeps other threads of Python out."""
    named = os.environ.get("LOCUS_LIBRARY")
    if named:
        return ctypes.PyDLL(named)
    for parent in pathlib.Path(__file__).resolve().parents:
        for folder in (parent, parent / "lib", parent / "lib64"):
            if (folder / NAME).exists():
                return ctypes.PyDLL(str(folder / NAME))
    return ctypes.PyDLL(NAME)


_LIBRARY = _load()
_LIBC = ctypes.PyDLL(None)
_LIBC.free.restype, _LIBC.free.argtypes = None, [c_void_p]
for _name, (_result, *_operands) in FUNCTIONS.items():
    _function = getattr(_LIBRARY, _name)
    _function.restype = _result
    _function.argtypes = _operands + [POINTER(ErrorText)] * (_result is c_int and _name != "frame_kind" and _name != "frame_column_sums")


def _pass(operand, kind):
    """An operand by reference where the function wants a pointer to what is given."""
    target = getattr(kind, "_type_", None) if isinstance(kind, type) and issubclass(kind, ctypes._Pointer) else None
    return ctypes.byref(operand) if target is not None and isinstance(operand, target) else operand


def call(function, *operands):
    """Calls a function; operands that it wants to fill are passed by reference."""
    found = getattr(_LIBRARY, function)
    return found(*map(_pass, operands, found.argtypes))


def check(function, *operands):
    """Calls a function that returns a code: anything but 0 is raised."""
    error = ErrorText()
    if call(function, *operands, error) != 0:
        raise Error.of(error)


def free(pointer):
    """Frees what a function has allocated."""
    _LIBC.free(ctypes.cast(pointer, c_void_p))


def taken(pointer, n):
    """The numbers of an array that a function has allocated, which is freed."""
    made = array.array("I", pointer[:n] if n else [])
    free(pointer)
    return list(made)


def text(data_bytes):
    """Text of the library, whatever its bytes."""
    return data_bytes.decode("utf-8", "surrogateescape")


def data(sentence):
    """The bytes of a text for the library, which end at a NUL."""
    made = sentence.encode("utf-8", "surrogateescape")
    if b"\0" in made:
        raise ValueError("a text has a NUL character")
    return made
