"""Traces: flows that come from a file, or go to one, exact to the picosecond.

Three formats, told apart by their content:

    csv       flow, src, dst, bytes, start     with or without that line above; `start` in decimal seconds, or
                                               `start_ps`; `class` if need be; lines that begin with # are comments
    htsim     Nodes 16                         a connection matrix (.cm); start in ps, class as prio,
              Connections 1                    a flow of no size never ends
              0->5 id 1 start 0 size 2000000
    parquet   the columns of the csv
"""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.errors import BadTrace, require
from weft.units import Time, param, s
from weft.workload.arrivals import check_fabric
from weft.workload.flows import ENDLESS, LATEST, Flows

NAMES = {
    "flow": "flow", "id": "flow",
    "src": "src", "source": "src",
    "dst": "dst", "destination": "dst",
    "bytes": "bytes", "size": "bytes",
    "start": "start", "start_s": "start", "start in seconds": "start",
    "start_ps": "start_ps",
    "class": "class", "klass": "class",
}  # fmt: skip
HEADLESS = ("flow", "src", "dst", "bytes", "start", "class")  # a csv without names; the class may be missing
CHUNK = 1 << 16  # lines turned into arrays at a time: bounds memory


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The flows of a file: csv, htsim connection matrix or Parquet."""

    path: str = param(help="the file")
    duration: Time | None = param(None, "when the run stops; when the last flow is done unless given")

    def __post_init__(self):
        object.__setattr__(self, "path", str(self.path))
        require(self.duration is None or 0 < self.duration <= LATEST, "duration", "above 0 ps", self.duration)

    @property
    def until(self) -> int | None:
        """When the run stops, in ps, or None: when the last flow is done."""
        return self.duration

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of the file, all of whose nodes must be below `nodes`; neither link nor seed matter."""
        check_fabric(nodes, link)
        table = read(self.path)
        for name, column in (("src", table.src), ("dst", table.dst)):
            table.check(self.path, name, column < nodes, f"a node from 0 to {nodes - 1}", column)
        return Flows.of(
            nodes=nodes, src=table.src, dst=table.dst, size=table.size, start=table.start, klass=table.klass,
            id=table.flow, notes=table.notes,
        )  # fmt: skip


class Table(NamedTuple):
    """What a file says, in the order of the file; all int64."""

    flow: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    size: np.ndarray
    start: np.ndarray  # ps
    klass: np.ndarray
    line: np.ndarray  # where in the file; rows in a Parquet file, counted from 1
    notes: tuple[str, ...] = ()
    place: str = "line"

    def check(self, path, name, holds, must, column):
        """Raise `BadTrace` naming the first line for which `holds` does not."""
        if not holds.all():
            f = int(np.argmin(holds))
            raise BadTrace(f"{path}, {self.place} {self.line[f]}: {name} must be {must}, not {column[f]}")


def read(path) -> Table:
    """Everything in the trace at `path`, checked line by line."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise BadTrace(f"{path} must be a trace, but there is no such file") from None
    except IsADirectoryError:
        raise BadTrace(f"{path} must be a trace, not a directory") from None
    except (OSError, ValueError) as error:
        raise BadTrace(f"{path} must be a file that can be read: {getattr(error, 'strerror', error)}") from None
    if content.startswith(b"PAR1"):
        table = _read_parquet(content, path)
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise BadTrace(f"{path} must be a csv, htsim or Parquet trace, not another kind of binary file")
        lines = _lines(text)
        if not lines:
            raise BadTrace(f"{path} must have at least one flow, not be empty")
        words = lines[0][1].split()
        matrix = words[0].lower() in ("nodes", "connections") and "," not in lines[0][1]
        table = (_read_matrix if matrix else _read_csv)(lines, path)
    if not table.src.size:
        raise BadTrace(f"{path} must have at least one flow, not 0")
    for name, column in (("src", table.src), ("dst", table.dst)):
        table.check(path, name, (column >= 0) & (column < 2**31), "a node, at least 0", column)
    table.check(path, "bytes", (table.size >= 0) & (table.size <= ENDLESS), f"from 0 to {ENDLESS}", table.size)
    table.check(path, "start", (table.start >= 0) & (table.start <= LATEST), f"from 0 to {LATEST} ps", table.start)
    table.check(path, "class", (table.klass >= 0) & (table.klass < 128), "from 0 to 127", table.klass)
    repeated = table.flow.size - np.unique(table.flow).size
    if repeated:
        table = table._replace(notes=(*table.notes, f"{_count(repeated, 'flow')} had a number that was taken"))
    return table


def _lines(text):
    """[(number, line)] of those that say something."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [(k, line) for k, line in enumerate(lines, 1) if line and line[0] != "#" and not line.isspace()]


