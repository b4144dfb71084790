"""`accelerate launch -m ba_eval.train CONFIG`: `ba-eval train` on several processes."""

import sys

from ba_eval.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
