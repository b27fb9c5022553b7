"""Which law: criteria, hold-outs, tests of fixed exponents, and how much a choice of rows or objective decides."""
