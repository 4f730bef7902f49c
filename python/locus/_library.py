# SPDX-License-Identifier: BSD-3-Clause
"""liblocus by ctypes, as its headers have it (_abi.py). The library is the one that LOCUS_LIBRARY names, else the one of the prefix
that this package is installed in, else that of the hpcquery in PATH, else what the loader finds."""
import array
import ctypes
import os
import pathlib
import shutil
import sys
import threading
from ctypes import c_void_p

from locus import _abi as abi

NO_COLUMN = ctypes.c_size_t(-1).value
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


def _load():
    """Frames are used by one thread at a time, and may be freed at any: a PyDLL keeps other threads of Python out."""
    named = os.environ.get("LOCUS_LIBRARY")
    if named:
        return ctypes.PyDLL(named)
    found = _below(pathlib.Path(__file__).resolve().parents)
    if not found and (query := shutil.which("hpcquery")):
        found = _below(pathlib.Path(query).resolve().parents[1:2])
    return ctypes.PyDLL(found or NAME)


def _below(parents):
    """The library in one of these folders, or in its lib; None: in none."""
    return next((str(folder / NAME) for parent in parents for folder in (parent, parent / "lib", parent / "lib64")
                 if (folder / NAME).exists()), None)


def _declare(library):
    """Gives the functions their types. A library of other headers is refused, before it writes where nothing is."""
    try:
        for name, (result, *operands) in abi.FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, operands
    except AttributeError:
        raise ImportError(f"{library._name} has no function {name}, which {_PACKAGE} needs; {_SAME}") from None
    for name, kind in abi.STRUCTS.items():
        size = library.locus_struct_size(name.encode())
        if size != ctypes.sizeof(kind):
            raise ImportError(f"{library._name} has {size} bytes in struct {name}, and {_PACKAGE} has {ctypes.sizeof(kind)}; {_SAME}")


_PACKAGE = pathlib.Path(__file__).resolve().parent
_SAME = "install library and package from the same version"
_LIBRARY = _load()
_LIBC = ctypes.PyDLL(None)
_LIBC.free.restype, _LIBC.free.argtypes = None, [c_void_p]
_declare(_LIBRARY)


def call(function, *operands):
    """Calls a function; operands that it wants to fill are passed by reference, as their types say."""
    return getattr(_LIBRARY, function)(*operands)


class _Own(threading.local):
    """The room of a thread for an error, which it reads before the next call."""

    def __init__(self):
        super().__init__()
        self.error = abi.Error()


_OWN = _Own()


def check(function, *operands):
    """Calls a function that returns a code: anything but 0 is raised."""
    error = _OWN.error
    if getattr(_LIBRARY, function)(*operands, error) != 0:
        raise Error.of(error)


def attempt(function, *operands):
    """Calls a function that returns a code; whether that is 0. ERR_UNSUPPORTED says that it has to be done in another way."""
    error = _OWN.error
    code = call(function, *operands, error)
    if code not in (0, abi.ERR_UNSUPPORTED):
        raise Error.of(error)
    return code == 0


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


def texts_at(addresses):
    """The texts at addresses of char *, a list or an array of them; "" at 0."""
    n = len(addresses)
    if n == 0:
        return []
    pointers = (ctypes.c_char_p * n).from_buffer(array.array("L", addresses) if isinstance(addresses, list) else addresses)
    return text(b"\0".join([one or b"" for one in pointers[:n]])).split("\0")


def texts(pointers, n):
    """The texts of an array of char *, each address read once; None where there is none."""
    size = ctypes.sizeof(ctypes.c_size_t)
    raw = ctypes.string_at(pointers, n * size)
    if n and raw == raw[:size] * n:  # files and modules are often not known
        address = int.from_bytes(raw[:size], sys.byteorder)
        return (texts_at([address]) if address else [None]) * n
    addresses = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_size_t))[:n]
    different = list(dict.fromkeys(addresses))
    known = dict(zip(different, texts_at(different)))
    if 0 in known:
        known[0] = None
    return list(map(known.__getitem__, addresses))


def data(sentence):
    """The bytes of a text for the library, which end at a NUL."""
    if not isinstance(sentence, str):
        raise TypeError(f"a text is wanted, not {sentence!r:.60}")
    made = sentence.encode("utf-8", "surrogateescape")
    if b"\0" in made:
        raise ValueError("a text has a NUL character")
    return made
