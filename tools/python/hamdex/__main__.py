"""The command line `hamdex`, as a script of the package and as `python -m hamdex`."""

import signal
import sys

from . import _hamdex


def main() -> None:
    """Runs the command line with the arguments of this process and exits with its status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Otherwise Python would raise KeyboardInterrupt after the program handled Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_hamdex._command(["hamdex", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
