"""`python -m tidetable.cli`: the same as the command `tidetable`."""

from tidetable.cli import main

if __name__ == "__main__":
    main()
