"""Practical TDMA for Datacenter Ethernet (EuroSys '12): a fabric manager that tells hosts when to send, and to whom."""
