"""WHAT IT MEANS: tables for the terminal, plots for the paper."""
