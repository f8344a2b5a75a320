"""Formulas in Python that decompose ops into traced ops; a module for each op family."""
