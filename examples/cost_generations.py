"""The same fat tree from one generation of switch chips to the next, and with cheaper optics."""

from weft.models.merchant import Switch
from weft.models.parts import Catalogue

today = Catalogue.named("merchant-2009")
cheap = today.change("SFP+", price=125).change("QSFP", price=300)

print("chip ports     ports   chips   $ per port   with optics at half price   fibre cables")
for radix in (24, 32, 48, 64):
    switch = Switch(radix=radix)
    bill = switch.chips_and_optics()
    a, b = (catalogue.price(bill) / switch.ports for catalogue in (today, cheap))
    print(f"{radix:10}   {switch.ports:7,}   {bill['ASIC']:5,}   {a:10.0f}   {b:25.0f}   {switch.long_cables:12,}")
print("every chip at the price of a 24-port one: the paper prints no other")
