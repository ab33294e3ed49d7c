"""`weft wire`: what goes over the wire, from numbers to bytes and back."""

from dataclasses import dataclass

from cyclopts import App

from weft.cli import COMMANDS, wire_eep
from weft.cli.flags import described, group
from weft.cli.options import print_json
from weft.cli.wire_pfc import pfc
from weft.parameters import Parameter
from weft.units import Size, param
from weft.wire.shoal import CELL, Cell, header


@dataclass(frozen=True, kw_only=True)
class Header:
    """Which layout: Fig. 5, unless it carries more."""

    values: int = param(1, "values of feedback in the header, 1 or 2")
    news: int = param(0, "nodes of which the header says whether they are reached")

    @property
    def format(self):
        """The layout."""
        return header(self.values, self.news)


@dataclass(frozen=True, kw_only=True)
class Encode(Header, Cell):
    """Make a cell, CRC included, and print its bytes as hex."""

    cell: Size = param(CELL, "size of the cell")


@dataclass(frozen=True, kw_only=True)
class Decode(Header):
    """Say what a cell means, or a header alone; a damaged cell is decoded too."""

    hex: tuple[str, ...] = param((), "the cell's bytes as hex, in one piece or several", positional=True, metavar="HEX")


@dataclass(frozen=True, kw_only=True)
class Layout(Header):
    """Print the header's fields, their places and where their widths come from."""


def make(tokens) -> App:
    """The command."""
    commands = {
        "encode": described(_encode, "encode", fields=Encode),
        "decode": described(_decode, "decode", cell=Decode),
        "layout": described(_layout, "layout", layout=Layout),
    }
    about = "The cells of Shoal: an 8-byte header (Fig. 5) and a payload."
    app = group("wire", COMMANDS["wire"], {"shoal": group("shoal", about, commands), "pfc": pfc()})
    app.command(wire_eep.eep)
    app.command(wire_eep.vlan)
    return app


def _encode(fields: Encode, json: bool) -> None:
    from weft.report.wires import cell_data

    data = fields.encode(fields.cell, fields.format)
    if json:
        print_json(cell_data(data, fields.format))
    else:
        print(data.hex())


def _decode(cell: Decode, json: bool) -> None:
    from weft.report.wires import cell_data, cell_text

    said = cell_data(Parameter("hex", "hex").read("".join(cell.hex)), cell.format)
    if json:
        print_json(said)
    else:
        print(cell_text(said))


def _layout(layout: Layout, json: bool) -> None:
    from weft.report.wires import layout_data, layout_text

    said = layout_data(layout.format)
    if json:
        print_json(said)
    else:
        print(layout_text(said))
