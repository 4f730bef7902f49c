# SPDX-License-Identifier: BSD-3-Clause
"""What the headers of liblocus say. Made by tests/golden/abi.py --write: do not edit."""
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int16, c_int32, c_int64, c_int8, c_size_t, c_ubyte,
                    c_uint, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p)

FRAME_FILE = 'frame.db'
FRAME_NONE = 4294967295
STREAM_ID_LOST = -75
STREAM_ID_NONE = -2147483648
STREAM_LOST_NAME = 'missed_events'
STREAM_NONE = 18446744073709551615
STREAM_NO_CPU = 65535
STREAM_NO_TASK = -1
TOPOLOGY_CPUS_MAX = 1048576
TOPOLOGY_DISTANCES_MAX = 64
TOPOLOGY_NODES_MAX = 1024
TOPOLOGY_UNKNOWN = 4294967295

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
FRAME_JUMP = 10
FRAME_KINDS = 11

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

# enum session_tree
SESSION_CODE = 0
SESSION_DATA = 1
SESSION_BOTH = 2
SESSION_FIELDS = 3

# enum stream_visible
STREAM_VISIBLE_TEXT = 1
STREAM_VISIBLE_GRAPH = 2
STREAM_VISIBLE_EVENT = 4
STREAM_VISIBLE_UNTOUCHED = 128
STREAM_VISIBLE_ALL = 255

# enum stream_field_flags
STREAM_FIELD_SIGNED = 1
STREAM_FIELD_ARRAY = 2
STREAM_FIELD_TEXT = 4
STREAM_FIELD_DYNAMIC = 8
STREAM_FIELD_RELATIVE = 16
STREAM_FIELD_POINTER = 32
STREAM_FIELD_COMMON = 64

# enum stream_clock
STREAM_CLOCK_UNKNOWN = 0
STREAM_CLOCK_LOCAL = 1
STREAM_CLOCK_MONOTONIC = 2
STREAM_CLOCK_BOOT = 3
STREAM_CLOCK_RAW = 4
STREAM_CLOCK_WALL = 5
STREAM_CLOCK_COUNTER = 6

# enum stream_tier
STREAM_TIER_FULL = 0
STREAM_TIER_SWITCHES = 1
STREAM_TIER_PROGRAM = 2
STREAM_TIER_OWN = 3
STREAM_TIER_NONE = 4

# enum stream_columns
STREAM_IN_TASK = 1
STREAM_IN_EVENT = 2
STREAM_IN_INFO = 4
STREAM_IN_ALL = 7

# enum stream_filter
STREAM_SHOW_EVENT = 0
STREAM_HIDE_EVENT = 1
STREAM_SHOW_TASK = 2
STREAM_HIDE_TASK = 3
STREAM_SHOW_CPU = 4
STREAM_HIDE_CPU = 5
STREAM_N_FILTERS = 6

# enum couplebreak_id
COUPLEBREAK_SWITCH = -10000
COUPLEBREAK_WAKING = -10001
COUPLEBREAK_MIGRATE = -10002
COUPLEBREAK_N = 3

# enum tree_level
TREE_MACHINE = 0
TREE_NODE = 1
TREE_CORE = 2
TREE_LEVELS = 3

# enum topology_view
TOPOLOGY_VIEW_DEFAULT = 0
TOPOLOGY_VIEW_NUMATREE = 1

# enum view_change
VIEW_DONE = 0
VIEW_UNCHANGED = 1
VIEW_REFUSED = -1
VIEW_NO_CONTEXT = -2
VIEW_NOTHING_TO_UPDATE = -3

