"""Data Center Switch Architecture in the Age of Merchant Silicon (HOTI '09): what of it runs.

The images of the printed figures were not available to us, only the text.
"""
