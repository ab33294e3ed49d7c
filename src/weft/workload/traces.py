"""Traces: flows that come from a file, or go to one, exact to the picosecond.

Three formats, told apart by their content:

    csv       flow, src, dst, bytes, start     with or without that line above; `start` in decimal seconds, or
                                               `start_ps`; `class` and `rate`, b/s, if need be; lines that begin
                                               with # are comments; other names and units: `weft.workload.columns`
    htsim     Nodes 16                         a connection matrix (.cm); start in ps, class as prio,
              Connections 1                    a flow of no size never ends
              0->5 id 1 start 0 size 2000000
    parquet   the columns of the csv

Flows may wait for flows, by the columns `after` and `delay_ps` or by triggers: `weft.workload.after` says how.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from weft import reading
from weft.errors import BadInput, BadTrace, require
from weft.files import replaced
from weft.units import Time, param, s
from weft.workload import after, columns
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.columns import TEXTS
from weft.workload.flows import ENDLESS, FASTEST, LATEST, Flows

NAMES = {
    "flow": "flow", "id": "flow",
    "src": "src", "source": "src",
    "dst": "dst", "destination": "dst",
    "bytes": "bytes", "size": "bytes",
    "start": "start", "start_s": "start", "start in seconds": "start",
    "start_ps": "start_ps",
    "class": "class", "klass": "class",
    "after": "after", "delay_ps": "delay_ps",
    "rate": "rate", "rate_bps": "rate",
}  # fmt: skip
HEADLESS = ("flow", "src", "dst", "bytes", "start", "class")  # a csv without names; the class may be missing
CHUNK = 1 << 16  # lines turned into arrays at a time: bounds memory


@dataclass(frozen=True, kw_only=True)
class Trace(Workload):
    """The flows of a file: csv, htsim connection matrix or Parquet."""

    path: str = param(help="the file", file=True)
    columns: str = param("", "their names of our columns, with units, as in start=ts_us,bytes=size_kb", metavar="LIST")
    duration: Time | None = param(None, "when the run stops; when the last flow is done unless given")

    def __post_init__(self):
        object.__setattr__(self, "path", str(self.path))
        columns.parse(self.columns)  # says what is wrong with it
        require(self.duration is None or 0 < self.duration <= LATEST, "duration", "above 0 ps", self.duration)

    @property
    def until(self) -> int | None:
        """When the run stops, in ps, or None: when the last flow is done."""
        return self.duration

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows of the file, all of whose nodes must be below `nodes`; neither link nor seed matter."""
        check_fabric(nodes, link)
        table = read(self.path, self.columns)
        for name, column in (("src", table.src), ("dst", table.dst)):
            table.check(self.path, name, column < nodes, f"a node from 0 to {nodes - 1}", column)
        waits = table.waits.given if table.waits else {}
        try:
            return Flows.of(
                nodes=nodes, src=table.src, dst=table.dst, size=table.size, start=table.start, klass=table.klass,
                id=table.flow, rate=table.rate, notes=(*table.notes, *_suspicions(table, nodes * link)), **waits,
            )  # fmt: skip
        except BadInput as wrong:  # flows in a circle, say
            raise BadTrace(f"{self.path}: {wrong}") from None


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
    waits: after.Waits | None = None
    rate: np.ndarray | None = None  # b/s, 0 for no limit

    def check(self, path, name, holds, must, column):
        """Raise `BadTrace` naming the first line for which `holds` does not."""
        if not holds.all():
            f = int(np.argmin(holds))
            raise BadTrace(f"{path}, {self.place} {self.line[f]}: {name} must be {must}, not {column[f]}")


def _suspicions(table, rate):
    """A note if the starts span so long that their unit may be another one; rate is b/s of all links together."""
    span, bits = int(table.start.max() - table.start.min()), 8 * sum(table.size[table.size < ENDLESS].tolist())
    if span > s and bits * s < span * rate // 1000:
        times = span * rate // (bits * s or 1)
        yield (
            f"starts span {span / s:,.4g} s, in which the links could carry these flows {times:,} times: if they "
            "are not in seconds, say so, as in --columns start=start:us"
        )


