"""The subcommands of `verl-sql`, one module each; every module offers `register(app)`."""
