"""What is seen of board ``rtl``: traces of the buses, counters, waves."""