def read(path, theirs: str = "") -> Table:
    """Everything in the trace at `path`, checked line by line; `theirs` says what others call our columns."""
    content = reading.content(path, "a trace", error=BadTrace)
    if content.startswith(b"PAR1"):
        table = _read_parquet(content, path, columns.parse(theirs))
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
        notes: tuple[str, ...] = ()
        if not matrix:
            lines, notes = _renamed(lines, columns.parse(theirs), path)
        table = (_read_matrix if matrix else _read_csv)(lines, path)
        table = table._replace(notes=(*notes, *table.notes))
    if not table.src.size:
        raise BadTrace(f"{path} must have at least one flow, not 0")
    for name, column in (("src", table.src), ("dst", table.dst)):
        table.check(path, name, (column >= 0) & (column < 2**31), "a node, at least 0", column)
    table.check(path, "bytes", (table.size >= 0) & (table.size <= ENDLESS), f"from 0 to {ENDLESS}", table.size)
    table.check(path, "start", (table.start >= 0) & (table.start <= LATEST), f"from 0 to {LATEST} ps", table.start)
    if table.rate is not None:
        good = (table.rate >= 0) & (table.rate <= FASTEST)
        table.check(path, "rate", good, f"from 0, for no limit, to {FASTEST} b/s", table.rate)
    table.check(path, "class", (table.klass >= 0) & (table.klass < 128), "from 0 to 127", table.klass)
    repeated = int((np.diff(np.sort(table.flow)) == 0).sum())
    if repeated:
        note = f"{_count(repeated, 'flow')} had a number that another flow has too"
        table = table._replace(notes=(*table.notes, note))
    return table


def _lines(text):
    """[(number, line)] of those that are neither empty nor comments."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [(k, line) for k, line in enumerate(lines, 1) if line and line[0] != "#" and not line.isspace()]


def _count(count, noun) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


# csv


def _renamed(lines, named, path):
    """(lines with our columns, notes); lines that have them already stay as they are."""
    first = lines[0][1]
    separator = next((c for c in ",;\t" if c in first), None)
    cells = [_bare(cell) for cell in first.split(separator)]
    if named and any(_NUMBER.fullmatch(cell) for cell in cells):
        if len(cells) not in (5, 6):
            raise BadTrace(f"{path}, line {lines[0][0]}: columns must have names above them, not {first.strip()!r}")
        lines = [(lines[0][0], (separator or " ").join(HEADLESS[: len(cells)])), *lines]
        cells = list(HEADLESS[: len(cells)])
    named = _completed(named, cells) or columns.guess(cells, NAMES)
    return columns.lines(lines, named, separator, _bare, path) if named else (lines, ())


def _completed(named, cells):
    """What was named, and the columns that have our names."""
    if not named:
        return {}
    own = {NAMES[cell.lower()]: cell.lower() for cell in cells if cell.lower() in NAMES}
    taken = {column.theirs for column in named.values()}
    more = {("start" if ours == "start_ps" else ours): theirs for ours, theirs in own.items() if theirs not in taken}
    also = {ours: columns.Column(theirs, columns.unit(ours, theirs)) for ours, theirs in more.items()}
    return {**also, **named}


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
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    rounded = 0
    rows = iter(lines)
    while chunk := list(islice(rows, CHUNK)):
        try:
            values = _quick(chunk, names, separator)
        except ValueError:  # Arrow's errors are
            values, more = _careful(chunk, names, separator, path)
            rounded += more
        for name, column in zip(names, values, strict=True):
            columns[name].append(column)
    notes = (f"{_count(rounded, 'start')} {'was' if rounded == 1 else 'were'} rounded to a whole picosecond",)
    return _table(
        {name: np.concatenate(parts) if parts else np.empty(0, np.int64) for name, parts in columns.items()},
        np.array([number for number, _ in lines], np.int64), notes if rounded else (), path,
    )  # fmt: skip


def _header(cells, place):
    """Our names of the columns that `cells` call."""
    for cell in cells:
        if cell.lower() not in NAMES:
            known = "flow, src, dst, bytes, start, start_ps, class, rate, after or delay_ps"
            hint = "; `columns` names others, as in start=ts:ms,src=from"
            raise BadTrace(f"{place}: a column must be {known}, not {cell!r}{hint}")
    names = tuple(NAMES[cell.lower()] for cell in cells)
    for name in names:
        if names.count(name) > 1:
            raise BadTrace(f"{place}: column {name} must be there once, not {names.count(name)} times")
    if "start" in names and "start_ps" in names:
        raise BadTrace(f"{place}: the start must be one of start and start_ps, not both")
    for name in ("src", "dst", "bytes"):
        if name not in names:
            raise BadTrace(f"{place}: column {name} must be there, not only {', '.join(names)}")
    if "delay_ps" in names and "after" not in names:
        raise BadTrace(f"{place}: column after must be there, or delay_ps must not")
    if "start" not in names and "start_ps" not in names:
        raise BadTrace(f"{place}: column start or start_ps must be there, not only {', '.join(names)}")
    return names


def _table(columns, line, notes, path, place="line"):
    """A `Table` of columns by their name in a csv; what is missing is a running number or 0."""
    count = line.size
    flow = columns.get("flow", np.arange(count))
    waits = None
    if "after" in columns:
        texts = [columns.get(name, [""] * count) for name in TEXTS]
        waits = after.of_columns(*texts, flow, lambda f, name: f"{path}, {place} {line[f]}: {name}", _integer)
    return Table(
        flow=flow,
        src=columns["src"],
        dst=columns["dst"],
        size=columns["bytes"],
        start=columns["start"] if "start" in columns else columns["start_ps"],
        klass=columns.get("class", np.zeros(count, np.int64)),
        line=line,
        notes=tuple(notes),
        place=place,
        waits=waits,
        rate=columns.get("rate"),
    )


def _quick(chunk, names, separator):
    """One column for each name, or ValueError where a line needs a closer look."""
    import pyarrow as pa
    from pyarrow import csv

    lines = [line for _, line in chunk] if separator else [" ".join(line.split()) for _, line in chunk]
    table = csv.read_csv(
        pa.BufferReader("\n".join(lines).encode()),
        read_options=csv.ReadOptions(column_names=names, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=separator or " ", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    if table.num_rows != len(chunk):
        raise ValueError
    return [_column(name, table[name]) for name in names]


def _column(name, texts):
    """What a column of a csv says; ValueError where a line needs a closer look."""
    if name in TEXTS:
        return texts.to_numpy(zero_copy_only=False)
    if name == "start":
        return _extract(texts, r"^\s*(?P<whole>[0-9]{1,6})(?:\.(?P<decimals>[0-9]{0,12}))?\s*$") @ (s, 1)
    return _extract(texts, r"^\s*(?P<whole>[0-9]{1,18})\s*$")[:, 0]


def _extract(texts, pattern):
    """(f, k) int64 of the k groups of `pattern` in each text, or ValueError if one is different.

    Decimals are filled up to 12; what is not there is 0.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    groups = pc.extract_regex(texts, pattern)
    if groups.null_count:
        raise ValueError
    columns = []
    for field in groups.type:
        group = groups.field(field.name)
        if field.name == "decimals":
            group = pc.utf8_rpad(group, 12, "0")
        else:
            group = pc.if_else(pc.equal(group, ""), "0", group)
        columns.append(group.cast(pa.int64()).to_numpy())
    return np.stack(columns, axis=1)


