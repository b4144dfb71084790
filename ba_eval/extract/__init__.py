"""What counts as the answer in a response: thinking is left out, then the final answer or the program is found."""
