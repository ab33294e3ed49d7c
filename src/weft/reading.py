"""Files that others wrote, read within the memory that there is, and refused in a sentence.

Whatever reads a file begins here, so that one that has no end, or that unpacks to more than it seems, meets the limit
before it is in memory. What is read is checked by whoever asked, once; after that nothing needs to ask.
"""

import csv
import gzip
import io
import json
import os
import stat
import tokenize
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weft import memory
from weft.errors import BadInput
from weft.files import reason

PARSED = 12  # bytes that a byte of text takes while it is read: as bytes, as text, as lines, as numbers
BLOCK = 1 << 22  # bytes read at a time


def content(path, what: str, *, error=BadInput, each: int = PARSED) -> bytes:
    """The bytes of a file or pipe; `each` is what one of them comes to need, and `what` it must be."""
    try:
        with open(path, "rb") as file:
            seen = os.fstat(file.fileno())
            if stat.S_ISREG(seen.st_mode):
                memory.fits(str(path), seen.st_size * each)
            parts, size = [], 0
            while part := file.read(BLOCK):
                parts.append(part)
                size += len(part)
                memory.fits(str(path), size * each)
            return b"".join(parts)
    except FileNotFoundError:
        raise error(f"{path} must be {what}, but there is no such file") from None
    except IsADirectoryError:
        raise error(f"{path} must be {what}, not a directory") from None
    except (OSError, ValueError) as problem:  # a NUL in the name
        raise error(f"{str(path)!r} must be a file that can be read: {reason(problem)}") from None


def unpacked(path, what: str, *, error=BadInput, each: int = PARSED) -> bytes:
    """The bytes of a file that may be packed by gzip; what it unpacks to meets the limit before it is there."""
    raw = content(path, what, error=error, each=each)
    if raw[:2] != b"\x1f\x8b":
        return raw
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while part := file.read(BLOCK):
                parts.append(part)
                size += len(part)
                memory.fits(str(path), size * each)
    except (OSError, EOFError, zlib.error):
        raise error(f"{path} must be {what}, not a packed one that is damaged") from None
    return b"".join(parts)


def text(path, what: str, *, error=BadInput) -> str:
    """A file of UTF-8, without the mark that some editors put first."""
    try:
        return content(path, what, error=error).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} must be {what}, not binary") from None


def rows(lines, path, *, error=BadInput) -> Iterator[tuple[int, list[str]]]:
    """(number, cells) of the lines of a csv."""
    found = csv.reader(lines)
    while True:
        try:
            row = next(found)
        except StopIteration:
            return
        except csv.Error as problem:
            raise error(f"{path}, line {found.line_num}: a line must be csv, not one with a {problem}") from None
        yield found.line_num, row


def toml(path, what: str, *, error=BadInput) -> dict:
    """The tables of a TOML file."""
    found = text(path, what, error=error)
    try:
        return tomllib.loads(found)
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{path} must be a TOML file: {str(problem)[:1].lower()}{str(problem)[1:]}") from None
    except RecursionError:
        raise error(f"{path} must be a TOML file, not one nested so deep") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise error(f"{path} must be a TOML file of numbers that fit 63 bits, not longer ones") from None


def json_object(path, *, error=BadInput) -> dict:
    """The one object in a JSON file."""
    found = text(path, "JSON", error=error)
    try:
        data = json.loads(found)
    except (ValueError, RecursionError):
        raise error(f"{path} must be JSON, not something that cannot be read") from None
    if not isinstance(data, dict):
        raise error(f"{path} must be a JSON object, not a {type(data).__name__}")
    return data


def parquet(path, what: str, *, error=BadInput, raw: bytes | None = None):
    """The table in a Parquet file, or in its bytes; how many rows it has is known before they are unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    raw = content(path, what, error=error, each=1) if raw is None else raw
    try:
        file = pq.ParquetFile(pa.BufferReader(raw), page_checksum_verification=True)
        seen = file.metadata
        each = sum(8 if pa.types.is_primitive(field.type) else 64 for field in file.schema_arrow)
        memory.fits(str(path), max(seen.num_rows, 0) * each * 2 + len(raw))
        table = file.read()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as problem:
        said = str(problem).split("\n")[0]
        raise error(f"{path} must be {what}, not something that cannot be read: {said}") from None


DAMAGED = (  # what zipfile and numpy raise when they are given one
    OSError, ValueError, KeyError, EOFError, RuntimeError, TypeError, SyntaxError, OverflowError, NotImplementedError,
    RecursionError, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip


def arrays(path, what: str, *, error=BadInput) -> dict[str, np.ndarray]:
    """The arrays of an npz file as `numpy.savez` writes it: stored, so that none is larger than the file."""
    try:
        with open(path, "rb") as raw, zipfile.ZipFile(raw) as file:
            memory.fits(str(path), 2 * os.fstat(raw.fileno()).st_size)
            return {entry.filename.removesuffix(".npy"): _array(file, entry) for entry in file.infolist()}
    except FileNotFoundError:
        raise error(f"{path} must be {what}, but there is no such file") from None
    except DAMAGED:
        raise error(f"{path} must be {what}, not something that cannot be read") from None


def _array(file, entry) -> np.ndarray:
    form = np.lib.format
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > entry.compress_size:
        raise ValueError
    with file.open(entry) as part:
        version = form.read_magic(part)
        shape, fortran, kind = (form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0)(part)
        data = part.read()
    if kind.hasobject or any(length < 0 for length in shape) or kind.itemsize == 0:
        raise ValueError
    if len(data) != kind.itemsize * int(np.prod(shape, dtype=object)):
        raise ValueError
    return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C")


def exists(path) -> bool:
    """Whether there is anything at `path`, whatever it looks like."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
