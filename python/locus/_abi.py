# SPDX-License-Identifier: BSD-3-Clause
"""What the headers of liblocus say. Made by tests/golden/abi.py --write: do not edit."""
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int16, c_int32, c_int64, c_int8, c_size_t, c_ubyte,
                    c_uint, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p)

FRAME_FILE = 'frame.db'
FRAME_NONE = 4294967295

# enum error_code
ERR_NONE = 0
ERR_IO = -1
ERR_FORMAT = -2
ERR_MEMORY = -3
ERR_RANGE = -4
ERR_USAGE = -5
ERR_UNSUPPORTED = -6
ERR_NOT_FOUND = -7

# enum frame_kind
FRAME_OTHER = 0
FRAME_FUNCTION = 1
FRAME_INLINED = 2
FRAME_LOOP = 3
FRAME_LINE = 4
FRAME_CALL = 5
FRAME_INSTRUCTION = 6
FRAME_VARIABLE = 7
FRAME_GROUP = 8
FRAME_FIELD = 9
FRAME_KINDS = 10

# enum frame_sums
FRAME_PLAIN = 0
FRAME_EXCLUSIVE = 1
FRAME_INCLUSIVE = 2

# enum frame_aggregate
FRAME_SUM = 0
FRAME_MEAN = 1
FRAME_MIN = 2
FRAME_MAX = 3
FRAME_STD = 4
FRAME_COUNT = 5
FRAME_PERCENTILE = 6

# enum frame_arithmetic
FRAME_ADD = 0
FRAME_SUBTRACT = 1
FRAME_MULTIPLY = 2
FRAME_DIVIDE = 3

# enum query_by
QUERY_BY_PATH = 0
QUERY_BY_NODE = 1

# enum session_tree
SESSION_CODE = 0
SESSION_DATA = 1
SESSION_BOTH = 2
SESSION_FIELDS = 3

# enum cell_kind
CELL_TEXT = 0
CELL_COUNT = 1
CELL_WORD = 2
CELL_ADDRESS = 3
CELL_NUMBER = 4
CELL_PERCENT = 5
CELL_SPAN = 6
CELL_TIME = 7
CELL_FLAG = 8
CELL_WORDS = 9
CELL_TABLE = 10
CELL_OBJECT = 11

# The values of the enums that count from 0, in order.
ENUMS = {
    "frame_kind": ("FRAME_OTHER", "FRAME_FUNCTION", "FRAME_INLINED", "FRAME_LOOP", "FRAME_LINE", "FRAME_CALL",
        "FRAME_INSTRUCTION", "FRAME_VARIABLE", "FRAME_GROUP", "FRAME_FIELD", "FRAME_KINDS"),
    "frame_sums": ("FRAME_PLAIN", "FRAME_EXCLUSIVE", "FRAME_INCLUSIVE"),
    "frame_aggregate": ("FRAME_SUM", "FRAME_MEAN", "FRAME_MIN", "FRAME_MAX", "FRAME_STD", "FRAME_COUNT", "FRAME_PERCENTILE"),
    "frame_arithmetic": ("FRAME_ADD", "FRAME_SUBTRACT", "FRAME_MULTIPLY", "FRAME_DIVIDE"),
    "query_by": ("QUERY_BY_PATH", "QUERY_BY_NODE"),
    "session_tree": ("SESSION_CODE", "SESSION_DATA", "SESSION_BOTH", "SESSION_FIELDS"),
    "cell_kind": ("CELL_TEXT", "CELL_COUNT", "CELL_WORD", "CELL_ADDRESS", "CELL_NUMBER", "CELL_PERCENT", "CELL_SPAN", "CELL_TIME",
        "CELL_FLAG", "CELL_WORDS", "CELL_TABLE", "CELL_OBJECT"),
}


class Error(Structure):
    """struct error"""
    _fields_ = [("code", c_int), ("text", c_char * 1024)]


class FrameView(Structure):
    """struct frame_view"""
    _fields_ = [("profiles", POINTER(c_uint32)), ("n_profiles", c_size_t), ("aggregate", c_int), ("percentile", c_double)]


class FrameProfile(Structure):
    """struct frame_profile"""
    _fields_ = [("name", c_char_p), ("rank", c_int64), ("thread", c_int64), ("process", c_int64), ("node", c_int64)]


class FrameCell(Structure):
    """struct frame_cell"""
    _fields_ = [("profile", c_uint32), ("value", c_double)]


class FrameDifference(Structure):
    """struct frame_difference"""
    _fields_ = [("node", c_uint32), ("before", c_double), ("after", c_double)]


