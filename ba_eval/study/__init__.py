"""A study of the aggregation rules: rules x seeds trained, evaluated at every saved step, compared."""
