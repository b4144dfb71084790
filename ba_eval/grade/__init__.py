"""Graders: math answers and programs, each in processes that can be killed."""