class FrameOperation(Structure):
    """struct frame_operation"""
    _fields_ = [("name", c_char_p), ("n_frames", c_size_t), ("operands", c_char_p), ("summary", c_char_p), ("run", c_void_p)]


class QueryPath(Structure):
    """struct query_path"""
    _fields_ = [("first", c_size_t), ("n", c_size_t)]


class QueryPaths(Structure):
    """struct query_paths"""
    _fields_ = [("nodes", POINTER(c_uint32)), ("n_nodes", c_size_t), ("cap_nodes", c_size_t), ("items", POINTER(QueryPath)),
                ("n", c_size_t), ("cap_items", c_size_t), ("is_cut", c_bool)]


class Request(Structure):
    """struct request"""
    _fields_ = [("size", c_size_t), ("report", c_char_p), ("subject", c_char_p), ("metric", c_char_p), ("by", c_char_p),
                ("order", c_char_p), ("derived", POINTER(c_char_p)), ("n_derived", c_size_t), ("top", c_uint64),
                ("least", c_double), ("has_least", c_bool), ("with_paths", c_bool), ("with_fields", c_bool),
                ("with_unused", c_bool), ("with_instructions", c_bool), ("at_mark", c_bool)]


STRUCTS = {
    "error": Error,
    "frame_view": FrameView,
    "frame_profile": FrameProfile,
    "frame_cell": FrameCell,
    "frame_difference": FrameDifference,
    "frame_operation": FrameOperation,
    "query_path": QueryPath,
    "query_paths": QueryPaths,
    "request": Request,
}
# name: (result, operand, ...)
FUNCTIONS = {
    "locus_struct_size": (c_size_t, c_char_p),
    "frame_open": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_open_fields": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_save": (c_int, c_void_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)),
    "frame_keep": (c_void_p, c_void_p),
    "frame_close": (None, c_void_p),
    "frame_n_nodes": (c_size_t, c_void_p),
    "frame_is_tree": (c_bool, c_void_p),
    "frame_roots": (POINTER(c_uint32), c_void_p, POINTER(c_size_t)),
    "frame_children": (POINTER(c_uint32), c_void_p, c_uint32, POINTER(c_size_t)),
    "frame_parents": (POINTER(c_uint32), c_void_p, c_uint32, POINTER(c_size_t)),
    "frame_post_order": (POINTER(c_uint32), c_void_p),
    "frame_depths": (POINTER(c_uint32), c_void_p),
    "frame_kind": (c_int, c_void_p, c_uint32),
    "frame_kind_name": (c_char_p, c_int),
    "frame_kind_is_part": (c_bool, c_int),
    "frame_name": (c_char_p, c_void_p, c_uint32),
    "frame_file": (c_char_p, c_void_p, c_uint32),
    "frame_module": (c_char_p, c_void_p, c_uint32),
    "frame_line": (c_uint32, c_void_p, c_uint32),
    "frame_n_attributes": (c_size_t, c_void_p),
    "frame_attribute_name": (c_char_p, c_void_p, c_size_t),
    "frame_attribute_is_text": (c_bool, c_void_p, c_size_t),
    "frame_attribute_text": (c_char_p, c_void_p, c_size_t, c_uint32),
    "frame_attribute_number": (c_double, c_void_p, c_size_t, c_uint32),
    "frame_identity": (c_char_p, c_void_p, c_uint32),
    "frame_identity_is_usual": (c_bool, c_void_p, c_uint32),
    "frame_n_profiles": (c_size_t, c_void_p),
    "frame_profile": (POINTER(FrameProfile), c_void_p, c_uint32),
    "frame_n_columns": (c_size_t, c_void_p),
    "frame_column_name": (c_char_p, c_void_p, c_size_t),
    "frame_column_sums": (c_int, c_void_p, c_size_t),
    "frame_column_is_hidden": (c_bool, c_void_p, c_size_t),
    "frame_find_column": (c_size_t, c_void_p, c_char_p, POINTER(Error)),
    "frame_default_column": (c_size_t, c_void_p),
    "frame_column_pair": (c_size_t, c_void_p, c_size_t),
    "frame_values": (c_int, c_void_p, c_size_t, POINTER(FrameView), POINTER(POINTER(c_double)), POINTER(Error)),
    "frame_cells": (c_int, c_void_p, c_size_t, c_uint32, POINTER(POINTER(FrameCell)), POINTER(c_size_t), POINTER(Error)),
    "frame_squash": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_trees": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_choose_tree": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_filter": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_mask": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_derive": (c_int, c_void_p, c_char_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_sum_up": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_take_apart": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_choose": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_section": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_find_profiles": (c_int, c_void_p, c_char_p, POINTER(POINTER(c_uint32)), POINTER(c_size_t), POINTER(Error)),
    "frame_aggregate": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_group_by": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_flat": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_lines": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_hierarchy": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_callgraph": (c_int, c_void_p, c_bool, POINTER(c_void_p), POINTER(Error)),
    "frame_bottom_up": (c_int, c_void_p, c_uint32, POINTER(c_void_p), POINTER(Error)),
    "frame_unify": (c_int, POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "frame_union": (c_int, POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "frame_arithmetic": (c_int, c_void_p, c_void_p, c_int, POINTER(c_void_p), POINTER(Error)),
    "frame_equal": (c_int, c_void_p, c_void_p, c_double, POINTER(c_bool), c_char_p, POINTER(Error)),
    "frame_match": (c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_diff": (c_int, c_void_p, c_void_p, c_char_p, c_double, POINTER(c_void_p), POINTER(POINTER(FrameDifference)),
        POINTER(c_size_t), POINTER(Error)),
    "frame_hot_path": (c_int, c_void_p, c_size_t, POINTER(FrameView), c_uint32, c_double, POINTER(POINTER(c_uint32)),
        POINTER(c_size_t), POINTER(Error)),
    "frame_imbalance": (c_int, c_void_p, c_char_p, c_size_t, POINTER(c_void_p), POINTER(Error)),
    "frame_outliers": (c_int, c_void_p, c_size_t, c_uint32, c_size_t, POINTER(c_uint32), POINTER(c_size_t), POINTER(Error)),
    "frame_operations": (POINTER(FrameOperation), POINTER(c_size_t)),
    "frame_count_operands": (None, c_char_p, POINTER(c_size_t), POINTER(c_size_t)),
    "frame_run": (c_int, c_char_p, POINTER(c_void_p), c_size_t, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "query_run": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(POINTER(c_bool)), POINTER(Error)),
    "query_paths": (c_int, c_void_p, c_char_p, POINTER(FrameView), c_size_t, c_bool, POINTER(QueryPaths), POINTER(Error)),
    "query_paths_fini": (None, POINTER(QueryPaths)),
    "query_select": (c_int, c_void_p, POINTER(c_uint32), c_size_t, c_int, POINTER(c_void_p), POINTER(Error)),
    "session_open": (c_int, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "session_close": (None, c_void_p),
    "session_report": (c_char_p, c_size_t),
    "session_report_summary": (c_char_p, c_size_t),
    "session_key": (c_char_p, c_size_t),
    "session_report_takes": (c_bool, c_size_t, c_size_t),
    "session_report_by": (c_char_p, c_size_t, c_size_t),
    "session_metric": (c_char_p, c_void_p, c_size_t),
    "session_note": (c_char_p, c_void_p, c_size_t),
    "session_ask": (c_int, c_void_p, POINTER(Request), POINTER(c_void_p), POINTER(Error)),
    "session_ask_json": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_ask_text": (c_int, c_void_p, POINTER(Request), c_uint, POINTER(c_void_p), POINTER(Error)),
    "session_ask_state": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_state_line": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_frame": (c_int, c_void_p, c_int, POINTER(c_void_p), POINTER(Error)),
    "answer_program": (c_char_p, c_void_p),
    "answer_metric": (c_char_p, c_void_p),
    "answer_name": (c_char_p, c_void_p),
    "answer_rows": (c_void_p, c_void_p),
    "answer_head": (c_void_p, c_void_p),
    "answer_n_left": (c_uint64, c_void_p),
    "answer_free": (None, c_void_p),
    "table_rows": (c_size_t, c_void_p),
    "table_columns": (c_size_t, c_void_p),
    "table_key": (c_char_p, c_void_p, c_size_t),
    "table_kind": (c_int, c_void_p, c_size_t),
    "table_members": (c_size_t, c_void_p, c_size_t),
    "table_is_for_csv": (c_bool, c_void_p, c_size_t),
    "table_get_numbers": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_double)),
    "table_get_counts": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_int64), POINTER(c_ubyte)),
    "table_get_words": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_uint64), POINTER(c_ubyte)),
    "table_get_texts": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_char_p)),
    "table_get_tables": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_void_p)),
    "table_get_lists": (c_bool, c_void_p, c_size_t, c_size_t, c_size_t, POINTER(POINTER(c_uint64)), POINTER(c_size_t)),
}
