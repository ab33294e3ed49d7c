"""How many printed numbers of each paper come out, and how: the same, copied in, fitted, different, not known."""

from weft.models import fpga, merchant, shoal, stardust, tables, tdma

words = (tables.SAME, tables.INPUT, tables.FITTED, tables.DIFFERS, tables.NOT_KNOWN)
print(f"{'':10}" + "".join(f"{word:>11}" for word in words))
for model in (shoal, merchant, stardust, fpga, tdma):
    paper = model.__name__.rpartition(".")[2]
    rows = [row.verdict for key in tables.printed(paper) for row in model.table(key).rows]
    print(f"{paper:10}" + "".join(f"{rows.count(word):>11}" for word in words))
