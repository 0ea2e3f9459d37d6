"""The pipeline of the book: execute every chapter once, build the site from that run, check both.

Chapters never import this package.  ``python -m book_tools --help`` lists its commands.  Its folders are floors too:

=====  ==============  ==============================================================================
floor  folder          what lives there
=====  ==============  ==============================================================================
6      this file       where the command line begins
5      ``cli``         the commands and their options
4      ``checks``      what is tried on a finished run and on a built site
3      ``site``        from a finished run to pages, and to the editions on paper
2      ``colab``       the copies of the chapters that run elsewhere
1      ``execution``   executing the chapters, and what a run leaves
0      other files     the book's files and places, notebooks, git, messages
=====  ==============  ==============================================================================
"""
