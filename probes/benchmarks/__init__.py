"""Question-answering benchmarks of the BBQ family: one loader a data set, one way to score them."""