def _count(count, noun) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


# csv


def _read_csv(lines, path) -> Table:
    number, first = lines[0]
    separator = next((c for c in ",;\t" if c in first), None)
    cells = [_bare(cell) for cell in first.split(separator)]
    if any(_NUMBER.fullmatch(cell) for cell in cells):
        names = HEADLESS[: len(cells)]
        if len(cells) not in (5, 6):
            must = "flow, src, dst, bytes, start and perhaps class"
            raise BadTrace(f"{path}, line {number}: a line must be {must}, not {first.strip()!r}")
    else:
        lines = lines[1:]
        names = _header(cells, f"{path}, line {number}")
    columns = {name: [] for name in names}
    rounded = 0
    rows = iter(lines)
    while chunk := list(islice(rows, CHUNK)):
        try:
            values = _quick(chunk, names, separator)
        except (ValueError, OverflowError):
            values, more = _careful(chunk, names, separator, path)
            rounded += more
        for name, column in zip(names, values, strict=True):
            columns[name].append(column)
    notes = (f"{_count(rounded, 'start')} {'was' if rounded == 1 else 'were'} rounded to a whole picosecond",)
    return _table(
        {name: np.concatenate(parts) if parts else np.empty(0, np.int64) for name, parts in columns.items()},
        np.array([number for number, _ in lines], np.int64), notes if rounded else (),
    )  # fmt: skip


def _header(cells, place):
    """Our names of the columns that `cells` call."""
    for cell in cells:
        if cell.lower() not in NAMES:
            raise BadTrace(f"{place}: a column must be flow, src, dst, bytes, start, start_ps or class, not {cell!r}")
    names = tuple(NAMES[cell.lower()] for cell in cells)
    for name in names:
        if names.count(name) > 1:
            raise BadTrace(f"{place}: column {name} must be there once, not {names.count(name)} times")
    if "start" in names and "start_ps" in names:
        raise BadTrace(f"{place}: the start must be one of start and start_ps, not both")
    for name in ("src", "dst", "bytes"):
        if name not in names:
            raise BadTrace(f"{place}: column {name} must be there, not only {', '.join(names)}")
    if "start" not in names and "start_ps" not in names:
        raise BadTrace(f"{place}: column start or start_ps must be there, not only {', '.join(names)}")
    return names


def _table(columns, line, notes, place="line"):
    """A `Table` of columns by their name in a csv; what is missing is a running number or 0."""
    count = line.size
    return Table(
        flow=columns.get("flow", np.arange(count)),
        src=columns["src"],
        dst=columns["dst"],
        size=columns["bytes"],
        start=columns["start"] if "start" in columns else columns["start_ps"],
        klass=columns.get("class", np.zeros(count, np.int64)),
        line=line,
        notes=tuple(notes),
        place=place,
    )


def _quick(chunk, names, separator):
    """One int64 column for each name, or ValueError where a line needs a closer look."""
    rows = [line.split(separator) for _, line in chunk]
    if set(map(len, rows)) != {len(names)} or not all(line.isascii() and "_" not in line for _, line in chunk):
        raise ValueError
    columns = zip(*rows, strict=True)
    return [
        np.array(list(map(_plain_seconds if name == "start" else int, column)), np.int64)
        for name, column in zip(names, columns, strict=True)
    ]


def _plain_seconds(text):
    """Picoseconds in seconds written without sign or exponent and with at most 12 decimals."""
    whole, dot, decimals = text.strip().partition(".")
    if not whole.isdigit() or (dot and not decimals.isdigit()) or len(decimals) > 12:
        raise ValueError
    return int(whole) * s + int(decimals.ljust(12, "0"))


