"""What `weft cost` answers: a question per system, whose fields are its flags and whose answer is data and a text."""

from importlib import import_module

QUESTIONS = {
    name: f"weft.models.reports.{name}:{cls}"
    for name, cls in (
        ("shoal", "Shoal"), ("merchant", "Merchant"), ("stardust", "Stardust"), ("fpga", "Fpga"), ("tdma", "Tdma"),
        ("compare", "Compare"),
    )
}  # fmt: skip


def question(name: str):
    """The class of a question by its name."""
    module, _, cls = QUESTIONS[name].partition(":")
    return getattr(import_module(module), cls)
