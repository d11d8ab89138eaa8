"""Flower as the backend: its SuperLink beside the coordinator, its SuperNode beside each site."""
