"""`weft cost`: what each paper's system would cost, or what a saved run's fabric would; nothing is simulated."""

from dataclasses import dataclass

from cyclopts import App

from weft.cli import COMMANDS, main
from weft.cli.flags import described, group
from weft.cli.options import print_json
from weft.errors import BadInput
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Of:
    """What it would cost: parts, prices, power, cables and memory, with no simulation."""

    of: str | None = param(None, "a result folder: price the very fabric that was run", metavar="DIR")


def make(tokens) -> App:
    """The command; if the tokens already name a question, with that one only."""
    from weft.models.reports import QUESTIONS
    from weft.models.reports.answer import Overrides

    names = tokens[:1] if tokens[:1] and tokens[0] in QUESTIONS else QUESTIONS
    app = group("cost", COMMANDS["cost"], {name: _question(name) for name in names})
    app.default(described(_price, "cost", result=Of, prices=Overrides))
    return app


def _question(name):
    from weft.models.reports import question
    from weft.models.reports.answer import Prices

    asked = question(name)
    return described(_answer, name, design=asked, prices=getattr(asked, "asked_with", Prices))


def _answer(design, prices, json: bool) -> None:
    answer = design.answer(prices)
    if json:
        print_json(answer.data)
    else:
        print(answer.text)


def _price(result, prices, json: bool) -> int:
    if result.of is None:
        if json or prices != type(prices)():
            raise BadInput("of must be given a result folder, or cost the name of a system, such as shoal")
        return main(["cost", "--help"])
    from weft.catalogue import rebuild_call
    from weft.metrics import Result
    from weft.models.parts import Catalogue
    from weft.models.price import cost

    fabric, _ = rebuild_call(Result.load(result.of).provenance)
    found = cost(fabric, [Catalogue.load(path) for path in prices.catalogue], prices.changes)
    if json:
        print_json(found.as_json())
    else:
        print(found)
    return 0