def _careful(chunk, names, separator, path):
    """The same columns, line by line: every number a csv may hold, and a sentence for what is none."""
    columns = [np.empty(len(chunk), object if name in TEXTS else np.int64) for name in names]
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
            elif name in TEXTS:
                column[f] = cell
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
    mantissa, power = int(match[2] + match[3]), int(match[4] or 0) - len(match[3]) + 12
    if mantissa == 0:
        return 0, True
    if match[1] == "-":
        raise BadTrace(f"{place} must be at least 0 s, not {text}")
    power = max(power, -700)  # what is smaller still is no picosecond either
    if power + len(str(mantissa)) > 20:
        raise BadTrace(f"{place} must be at most {LATEST // s} s, not {text}")
    if power >= 0:
        value, exact = mantissa * 10**power, True
    else:
        unit = 10**-power
        value, rest = divmod(mantissa, unit)
        value, exact = value + (2 * rest > unit or (2 * rest == unit and value % 2)), rest == 0
    if value > LATEST:
        raise BadTrace(f"{place} must be at most {LATEST // s} s, not {text}")
    return value, exact


def write_csv(flows: Flows, path) -> None:
    """Write `flows` as csv, starts in seconds to the picosecond; classes, rates and waits where there are any."""
    names = ["flow", "src", "dst", "bytes", "start"]
    second, rest = np.divmod(flows.start, s)
    columns = [flows.id, flows.src, flows.dst, flows.size, second, rest]
    form = "%d,%d,%d,%d,%d.%012d\n"
    if flows.klass.any():
        names.append("class")
        columns.append(flows.klass)
        form = form.replace("\n", ",%d\n")
    if flows.limited:
        names.append("rate")
        columns.append(flows.rate)
        form = form.replace("\n", ",%d\n")
    rows = [column.tolist() for column in columns]
    if flows.waiting:
        for name, lists in after.columns(flows).items():
            names.append(name)
            rows.append(["+".join(map(str, some)) for some in lists])
            form = form.replace("\n", ",%s\n")
    with replaced(path) as fresh, open(fresh, "w", encoding="ascii", newline="") as file:
        file.write(",".join(names) + "\n")
        file.writelines(form % row for row in zip(*rows, strict=True))


