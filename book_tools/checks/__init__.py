"""The checks of what was run and built: claims and numbers, pages in a browser, copies in a bare environment."""
