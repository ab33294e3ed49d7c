"""Figures of our own: questions that no paper has printed an answer to."""
