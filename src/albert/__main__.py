"""`python -m albert` is the `albert` command (also under torchrun)."""

from albert.cli import main

if __name__ == "__main__":
    main()
