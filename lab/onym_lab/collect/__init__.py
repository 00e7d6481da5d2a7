"""What is measured and how it is kept: sampler, captures, packets, the paper's formats."""