# htsim


def _read_matrix(lines, path) -> Table:
    declared, flows, triggers, ignored = {}, [], {}, 0
    for number, line in lines:
        head = line.split(None, 1)[0].lower()
        if head in ("nodes", "connections", "triggers", "failures"):
            declared[head] = _integer(line.strip()[len(head) :].strip(), f"{path}, line {number}: {head.title()}")
        elif head == "trigger":
            id, one = after.trigger(line.split(), f"{path}, line {number}", _integer)
            if id in triggers:
                raise BadTrace(f"{path}, line {number}: trigger {id} must be there once, not again")
            triggers[id] = one
        elif head == "failure":
            ignored += 1
        else:
            flows.append((number, line))
    for name, things in (("connections", flows), ("triggers", triggers)):
        if declared.get(name, len(things)) != len(things):
            what = "flows" if name == "connections" else "triggers"
            raise BadTrace(f"{path}: {name.title()} must be {len(things)}, the number of {what}, not {declared[name]}")
    waits = None
    try:
        columns, notes = _quick_matrix(flows), []
        ignored += len(triggers)
    except ValueError:
        columns, notes, starts, fires = _careful_matrix(flows, path)
        waits, more, idle = after.of_triggers(triggers, starts, fires, path, [number for number, _ in flows])
        notes, ignored = [*notes, *more], ignored + idle
    if ignored:
        notes.append(f"{_count(ignored, 'line')} on triggers or failures {'was' if ignored == 1 else 'were'} ignored")
    flow, src, dst, size, start, klass = columns
    lines = np.array([number for number, _ in flows], np.int64)
    table = Table(flow, src, dst, size, start, klass, lines, tuple(notes), waits=waits)
    if "nodes" in declared:
        for name, column in (("src", table.src), ("dst", table.dst)):
            table.check(path, name, column < declared["nodes"], f"below Nodes, {declared['nodes']}", column)
    return table


def _quick_matrix(flows):
    """Columns of lines that all look like `0->5 id 1 start 0 size 2000000`, or ValueError; one may have no id."""
    import pyarrow as pa

    whole, positive = "[0-9]{1,18}", "[1-9][0-9]{0,17}"
    ends = f"(?P<src>{whole})->(?P<dst>{whole})"
    pattern = f"^{ends}(?: id (?P<id>{whole}))? start (?P<start>{whole}) size (?P<size>{positive})$"
    src, dst, id, start, size = _extract(pa.array([line.rstrip() for _, line in flows], pa.string()), pattern).T
    if (id == 0).sum() > 1:
        raise ValueError
    return id, src, dst, size, start, np.zeros_like(id)


def _careful_matrix(flows, path):
    """The same columns, line by line, notes, the trigger that starts each flow, and those that it fires."""
    rows = [_connection(line.split(), f"{path}, line {number}:") for number, line in flows]
    notes = []
    if unnamed := sum(row["id"] is None for row in rows):
        for k, row in enumerate(rows):
            if row["id"] is None:
                row["id"] = 0 if unnamed == 1 else k  # htsim calls a flow without a name 0
    if endless := sum(not row["size"] for row in rows):
        notes.append(f"{_count(endless, 'flow')} of no size never end{'s' * (endless == 1)}")
    if high := sum(row["prio"] > 127 for row in rows):
        notes.append(f"{_count(high, 'prio')} above 127 {'was' if high == 1 else 'were'} ignored")
    columns = [[row[name] for row in rows] for name in ("id", "src", "dst")]
    columns.append([row["size"] or ENDLESS for row in rows])
    columns.append([row["start"] for row in rows])
    columns.append([row["prio"] if row["prio"] <= 127 else 0 for row in rows])
    starts, fires = [row["trigger"] for row in rows], [row["fires"] for row in rows]
    return [np.array(column, np.int64) for column in columns], notes, starts, fires