def _careful(chunk, names, separator, path):
    """The same columns, line by line: every number a csv may hold, and a sentence for what is none."""
    columns = [np.empty(len(chunk), np.int64) for _ in names]
    rounded = 0
    for f, (number, line) in enumerate(chunk):
        cells = [_bare(cell) for cell in line.split(separator)]
        if len(cells) != len(names):
            raise BadTrace(f"{path}, line {number}: a line must have {len(names)} fields, not {len(cells)}")
        for name, cell, column in zip(names, cells, columns, strict=True):
            place = f"{path}, line {number}: {name}"
            if name == "start":
                column[f], exact = _seconds(cell, place)
                rounded += not exact
            else:
                column[f] = _integer(cell, place)
    return columns, rounded


def _bare(cell):
    """`cell` without blanks and quotes around it."""
    cell = cell.strip()
    return cell[1:-1].strip() if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "\"'" else cell


_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER = re.compile(r"([-+]?)([0-9]{0,300})\.?([0-9]{0,300})(?:[eE]([-+]?[0-9]{1,6}))?(?<=[0-9.])")


def _integer(text, place) -> int:
    if not _INTEGER.fullmatch(text):
        raise BadTrace(f"{place} must be a whole number, not {text!r}")
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise BadTrace(f"{place} must fit 63 bits, not {text}")
    return value


def _seconds(text, place) -> tuple[int, bool]:
    """Picoseconds in decimal seconds, and whether they are exact; a half is rounded to the even one."""
    match = _NUMBER.fullmatch(text)
    if not match or not match[2] + match[3]:
        raise BadTrace(f"{place} must be a number of seconds, not {text!r}")
    mantissa = int(match[2] + match[3])
    power = int(match[4] or 0) - len(match[3]) + 12
    if mantissa and match[1] == "-":
        raise BadTrace(f"{place} must be at least 0 s, not {text}")
    if mantissa and power + len(str(mantissa)) > 20:
        raise BadTrace(f"{place} must be at most {LATEST // s} s, not {text}")
    if mantissa == 0:
        return 0, True
    if power >= 0:
        value, rest = mantissa * 10**power, 0
    elif power < -700:
        value, rest = 0, 1
    else:
        value, rest = divmod(mantissa, 10**-power)
        half = 5 * 10 ** (-power - 1)
        value += rest > half or (rest == half and value % 2)
    if value > LATEST:
        raise BadTrace(f"{place} must be at most {LATEST // s} s, not {text}")
    return value, rest == 0


def write_csv(flows: Flows, path) -> None:
    """Write `flows` as csv, starts in decimal seconds to the picosecond; classes only where there are any."""
    names = ["flow", "src", "dst", "bytes", "start"]
    second, rest = np.divmod(flows.start, s)
    columns = [flows.id, flows.src, flows.dst, flows.size, second, rest]
    form = "%d,%d,%d,%d,%d.%012d\n"
    if flows.klass.any():
        names.append("class")
        columns.append(flows.klass)
        form = form.replace("\n", ",%d\n")
    with open(path, "w", encoding="ascii", newline="") as file:
        file.write(",".join(names) + "\n")
        file.writelines(form % row for row in zip(*(column.tolist() for column in columns), strict=True))


# htsim


def _read_matrix(lines, path) -> Table:
    rows, ignored, endless, expected = [], 0, 0, {}
    for number, line in lines:
        place = f"{path}, line {number}:"
        words = line.split()
        head = words[0].lower()
        if head in ("nodes", "connections", "triggers", "failures"):
            if len(words) != 2:
                raise BadTrace(f"{place} {words[0]} must be followed by one number, not {line.strip()!r}")
            expected[head] = _integer(words[1], f"{place} {words[0]}")
        elif head in ("trigger", "failure"):
            ignored += 1
        else:
            row, unsized = _connection(words, len(rows), place)
            endless += unsized
            rows.append((*row, number))
    declared = expected.get("connections", len(rows))
    if declared != len(rows):
        raise BadTrace(f"{path}: Connections must be the number of flows, {len(rows)}, not {declared}")
    columns = np.array(rows, np.int64).reshape(-1, 7).T
    notes = []
    if endless:
        notes.append(f"{_count(endless, 'flow')} of no size never end{'s' * (endless == 1)}")
    if ignored:
        notes.append(f"{_count(ignored, 'line')} on triggers or failures {'was' if ignored == 1 else 'were'} ignored")
    table = Table(*columns, notes=tuple(notes))
    nodes = expected.get("nodes")
    if nodes is not None:
        for name, column in (("src", table.src), ("dst", table.dst)):
            table.check(path, name, column < nodes, f"below Nodes, {nodes}", column)
    return table


