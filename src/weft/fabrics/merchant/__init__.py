"""A fat tree of merchant silicon and the groomers in its middle (HOTI '09)."""
