"""Ops decomposed into traced ones in Python, one module per family of ops."""
