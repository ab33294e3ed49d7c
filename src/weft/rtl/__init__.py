"""The same designs as hardware, in Amaranth: simulated, checked against the models, proved, measured."""
