"""Speed and memory, each against a yardstick measured in the same run: `make bench`.

    cases       the banks that are timed, as overrides of the training command
    flops       how many floating-point operations a step of a bank needs, whatever code runs it
    workers     a process a row: it sets up, then runs one repetition each time it is asked
    bank_row, plain_row, torch_row, peak_row, compile_row    what the workers run
    answer      a whole training, from the command to the exponent
    table       the table and its JSON

Rows are interleaved: every round runs each row once, so that a slow minute of the machine slows all of them.
"""
