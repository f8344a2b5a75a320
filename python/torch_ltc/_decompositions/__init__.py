"""Ops decomposed into traced ones in Python, one module a family of ops."""
