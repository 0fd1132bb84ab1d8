"""`python -m commonplace` is the `commonplace` command."""

from commonplace.surfaces.cli.main import run

if __name__ == "__main__":
    run()
