"""What REST does with a namespace beside its policies."""
