"""What carries messages between coordinator and sites."""