# The values of the enums that count from 0, in order.
ENUMS = {
    "frame_kind": ("FRAME_OTHER", "FRAME_FUNCTION", "FRAME_INLINED", "FRAME_LOOP", "FRAME_LINE", "FRAME_CALL",
        "FRAME_INSTRUCTION", "FRAME_VARIABLE", "FRAME_GROUP", "FRAME_FIELD", "FRAME_JUMP", "FRAME_KINDS"),
    "frame_sums": ("FRAME_PLAIN", "FRAME_EXCLUSIVE", "FRAME_INCLUSIVE"),
    "frame_aggregate": ("FRAME_SUM", "FRAME_MEAN", "FRAME_MIN", "FRAME_MAX", "FRAME_STD", "FRAME_COUNT", "FRAME_PERCENTILE"),
    "frame_arithmetic": ("FRAME_ADD", "FRAME_SUBTRACT", "FRAME_MULTIPLY", "FRAME_DIVIDE"),
    "query_by": ("QUERY_BY_PATH", "QUERY_BY_NODE"),
    "cell_kind": ("CELL_TEXT", "CELL_COUNT", "CELL_WORD", "CELL_ADDRESS", "CELL_NUMBER", "CELL_PERCENT", "CELL_SPAN", "CELL_TIME",
        "CELL_FLAG", "CELL_WORDS", "CELL_TABLE", "CELL_OBJECT"),
    "session_tree": ("SESSION_CODE", "SESSION_DATA", "SESSION_BOTH", "SESSION_FIELDS"),
    "stream_clock": ("STREAM_CLOCK_UNKNOWN", "STREAM_CLOCK_LOCAL", "STREAM_CLOCK_MONOTONIC", "STREAM_CLOCK_BOOT",
        "STREAM_CLOCK_RAW", "STREAM_CLOCK_WALL", "STREAM_CLOCK_COUNTER"),
    "stream_tier": ("STREAM_TIER_FULL", "STREAM_TIER_SWITCHES", "STREAM_TIER_PROGRAM", "STREAM_TIER_OWN", "STREAM_TIER_NONE"),
    "stream_filter": ("STREAM_SHOW_EVENT", "STREAM_HIDE_EVENT", "STREAM_SHOW_TASK", "STREAM_HIDE_TASK", "STREAM_SHOW_CPU",
        "STREAM_HIDE_CPU", "STREAM_N_FILTERS"),
    "tree_level": ("TREE_MACHINE", "TREE_NODE", "TREE_CORE", "TREE_LEVELS"),
    "topology_view": ("TOPOLOGY_VIEW_DEFAULT", "TOPOLOGY_VIEW_NUMATREE"),
}


class Error(Structure):
    """struct error"""
    _fields_ = [("code", c_int), ("text", c_char * 1024)]


class Buf(Structure):
    """struct buf"""
    _fields_ = [("data", c_char_p), ("len_bytes", c_size_t), ("capacity", c_size_t), ("failed", c_bool)]


class FrameView(Structure):
    """struct frame_view"""
    _fields_ = [("profiles", POINTER(c_uint32)), ("n_profiles", c_size_t), ("aggregate", c_int), ("percentile", c_double)]


class FrameProfile(Structure):
    """struct frame_profile"""
    _fields_ = [("name", c_char_p), ("rank", c_int64), ("thread", c_int64), ("process", c_int64), ("node", c_int64)]


class FrameCell(Structure):
    """struct frame_cell"""
    _fields_ = [("profile", c_uint32), ("value", c_double)]


class FrameEntry(Structure):
    """struct frame_entry"""
    _fields_ = [("node", c_uint32), ("profile", c_uint32), ("value", c_double)]


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
                ("with_unused", c_bool), ("with_instructions", c_bool), ("at_mark", c_bool), ("tree", c_char_p),
                ("from_ns", c_int64), ("to_ns", c_int64), ("at_ns", c_int64), ("has_from", c_bool), ("has_to", c_bool),
                ("has_at", c_bool), ("width", c_uint64), ("rows", POINTER(c_uint64)), ("n_rows", c_size_t), ("row", c_uint64),
                ("start", c_uint64), ("count", c_uint64), ("task", c_char_p), ("cpu", c_char_p), ("event", c_char_p),
                ("stream", c_uint64), ("couplebreak", c_char_p), ("topology", c_char_p), ("beyond_noise", c_bool),
                ("profiles", c_char_p), ("find", c_char_p)]


