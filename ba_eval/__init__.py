"""Which of these checkpoints is better at reasoning and code, and is the difference real?"""

__version__ = "0.1.0"
