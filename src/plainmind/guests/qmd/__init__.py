"""QMD, an external search program, as a back end."""