def _connection(words, place) -> dict:
    """What one line says of a flow."""
    ends = re.fullmatch(r"([0-9]+)->([0-9]+)", words[0])
    if not ends:
        raise BadTrace(f"{place} a flow must begin like 0->5, not {words[0]!r}")
    flow: dict = {"id": None, "start": None, "size": 0, "prio": 0, "trigger": None, "fires": ()}
    flow["src"], flow["dst"] = (_integer(end, f"{place} node") for end in ends.groups())
    keys, values = words[1::2], words[2::2]
    if len(keys) != len(values):
        raise BadTrace(f"{place} {keys[-1]} must be followed by a number, not by the end of the line")
    for key, value in zip(keys, values, strict=True):
        if key in ("send_done_trigger", "recv_done_trigger"):
            flow["fires"] += (_integer(value, f"{place} {key}"),)
            continue
        if key not in ("id", "start", "size", "prio", "trigger"):
            raise BadTrace(f"{place} what is said of a flow must be id, start, size, prio or triggers, not {key!r}")
        flow[key] = _integer(value, f"{place} {key}")
    if flow["start"] is None and flow["trigger"] is None:
        raise BadTrace(f"{place} a flow must have a start or a trigger, not only {', '.join(keys) or 'its ends'}")
    if flow["start"] is not None and flow["trigger"] is not None:
        raise BadTrace(f"{place} a flow must have a start or a trigger, not both")
    flow["start"] = flow["start"] or 0
    return flow


def write_cm(flows: Flows, path) -> None:
    """Write `flows` as an htsim connection matrix; a class becomes a prio, an endless flow has no size.

    htsim knows no flow 0: it is written without a number, which reads back as 0 if it is the only one. Flows that wait
    for flows are started by triggers, as far as htsim's can say it. It has no rates of flows.
    """
    if flows.limited:
        raise BadInput(f"flows of a connection matrix must have no rates of their own, not {flows.limited:,} of them")
    columns = [column.tolist() for column in (flows.src, flows.dst, flows.id, flows.size, flows.klass)]
    starts, fires, triggers = after.triggers(flows)
    with replaced(path) as fresh, open(fresh, "w", encoding="ascii", newline="") as file:
        file.write(f"Nodes {flows.nodes}\nConnections {len(flows)}\n")
        if triggers:
            file.write(f"Triggers {len(triggers)}\n")
        for src, dst, id, size, klass, start, fire in zip(*columns, starts, fires, strict=True):
            named = f" id {id}" if id else ""
            sized = f" size {size}" if size != ENDLESS else ""
            prio = f" prio {klass}" if klass else ""
            file.write(f"{src}->{dst}{named} {start}{sized}{prio}{fire}\n")
        file.writelines(f"{line}\n" for line in triggers)


# parquet


def _read_parquet(content, path, named) -> Table:
    import pyarrow as pa

    read = reading.parquet(path, "a Parquet trace", error=BadTrace, raw=content)
    named = _completed(named, read.column_names) or columns.guess(read.column_names, NAMES)
    if named:
        return _read_foreign(read, named, path)
    names = _header(read.column_names, str(path))
    columns_, notes = {}, []
    for name, column in zip(names, read.columns, strict=True):
        if name in TEXTS:
            columns_[name] = [_joined(value) for value in column.to_pylist()]
            continue
        if column.null_count:
            raise BadTrace(f"{path}: {name} must have a value in every row, not {column.null_count} without")
        if name == "start":
            columns_[name], note = _parquet_seconds(column, path)
            notes += note
        elif pa.types.is_integer(column.type):
            try:
                columns_[name] = column.cast(pa.int64()).to_numpy()
            except pa.ArrowException:
                raise BadTrace(f"{path}: {name} must fit 63 bits") from None
        else:
            raise BadTrace(f"{path}: {name} must be whole numbers, not {column.type}")
    return _table(columns_, np.arange(1, read.num_rows + 1), notes, path, place="row")


def _read_foreign(read, named, path) -> Table:
    """The same from columns of other names and units."""
    reader = columns.Reader(named)
    found = {}
    for ours, k in reader.places(read.column_names, str(path)):
        cells = read.column(k).to_pylist()
        values = [reader.number(ours, _joined(cell), f"{path}, row {row}") for row, cell in enumerate(cells, 1)]
        found["start_ps" if ours == "start" else ours] = values if ours in TEXTS else np.array(values, np.int64)
    return _table(found, np.arange(1, read.num_rows + 1), reader.notes, path, place="row")


def _joined(value) -> str:
    """A text such as a csv has, of a list of numbers, one number, a text or nothing."""
    if value is None:
        return ""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


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
    """Write `flows` as Parquet, starts as `start_ps`; whom flows wait for as lists of numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"flow": flows.id, "src": flows.src, "dst": flows.dst, "bytes": flows.size, "start_ps": flows.start}
    if flows.limited:
        columns["rate"] = flows.rate
    waits = after.columns(flows) if flows.waiting else {}
    lists = {name: pa.array(column, pa.list_(pa.int64())) for name, column in waits.items()}
    with replaced(path) as fresh, open(fresh, "wb") as file:
        pq.write_table(pa.table({**columns, "class": flows.klass, **lists}), file)
