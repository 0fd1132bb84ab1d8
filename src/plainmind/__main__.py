"""`python -m plainmind` is the `plainmind` command."""

from plainmind.cli import run

if __name__ == "__main__":
    run()