def _connection(words, running, place):
    """(flow, src, dst, size, start, class) of one line, and whether it had no size."""
    ends = re.fullmatch(r"([0-9]+)->([0-9]+)", words[0])
    if not ends:
        raise BadTrace(f"{place} a flow must begin like 0->5, not {words[0]!r}")
    values = {"id": running, "start": None, "size": 0, "prio": 0}
    keys, given = words[1::2], words[2::2]
    if len(keys) != len(given):
        raise BadTrace(f"{place} {keys[-1]!r} must be followed by a number, not the end of the line")
    for key, value in zip(keys, given, strict=True):
        if key == "trigger":
            raise BadTrace(f"{place} a flow must have a start of its own, not wait for trigger {value}")
        if key in ("send_done_trigger", "recv_done_trigger"):
            continue
        if key not in values:
            raise BadTrace(f"{place} a flow may have id, start, size, prio, not {key!r}")
        values[key] = _integer(value, f"{place} {key}")
    if values["start"] is None:
        raise BadTrace(f"{place} a flow must have a start, not only {' '.join(keys) or 'its nodes'}")
    src, dst = (_integer(end, f"{place} node") for end in ends.groups())
    return (values["id"], src, dst, values["size"] or ENDLESS, values["start"], values["prio"]), not values["size"]


def write_cm(flows: Flows, path) -> None:
    """Write `flows` as an htsim connection matrix; a class becomes a prio, an endless flow has no size."""
    columns = (flows.src, flows.dst, flows.id, flows.start, flows.size, flows.klass)
    with open(path, "w", encoding="ascii", newline="") as file:
        file.write(f"Nodes {flows.nodes}\nConnections {len(flows)}\n")
        for src, dst, id, start, size, klass in zip(*(column.tolist() for column in columns), strict=True):
            sized = "" if size == ENDLESS else f" size {size}"
            prio = f" prio {klass}" if klass else ""
            file.write(f"{src}->{dst} id {id} start {start}{sized}{prio}\n")


# parquet


def _read_parquet(content, path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        read = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        reason = str(error).split("\n")[0]
        raise BadTrace(f"{path} must be a Parquet file that can be read: {reason}") from None
    names = _header(read.column_names, str(path))
    columns, notes = {}, []
    for name, column in zip(names, read.columns, strict=True):
        if column.null_count:
            raise BadTrace(f"{path}: {name} must have a value in every row, not {column.null_count} without")
        if name == "start":
            columns[name], note = _parquet_seconds(column, path)
            notes += note
        elif pa.types.is_integer(column.type):
            try:
                columns[name] = column.cast(pa.int64()).to_numpy()
            except pa.ArrowException:
                raise BadTrace(f"{path}: {name} must fit 63 bits") from None
        else:
            raise BadTrace(f"{path}: {name} must be whole numbers, not {column.type}")
    return _table(columns, np.arange(1, read.num_rows + 1), notes, place="row")


def _parquet_seconds(column, path):
    """Picoseconds in a column of seconds: whole numbers, decimals, text or floats; floats are rounded, with a note."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_floating(kind):
        seconds = column.cast(pa.float64()).to_numpy()
        if not (np.isfinite(seconds) & (np.abs(seconds) * s < 2.0**62)).all():
            raise BadTrace(f"{path}: start must be from 0 to {LATEST // s} s")
        notes = ["starts were seconds in floating point, rounded to whole picoseconds"]
        return np.rint(seconds * float(s)).astype(np.int64), notes
    if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_string(kind)):
        raise BadTrace(f"{path}: start must be numbers, not {kind}")
    exact = [_seconds(str(value), f"{path}, row {row}: start") for row, value in enumerate(column.to_pylist(), 1)]
    rounded = sum(not good for _, good in exact)
    notes = [f"{_count(rounded, 'start')} {'was' if rounded == 1 else 'were'} rounded to a whole picosecond"]
    return np.array([value for value, _ in exact], np.int64), notes if rounded else []


def write_parquet(flows: Flows, path) -> None:
    """Write `flows` as Parquet, starts as `start_ps`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"flow": flows.id, "src": flows.src, "dst": flows.dst, "bytes": flows.size, "start_ps": flows.start}
    pq.write_table(pa.table({**columns, "class": flows.klass}), path)
