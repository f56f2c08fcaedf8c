"""What only the notebooks need: data, small networks, costs taken apart step by step."""
