"""`weft cost`: price, power, space, cables and limits of each paper's system, with no simulation."""

from cyclopts import App

from weft.cli import COMMANDS
from weft.cli.flags import described, group
from weft.cli.options import print_json


def make(tokens) -> App:
    """The command; if the tokens already name a question, with that one only."""
    from weft.models.reports import QUESTIONS

    names = tokens[:1] if tokens[:1] and tokens[0] in QUESTIONS else QUESTIONS
    return group("cost", COMMANDS["cost"], {name: _command(name) for name in names})


def _command(name):
    from weft.models.reports import question
    from weft.models.reports.answer import Prices

    return described(_print, name, design=question(name), prices=Prices)


def _print(design, prices, json: bool) -> None:
    answer = design.answer(prices)
    if json:
        print_json(answer.data)
    else:
        print(answer.text)
