import sys

from ba_eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
