"""The same work beside what people would pick instead, all in one run: `make compare` writes docs/compare.md.

A peer is one module in `peers/`: how it is installed into an environment of its own, prepared, told to index and to
search, and what it shows. One that can stay open has a program in `residents/`, in its own language, that is asked
line by line. `work.py` has the notes and the questions, `processes.py` what processes take, `judge.py` whether the
shown text holds the evidence, `course.py` the order in which all is done, `page.py` the page. A run is kept in
`results.json`, and the page is written from it.
"""