class PrintJob(Structure):
    """struct print_job"""
    _fields_ = [("size", c_size_t), ("column", c_char_p), ("named", POINTER(c_char_p)), ("n_named", c_size_t),
                ("profiles", POINTER(c_uint32)), ("n_profiles", c_size_t), ("top", c_uint64), ("least", c_double),
                ("has_least", c_bool), ("title", c_char_p), ("path", c_char_p), ("color", c_bool), ("unicode", c_bool),
                ("columns", c_uint), ("depth", c_uint32)]


class StreamEvent(Structure):
    """struct stream_event"""
    _fields_ = [("t_ns", c_int64), ("record", c_uint64), ("task", c_int32), ("id", c_int32), ("n_bytes", c_uint32),
                ("cpu", c_uint16), ("visible", c_uint8), ("flags", c_uint8)]


class StreamField(Structure):
    """struct stream_field"""
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("offset", c_uint32), ("n_bytes", c_uint32), ("flags", c_uint32)]


class StreamType(Structure):
    """struct stream_type"""
    _fields_ = [("id", c_int32), ("name", c_char_p), ("fields", POINTER(StreamField)), ("n_fields", c_size_t),
                ("n_events", c_uint64)]


class StreamTask(Structure):
    """struct stream_task"""
    _fields_ = [("task", c_int32), ("process", c_int32), ("comm", c_char_p), ("n_events", c_uint64), ("is_own", c_bool)]


class StreamNamer(Structure):
    """struct stream_namer"""
    _fields_ = [("open", c_void_p), ("put_variable", c_void_p), ("put_place", c_void_p), ("context", c_void_p)]


class StreamOptions(Structure):
    """struct stream_options"""
    _fields_ = [("size", c_size_t), ("couplebreak", c_bool), ("buffer", c_char_p), ("namer", POINTER(StreamNamer))]


class StreamMatch(Structure):
    """struct stream_match"""
    _fields_ = [("by_id", c_bool), ("by_task", c_bool), ("by_cpu", c_bool), ("id", c_int32), ("task", c_int32), ("cpu", c_uint16),
                ("visible", c_uint8)]


class TopologyCpu(Structure):
    """struct topology_cpu"""
    _fields_ = [("os", c_uint32), ("core", c_uint32), ("package", c_uint32), ("node", c_uint32), ("first_local", c_uint32),
                ("n_local", c_uint32), ("is_allowed", c_uint32)]


class TopologyNode(Structure):
    """struct topology_node"""
    _fields_ = [("os", c_uint32), ("package", c_uint32), ("n_cpus", c_uint32), ("n_local", c_uint32), ("memory_bytes", c_uint64),
                ("is_allowed", c_uint32), ("unused", c_uint32), ("kind", c_char * 16)]


class Topology(Structure):
    """struct topology"""
    _fields_ = [("cpus", POINTER(TopologyCpu)), ("nodes", POINTER(TopologyNode)), ("locals", POINTER(c_uint32)),
                ("offline", POINTER(c_uint32)), ("by_os", POINTER(c_uint32)), ("distances", POINTER(c_uint32)),
                ("n_cpus", c_uint32), ("n_nodes", c_uint32), ("n_locals", c_uint32), ("n_offline", c_uint32), ("n_os", c_uint32),
                ("n_distances", c_uint32), ("n_cores", c_uint32), ("n_packages", c_uint32), ("l1_bytes", c_uint64),
                ("l2_bytes", c_uint64), ("l3_bytes", c_uint64), ("summary", c_char * 256)]


