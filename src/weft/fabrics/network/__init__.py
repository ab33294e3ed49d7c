"""Packet-switched networks, for every room that is one: ports, queues, routes, failures, kernel and twin.

A room derives from `fabric.Network` and describes a graph of hosts, switches and links; transports are those of
`weft.hosts`. This package is no room itself, and knows none.
"""
