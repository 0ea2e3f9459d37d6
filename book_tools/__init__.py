"""The pipeline of the book: execute every chapter once, build the site from that run, check both.

Chapters never import this package.  ``python -m book_tools --help`` lists its commands.
"""