class BriefCpu(Structure):
    """struct brief_cpu"""
    _fields_ = [("node", c_uint32), ("core", c_uint32), ("cpu", c_uint32), ("os", c_uint32), ("package", c_uint32)]


class BriefTopology(Structure):
    """struct brief_topology"""
    _fields_ = [("cpus", POINTER(BriefCpu)), ("n_cpus", c_size_t)]


class TreeColor(Structure):
    """struct tree_color"""
    _fields_ = [("red", c_uint8), ("green", c_uint8), ("blue", c_uint8)]


class TreeBlock(Structure):
    """struct tree_block"""
    _fields_ = [("level", c_int), ("number", c_uint32), ("parent", c_uint32), ("first_row", c_uint32), ("n_rows", c_uint32),
                ("color", TreeColor)]


class TopologyTree(Structure):
    """struct topology_tree"""
    _fields_ = [("blocks", POINTER(TreeBlock)), ("rows", POINTER(BriefCpu)), ("n_blocks", c_size_t), ("n_rows", c_size_t)]


class StreamView(Structure):
    """struct stream_view"""
    _fields_ = [("stream", c_uint32), ("view", c_int), ("path", c_char_p), ("topology", Topology), ("brief", BriefTopology)]


class StreamViews(Structure):
    """struct stream_views"""
    _fields_ = [("all", POINTER(POINTER(StreamView))), ("n", c_size_t), ("capacity", c_size_t)]


class StreamCpus(Structure):
    """struct stream_cpus"""
    _fields_ = [("n_cpus", c_uint32), ("has_events", POINTER(c_bool))]


