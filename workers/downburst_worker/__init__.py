"""The Python agent beside a node: starts it, tells it what is wanted, writes down what it says."""
