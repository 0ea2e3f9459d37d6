"""Kept tables of experiments that are defined in the cells of a chapter, as chapters 7, 8 and 15 still have them.

A chapter that is written anew has its experiments in a module, and asks for their tables by ``run.table``.
"""
