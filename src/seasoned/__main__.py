"""`python -m seasoned`: the same as the command `seasoned`."""

from seasoned.cli import main

if __name__ == "__main__":
    main()