STRUCTS = {
    "error": Error,
    "buf": Buf,
    "frame_view": FrameView,
    "frame_profile": FrameProfile,
    "frame_cell": FrameCell,
    "frame_entry": FrameEntry,
    "frame_difference": FrameDifference,
    "frame_operation": FrameOperation,
    "query_path": QueryPath,
    "query_paths": QueryPaths,
    "request": Request,
    "print_job": PrintJob,
    "stream_event": StreamEvent,
    "stream_field": StreamField,
    "stream_type": StreamType,
    "stream_task": StreamTask,
    "stream_namer": StreamNamer,
    "stream_options": StreamOptions,
    "stream_match": StreamMatch,
    "topology_cpu": TopologyCpu,
    "topology_node": TopologyNode,
    "topology": Topology,
    "brief_cpu": BriefCpu,
    "brief_topology": BriefTopology,
    "tree_color": TreeColor,
    "tree_block": TreeBlock,
    "topology_tree": TopologyTree,
    "stream_view": StreamView,
    "stream_views": StreamViews,
    "stream_cpus": StreamCpus,
}
# name: (result, operand, ...)
FUNCTIONS = {
    "buf_fini": (None, POINTER(Buf)),
    "locus_struct_size": (c_size_t, c_char_p),
    "frame_open": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_open_fields": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_open_parts": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_open_objects": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
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
    "frame_kind_is_function": (c_bool, c_int),
    "frame_name": (c_char_p, c_void_p, c_uint32),
    "frame_file": (c_char_p, c_void_p, c_uint32),
    "frame_module": (c_char_p, c_void_p, c_uint32),
    "frame_line": (c_uint32, c_void_p, c_uint32),
    "frame_n_attributes": (c_size_t, c_void_p),
    "frame_attribute_name": (c_char_p, c_void_p, c_size_t),
    "frame_attribute_is_text": (c_bool, c_void_p, c_size_t),
    "frame_attribute_text": (c_char_p, c_void_p, c_size_t, c_uint32),
    "frame_attribute_number": (c_double, c_void_p, c_size_t, c_uint32),
    "frame_find_number": (c_size_t, c_void_p, c_char_p),
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
    "frame_get_nodes": (None, c_void_p, POINTER(c_int), POINTER(c_char_p), POINTER(c_char_p), POINTER(c_char_p),
        POINTER(c_uint32), POINTER(c_uint32)),
    "frame_get_texts": (None, c_void_p, c_size_t, POINTER(c_char_p)),
    "frame_get_numbers": (None, c_void_p, c_size_t, POINTER(c_double)),
    "frame_entries": (c_int, c_void_p, c_size_t, POINTER(POINTER(FrameEntry)), POINTER(c_size_t), POINTER(Error)),
    "frame_get_rows": (c_int, c_void_p, POINTER(c_size_t), c_size_t, POINTER(POINTER(c_uint32)), POINTER(POINTER(c_uint32)),
        POINTER(POINTER(c_double)), POINTER(c_size_t), POINTER(Error)),
    "frame_squash": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_trees": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_choose_tree": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_filter": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_test": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(POINTER(c_bool)), POINTER(Error)),
    "frame_mask": (c_int, c_void_p, POINTER(c_bool), POINTER(c_void_p), POINTER(Error)),
    "frame_derive": (c_int, c_void_p, c_char_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_put_column": (c_int, c_void_p, c_char_p, c_int, POINTER(c_uint32), POINTER(c_uint32), POINTER(c_double), c_size_t,
        POINTER(c_void_p), POINTER(Error)),
    "frame_sum_up": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_take_apart": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_choose": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_section": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_find_profiles": (c_int, c_void_p, c_char_p, POINTER(POINTER(c_uint32)), POINTER(c_size_t), POINTER(Error)),
    "frame_aggregate": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_group_by": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_group_graph": (c_int, c_void_p, c_char_p, POINTER(FrameView), POINTER(c_void_p), POINTER(Error)),
    "frame_flat": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_lines": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "frame_hierarchy": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "frame_callgraph": (c_int, c_void_p, c_bool, POINTER(c_void_p), POINTER(Error)),
    "frame_bottom_up": (c_int, c_void_p, c_uint32, POINTER(c_void_p), POINTER(Error)),
    "frame_unify": (c_int, POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "frame_union": (c_int, POINTER(c_void_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "frame_arithmetic": (c_int, c_void_p, c_void_p, c_int, POINTER(c_void_p), POINTER(Error)),
    "frame_equal": (c_int, c_void_p, c_void_p, c_double, POINTER(c_bool), c_char_p, POINTER(Error)),
    "frame_equal_graph": (c_int, c_void_p, c_void_p, POINTER(c_bool), POINTER(Error)),
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
    "session_open": (c_int, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(Error)),
    "session_open_any": (c_int, c_char_p, POINTER(c_void_p), POINTER(Error)),
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
    "session_ask_runs": (c_int, POINTER(c_char_p), c_size_t, POINTER(Request), POINTER(c_void_p), POINTER(Error)),
    "session_runs_report": (c_char_p, c_size_t),
    "session_runs_summary": (c_char_p, c_size_t),
    "session_ask_state": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_state_request": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_state_line": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "session_frame": (c_int, c_void_p, c_int, POINTER(c_void_p), POINTER(Error)),
    "print_form": (c_char_p, c_size_t),
    "print_form_summary": (c_char_p, c_size_t),
    "print_frame": (c_int, c_void_p, c_char_p, POINTER(PrintJob), POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)),
    "answer_program": (c_char_p, c_void_p),
    "answer_metric": (c_char_p, c_void_p),
    "answer_name": (c_char_p, c_void_p),
    "answer_rows": (c_void_p, c_void_p),
    "answer_head": (c_void_p, c_void_p),
    "answer_n_left": (c_uint64, c_void_p),
    "answer_free": (None, c_void_p),
    "stream_clock_name": (c_char_p, c_int),
    "stream_tier_name": (c_char_p, c_int),
    "stream_open": (c_int, c_char_p, POINTER(StreamOptions), POINTER(c_void_p), POINTER(Error)),
    "stream_close": (None, c_void_p),
    "stream_events": (POINTER(StreamEvent), c_void_p, POINTER(c_size_t)),
    "stream_types": (POINTER(StreamType), c_void_p, POINTER(c_size_t)),
    "stream_tasks": (POINTER(StreamTask), c_void_p, POINTER(c_size_t)),
    "stream_kind": (c_char_p, c_void_p),
    "stream_host": (c_char_p, c_void_p),
    "stream_note": (c_char_p, c_void_p),
    "stream_get_tier": (c_int, c_void_p),
    "stream_get_clock": (c_int, c_void_p),
    "stream_n_cpus": (c_uint32, c_void_p),
    "stream_n_lost": (c_uint64, c_void_p),
    "stream_knows_cpus": (c_bool, c_void_p),
    "stream_topology": (c_char_p, c_void_p),
    "stream_type_of": (POINTER(StreamType), c_void_p, c_int32),
    "stream_find_id": (c_int32, c_void_p, c_char_p),
    "stream_event_name": (c_char_p, c_void_p, POINTER(StreamEvent)),
    "stream_task_of": (POINTER(StreamTask), c_void_p, c_int32),
    "stream_comm": (c_char_p, c_void_p, c_int32),
    "stream_follow_names": (c_int, c_void_p, POINTER(Error)),
    "stream_comm_at": (c_char_p, c_void_p, c_int32, c_int64),
    "stream_comm_number": (c_char_p, c_void_p, c_int32, c_size_t),
    "stream_put_comms": (None, c_void_p, c_int32, POINTER(Buf)),
    "stream_field_of": (POINTER(StreamField), POINTER(StreamType), c_char_p),
    "stream_fields_of": (POINTER(StreamType), c_void_p, POINTER(StreamEvent)),
    "stream_event_bytes": (c_bool, c_void_p, POINTER(StreamEvent), POINTER(POINTER(c_ubyte)), POINTER(c_size_t)),
    "stream_field_number": (c_bool, c_void_p, POINTER(StreamEvent), POINTER(StreamField), POINTER(c_int64)),
    "stream_put_field": (None, c_void_p, POINTER(StreamEvent), POINTER(StreamField), POINTER(Buf)),
    "stream_put_latency": (c_int, c_void_p, POINTER(StreamEvent), POINTER(Buf), POINTER(Error)),
    "stream_put_info": (c_int, c_void_p, POINTER(StreamEvent), POINTER(Buf), POINTER(Error)),
    "stream_put_line": (c_int, c_void_p, c_int, POINTER(StreamEvent), POINTER(Buf), POINTER(Error)),
    "stream_next": (c_size_t, c_void_p, c_size_t, POINTER(StreamMatch)),
    "stream_previous": (c_size_t, c_void_p, c_size_t, POINTER(StreamMatch)),
    "stream_list": (c_int, c_void_p, POINTER(StreamMatch), POINTER(POINTER(c_size_t)), POINTER(c_size_t), POINTER(Error)),
    "stream_says": (c_int, c_void_p, POINTER(StreamEvent), c_uint, c_char_p, POINTER(c_bool), POINTER(Error)),
    "stream_search_next": (c_int, c_void_p, c_size_t, POINTER(StreamMatch), c_uint, c_char_p, POINTER(c_size_t), POINTER(Error)),
    "stream_search_previous": (c_int, c_void_p, c_size_t, POINTER(StreamMatch), c_uint, c_char_p, POINTER(c_size_t),
        POINTER(Error)),
    "stream_at": (c_size_t, c_void_p, c_int64),
    "stream_filter_add": (c_int, c_void_p, c_int, c_int32, POINTER(Error)),
    "stream_filter_clear": (None, c_void_p, c_int),
    "stream_filter_fields": (c_int, c_void_p, c_char_p, POINTER(Error)),
    "stream_filter_mask": (c_int, c_void_p, c_uint8, POINTER(Error)),
    "stream_filter_apply": (c_int, c_void_p, POINTER(Error)),
    "couplebreak_is_twin": (c_bool, c_int32),
    "couplebreak_origin": (POINTER(StreamEvent), c_void_p, POINTER(StreamEvent)),
    "couplebreak_origin_index": (c_size_t, c_void_p, POINTER(StreamEvent)),
    "couplebreak_is_on": (c_bool, c_void_p),
    "couplebreak_n_types": (c_int, c_void_p),
    "couplebreak_flags": (c_uint64, c_void_p),
    "couplebreak_origin_id_to_flag_pos": (c_int, c_void_p, c_int32),
    "couplebreak_id_to_flag_pos": (c_int, c_int32),
    "couplebreak_flag_pos_to_id": (c_int32, c_int),
    "couplebreak_name": (c_char_p, c_int32),
    "couplebreak_ids": (c_int, c_void_p, POINTER(c_int32)),
    "couplebreak_task": (c_int32, c_void_p, POINTER(StreamEvent)),
    "couplebreak_switch_in": (c_bool, c_void_p, POINTER(StreamEvent), POINTER(c_int32)),
    "topology_read": (c_int, c_char_p, POINTER(Topology), POINTER(Error)),
    "topology_read_here": (c_int, POINTER(Topology), POINTER(Error)),
    "topology_fini": (None, POINTER(Topology)),
    "topology_find": (POINTER(TopologyCpu), POINTER(Topology), c_uint32),
    "topology_node": (c_uint32, POINTER(Topology), c_uint32),
    "topology_count_os_nodes": (c_uint32, POINTER(Topology)),
    "brief_topology_make": (c_int, POINTER(Topology), POINTER(BriefTopology), POINTER(Error)),
    "brief_topology_fini": (None, POINTER(BriefTopology)),
    "brief_topology_count_cpus": (c_size_t, POINTER(BriefTopology)),
    "brief_topology_count_cores": (c_size_t, POINTER(BriefTopology)),
    "brief_topology_count_nodes": (c_size_t, POINTER(BriefTopology)),
    "brief_topology_filter": (c_int, POINTER(BriefTopology), POINTER(c_uint32), c_size_t, POINTER(BriefTopology), POINTER(Error)),
    "brief_topology_rearrange": (c_size_t, POINTER(BriefTopology), POINTER(c_uint32), c_size_t),
    "topology_tree_make": (c_int, POINTER(BriefTopology), POINTER(c_uint32), c_size_t, POINTER(TopologyTree), POINTER(Error)),
    "topology_tree_fini": (None, POINTER(TopologyTree)),
    "topology_tree_height": (c_uint64, c_uint64, c_uint64, c_uint64),
    "topology_tree_paint": (None, POINTER(TopologyTree), POINTER(TreeColor), TreeColor),
    "tree_color_of_text": (TreeColor, TreeColor),
    "tree_color_of_number": (TreeColor, c_uint32),
    "tree_block_put_label": (None, POINTER(TopologyTree), POINTER(TreeBlock), POINTER(Buf)),
    "tree_block_put_name": (None, POINTER(TopologyTree), POINTER(TreeBlock), POINTER(Buf)),
    "stream_views_create": (c_int, POINTER(StreamViews), c_uint32, POINTER(StreamCpus), c_int, c_char_p, POINTER(Error)),
    "stream_views_update": (c_int, POINTER(StreamViews), c_uint32, POINTER(StreamCpus), c_int, c_char_p, POINTER(Error)),
    "stream_views_delete": (c_int, POINTER(StreamViews), c_uint32),
    "stream_views_clear": (None, POINTER(StreamViews)),
    "stream_views_find": (POINTER(StreamView), POINTER(StreamViews), c_uint32),
    "stream_views_wants_topology": (c_bool, POINTER(StreamViews), c_uint32),
    "stream_views_order": (c_size_t, POINTER(StreamViews), c_uint32, POINTER(c_uint32), c_size_t),
}
