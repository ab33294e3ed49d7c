"""What was measured on hardware that was built: clocks and cycles that simulations start from, and models too."""
