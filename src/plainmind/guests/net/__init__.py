"""Requests to other machines: `Transport` for one server, `FileServer` for files, `NetFailure` for what goes wrong."""
