"""Tables and figures of the papers behind this library, run again and judged: `counterveil reproduce`."""
