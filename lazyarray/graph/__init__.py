"""Element-wise work that is recorded, and computed together when somebody needs a value."""
